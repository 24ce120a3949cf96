package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/setting"
)

// Exit codes; 130 is a second signal.
const (
	exitOK     = 0
	exitFailed = 1 // it could not run, or the answer is no
	exitUsage  = 2 // a setting or a word on the command line is wrong
)

const usage = `usage: sidebeat-prober [health | config | --help | --version]

  (none)     probes until SIGTERM; a second signal leaves at once
  health     asks the running prober whether it works (for exec probes)
  config     prints the settings in force, secrets hidden
  --help     prints this and all settings
  --version  prints the version

exit codes: 0 well; 1 it could not run, or the answer is no; 2 a setting or a word is wrong;
            130 left at a second signal
`

func command(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		return runProber(stderr)
	}
	words := map[string]func(io.Writer, io.Writer) int{
		"health": askHealth, "config": printConfig,
		"--help": printHelp, "-h": printHelp, "help": printHelp, "--version": printVersion, "version": printVersion,
	}
	word, known := words[args[0]]
	if !known || len(args) > 1 {
		fmt.Fprintf(stderr, "sidebeat-prober: cannot understand %q\n\n%s", strings.Join(args, " "), usage)
		return exitUsage
	}
	return word(stdout, stderr)
}

// load reads the settings; what is odd but harmless is written to stderr.
func load(stderr io.Writer) (*settings, error) {
	var s settings
	warnings, err := setting.Load(&s)
	for _, w := range warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	return &s, err
}

func fail(w io.Writer, code int, err error) int {
	fmt.Fprintln(w, "sidebeat-prober:", err)
	return code
}

func askHealth(stdout, stderr io.Writer) int {
	// Only the way there counts here: another setting that is wrong is the
	// running prober's business.
	var s struct {
		Admin string `split_words:"true" default:"127.0.0.1:9181"`
		setting.Listeners
	}
	setting.Load(&s)
	itself, err := s.Itself()
	if err != nil {
		return fail(stderr, exitFailed, err)
	}
	status, body, err := admin.Client{Address: s.Admin, TLS: itself}.Get(context.Background(), "/healthz")
	text := strings.TrimSpace(string(body))
	switch {
	case err != nil:
		return fail(stderr, exitFailed, err)
	case status != http.StatusOK:
		return fail(stderr, exitFailed, errors.New(text))
	}
	fmt.Fprintln(stdout, text)
	return exitOK
}

func printConfig(stdout, stderr io.Writer) int {
	s, err := load(stderr)
	setting.Print(stdout, s)
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	return exitOK
}

func printHelp(stdout, _ io.Writer) int {
	fmt.Fprint(stdout, usage, "\nsettings:\n\n")
	setting.Help(stdout, &settings{})
	return exitOK
}

func printVersion(stdout, _ io.Writer) int {
	fmt.Fprintln(stdout, "sidebeat-prober", version)
	return exitOK
}
