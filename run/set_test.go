package run

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSetBoundsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, set := time.Now(), NewSet(2)
		work := func() { Wait(t.Context(), time.Second) }
		for range 2 {
			if !set.Go(work) {
				t.Fatal("refused although places were free")
			}
		}
		if set.Go(work) {
			t.Error("a third one was started, 2 are allowed")
		}
		set.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("waited %v, want 1s", took)
		}
		if !set.Go(work) {
			t.Error("refused although the places are free again")
		}
		set.Wait()
	})
}
