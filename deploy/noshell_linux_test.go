package deploy_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An image without a shell: which ways there are to ask by a program.
func TestPlayNoShell(t *testing.T) {
	onStage(t, func(s *stage) {
		const image = "/image" // the agent's root: the binary, and the volume
		s.copyFile("/sidebeat-agent", image+"/sidebeat-agent", 0o755)
		s.write(image+"/shared/script.sh", "#!/bin/sh\nexit 0\n", 0o755)
		s.write(image+"/shared/alive", "", 0o644)
		s.copyFile("/sidebeat-prober", image+"/shared/static", 0o755) // stands for a checker that is linked statically
		s.must(os.Chtimes(image+"/shared/alive", time.Now(), time.Now()))
		for _, folder := range []string{"/dev", "/proc"} { // as an engine gives them
			s.must(os.MkdirAll(image+folder, 0o755))
			s.must(unix.Mount(folder, image+folder, "", unix.MS_BIND, ""))
		}
		ask := func(check string) (said string, code int) {
			return s.run("check", 0, []string{"SIDEBEAT_SERVICE=app", "SIDEBEAT_ADDRESS=10.0.0.7:80", "SIDEBEAT_CHECK=" + check},
				"/usr/sbin/chroot", "--userspec=65532:65532", image, "/sidebeat-agent", "check")
		}
		f := func(check, said string, code int) {
			t.Helper()
			if got, gotCode := ask(check); gotCode != code || !strings.Contains(got, said) {
				t.Errorf("%s: code %d: %s; want %d and %q", check, gotCode, got, code, said)
			}
		}
		f("exec:/shared/script.sh", "cannot run /shared/script.sh", 1)
		f("exec:/shared/static?arg=--version", "exit 0", 0)
		f("file:/shared/alive#age=10s", "file touched", 0)

		// A shared process namespace: the files of a process of the same user.
		app := s.start("app", imageUser, []string{"SIDEBEAT_LISTEN=127.0.0.1:0", "SIDEBEAT_ADMIN=off", "SIDEBEAT_DATA=/tmp/app"}, "/sidebeat-registry")
		f("exec:/proc/"+strconv.Itoa(app.Process.Pid)+"/root"+programs+"/sidebeat-prober?arg=--version", "exit 0", 0)
		f("exec:/proc/1/root"+programs+"/sidebeat-prober?arg=--version", "permission denied", 1)
	})
}
