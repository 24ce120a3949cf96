package main

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

//go:embed app_http.py
var httpApp []byte

//go:embed app_tcp.py
var tcpApp []byte

// app is one of the two legacy apps: a program that knows no registry.
type app struct {
	service string
	port    uint16
	command []string // program and arguments
}

// newApps picks free ports and writes the apps into the folder: in Python, to
// show that the app's language is of no matter, else as this program's own.
func newApps(ctx context.Context, folder string) (orders, ledger app, language string, err error) {
	orders, ledger = app{service: "orders"}, app{service: "ledger"}
	if orders.port, err = freePort(ctx, 0); err != nil {
		return orders, ledger, "", err
	}
	if ledger.port, err = freePort(ctx, 0); err != nil {
		return orders, ledger, "", err
	}
	python := findPython(ctx)
	if python == "" {
		self, err := os.Executable()
		orders.command = []string{self, "app-http", port(orders.port)}
		ledger.command = []string{self, "app-tcp", port(ledger.port)}
		return orders, ledger, "Go, since there is no python3", err
	}
	for name, text := range map[string][]byte{"orders.py": httpApp, "ledger.py": tcpApp} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return orders, ledger, "", err
		}
	}
	orders.command = []string{python, filepath.Join(folder, "orders.py"), port(orders.port)}
	ledger.command = []string{python, filepath.Join(folder, "ledger.py"), port(ledger.port)}
	return orders, ledger, "Python", nil
}

func port(n uint16) string { return strconv.Itoa(int(n)) }

// findPython gives the path of a python3 that works, "" when there is none.
func findPython(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "python3", "-c", "import http.server, socketserver, sys; print(sys.executable, end='')").Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// freePort gives the wanted port if it is free, else any other; 0: any.
func freePort(ctx context.Context, wanted uint16) (uint16, error) {
	ln, err := run.Listen(ctx, net.JoinHostPort("127.0.0.1", port(wanted)))
	if err != nil && wanted != 0 {
		return freePort(ctx, 0)
	}
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return uint16(ln.Addr().(*net.TCPAddr).Port), nil
}

// serveHTTP is app_http.py for a machine without Python.
func serveHTTP(ctx context.Context, port string) error {
	ln, err := run.Listen(ctx, net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	answer := func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/health" {
			ctx.SetBodyString("ok\n")
			return
		}
		ctx.SetBodyString("orders: none today\n")
	}
	return run.Serve(ctx, ln, &fasthttp.Server{Handler: answer, ReadTimeout: appTimeout, WriteTimeout: appTimeout, IdleTimeout: appTimeout})
}

// serveTCP is app_tcp.py for a machine without Python.
func serveTCP(ctx context.Context, port string) error {
	ln, err := run.Listen(ctx, net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	for ctx.Err() == nil {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		fmt.Fprintf(conn, "ledger, process %d\n", os.Getpid())
		conn.Close()
	}
	return nil
}
