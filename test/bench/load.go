package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	connections = 64
	round       = 1500 * time.Millisecond
)

// perRequest sends requests on keep-alive connections for one round and gives
// the CPU that the server spent on each.
func perRequest(ctx context.Context, server *process, address string, requests [][]byte, right func(body []byte) bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, round)
	defer cancel()
	var sent atomic.Int64
	errs := make([]error, connections)
	before := server.cpu()
	var senders sync.WaitGroup
	for c := range connections {
		senders.Go(func() { errs[c] = converse(ctx, address, requests, c, right, &sent) })
	}
	senders.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	return (server.cpu() - before) / time.Duration(max(sent.Load(), 1)), nil
}

// converse sends every connections-th request, beginning with the first.
func converse(ctx context.Context, address string, requests [][]byte, first int, right func([]byte) bool, sent *atomic.Int64) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 64<<10)
	var body []byte
	for i := first; ctx.Err() == nil; i += connections {
		if _, err := conn.Write(requests[i%len(requests)]); err != nil {
			return err
		}
		if body, err = readAnswer(in, body, right); err != nil {
			return err
		}
		sent.Add(1)
	}
	return nil
}

// readAnswer reads one answer into a buffer that it may grow, and insists on its
// words: a wrong answer given quickly is no figure.
func readAnswer(in *bufio.Reader, buffer []byte, right func([]byte) bool) ([]byte, error) {
	status, err := in.ReadString('\n')
	if err != nil {
		return buffer, err
	}
	length := 0
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return buffer, err
		}
		if line == "\r\n" {
			break
		}
		if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			fmt.Sscan(n, &length)
		}
	}
	if cap(buffer) < length {
		buffer = make([]byte, length)
	}
	body := buffer[:length]
	if _, err := io.ReadFull(in, body); err != nil {
		return buffer, err
	}
	if !strings.HasPrefix(status, "HTTP/1.1 200") || !right(body) {
		return buffer, fmt.Errorf("a request was answered %q %.200q", strings.TrimSpace(status), body)
	}
	return buffer, nil
}

// bare starts the peer: a fasthttp server that does nothing but answer these
// bytes.
func (b *bench) bare(ctx context.Context, answer []byte) (p *process, address string, err error) {
	file := b.temp + "/answer"
	if err := os.WriteFile(file, answer, 0o600); err != nil {
		return nil, "", err
	}
	if p, err = self(ctx, "bare", file); err != nil {
		return nil, "", err
	}
	address, err = p.line(ctx)
	return p, address, err
}

// bareHandler is the peer itself.
func bareHandler(args []string) int {
	answer, err := os.ReadFile(args[0])
	if err != nil {
		return 1
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	fmt.Println(ln.Addr())
	fasthttp.Serve(ln, func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("application/json")
		ctx.SetBody(answer)
	})
	return 0
}
