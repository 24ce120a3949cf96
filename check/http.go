package check

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	headLimit = 64 << 10      // bytes of all heads of one answer, interim ones included
	bodyLimit = 64 << 10      // bytes of a body, decoded, that rules look at
	wireLimit = 8 * bodyLimit // bytes of a body as it comes: chunks of one byte take six

	// parting is how long we wait for the server to close first, which leaves
	// the TIME_WAIT to the many servers and spares them a reset.
	parting = 25 * time.Millisecond
)

// hop is one request of a question; redirects make further ones.
type hop struct {
	scheme, host string
	port         uint16
	method       string
	target       string
	headers      []header // none for another host: the Spec's are not for it
	name         string   // TLS server name, "" for the host's
}

// exchange is one request on its connection.
type exchange struct {
	hop
	ctx    context.Context
	start  time.Time
	plan   *plan
	conn   net.Conn // plain
	stream io.ReadWriter
	wire   noted
	limit  *io.LimitedReader
	reader *bufio.Reader
}

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}

func (a *Asker) askHTTP(ctx context.Context, start time.Time, s Spec, p *plan) Answer {
	headers, err := p.filledHeaders()
	if err != nil {
		return Answer{Kind: Unknown, Reason: err.Error()}
	}
	h := hop{scheme: s.scheme, host: s.host, port: s.port, method: p.method, target: s.target, name: p.servername, headers: headers}
	for n := 0; ; n++ {
		answer, next := a.fetch(ctx, start, h, p)
		if next == nil {
			return answer
		}
		if n == p.redirects {
			return Answer{Kind: Sick, Reason: fmt.Sprintf("too many redirects (%d)", n)}
		}
		h = *next
	}
}

