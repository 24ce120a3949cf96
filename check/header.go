package check

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// mostHeader bounds the file of a header's value, in bytes.
const mostHeader = 8 << 10

// framing would make a request lie about itself.
var framing = []string{"content-length", "transfer-encoding", "connection", "upgrade", "expect", "trailer", "te"}

const tokenBytes = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (p *plan) takeHeader(text string) error {
	name, value, found := strings.Cut(text, ":")
	if !found {
		return errors.New("a header is written name:value, as in header=Host:legacy.example")
	}
	value = strings.TrimSpace(value)
	if err := fitValue(name, value); err != nil {
		return err
	}
	return p.addHeader(header{name: name, value: value})
}

func (p *plan) takeHeaderFile(text string) error {
	name, raw, found := strings.Cut(text, ":")
	if !found {
		return errors.New("a header from a file is written name:/path, as in headerfile=Authorization:/run/secrets/token")
	}
	path, err := localPath(raw)
	if err != nil {
		return fmt.Errorf("headerfile=%s:...: %w", name, err)
	}
	return p.addHeader(header{name: name, file: path})
}

func (p *plan) addHeader(h header) error {
	switch {
	case h.name == "" || strings.Trim(h.name, tokenBytes) != "":
		return fmt.Errorf("%q is no name of a header", h.name)
	case slices.Contains(framing, strings.ToLower(h.name)):
		return fmt.Errorf("header %s is set by the check itself", h.name)
	case strings.EqualFold(h.name, "Host") && (h.value == "" || has(p.headers, "Host")):
		return errors.New("header Host is given once and not empty")
	}
	p.headers = append(p.headers, h)
	return nil
}

func fitValue(name, value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return fmt.Errorf("the value of header %s holds a control byte", name)
	}
	return nil
}

func has(headers []header, name string) bool {
	return slices.ContainsFunc(headers, func(h header) bool { return strings.EqualFold(h.name, name) })
}

// filledHeaders gives the headers with the values of those that stand in
// files, so that a secret that rotates is the new one in the next question.
func (p *plan) filledHeaders() ([]header, error) {
	if !slices.ContainsFunc(p.headers, func(h header) bool { return h.file != "" }) {
		return p.headers, nil
	}
	filled := slices.Clone(p.headers)
	for i := range filled {
		if err := filled[i].fill(); err != nil {
			return nil, fmt.Errorf("cannot read header %s: %w", filled[i].name, err)
		}
	}
	return filled, nil
}

func (h *header) fill() error {
	if h.file == "" {
		return nil
	}
	switch info, err := os.Stat(h.file); {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", h.file) // to open a pipe may take for ever
	}
	file, err := os.Open(h.file)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostHeader+1))
	if err != nil {
		return err
	}
	if len(text) > mostHeader {
		return fmt.Errorf("%s has more than %d bytes", h.file, mostHeader)
	}
	h.value = strings.TrimSpace(string(text))
	return fitValue(h.name, h.value)
}
