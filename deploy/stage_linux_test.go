package deploy_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sidebeat/sidebeat/run"
)

// A stage is a machine of its own for one test: processes, network and root
// file system are its own, and gone with it. So files of this folder are played
// as they are written: their ports, their host names, their paths. The root is
// a layer over this machine's; the network is a loopback with the addresses
// that the test gives to its hosts.
type stage struct {
	*testing.T
	hosts map[string]string // name: address
}

// The repository and the programs on a stage.
const (
	repository = "/repo"
	programs   = "/programs"
)

// imageUser is the numeric user of the images.
const imageUser = 65532

// onStage plays on a stage: the test starts its own binary once more, in new
// namespaces.
func onStage(t *testing.T, play func(*stage)) {
	t.Helper()
	if os.Getenv("DEPLOY_STAGE") != "" {
		s := &stage{t, map[string]string{"localhost": "127.0.0.1"}}
		s.build(os.Getenv("DEPLOY_STAGE"))
		play(s)
		return
	}
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the programs and waits for them")
	}
	if err := exec.Command("unshare", "-mnp", "--fork", "true").Run(); err != nil {
		t.Skipf("NOT PLAYED: new namespaces for files, network and processes need root: %v", err)
	}
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	again.Env = append(os.Environ(), "DEPLOY_STAGE="+builtPrograms(t)+":"+t.TempDir())
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	out, err := again.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, out)
	}
}

// builtPrograms gives a folder with the programs as they ship.
func builtPrograms(t *testing.T) string {
	t.Helper()
	folder, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

var builtInto string // removed at the end

var buildOnce = sync.OnceValues(func() (string, error) {
	// The outcome depends on these: seen by `go test`, which keeps outcomes.
	for _, pattern := range []string{"../*/*.go", "../*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, file := range files {
			if _, err := os.Stat(file); err != nil {
				return "", err
			}
		}
	}
	folder, err := os.MkdirTemp("", "sidebeat-programs-")
	if err != nil {
		return "", err
	}
	builtInto = folder
	if out, err := exec.Command("../.ci/build.sh", folder).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build: %w: %s", err, out)
	}
	return folder, os.Chmod(folder, 0o755)
})

// Tests on a stage wait more than they work: more of them at a time than cores.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "8")
	code := m.Run()
	if builtInto != "" {
		os.RemoveAll(builtInto)
	}
	os.Exit(code)
}

