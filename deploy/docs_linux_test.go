package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fence is one fenced block of a page.
type fence struct {
	at             string // page:line
	language, text string
}

func fences(t *testing.T, page string) (all []fence) {
	t.Helper()
	var open *fence
	number := 0
	for line := range strings.Lines(read(t, page)) {
		number++
		language, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			open = &fence{at: fmt.Sprintf("%s:%d", page, number), language: language}
		case isFence:
			all, open = append(all, *open), nil
		case open != nil:
			open.text += line
		}
	}
	if open != nil {
		t.Errorf("%s: the block is not closed", open.at)
	}
	return all
}

func pages(t *testing.T) []string {
	t.Helper()
	return append(files(t, "../docs/*.md"), "../README.md", "../CONTRIBUTING.md", "../SECURITY.md")
}

// playPage runs all `sh` blocks of a page, one after the other, in a folder as
// an unpacked release leaves it. A comment `# ... TEXT` says what a block must
// print; a block that only asks is asked until it does.
func playPage(t *testing.T, page string, before func(*stage)) {
	needs(t, "bash", "curl", "pkill", "python3")
	onStage(t, func(s *stage) {
		s.must(os.MkdirAll("/try", 0o755))
		s.must(os.Symlink(programs, "/try/bin"))
		s.must(os.Symlink(repository+"/deploy", "/try/deploy"))
		s.write("/tmp/.curlrc", "silent\n", 0o644)
		if before != nil {
			before(s)
		}
		played := 0
		for _, f := range fences(t, page) {
			if f.language == "sh" {
				s.block(f)
				played++
			}
		}
		if played == 0 {
			t.Errorf("%s has nothing to play", page)
		}
	})
}

func (s *stage) block(f fence) {
	s.Helper()
	var want []string
	for _, m := range regexp.MustCompile(`(?m)# \.\.\. (.*)$`).FindAllStringSubmatch(f.text, -1) {
		want = append(want, m[1])
	}
	shown := func() (said string, ok bool) {
		said, err := s.shell(f)
		return said, err == nil && !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(said, w) })
	}
	var said string
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("%s said:\n%s", f.at, said)
		}
	})
	if onlyAsks := !regexp.MustCompile(`(?m)^(?:[^c]|c[^u]|curl.* -X )`).MatchString(f.text); onlyAsks {
		s.until(fmt.Sprintf("%s shows %q", f.at, want), func() (ok bool) { said, ok = shown(); return ok })
	} else {
		var ok bool
		if said, ok = shown(); !ok {
			s.Fatalf("%s fails, or does not show %q", f.at, want)
		}
	}
}

// shell runs a block; what it starts in the background goes on.
func (s *stage) shell(f fence) (said string, err error) {
	s.Helper()
	out, err := os.CreateTemp("", "block-")
	s.must(err)
	defer out.Close()
	bash := exec.Command("bash", "-euo", "pipefail", "-c", f.text)
	bash.Dir, bash.Env = "/try", []string{"PATH=/usr/bin:/bin:/usr/sbin", "HOME=/tmp", "NO_COLOR=1"}
	bash.Stdout, bash.Stderr = out, out // a file: Wait waits for bash only
	err = bash.Run()
	text, _ := os.ReadFile(out.Name())
	return string(text), err
}

// running is what a page takes for granted that is not the README: a registry,
// and the app orders with its agent.
func running(s *stage) {
	_, err := s.shell(fences(s.T, "../README.md")[1])
	s.must(err)
	s.seen(registryURL, "orders", listed{"127.0.0.1", 8080, true, true})
}

func TestPlayReadme(t *testing.T)          { playPage(t, "../README.md", nil) }
func TestPlayHealth(t *testing.T)          { playPage(t, "../docs/health.md", running) }
func TestPlayOperations(t *testing.T)      { playPage(t, "../docs/operations.md", running) }
func TestPlaySecurity(t *testing.T)        { playPage(t, "../docs/security.md", nil) }
func TestPlayTroubleshooting(t *testing.T) { playPage(t, "../docs/troubleshooting.md", running) }

// What the programs measure is what operations.md explains: a row's first name
// says whose the others are, `_so` for sidebeat_registry_so.
func TestPlayMetrics(t *testing.T) {
	onStage(t, func(s *stage) {
		if said, code := s.run("user", 0, nil, "sh", "-c", "echo 'correct horse battery staple' | /sidebeat-registry user nacos admin >/tmp/users"); code != 0 {
			t.Fatal(said)
		}
		s.serveRegistry("SIDEBEAT_USERS_FILE=/tmp/users") // with auth on it measures the most
		s.start("agent", imageUser, []string{"SIDEBEAT_SERVICE=orders", "SIDEBEAT_ADDRESS=10.0.0.7:8080"}, "/sidebeat-agent")
		s.start("prober", imageUser, nil, "/sidebeat-prober")
		var measured []string
		for _, port := range []string{"9180", "9181", "9182"} {
			var text string
			s.until("the program measures", func() bool {
				var status int
				status, text = s.get("http://127.0.0.1:" + port + "/metrics")
				return status == 200
			})
			for _, m := range regexp.MustCompile(`(?m)^(sidebeat_\w+)`).FindAllStringSubmatch(text, -1) {
				measured = append(measured, m[1])
			}
		}
		slices.Sort(measured)
		if diff := cmp.Diff(slices.Compact(measured), explained(t)); diff != "" {
			t.Errorf("measured (-), explained in operations.md (+):\n%s", diff)
		}
	})
}

