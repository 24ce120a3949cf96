package nacos

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestGarbage: whatever one client sends, beats are answered, nothing flips, and
// nothing of it is left afterwards. How much slower is for the benchmark.
func TestGarbage(t *testing.T) {
	const lasts = 2 * time.Second
	s, port := bound(t, Limits{ConnectionsOfAddress: 100, ReadTime: time.Second})
	end := time.Now().Add(lasts)
	var all sync.WaitGroup
	for i := range 150 { // more than may come from one address
		all.Go(func() {
			for time.Now().Before(end) {
				throw(net.JoinHostPort("127.0.0.1", port), i, end)
			}
		})
	}
	for range 20 {
		all.Go(func() {
			for pace := time.NewTicker(50 * time.Millisecond); time.Now().Before(end); <-pace.C {
				if err := beatOnce(net.JoinHostPort("127.0.0.1", port)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if i, err := s.Store.Get(t.Context(), beaten.Key); err != nil || !i.Healthy || s.Store.Counts().Unhealthy != 0 {
		t.Errorf("%+v %v", i, err)
	}
	if refused := s.Refused(); refused["connections_of_address"] == 0 {
		t.Errorf("nobody was refused: %v", refused)
	}
	look := time.NewTicker(5 * time.Millisecond)
	for deadline := time.Now().Add(20 * time.Second); ; <-look.C {
		connections, requests := s.Load()
		if connections == 0 && requests == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections and %d requests are left", connections, requests)
		}
	}
}

// throw sends garbage of one kind from an address of its own until the
// connection or the time ends.
func throw(to string, kind int, end time.Time) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	conn, err := dialer.Dial("tcp", to)
	if err != nil {
		return
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for time.Now().Before(end) {
		conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
		var text string
		switch kind % 7 {
		case 0:
			junk := make([]byte, 300)
			for i := range junk {
				junk[i] = byte(rand.Uint32())
			}
			text = string(junk)
		case 1:
			text = "PUT /nacos/v1/ns/inst"
		case 2:
			text = "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 40_000) + "\r\n\r\n"
		case 3:
			text = "GET /nacos/v1/ns/service/names?expr=(a%7Cb)*c HTTP/1.1\r\nHost: x\r\n\r\n"
		case 4:
			text = fmt.Sprintf("PUT /nacos/v1/ns/instance/beat HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 1<<20)
		case 5:
			text = "PUT /nacos/v1/ns/instance/beat?serviceName=a&beat=%7B HTTP/1.1\r\nHost: x\r\n\r\n"
		}
		if _, err := io.WriteString(conn, text); err != nil || text == "" {
			return
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return
		}
		io.Copy(io.Discard, answer.Body)
	}
}

func beatOnce(to string) error {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", lightTarget)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return fmt.Errorf("a beat failed: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("a beat was answered %d", answer.StatusCode)
	}
	return nil
}
