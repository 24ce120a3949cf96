package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseMetadata reads a JSON object (numbers and truth values become texts, as
// in Nacos) or k=v,k2=v2: cut at the first "=" of each part, blanks around key
// and value dropped. A value with a comma needs the JSON form. Errors name the
// key and never the whole value, which may hold a secret.
func parseMetadata(text string) (map[string]string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return nil, nil
	case !utf8.ValidString(text): // JSON, by which it travels, would make one of several names
		return nil, errors.New("it is no UTF-8")
	}
	if text[0] == '{' {
		return metadataOfJSON(text)
	}
	m := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		k, v, ok := strings.Cut(part, "=")
		if k = strings.TrimSpace(k); !ok || k == "" {
			return nil, fmt.Errorf("the part that starts with %q is not k=v; a value with a comma needs the JSON form", firstLetters(part))
		}
		if _, twice := m[k]; twice {
			return nil, fmt.Errorf("the key %q is given twice", k)
		}
		m[k] = strings.TrimSpace(v)
	}
	return m, nil
}

func firstLetters(s string) string {
	letters := []rune(s)
	return string(letters[:min(len(letters), 12)])
}

func metadataOfJSON(text string) (map[string]string, error) {
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	if _, err := in.Token(); err != nil { // the brace
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	m := map[string]string{}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return nil, fmt.Errorf("it is no JSON object: %w", err)
		}
		k := key.(string)
		if _, twice := m[k]; twice {
			return nil, fmt.Errorf("the key %q is given twice", k)
		}
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil {
			return nil, fmt.Errorf("the value of %q is no JSON: %w", k, err)
		}
		if m[k], err = metadataText(raw); err != nil {
			return nil, fmt.Errorf("the value of %q %w", k, err)
		}
	}
	if _, err := in.Token(); err != nil || in.More() {
		return nil, errors.New("it is not one whole JSON object")
	}
	return m, nil
}

func metadataText(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case '{', '[', 'n':
		return "", errors.New("must be a text, a number, true or false")
	}
	return string(raw), nil
}

// metadataJSON is the reverse, for what came out of a file.
func metadataJSON(m map[string]any) (string, error) {
	out := map[string]string{}
	for k, v := range m {
		text, ok := scalar(v)
		if !ok {
			return "", fmt.Errorf("metadata %q must be a text, a number, true or false", k)
		}
		out[k] = text
	}
	raw, err := json.Marshal(out)
	return string(raw), err
}

// scalar gives the text of a value that a YAML or JSON file may hold.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int:
		return strconv.Itoa(v), true
	case int64, uint64:
		return fmt.Sprint(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case json.Number:
		return v.String(), true
	}
	return "", false
}
