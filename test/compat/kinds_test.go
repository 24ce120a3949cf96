package compat

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// kinds are the clients. What their packages are is pinned in the files named
// by made.
var kinds = []kind{
	{
		name: "go", made: []string{"../go.mod", "../go.sum", "go/main.go"}, hears: true, login: "/v1/auth/users/login",
		install: func(t *testing.T, folder string) {
			t.Helper()
			runIn(t, ".", "go", "build", "-o", filepath.Join(folder, "client"), "./clients/go")
		},
		start: func(folder string) []string { return []string{filepath.Join(folder, "client")} },
	},
	{
		name: "node", made: []string{"node/package.json", "node/package-lock.json", "node/client.js"}, hears: true,
		install: func(t *testing.T, folder string) {
			t.Helper()
			copyTo(t, folder, "node/package.json", "node/package-lock.json", "node/client.js")
			runIn(t, folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
		},
		start: func(folder string) []string { return []string{"node", filepath.Join(folder, "client.js")} },
	},
	{
		name: "java", made: []string{"java/pom.xml", "java/Client.java"}, hears: true, login: "/v1/auth/users/login",
		install: func(t *testing.T, folder string) {
			t.Helper()
			copyTo(t, folder, "java/pom.xml", "java/Client.java")
			runIn(t, folder, "mvn", "-q", "-B", "-C", "dependency:copy-dependencies", "-DoutputDirectory=lib")
			runIn(t, folder, "javac", "-cp", "lib/*", "Client.java")
		},
		start: func(folder string) []string {
			return []string{"java", "-Xmx128m", "-cp", filepath.Join(folder, "lib", "*") + ":" + folder, "Client"}
		},
	},
	{
		name: "spring", made: []string{"spring/pom.xml", "spring/App.java"}, hears: true, healthyOnly: true, login: "/v1/auth/users/login",
		install: func(t *testing.T, folder string) {
			t.Helper()
			copyTo(t, folder, "spring/pom.xml", "spring/App.java")
			runIn(t, folder, "mvn", "-q", "-B", "-C", "dependency:copy-dependencies", "-DoutputDirectory=lib")
			runIn(t, folder, "javac", "--release", "8", "-nowarn", "-d", ".", "-cp", "lib/*", "App.java") // what its reader of classes knows
		},
		start: func(folder string) []string {
			return []string{
				"java", "-Xmx256m", "--add-opens", "java.base/java.lang=ALL-UNNAMED",
				"-cp", filepath.Join(folder, "lib", "*") + ":" + folder, "compat.App",
			}
		},
	},
	{
		name: "python", made: []string{"python/requirements.txt", "python/client.py"}, forgets: true, login: "/v1/auth/login",
		install: func(t *testing.T, folder string) {
			t.Helper()
			copyTo(t, folder, "python/requirements.txt", "python/client.py")
			runIn(t, folder, "python3", "-m", "venv", "venv")
			runIn(t, folder, "venv/bin/pip", "install", "-q", "--require-hashes", "--no-deps", "--disable-pip-version-check", "-r", "requirements.txt")
		},
		start: func(folder string) []string {
			return []string{filepath.Join(folder, "venv/bin/python"), filepath.Join(folder, "client.py")}
		},
	},
}

// ready gives the folder in which the client is installed. It is kept from one
// run to the next, under the digest of what decides its contents.
func (k kind) ready(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.New()
	for _, file := range append(k.made, "../kinds_test.go") {
		text, err := os.ReadFile(filepath.Join(clientsFolder(t), file))
		if err != nil {
			t.Fatal(err)
		}
		digest.Write(text)
	}
	name := filepath.Join(cache, "sidebeat-compat", k.name+"-"+hex.EncodeToString(digest.Sum(nil))[:16])
	if _, err := os.Stat(name); err == nil {
		return name
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp(filepath.Dir(name), k.name+"-being-made-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	k.install(t, folder)
	if err := os.Rename(folder, name); err != nil && !errors.Is(err, fs.ErrExist) { // another run was faster
		t.Fatal(err)
	}
	return name
}

func runIn(t *testing.T, folder, program string, args ...string) {
	t.Helper()
	if filepath.Base(program) != program {
		program = filepath.Join(folder, program)
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir = folder
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
}

func copyTo(t *testing.T, folder string, files ...string) {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(clientsFolder(t), file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
