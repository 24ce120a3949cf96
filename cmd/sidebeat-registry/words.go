package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

const usage = `usage: sidebeat-registry [health | config | user NAME [ROLES] | --help | --version]

  (none)     serves until SIGTERM, then finishes what was begun; a second signal
             leaves at once
  health     asks the running registry whether it works (for exec probes)
  config     prints the settings in force, secrets hidden
  user       reads a password from stdin and prints a line for SIDEBEAT_USERS_FILE;
             ROLES are read (which it is without them), write, admin, each for all
             namespaces or @NAMESPACE: read,write@payments
  --help     prints this and all settings
  --version  prints the version

exit codes: 0 well; 1 it could not run, or the answer is no; 2 a setting or a word is wrong;
            130 left at a second signal
`

func command(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		return runRegistry(stderr)
	}
	words := map[string]func(io.Writer, io.Writer) int{
		"health": askHealth, "config": printConfig,
		"--help": printHelp, "-h": printHelp, "help": printHelp, "--version": printVersion, "version": printVersion,
	}
	if args[0] == "user" {
		return addUser(args[1:], os.Stdin, stdout, stderr)
	}
	word, known := words[args[0]]
	if !known || len(args) > 1 {
		fmt.Fprintf(stderr, "sidebeat-registry: cannot understand %q\n\n%s", strings.Join(args, " "), usage)
		return exitUsage
	}
	return word(stdout, stderr)
}

// load reads the settings; what is odd but harmless is written to stderr.
func load(stderr io.Writer) (Config, error) {
	var c Config
	warnings, err := setting.Load(&c)
	for _, w := range warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	return c, err
}

func runRegistry(stderr io.Writer) int {
	c, err := load(stderr)
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	if err := serve(c); err != nil {
		return fail(stderr, exitFailed, err)
	}
	return exitOK
}

func fail(w io.Writer, code int, err error) int {
	fmt.Fprintln(w, "sidebeat-registry:", err)
	return code
}

func askHealth(stdout, stderr io.Writer) int {
	// Only the way there counts here: another setting that is wrong is the
	// running registry's business.
	var c struct {
		Admin string `split_words:"true" default:"127.0.0.1:9182"`
		setting.Listeners
	}
	setting.Load(&c)
	itself, err := c.Itself()
	if err != nil {
		return fail(stderr, exitFailed, err)
	}
	status, body, err := admin.Client{Address: c.Admin, TLS: itself}.Get(context.Background(), "/healthz")
	text := strings.TrimSpace(string(body))
	switch {
	case err != nil:
		return fail(stderr, exitFailed, err)
	case status != 200:
		return fail(stderr, exitFailed, errors.New(text))
	}
	fmt.Fprintln(stdout, text)
	return exitOK
}

func printConfig(stdout, stderr io.Writer) int {
	c, err := load(stderr)
	setting.Print(stdout, &c)
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	return exitOK
}

func printHelp(stdout, _ io.Writer) int {
	fmt.Fprint(stdout, usage, "\nsettings:\n\n")
	setting.Help(stdout, &Config{})
	return exitOK
}

func printVersion(stdout, _ io.Writer) int {
	fmt.Fprintln(stdout, "sidebeat-registry", version)
	return exitOK
}