// fetch asks one hop over a connection of its own, so that no answer left over
// from before can be read and no idle connection can die under it. It gives the
// next hop where the answer is a redirect to be followed.
func (a *Asker) fetch(ctx context.Context, start time.Time, h hop, p *plan) (Answer, *hop) {
	conn, answer := a.reach(ctx, start, h.host, h.portOrDefault())
	if conn == nil {
		return answer, nil
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	x := &exchange{hop: h, ctx: ctx, start: start, plan: p, conn: conn, stream: conn}
	if h.scheme == "https" {
		secure, answer := a.handshake(ctx, start, conn, p, h.serverName())
		if secure == nil {
			return answer, nil
		}
		x.stream = secure
	}
	x.reader = readers.Get().(*bufio.Reader)
	defer x.release()
	answer, next := x.run()
	answer.Took = time.Since(start)
	if stop() {
		x.part()
	}
	return answer, next
}

func (x *exchange) release() {
	x.reader.Reset(nil)
	readers.Put(x.reader)
}

func (h hop) portOrDefault() uint16 {
	switch {
	case h.port != 0:
		return h.port
	case h.scheme == "https":
		return 443
	}
	return 80
}

// hostname is the host as it is called in a Host header: loopback has a name.
func (h hop) hostname() string {
	if h.host == "" {
		return "localhost"
	}
	bare, _, _ := strings.Cut(h.host, "%") // a zone means nothing to the server
	return bare
}

func (h hop) serverName() string {
	if h.name != "" {
		return h.name
	}
	return h.hostname()
}

func (h hop) authority() string {
	return Spec{host: h.hostname(), port: h.port}.authority()
}

// part waits a little for the server to close the connection.
func (x *exchange) part() {
	x.conn.SetDeadline(time.Now().Add(parting))
	if secure, ok := x.stream.(interface{ CloseWrite() error }); ok && x.scheme == "https" {
		secure.CloseWrite()
	}
	io.CopyN(io.Discard, x.conn, wireLimit)
}

func (x *exchange) run() (Answer, *hop) {
	// A server may refuse before it has read all: what it says counts, not
	// that the request could not be sent whole.
	x.stream.Write(x.request())
	x.wire = noted{from: x.stream}
	x.limit = &io.LimitedReader{R: &x.wire, N: headLimit}
	x.reader.Reset(x.limit)
	response, answer := x.head()
	if response == nil {
		return answer, nil
	}
	if x.plan.redirects > 0 {
		if next, answer := x.redirect(response); next != nil || answer.Reason != "" {
			return answer, next
		}
	}
	return x.judge(response), nil
}

// request writes the head byte for byte as configured; net/http would tidy the
// path and the headers.
func (x *exchange) request() []byte {
	var b bytes.Buffer
	line := func(name, value string) { b.WriteString(name + ": " + value + "\r\n") }
	b.WriteString(x.method + " " + x.target + " HTTP/1.1\r\n")
	if !has(x.headers, "Host") {
		line("Host", x.authority())
	}
	if !has(x.headers, "User-Agent") {
		line("User-Agent", "sidebeat")
	}
	if !has(x.headers, "Accept") {
		line("Accept", "*/*")
	}
	if !has(x.headers, "Accept-Encoding") {
		line("Accept-Encoding", "identity")
	}
	for _, h := range x.headers {
		line(h.name, h.value)
	}
	if x.method != "GET" && x.method != "HEAD" && x.method != "OPTIONS" {
		line("Content-Length", "0")
	}
	line("Connection", "close")
	b.WriteString("\r\n")
	return b.Bytes()
}

// head reads up to the final head, or says why there is none.
func (x *exchange) head() (*http.Response, Answer) {
	for {
		if answer := x.sniff(); answer.Reason != "" {
			return nil, answer
		}
		response, err := http.ReadResponse(x.reader, &http.Request{Method: x.method})
		if err != nil {
			return nil, x.broken(err, "head")
		}
		if code := response.StatusCode; code < 100 || code > 199 || code == http.StatusSwitchingProtocols {
			return response, Answer{}
		}
	}
}

// sniff looks at the first bytes: a server of another kind is named.
func (x *exchange) sniff() Answer {
	first, err := x.reader.Peek(1)
	if len(first) > 0 && first[0] == 'H' {
		first, err = x.reader.Peek(len("HTTP/"))
	}
	if !strings.HasPrefix("HTTP/", string(first)) {
		begin, _ := x.reader.Peek(min(x.reader.Buffered(), 80))
		return Answer{Kind: Sick, Reason: foreign(begin)}
	}
	switch {
	case err == nil:
		return Answer{}
	case len(first) == 0 && x.limit.N > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		return Answer{Kind: Sick, Reason: "closed without an answer"}
	}
	return x.broken(err, "head")
}

// foreign names what answers in another tongue.
func foreign(begin []byte) string {
	switch {
	case len(begin) >= 3 && (begin[0] == 0x15 || begin[0] == 0x16) && begin[1] == 3:
		return "not HTTP: server speaks TLS"
	case len(begin) >= 9 && begin[0] == 0 && begin[3] == 4: // a SETTINGS frame, RFC 9113, 6.5
		return "not HTTP/1: server speaks HTTP/2"
	}
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	return "not HTTP: " + string(bytes.TrimRight(line, "\r"))
}

// noted remembers why reading ended: parsers of heads and bodies report what
// they make of the half they have, and not the cause.
type noted struct {
	from io.Reader
	err  error
}

func (n *noted) Read(p []byte) (int, error) {
	read, err := n.from.Read(p)
	n.err = err
	return read, err
}

// broken judges an error while part ("head" or "body") was read.
func (x *exchange) broken(err error, part string) Answer {
	if x.wire.err != nil {
		err = x.wire.err
	}
	var below *net.OpError
	switch {
	case x.limit.N <= 0:
		return Answer{Kind: Sick, Reason: fmt.Sprintf("%s longer than %d KiB", part, headLimit>>10)}
	case errors.As(err, &below) && isTLS(err):
		return tlsFault(x.ctx, x.start, err)
	case below != nil || timedOut(err):
		answer := fault(x.ctx, x.start, err)
		if answer.Kind == Sick && part == "body" {
			answer.Reason += " in the body"
		}
		return answer
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return Answer{Kind: Sick, Reason: "truncated " + part}
	}
	return Answer{Kind: Sick, Reason: "malformed " + part + ": " + strings.TrimPrefix(err.Error(), "net/http: ")}
}

// judge looks at the final answer: first its status, which is known with the
// head, then its body where rules ask for it.
func (x *exchange) judge(response *http.Response) Answer {
	if !x.plan.accepts(response.StatusCode) {
		return Answer{Kind: Sick, Reason: "status " + response.Status + x.hint(response)}
	}
	if len(x.plan.rules) == 0 {
		return Answer{Kind: Well, Reason: response.Status}
	}
	x.limit.N = wireLimit
	return x.judgeBody(response)
}

// hint recognises servers that answer a plain request on a TLS port in plain.
func (x *exchange) hint(response *http.Response) string {
	if x.scheme == "https" || response.StatusCode != http.StatusBadRequest {
		return ""
	}
	begin, _ := x.reader.Peek(x.reader.Buffered())
	if bytes.Contains(begin, []byte("HTTPS")) {
		return ": server speaks TLS"
	}
	return ""
}
