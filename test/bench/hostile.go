package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

const hostileConnections = 1000

// nasty are the kinds of garbage; each gives what is sent next.
var nasty = []func() string{
	func() string { // no HTTP
		b := make([]byte, 512)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		return string(b)
	},
	func() string { return "PUT /nacos/v1/ns/inst" }, // half a request
	func() string { return "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 40_000) + "\r\n\r\n" },
	func() string { return asked("/nacos/v1/ns/service/list?pageNo=%FF&pageSize=1e9") },
	func() string { return asked("/nacos/v1/ns/catalog/services?pageSize=100&hasIpCount=true&pageNo=%01") },
	func() string { return "BREW /nacos/v1/ns/instance?%00%ff HTTP/1.1\r\nHost: x\r\n\r\n" },
	func() string {
		const size = 1 << 20
		return fmt.Sprintf("PUT /nacos/v1/ns/instance/metadata/batch HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("a=b&", size/4))
	},
	func() string { return "" }, // opened and closed
	func() string { return asked("/nacos/v1/ns/instance/list?serviceName=%00%20&clusters=;;") },
	func() string {
		return "PUT /nacos/v1/ns/instance/beat?serviceName=a&beat=%7B HTTP/1.1\r\nHost: x\r\n\r\n"
	},
}

func asked(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n" }

// hostile sends garbage to an address from an address until it is killed.
func hostile(args []string) int {
	syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19)
	var sending sync.WaitGroup
	for i := range hostileConnections {
		sending.Go(func() {
			for {
				pester(args[0], args[1], nasty[i%len(nasty)])
			}
		})
	}
	sending.Wait()
	return 0
}

// pester uses one connection for as long as it lasts.
func pester(address, from string, next func() string) {
	dialer := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		time.Sleep(time.Millisecond) // no ports left: they come back
		return
	}
	defer conn.Close()
	conn.(*net.TCPConn).SetLinger(0) // or all ports would wait
	in := make([]byte, 64<<10)
	for {
		text := next()
		if text == "" {
			return
		}
		conn.SetDeadline(time.Now().Add(2 * time.Second))
		if _, err := conn.Write([]byte(text)); err != nil {
			return
		}
		if _, err := conn.Read(in); err != nil {
			return
		}
	}
}
