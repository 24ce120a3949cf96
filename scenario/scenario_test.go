package scenario

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, file, string(text))
		})
	}
}

// play plays one file in a bubble of its own.
func play(t *testing.T, file, text string) {
	script, err := parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, store: registry.NewStore(), start: time.Now()}
		s.begin()
		defer s.end()
		for _, line := range script {
			time.Sleep(time.Until(s.start.Add(line.at)))
			synctest.Wait()
			if complaint := s.perform(line); complaint != "" {
				t.Errorf("%s:%d: %s\n\t%s", file, line.number, line.text, complaint)
			}
		}
	})
}

// A scenario that nothing could break would show nothing.
func TestAScenarioThatIsWrongFails(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		script, err := parse("x", text)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", text, err, want)
			}
			return
		}
		synctest.Test(t, func(t *testing.T) {
			s := &stage{T: t, store: registry.NewStore(), start: time.Now()}
			var got []string
			for _, line := range script {
				got = append(got, s.perform(line))
			}
			if !strings.Contains(strings.Join(got, "\n"), want) {
				t.Errorf("%s: got %q, want %s", text, got, want)
			}
		})
	}
	f("0s register orders 10.0.0.1:80\n1s list orders: nothing", "10.0.0.1:80 healthy")
	f("0s register orders 10.0.0.1:80\n1s list orders: 10.0.0.1:80 unhealthy", "10.0.0.1:80 healthy")
	f("0s register orders 10.0.0.1:80\n1s list orders: 10.0.0.1:80 healthy weight=2", "10.0.0.1:80 healthy")
	f("0s register orders 10.0.0.1:80\n1s services: db", "orders")
	f("0s register orders 10.0.0.1:80 -> refused", "no error")
	f("0s beat orders 10.0.0.1:80", "not found")
	f("0s beat orders 10.0.0.1:80 -> refused", "not found")
	f("0s register orders 10.0.0.1:80 weight=-1 -> refused: what", "weights range")
	f("0s beats orders 10.0.0.1:80: 5s", "not found")
	f("5s restart\n4s restart", "before the line above")
	f("0s dance", `"dance"`)
	f("soon restart", "soon")
	f("0s register orders nowhere", "nowhere")
	f("0s register orders 10.0.0.1:80 weight=much", "much")
	f("0s register orders 10.0.0.1:80 lazy", "lazy")
	f("0s list orders", "colon")
	f("0s beat orders 10.0.0.1:80 every 0s until 5s", "every")
}

// stage is the registry of a scenario and whether it runs.
type stage struct {
	*testing.T
	store *registry.Store
	start time.Time
	stop  context.CancelFunc
	ended chan error
}

func (s *stage) begin() {
	ctx, stop := context.WithCancel(s.Context())
	store, ended := s.store, make(chan error)
	s.stop, s.ended = stop, ended
	go func() { ended <- store.Run(ctx) }()
}

func (s *stage) end() {
	s.stop()
	if err := <-s.ended; err != nil {
		s.Error(err)
	}
}

// restart keeps what a snapshot keeps.
func (s *stage) restart() error {
	s.end()
	write, err := s.store.Snapshot()
	if err != nil {
		return err
	}
	var image bytes.Buffer
	if err := write(&image); err != nil {
		return err
	}
	s.store = registry.NewStore()
	defer s.begin()
	return s.store.Restore(&image)
}

// sleep stops the process and lets it go on: no sweep in between.
func (s *stage) sleep(d time.Duration) {
	s.end()
	time.Sleep(d)
	s.begin()
}
