package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sidebeat/sidebeat/access"
)

// secretFile is where the secret of tokens is kept when nobody gives one.
const secretFile = "token-secret"

// openAccess opens the users file, if there is one.
func (p *parts) openAccess() (err error) {
	if p.UsersFile == "" {
		return nil
	}
	secret := p.TokenSecret.Value
	if p.TokenSecret.String() == "" {
		kept, err := keptSecret(filepath.Join(p.Data, secretFile))
		if err != nil {
			return err
		}
		secret = func() (string, error) { return kept, nil }
	}
	p.access, err = access.Open(access.Config{UsersFile: p.UsersFile, Secret: secret, TokenLife: p.TokenLife, Log: p.log})
	return err
}

// keptSecret reads the secret that was made at an earlier start, or makes one:
// tokens outlive a restart.
func keptSecret(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(text))) >= access.SecretLeast {
		return strings.TrimSpace(string(text)), nil
	}
	if err == nil {
		return "", fmt.Errorf("cannot use %s: it is too short; remove it, a new one is made then", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read the secret of tokens: %w", err)
	}
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	secret := hex.EncodeToString(raw[:])
	if err := writeWhole(path, secret+"\n"); err != nil {
		return "", fmt.Errorf("cannot keep the secret of tokens: %w", err)
	}
	return secret, nil
}

// writeWhole writes a file so that it is there with all its content or not at
// all, also after the power was cut.
func writeWhole(path, text string) error {
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// guard watches users and secret, if auth is on.
func (p *parts) guard(ctx context.Context) error {
	if p.access == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.access.Run(ctx)
}