// must ends the test at an error.
func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// build makes the root and goes there; from is PROGRAMS:TEMPORARY.
func (s *stage) build(from string) {
	s.Helper()
	built, temporary, _ := strings.Cut(from, ":")
	root := filepath.Join(temporary, "root")
	here, err := filepath.Abs("..")
	s.must(err)
	s.must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	s.must(unix.Mount("stage", temporary, "tmpfs", 0, "mode=755"))
	for _, name := range []string{"root", "upper", "work"} {
		s.must(os.Mkdir(filepath.Join(temporary, name), 0o755))
	}
	s.must(unix.Mount("stage", root, "overlay", 0, fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%[1]s/work", temporary)))
	for _, folder := range []string{repository, programs, "/proc", "/dev", "/tmp"} {
		s.must(os.MkdirAll(root+folder, 0o755))
	}
	s.must(unix.Mount(here, root+repository, "", unix.MS_BIND|unix.MS_REC, ""))
	s.must(unix.Mount(built, root+programs, "", unix.MS_BIND, ""))
	s.must(unix.Mount("/dev", root+"/dev", "", unix.MS_BIND|unix.MS_REC, ""))
	s.must(unix.Mount("proc", root+"/proc", "proc", 0, ""))
	s.must(unix.Mount("tmp", root+"/tmp", "tmpfs", 0, "mode=1777"))
	s.must(unix.Chroot(root))
	s.must(os.Chdir(repository + "/deploy"))
	for _, program := range []string{"agent", "prober", "registry"} {
		s.copyFile(programs+"/sidebeat-"+program, "/sidebeat-"+program, 0o755)
	}
	s.address("lo", "127.0.0.1")
}

func (s *stage) copyFile(from, to string, mode os.FileMode) {
	s.Helper()
	content, err := os.ReadFile(from)
	s.must(err)
	s.write(to, string(content), mode)
}

func (s *stage) write(path, content string, mode os.FileMode) {
	s.Helper()
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	s.must(os.WriteFile(path, []byte(content), mode))
	s.must(os.Chmod(path, mode))
}

// folder makes one that belongs to a user.
func (s *stage) folder(path string, user int) {
	s.Helper()
	s.must(os.MkdirAll(path, 0o755))
	s.must(os.Chown(path, user, user))
}

// address gives the loopback one more address, under a label.
func (s *stage) address(label, address string) {
	s.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	s.must(err)
	defer unix.Close(socket)
	request, err := unix.NewIfreq(label)
	s.must(err)
	var ip [4]byte
	_, err = fmt.Sscanf(address, "%d.%d.%d.%d", &ip[0], &ip[1], &ip[2], &ip[3])
	s.must(err)
	s.must(request.SetInet4Addr(ip[:]))
	s.must(unix.IoctlIfreq(socket, unix.SIOCSIFADDR, request))
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	s.must(unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request))
}

// host gives a name an address; "" chooses one.
func (s *stage) host(name, address string) string {
	s.Helper()
	n := len(s.hosts)
	address = cmp.Or(address, fmt.Sprintf("10.89.0.%d", n))
	s.address(fmt.Sprintf("lo:%d", n), address)
	s.hosts[name] = address
	var lines strings.Builder
	for name, address := range s.hosts {
		fmt.Fprintln(&lines, address, name)
	}
	s.write("/etc/hosts", lines.String(), 0o644)
	return address
}

// process is a program that runs.
type process struct {
	*exec.Cmd
	name  string
	mu    sync.Mutex
	said  bytes.Buffer
	ended chan struct{} // closed when it has; Cmd.ProcessState is there then
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// start starts a program with these settings and no others.
func (s *stage) start(name string, user int, env []string, command ...string) *process {
	s.Helper()
	p := &process{Cmd: exec.Command(command[0], command[1:]...), name: name, ended: make(chan struct{})}
	p.Dir, p.Env, p.Stdout, p.Stderr = "/", append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/tmp"}, env...), p, p
	p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	s.must(p.Start())
	go func() { p.Wait(); close(p.ended) }()
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("%s said:\n%s", name, p.text())
		}
		p.Process.Kill()
		<-p.ended
	})
	return p
}

// run runs a program to its end.
func (s *stage) run(name string, user int, env []string, command ...string) (said string, code int) {
	s.Helper()
	p := s.start(name, user, env, command...)
	select {
	case <-p.ended:
	case <-s.Context().Done():
		s.Fatalf("%s did not end", name)
	}
	return p.text(), p.ProcessState.ExitCode()
}

// stop ends a program as an engine would, and gives its exit code.
func (s *stage) stop(p *process) int {
	s.Helper()
	s.must(p.Process.Signal(syscall.SIGTERM))
	<-p.ended
	return p.ProcessState.ExitCode()
}

// until waits until something is so.
func (s *stage) until(what string, so func() bool) {
	s.Helper()
	began := time.Now()
	for !so() {
		if time.Since(began) > 30*time.Second {
			s.Fatalf("cannot see that %s", what)
		}
		s.must(run.Wait(s.Context(), 20*time.Millisecond))
	}
	s.Logf("%6.2f s until %s", time.Since(began).Seconds(), what)
}

// get asks by HTTP; 0 when nobody answers.
func (s *stage) get(url string) (status int, body string) {
	s.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	s.must(err)
	return answer.StatusCode, string(text)
}

// listed is one instance as consumers see it.
type listed struct {
	IP      string `json:"ip"`
	Port    int    `json:"port"`
	Healthy bool   `json:"healthy"`
	Enabled bool   `json:"enabled"`
}

func (s *stage) listed(registry, service string) []listed {
	s.Helper()
	status, body := s.get(registry + "/nacos/v1/ns/instance/list?serviceName=" + service)
	if status != 200 {
		return nil
	}
	var answer struct {
		Hosts []listed `json:"hosts"`
	}
	s.must(json.Unmarshal([]byte(body), &answer))
	return answer.Hosts
}

// seen waits until a service's instances are these.
func (s *stage) seen(registry, service string, want ...listed) {
	s.Helper()
	s.until(fmt.Sprintf("%s is %+v", service, want), func() bool { return slices.Equal(s.listed(registry, service), want) })
}
