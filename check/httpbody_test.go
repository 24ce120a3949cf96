package check

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBodyRules(t *testing.T) {
	a := newAsker(t)
	f := func(body, options string, kind Kind, reason string) {
		t.Helper()
		at := says(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		expect(t, a, "http://"+at+"/#"+options, kind, reason)
	}
	const up = `{"status":"UP","n":1.50,"ok":true,"none":null,"components":{"my.db":{"status":"DOWN"}},"list":[{"a":"b"}]}`
	f("all UP here", "body=UP", Well, "200 OK")
	f("all up here", "body=UP", Sick, `body lacks "UP"`)
	f("a b", "body=a%20b", Well, "200 OK")
	f("UP", "match=^UP$", Well, "200 OK")
	f("UPDATE", "match=^UP$", Sick, `body does not match "^UP$"`)
	f("", "match=^$", Well, "200 OK")
	f("", "body=UP", Sick, `body lacks "UP"`)
	f("UP and DOWN", "body=UP&body=DOWN&match=and", Well, "200 OK")
	f("UP", "body=UP&body=DOWN", Sick, `body lacks "DOWN"`)
	f(up, "json=status==UP", Well, "200 OK")
	f(up, "json=status==DOWN", Sick, `json status is "UP", not "DOWN"`)
	f(up, "json=n==1.50&json=ok==true&json=none==null", Well, "200 OK")
	f(up, "json=/components/my.db/status==UP", Sick, `json components.my.db.status is "DOWN", not "UP"`)
	f(up, "json=list.0.a==b", Well, "200 OK")
	f(up, "json=list==[{\"a\":\"b\"}]", Well, "200 OK")
	f(up, "json=list.1.a==b", Sick, "json has no list.1")
	f(up, "json=status.deep==UP", Sick, "json has no status.deep")
	f(`{"a/b":"x","c~d":"y"}`, "json=/a~1b==x&json=/c~0d==y", Well, "200 OK")
	f("<html>", "json=status==UP", Sick, "body is not JSON")
	f("x\r\n\r\nHTTP/1.1 200 OK\x1b[2J", "json=status==UP", Sick, "body is not JSON")
	f(strings.Repeat("a", bodyLimit-2)+"UP", "body=UP", Well, "200 OK")
	f(strings.Repeat("a", bodyLimit)+"UP", "body=UP", Sick, `body lacks "UP" in its first 64 KiB`)
	f(`{"status":"UP","x":"`+strings.Repeat("a", bodyLimit)+`"}`, "json=status==UP", Sick, "body is not JSON: unexpected EOF in its first 64 KiB")
}

// valyala/fasthttp#1938: chunks, well and badly made.
func TestBodyInChunks(t *testing.T) {
	a := newAsker(t)
	f := func(body, options string, kind Kind, reason string) {
		t.Helper()
		at := says(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"+body)
		expect(t, a, "http://"+at+"/#"+options, kind, reason)
	}
	f("4;x=1\r\nstat\r\nA\r\nus: UP    \r\n0\r\n\r\n", "match=status:%20UP", Well, "200 OK")
	f("\r\nUP\r\n0\r\n\r\n", "body=UP", Sick, "malformed body: ")
	f("\r\nUP\r\n0\r\n\r\n", "", Well, "200 OK")
	f("zz\r\nUP\r\n0\r\n\r\n", "body=UP", Sick, "malformed body: invalid byte in chunk length")
	f("8\r\nhalf", "body=UP", Sick, "truncated body")
	f("8\r\nhalf", "", Well, "200 OK")
	f("2\r\nUP\r\n", "match=UP$", Sick, "truncated body")
	f(strings.Repeat("1\r\na\r\n", bodyLimit)+"0\r\n\r\n", "match=^a*$", Well, "200 OK")
}

// prometheus/blackbox_exporter#684: what is compressed is not searched as it is.
func TestBodyCodings(t *testing.T) {
	a := newAsker(t)
	text := []byte(`{"status":"UP"}`)
	f := func(coding string, body []byte, options string, kind Kind, reason string) {
		t.Helper()
		at := says(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", coding, len(body), body))
		expect(t, a, "http://"+at+"/#"+options, kind, reason)
	}
	zipped := compressed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, text)
	f("gzip", zipped, "json=status==UP", Well, "200 OK")
	f("GZIP", zipped, "json=status==UP", Well, "200 OK")
	f("x-gzip", zipped, "json=status==UP&header=Accept-Encoding:gzip", Well, "200 OK")
	f("gzip", zipped, "", Well, "200 OK")
	f("deflate", compressed(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, text), "match=UP", Well, "200 OK")
	f("identity", text, "match=UP", Well, "200 OK")
	f("br", []byte{0x0b, 0x02}, "match=UP", Sick, "cannot decode br")
	f("br", []byte{0x0b, 0x02}, "", Well, "200 OK")
	f("gzip", text, "match=UP", Sick, "malformed body: cannot decompress it")
	f("deflate", text, "match=UP", Sick, "malformed body: cannot decompress it")
	f("gzip", zipped[:len(zipped)-12], "match=DOWN", Sick, "truncated body")
	for _, at := range []int{0, 10, 12, len(zipped) - 6} {
		broken := bytes.Clone(zipped)
		broken[at] ^= 0xff
		f("gzip", broken, "match=DOWN", Sick, "malformed body: cannot decompress it")
	}
	bomb := compressed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, make([]byte, 8<<20))
	f("gzip", bomb, "body=UP", Sick, `body lacks "UP" in its first 64 KiB`)
}

func compressed(with func(io.Writer) io.WriteCloser, text []byte) []byte {
	var b bytes.Buffer
	w := with(&b)
	w.Write(text)
	w.Close()
	return b.Bytes()
}

// prometheus/blackbox_exporter#1276: an endless stream is answered as soon as
// nothing to come can change the answer.
func TestBodyStreams(t *testing.T) {
	a := newAsker(t)
	at := stub(t, "127.0.0.1:0", func(conn net.Conn, _ string) {
		conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"))
		event := "data: {\"status\":\"UP\"}" + strings.Repeat(" ", 1000) + "\n\n"
		for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
			if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", len(event), event); err != nil {
				return
			}
		}
	})
	f := func(options string, kind Kind, reason string, least, most time.Duration) {
		t.Helper()
		answer := expect(t, a, "http://"+at+"/#timeout=5s"+options, kind, reason)
		if answer.Took < least || answer.Took > most {
			t.Errorf("%s: took %v, want %v to %v", options, answer.Took, least, most)
		}
	}
	f("", Well, "200 OK", 0, time.Second)
	f("&match=\"status\":\"UP\"", Well, "200 OK", 0, time.Second)
	f("&body=data", Well, "200 OK", 0, time.Second)
	f("&body=DOWN", Sick, `body lacks "DOWN" in its first 64 KiB`, time.Second, 4*time.Second)
}

func TestGrowsOnly(t *testing.T) {
	f := func(expression string, want bool) {
		t.Helper()
		if got := growsOnly(expression); got != want {
			t.Errorf("%s: got %v, want %v", expression, got, want)
		}
	}
	f("UP", true)
	f("^{.*UP", true)
	f("(?m)^UP", true)
	f("UP$", false)
	f(`UP\z`, false)
	f("(?m)UP$", false)
	f(`\bUP`, false)
	f(`a(b|c\B)`, false)
}

// A match that may be told early holds for every continuation of the text.
func TestGrowsOnlyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expression := rapid.StringMatching(`(\^|\$|a|b|\.|\\b|\(\?m\)|a\*|b\?|\|){1,6}`).Draw(t, "expression")
		re, err := regexp.Compile(expression)
		if err != nil || !growsOnly(expression) {
			return
		}
		text := rapid.StringMatching(`[ab \n]{0,6}`).Draw(t, "text")
		more := rapid.StringMatching(`[ab \n]{0,6}`).Draw(t, "more")
		if re.MatchString(text) && !re.MatchString(text+more) {
			t.Fatalf("%q matches %q and not %q", expression, text, text+more)
		}
	})
}