func explained(t *testing.T) (names []string) {
	t.Helper()
	_, text, _ := strings.Cut(read(t, "../docs/operations.md"), "\n## Metrics\n")
	text, _, _ = strings.Cut(text, "\n## ")
	first := regexp.MustCompile(`^sidebeat_[a-z]+`)
	for line := range strings.Lines(text) {
		whose := ""
		for _, m := range regexp.MustCompile("`(sidebeat_\\w+|_\\w+)(?:\\{[^`]*\\})?`").FindAllStringSubmatch(line, -1) {
			if found := first.FindString(m[1]); found != "" {
				whose = found
				names = append(names, m[1])
			} else {
				names = append(names, whose+m[1])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// What cannot run here (it needs an engine, a cluster, systemd, or builds
// everything) stands in `console` blocks; each of their commands is one of these,
// and what it names exists.
func TestConsoleBlocks(t *testing.T) {
	known := map[string]func(name string) bool{
		`^make ([a-z]+)\b`:                        func(name string) bool { return strings.Contains(read(t, "../Makefile"), "\n"+name+": ") },
		`^docker build --target (\w+) -t \S+ \.$`: func(name string) bool { return strings.Contains(read(t, "../Dockerfile"), " AS "+name+"\n") },
		`^docker compose -f (\S+) up --build$`:    exists,
		`^docker load -i (\S+)$`:                  func(string) bool { return true },
		`^kubectl apply -f (\S+)$`:                exists,
		`^sha256sum --check (SHA256SUMS)$`:        func(string) bool { return true },
		`^systemctl (stop|start) sidebeat-\w+$`:   func(string) bool { return true },
	}
	seen := 0
	for _, page := range pages(t) {
		for _, f := range fences(t, page) {
			if f.language != "console" {
				continue
			}
			for line := range strings.Lines(f.text) {
				command := strings.TrimSpace(strings.Split(line, " #")[0])
				fits := false
				for pattern, ok := range known {
					m := regexp.MustCompile(pattern).FindStringSubmatch(command)
					fits = fits || m != nil && ok(m[1])
				}
				seen++
				if !fits {
					t.Errorf("%s: nobody checks %q", f.at, command)
				}
			}
		}
	}
	if seen < 5 {
		t.Errorf("%d commands were seen", seen)
	}
}

func exists(file string) bool {
	_, err := os.Stat("../" + file)
	return err == nil
}

// A block without a language holds a picture, an example of rules or output,
// never something to type.
func TestCommandsAreRun(t *testing.T) {
	typed := regexp.MustCompile(`(?m)^\s*(?:\$ |curl |make |docker |kubectl |bin/|sidebeat-\w+ \w|SIDEBEAT_\w+=\S+ \S+)`)
	languages := []string{"", "sh", "console", "yaml", "mermaid", "text", "json", "go", "ini", "nginx"}
	for _, page := range pages(t) {
		for _, f := range fences(t, page) {
			if !slices.Contains(languages, f.language) || f.language == "" && typed.MatchString(f.text) {
				t.Errorf("%s: %q is not run by anybody:\n%s", f.at, f.language, f.text)
			}
		}
	}
}

// What stands between backquotes and begins with a program of ours is one of
// its words, and every link within the repository leads somewhere.
func TestWordsAndLinks(t *testing.T) {
	words := map[string]string{}
	for _, name := range []string{"agent", "prober", "registry"} {
		words[name] = read(t, "../cmd/sidebeat-"+name+"/words.go")
	}
	for _, page := range pages(t) {
		text := read(t, page)
		for _, m := range regexp.MustCompile("`(?:bin/)?sidebeat-(agent|prober|registry) ([a-z-]+)`").FindAllStringSubmatch(text, -1) {
			if !strings.Contains(words[m[1]], `"`+m[2]+`":`) {
				t.Errorf("%s: sidebeat-%s has no word %q", page, m[1], m[2])
			}
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			folder := strings.TrimSuffix(page, page[strings.LastIndex(page, "/")+1:])
			if _, err := os.Stat(folder + m[1]); err != nil {
				t.Errorf("%s: the link leads nowhere: %v", page, err)
			}
		}
	}
}
