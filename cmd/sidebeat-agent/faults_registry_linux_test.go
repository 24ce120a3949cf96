package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

// The registry comes and goes each second. As long as it is there half of the
// time no consumer sees anything of it, and the log stays short.
func TestRegistryFlaps(t *testing.T) {
	t.Parallel()
	y := fence(t)
	// Beats that fall now into a second with a registry, now into one without.
	y.env = []string{"SIDEBEAT_METADATA=preserved.heart.beat.interval=1300,preserved.heart.beat.timeout=5000,preserved.ip.delete.timeout=9000"}
	y.start()
	y.listed("healthy")
	flaps := 6 * *faults // a full run is a minute of up and down and one more
	y.stays("healthy", 0, func() {
		for range flaps {
			y.cut()
			run.Wait(t.Context(), time.Second)
			y.join()
			run.Wait(t.Context(), time.Second)
		}
	})
	if n := strings.Count(y.log.String(), "\n"); n > 4+2*flaps {
		t.Errorf("%d lines for %d flaps:\n%s", n, flaps, y.log.String())
	}
	if y.said("the app is down") > 0 {
		t.Errorf("the app was never down:\n%s", y.log.String())
	}
	if n := y.said(`"msg":"registered"`); n != 1 {
		t.Errorf("registered %d times, want once:\n%s", n, y.log.String())
	}
}

func says(status int, kind, body string) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.SetStatusCode(status)
		ctx.SetContentType(kind)
		ctx.SetBodyString(body)
	}
}

// What answers in place of the registry is none: nothing is taken for done, the
// cause is told, and as soon as the registry answers all is as it should be.
func TestWhatIsNoRegistry(t *testing.T) {
	loop := func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set("Location", string(ctx.RequestURI()))
		ctx.SetStatusCode(http.StatusTemporaryRedirect)
	}
	f := func(name, cause string, answer fasthttp.RequestHandler) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := fence(t)
			y.env = []string{"SIDEBEAT_METADATA=preserved.heart.beat.interval=1000,preserved.heart.beat.timeout=4000,preserved.ip.delete.timeout=8000"}
			y.spoil.Store(&answer)
			y.start()
			y.until("telling "+cause, func() bool { _, body := y.get("/status"); return strings.Contains(body, cause) })
			if status, body := y.get("/readyz"); status != http.StatusServiceUnavailable {
				t.Errorf("ready: %d %s", status, body)
			}
			if status, body := y.get("/healthz"); status != http.StatusOK {
				t.Errorf("not healthy: %d %s", status, body)
			}
			y.spoil.Store(nil)
			y.listed("healthy")
			before := y.calls.Load()
			y.stays("healthy", 0, func() { // a captive hour in the middle of a life
				y.spoil.Store(&answer)
				run.Wait(t.Context(), 2*time.Second)
				y.spoil.Store(nil)
				run.Wait(t.Context(), 2*time.Second)
			})
			if made := y.calls.Load() - before; made > 20 {
				t.Errorf("%d calls in 4 s: redirects are followed, or there is a storm", made)
			}
			if n := y.said("the app is down"); n > 0 {
				t.Errorf("what the registry says counts against the app:\n%s", y.log.String())
			}
		})
	}
	f("content type", "a write that is done is answered ok", says(200, "image/png", "ok"))
	f("captive page", "a web page", says(200, "text/html; charset=utf-8", "<!DOCTYPE html><title>Welcome to the guest network</title>"))
	f("error inside 200", "boom", says(200, "application/json", `{"code":500,"message":"boom","data":null}`))
	f("redirect loop", "a redirect", loop)
	f("large page", "too large", says(200, "application/json", strings.Repeat(" ", 5<<20)))
}

// The app is killed and started again, again and again: each time it is out of
// the healthy list and back in it, and nothing piles up.
func TestAppRestarts(t *testing.T) {
	t.Parallel()
	y := fence(t)
	y.env = []string{"SIDEBEAT_CHECK_FALL=2"}
	y.appDown()
	app := y.startApp()
	y.start()
	y.listed("healthy")
	files := openFiles(t, y)
	for range 10 * *faults {
		kill(app)
		y.listed("unhealthy")
		app = y.startApp()
		y.listed("healthy")
	}
	defer kill(app)
	if now := openFiles(t, y); now > files+3 {
		t.Errorf("%d files are open, %d were at the start", now, files)
	}
	// A second loop would beat beside the first.
	before := y.calls.Load()
	y.stays("healthy", 6*time.Second, nil)
	if made := y.calls.Load() - before; made > 4 {
		t.Errorf("%d calls in 6 s, want a beat or two and a look", made)
	}
}

// startApp runs the app as a process, which may be killed.
func (y *yard) startApp() *exec.Cmd {
	y.Helper()
	app := exec.Command("legacy-app", y.app)
	app.Stderr = &y.log
	if err := app.Start(); err != nil {
		y.Fatal(err)
	}
	return app
}

func kill(app *exec.Cmd) {
	app.Process.Kill()
	app.Wait()
}

func openFiles(t *testing.T, y *yard) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", y.child.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
