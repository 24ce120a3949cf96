package check

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// judgeBody reads the body until all rules are met, it is whole, or bodyLimit
// is reached. An endless stream is well as soon as nothing to come can change
// that.
func (x *exchange) judgeBody(response *http.Response) Answer {
	stream, answer := x.decoded(response)
	if stream == nil {
		return answer
	}
	var body []byte
	chunk := make([]byte, 4<<10)
	for due := 1; ; {
		n, err := stream.Read(chunk[:min(len(chunk), bodyLimit-len(body))])
		body = append(body, chunk[:n]...)
		whole := errors.Is(err, io.EOF) || len(body) == bodyLimit
		if err != nil || whole || len(body) >= due {
			// Looked at each time it has grown by an eighth, so that a body
			// that drips costs no more than one that comes at once.
			due = len(body) + len(body)/8 + 1
			unmet := slices.IndexFunc(x.plan.rules, func(r rule) bool { return !r.met(body, whole) })
			switch {
			case unmet < 0:
				return Answer{Kind: Well, Reason: response.Status}
			case whole:
				return Answer{Kind: Sick, Reason: x.plan.rules[unmet].miss(body) + cutNote(body)}
			}
		}
		if err != nil {
			return x.brokenBody(err)
		}
	}
}

func cutNote(body []byte) string {
	if len(body) < bodyLimit {
		return ""
	}
	return fmt.Sprintf(" in its first %d KiB", bodyLimit>>10)
}

// brokenBody is broken for the errors of decoders too.
func (x *exchange) brokenBody(err error) Answer {
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, zlib.ErrHeader) || errors.Is(err, zlib.ErrChecksum) {
		return Answer{Kind: Sick, Reason: "malformed body: cannot decompress it"}
	}
	return x.broken(err, "body")
}

// decoded is the body without its content coding. None is asked for, but a
// header of the check may ask, and some servers do not wait for that.
func (x *exchange) decoded(response *http.Response) (io.Reader, Answer) {
	coding := strings.ToLower(strings.TrimSpace(response.Header.Get("Content-Encoding")))
	var decode func(io.Reader) (io.Reader, error)
	switch coding {
	case "", "identity":
		return response.Body, Answer{}
	case "gzip", "x-gzip":
		decode = func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	case "deflate":
		decode = func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }
	default:
		return nil, Answer{Kind: Sick, Reason: fmt.Sprintf("cannot decode %s", coding)}
	}
	stream, err := decode(response.Body)
	if err != nil {
		return nil, x.brokenBody(err)
	}
	return stream, Answer{}
}
