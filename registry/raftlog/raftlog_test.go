package raftlog_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/registry/raftlog"
)

func TestWhatWasAppendedIsThereAgain(t *testing.T) {
	folder := t.TempDir()
	l := start(t, raftlog.Config{Folder: folder})
	for want := 1; want <= 3; want++ {
		if got, err := l.Append(t.Context(), []byte("a")); err != nil || got != want {
			t.Fatalf("got %v %v, want %d", got, err, want)
		}
	}
	if got, err := l.Append(t.Context(), []byte("refuse")); err != nil || fmt.Sprint(got) != "refused" {
		t.Errorf("got %v %v, want what the machine answered", got, err)
	}
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, raftlog.Config{Folder: folder})
	if got := again.machine.count("a"); got != 3 {
		t.Errorf("%d of 3 commands are there again", got)
	}
	if text := l.lines.String() + again.lines.String(); strings.Contains(text, "level=") {
		t.Errorf("a healthy log writes nothing at info, but wrote:\n%s", text)
	}
}

func TestStartIsQuick(t *testing.T) {
	folder := t.TempDir()
	for range 5 {
		began := time.Now()
		l := start(t, raftlog.Config{Folder: folder})
		t.Log("ready after", time.Since(began))
		l.stop()
	}
}

func TestManyAtOnce(t *testing.T) {
	l := start(t, raftlog.Config{Folder: t.TempDir()})
	began := time.Now()
	var all sync.WaitGroup
	const workers, each = 512, 100
	for w := range workers {
		all.Go(func() {
			for i := range each {
				if _, err := l.Append(t.Context(), fmt.Appendf(nil, "%d-%d %s", w, i, strings.Repeat("x", 200))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	t.Log(workers*each/time.Since(began).Seconds(), "commands a second")
	began = time.Now()
	l.stop()
	t.Log("stop", time.Since(began))
}
