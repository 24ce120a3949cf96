package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// password is that of the only user. Nothing prints it.
const password = "forty-two-beats"

// makeUser writes a users file with one user who may do everything.
func (s *scene) makeUser(path string) error {
	maker := exec.Command(s.registry, "user", "nacos", "admin")
	maker.Stdin = strings.NewReader(password + "\n")
	line, err := maker.Output()
	if err != nil {
		return fmt.Errorf("cannot make a user: %w", err)
	}
	return os.WriteFile(path, line, 0o600)
}
