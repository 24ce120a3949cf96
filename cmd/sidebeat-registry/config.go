package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/access"
	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/prober"
	"github.com/sidebeat/sidebeat/setting"
)

// Probing are the settings of the prober inside.
type Probing = prober.Probe

// Config is what a registry reads from SIDEBEAT_* variables.
type Config struct {
	Listen string `split_words:"true" default:"127.0.0.1:8848" desc:"the Nacos API, host:port; without SIDEBEAT_USERS_FILE whoever reaches it may change everything"`
	Data   string `split_words:"true" default:"./sidebeat-data" desc:"data folder; made when absent, used by one process at a time"`
	Admin  string `split_words:"true" default:"127.0.0.1:9182" desc:"own HTTP: health, status, metrics, targets; off: none"`

	PushAnyAddress bool `split_words:"true" default:"false" desc:"push changes to the clientIP that a 1.x subscriber names, not to where its request came from; needed behind a proxy, and lets anybody have datagrams sent to anybody"`

	Access
	Limit nacos.Limits `split_words:"true"`
	setting.Listeners

	Probe bool `split_words:"true" default:"true" desc:"the prober inside: asks the persistent instances whether they are alive; false: somebody else does, or nobody"`
	Probing

	setting.Log
}

// Access is who may do what.
type Access struct {
	UsersFile   string         `split_words:"true" desc:"users, one a line: NAME HASH ROLES, as sidebeat-registry user makes them; read again when it changes; unset: auth is off"`
	TokenLife   time.Duration  `split_words:"true" default:"5h" desc:"how long a token of a login is good for, 1s to 720h"`
	TokenSecret setting.Secret `split_words:"true" desc:"what signs tokens, at least 32 bytes; tokens of the one before hold until they expire; unset: made once and kept in SIDEBEAT_DATA"`
}

// Validate reads the users file too.
func (a *Access) Validate() error {
	var faults []error
	if a.TokenLife < time.Second || a.TokenLife > 720*time.Hour {
		faults = append(faults, fmt.Errorf("cannot use SIDEBEAT_TOKEN_LIFE=%q: give 1s to 720h", a.TokenLife))
	}
	if secret, err := a.TokenSecret.Value(); err == nil && a.TokenSecret.String() != "" && len(secret) < access.SecretLeast {
		faults = append(faults, fmt.Errorf("cannot use SIDEBEAT_TOKEN_SECRET: it has %d bytes, give %d at least", len(secret), access.SecretLeast))
	}
	if a.UsersFile != "" {
		if err := access.CheckUsers(a.UsersFile); err != nil {
			faults = append(faults, fmt.Errorf("cannot use SIDEBEAT_USERS_FILE=%q: %w", a.UsersFile, err))
		}
	}
	return errors.Join(faults...)
}

// Validate joins what is wrong with the registry's own settings.
func (c *Config) Validate() error {
	faults := []error{setting.CheckListen("SIDEBEAT_LISTEN", c.Listen), setting.CheckListen("SIDEBEAT_ADMIN", c.Admin, admin.Off)}
	if strings.ContainsRune(c.Data, 0) {
		faults = append(faults, errors.New("cannot use SIDEBEAT_DATA: a path holds no NUL"))
	}
	if c.Admin == c.Listen && !strings.HasSuffix(c.Listen, ":0") {
		faults = append(faults, fmt.Errorf("cannot use SIDEBEAT_ADMIN=%q: SIDEBEAT_LISTEN is the same; give another port", c.Admin))
	}
	return errors.Join(faults...)
}
