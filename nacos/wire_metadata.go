package nacos

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Keys of metadata that Nacos itself reads
// (com.alibaba.nacos.api.naming.PreservedMetadataKeys).
const (
	metaInterval  = "preserved.heart.beat.interval" // ms
	metaTimeout   = "preserved.heart.beat.timeout"  // ms
	metaDelete    = "preserved.ip.delete.timeout"   // ms
	metaGenerator = "preserved.instance.id.generator"
)

// What holds when the metadata says nothing, ms
// (com.alibaba.nacos.api.common.Constants).
const (
	defaultInterval = 5000
	defaultTimeout  = 15000
	defaultDelete   = 30000
)

// parseMetadata reads metadata in either form: a JSON object whose values are
// scalars, or k=v,k2=v2. Blank text is empty metadata. Nothing else is taken:
// a value may not be empty in the second form (UtilsAndCommons.parseMetadata).
func parseMetadata(text string) (map[string]string, error) {
	if strings.TrimSpace(text) == "" {
		return map[string]string{}, nil
	}
	if m, err := jsonMetadata([]byte(text)); err == nil {
		return m, nil
	}
	m := map[string]string{}
	for _, pair := range javaSplit(text, ",") {
		kv := javaSplit(pair, "=")
		if len(kv) != 2 {
			return nil, fmt.Errorf("metadata format incorrect:%s", text)
		}
		m[kv[0]] = kv[1]
	}
	return m, nil
}

// javaSplit is String.split: empty parts at the end are dropped.
func javaSplit(s, sep string) []string {
	if s == "" {
		return []string{""}
	}
	parts := strings.Split(s, sep)
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// jsonMetadata reads a JSON object of scalars; numbers keep the digits they
// were written with, a null value leaves its key out.
func jsonMetadata(text []byte) (map[string]string, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	m := make(map[string]string, len(raw))
	for k, v := range raw {
		s, ok, err := scalar(v)
		if err != nil {
			return nil, fmt.Errorf("value of %q: %w", k, err)
		}
		if ok {
			m[k] = s
		}
	}
	return m, nil
}

// scalar gives the text of a JSON string, number or boolean; false for null.
func scalar(v json.RawMessage) (s string, ok bool, err error) {
	switch v[0] {
	case '{', '[':
		return "", false, fmt.Errorf("cannot take %.40q: only strings, numbers and booleans are values", v)
	case 'n':
		return "", false, nil
	case '"':
		err = json.Unmarshal(v, &s)
		return s, err == nil, err
	default:
		return string(v), true, nil
	}
}

// metadataJSON writes metadata as the JSON object every version reads.
func metadataJSON(m map[string]string) (string, error) {
	b, err := encode(m)
	return string(b), err
}

// millis reads a preserved number of the metadata; what is not all digits or
// does not fit counts as absent, as on Instance.getMetaDataByKeyWithDefault.
func millis(m map[string]string, key string, otherwise int64) int64 {
	n, err := strconv.ParseUint(m[key], 10, 63)
	if err != nil {
		return otherwise
	}
	return int64(n)
}
