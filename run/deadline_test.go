package run

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// lazyPipe gives both ends of a connection; ours moves its deadlines lazily.
func lazyPipe(t *testing.T) (ours *lazyConn, theirs net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	return lazily(here), there
}

// after gives a time so many seconds from now; 0 is none.
func after(seconds int) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(seconds) * time.Second)
}

// TestLazyDeadlinesAreKept holds them against those of a plain connection: a
// read and a write end when the last deadline that was set says.
func TestLazyDeadlinesAreKept(t *testing.T) {
	// f sets deadlines so many seconds ahead, one after another, a second apart.
	f := func(ends int, ahead ...int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			for name, do := range map[string]func(net.Conn) error{
				"read":  func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err },
				"write": func(c net.Conn) error { _, err := c.Write(make([]byte, 1)); return err },
			} {
				plain, other := net.Pipe()
				lazy, another := lazyPipe(t)
				for _, c := range []net.Conn{plain, lazy} {
					began := time.Now()
					for _, s := range ahead {
						c.SetDeadline(after(s))
						time.Sleep(time.Second)
					}
					err := do(c)
					if took := int(time.Since(began).Seconds()); took != ends || !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("%T: %s with deadlines after %v s ended after %d s: %v, want %d s", c, name, ahead, took, err, ends)
					}
				}
				plain.Close()
				other.Close()
				another.Close()
			}
		})
	}
	f(10, 10)
	f(11, 10, 10)
	f(12, 10, 10, 10)
	f(76, 10, 75)
	f(11, 75, 10)
	f(12, 10, 75, 10)
	f(2, 0, 1)
	f(12, 5, 0, 10)
	f(9, 1, 1, 1, 1, 5) // the second passes before anybody reads
	f(3, 1, 1, 1)       // nobody extends it any more
}

func TestLazyDeadlineOfNoneEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := lazyPipe(t)
		ours.SetDeadline(after(1))
		ours.SetDeadline(after(0))
		go func() {
			time.Sleep(time.Hour)
			theirs.Write([]byte("late"))
		}()
		b := make([]byte, 4)
		if _, err := io.ReadFull(ours, b); err != nil || string(b) != "late" {
			t.Errorf("read %q, %v", b, err)
		}
	})
}

// A deadline that passes in the middle of a write, but is not meant any more,
// neither loses nor repeats a byte.
func TestLazyDeadlineInTheMiddleOfAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := lazyPipe(t)
		ours.SetWriteDeadline(after(1))
		ours.SetWriteDeadline(after(60))
		text := bytes.Repeat([]byte("0123456789"), 10)
		read := make(chan []byte)
		go func() {
			var got []byte
			b := make([]byte, 7)
			for len(got) < len(text) {
				time.Sleep(300 * time.Millisecond)
				n, err := theirs.Read(b)
				got = append(got, b[:n]...)
				if err != nil {
					t.Error(err)
					break
				}
			}
			read <- got
		}()
		if n, err := ours.Write(text); n != len(text) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
		if got := <-read; !bytes.Equal(got, text) {
			t.Errorf("read %q", got)
		}
	})
}

// A deadline in the past ends a read that has begun, also when it is set while
// another one passes.
func TestLazyDeadlineEndsARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, _ := lazyPipe(t)
		ours.SetReadDeadline(after(10))
		ours.SetReadDeadline(after(75))
		began := time.Now()
		go func() {
			time.Sleep(20 * time.Second)
			ours.SetReadDeadline(time.Now())
		}()
		if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != 20*time.Second {
			t.Errorf("ended after %v: %v", time.Since(began), err)
		}
	})
}

// BenchmarkDeadlines moves deadlines as a server does at each request.
func BenchmarkDeadlines(b *testing.B) {
	tcp, err := Listen(b.Context(), "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer tcp.Close()
	client, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	served, err := tcp.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer served.Close()
	f := func(name string, conn net.Conn) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				conn.SetReadDeadline(time.Now().Add(75 * time.Second))
				conn.SetReadDeadline(time.Now().Add(10 * time.Second))
				conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
			}
		})
	}
	f("plain", client)
	f("served", served)
}
