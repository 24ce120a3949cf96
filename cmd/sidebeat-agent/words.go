package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/agent"
	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/setting"
)

const usage = `usage: sidebeat-agent [health | drain | check | config | --help | --version]

  (none)     looks after the app until SIGTERM, then takes it out of the registry;
             a second signal leaves at once
  health     asks the running agent whether it works (for exec probes)
  drain      takes the app out of the registry and waits for that (for preStop)
  check      asks all checks once and says what they answered
  config     prints the settings, secrets hidden
  --help     prints this and all settings
  --version  prints the version

exit codes: 0 well; 1 it could not run, or the answer is no; 2 a setting or a word is wrong;
            3 the instance could not be deregistered and may still be listed; 130 left at a second signal
`

func command(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		return runAgent(stderr)
	}
	words := map[string]func(io.Writer, io.Writer) int{
		"health": askHealth, "drain": askDrain, "check": askChecks, "config": printConfig,
		"--help": printHelp, "-h": printHelp, "help": printHelp, "--version": printVersion, "version": printVersion,
	}
	word, known := words[args[0]]
	if !known || len(args) > 1 {
		fmt.Fprintf(stderr, "sidebeat-agent: cannot understand %q\n\n%s", strings.Join(args, " "), usage)
		return exitUsage
	}
	return word(stdout, stderr)
}

// running finds the running agent; the settings of the app need not be there,
// and one that is wrong is the running agent's business.
func running() (admin.Client, error) {
	var c struct {
		Admin string `split_words:"true" default:"127.0.0.1:9180"`
		setting.Listeners
	}
	setting.Load(&c)
	itself, err := c.Itself()
	return admin.Client{Address: c.Admin, TLS: itself, Token: c.AdminToken.Value}, err
}

func askHealth(stdout, stderr io.Writer) int {
	a, err := running()
	if err != nil {
		return fail(stderr, exitFailed, err)
	}
	status, body, err := a.Get(context.Background(), "/healthz")
	return report(stdout, stderr, status, body, err)
}

func askDrain(stdout, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(context.Background(), agent.DrainMost)
	defer cancel()
	a, err := running()
	if err != nil {
		return fail(stderr, exitFailed, err)
	}
	status, body, err := a.Post(ctx, "/drain")
	return report(stdout, stderr, status, body, err)
}

func report(stdout, stderr io.Writer, status int, body []byte, err error) int {
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

func askChecks(stdout, stderr io.Writer) int {
	p, err := join(stderr)
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	defer p.client.Close()
	defer p.asker.Close()
	code := exitOK
	for _, app := range p.agent.AskOnce(context.Background()) {
		fmt.Fprintf(stdout, "%s: %s\n", app.Service, app.Verdict)
		for _, c := range app.Checks {
			fmt.Fprintf(stdout, "  %-7s %s: %s (%v)\n", c.Kind, c.Check, c.Reason, c.Took.Round(time.Microsecond))
		}
		if app.Verdict != health.Up {
			code = exitFailed
		}
	}
	return code
}

func printConfig(stdout, stderr io.Writer) int {
	var s settings
	warnings, err := setting.Load(&s.Config, &s.Log)
	for _, w := range warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	setting.Print(stdout, &s.Config, &s.Log)
	if len(s.Nacos) > 0 { // else it has been said
		err = errors.Join(err, nacos.CheckServers("SIDEBEAT_NACOS", s.Nacos))
	}
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	return exitOK
}

func printHelp(stdout, _ io.Writer) int {
	fmt.Fprint(stdout, usage, "\nsettings:\n\n")
	setting.Help(stdout, &agent.Config{}, &setting.Log{})
	return exitOK
}

func printVersion(stdout, _ io.Writer) int {
	fmt.Fprintln(stdout, "sidebeat-agent", version)
	return exitOK
}
