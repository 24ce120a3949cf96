package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/sidebeat/sidebeat/access"
)

// addUser prints the line of a user for the users file: user NAME [ROLES]. The
// password comes from stdin, where no list of processes shows it.
func addUser(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	roles := "read"
	switch len(args) {
	case 1:
	case 2:
		roles = args[1]
	default:
		fmt.Fprintf(stderr, "sidebeat-registry: user wants a name and perhaps roles, as read,write@payments\n\n%s", usage)
		return exitUsage
	}
	password, err := readPassword(stdin, stderr)
	if err != nil {
		return fail(stderr, exitFailed, err)
	}
	line, err := access.Line(args[0], password, roles)
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	fmt.Fprintln(stdout, line)
	return exitOK
}

// readPassword asks on a terminal, twice and without an echo; else it takes the
// first line.
func readPassword(stdin io.Reader, stderr io.Writer) (string, error) {
	if file, ok := stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return askPassword(int(file.Fd()), stderr)
	}
	line, err := bufio.NewReader(io.LimitReader(stdin, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("cannot read the password: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func askPassword(fd int, stderr io.Writer) (string, error) {
	var given [2]string
	for i, text := range []string{"Password: ", "Once more: "} {
		fmt.Fprint(stderr, text)
		line, err := term.ReadPassword(fd)
		fmt.Fprintln(stderr)
		if err != nil {
			return "", fmt.Errorf("cannot read the password: %w", err)
		}
		given[i] = string(line)
	}
	if given[0] != given[1] {
		return "", errors.New("cannot take this password: it was typed in two ways")
	}
	return given[0], nil
}
