package registry

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func reader(image []byte) io.Reader { return bytes.NewReader(image) }

func newImage(tb testing.TB, s *Store) io.Reader { return reader(snapshot(tb, s)) }

// hexLines reads a file of testdata.
func hexLines(t *testing.T, name string) (lines [][]byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		raw, err := hex.DecodeString(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, raw)
	}
	return lines
}

// testdata/format1 is what the story of durable_test.go left behind when
// checkers had five fields and there were no switches.
func TestFirstFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now, _ := logged()
		story(t, now)
		want := durable(now)
		fromSnapshot := restored(t, hexLines(t, "format1.snapshot")[0])
		if diff := cmp.Diff(want, durable(fromSnapshot)); diff != "" {
			t.Errorf("snapshot (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(defaultSwitches(), fromSnapshot.Switches()); diff != "" {
			t.Errorf("switches (-want +got):\n%s", diff)
		}
		if err := fromSnapshot.CreateNamespace(t.Context(), Namespace{ID: "dev", Name: "dev"}); err != nil {
			t.Error(err)
		}
		fromLog := NewStore()
		for i, command := range hexLines(t, "format1.commands") {
			fromLog.Apply(uint64(i), command)
		}
		if diff := cmp.Diff(want, durable(fromLog)); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// resealed changes a sealed text and seals it anew.
func resealed(sealed []byte, change func(body []byte)) []byte {
	body := bytes.Clone(sealed[:len(sealed)-4])
	change(body)
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

func TestLaterFormatIsRefused(t *testing.T) {
	s := NewStore()
	later := resealed(snapshot(t, s), func(body []byte) { body[len(snapshotHead)] = formatVersion + 1 })
	err := s.Restore(reader(later))
	want := "cannot restore a snapshot: its version is 3, this program knows those up to 2"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	command := resealed(command{op: opSwitch, name: "check", text: "false"}.encode(), func(body []byte) { body[0] = formatVersion + 1 })
	result, _ := s.Apply(7, command).(error)
	want = "cannot apply command 7 of the log: its version is 3, this program knows those up to 2"
	if result == nil || result.Error() != want {
		t.Errorf("got %v, want %s", result, want)
	}
}

// A flipped bit anywhere in a new kind of command is noticed.
func TestFlippedBit(t *testing.T) {
	for _, m := range []command{
		{op: opSwitch, name: "check", text: "false"},
		{op: opNamespace, namespace: Namespace{"dev", "Dev", "for all"}},
		{op: opNoNamespace, namespace: Namespace{ID: "dev"}},
		{op: opMetadata, service: Service{"public", "g", "n"}, metadata: encodeMetadata(map[string]string{"a": "1"}), places: []place{{"10.0.0.1", "DEFAULT", 80}}},
	} {
		whole := m.encode()
		back, err := decodeCommand(whole)
		if diff := cmp.Diff(m, back, cmp.AllowUnexported(command{}, place{})); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		for bit := range len(whole) * 8 {
			torn := bytes.Clone(whole)
			torn[bit/8] ^= 1 << (bit % 8)
			if _, err := decodeCommand(torn); err == nil {
				t.Errorf("kind %d: bit %d flipped, not noticed", m.op, bit)
			}
		}
	}
}
