package nacos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// beaten is the instance that the benchmarks beat.
var beaten = registry.Instance{
	Key: registry.Key{
		Service: registry.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: "orders"},
		Cluster: "DEFAULT", IP: "10.0.0.1", Port: 8080, Ephemeral: true,
	},
	Weight: 1, Enabled: true, Healthy: true,
}

const lightTarget = "/nacos/v1/ns/instance/beat?app=unknown&namespaceId=public&serviceName=DEFAULT_GROUP%40%40orders" +
	"&clusterName=DEFAULT&ip=10.0.0.1&port=8080"

const fullJSON = `{"cluster":"DEFAULT","ip":"10.0.0.1","metadata":{"zone":"a","version":"1.2.3"},"period":5000,"port":8080,` +
	`"scheduled":false,"serviceName":"DEFAULT_GROUP@@orders","stopped":false,"weight":1.0}`

func lightRequest() (target, body string) { return lightTarget, "" }
func fullRequest() (target, body string)  { return lightTarget, "beat=" + url.QueryEscape(fullJSON) }

func beatenServer(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{Store: registry.NewStore(), Log: silentLog()}
	if err := s.Store.Register(tb.Context(), beaten); err != nil {
		tb.Fatal(err)
	}
	return s
}

// bare answers the bytes of a beat and does nothing for them.
func bare(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetContentType(typeJSON)
	ctx.Response.SetBody(beatTaken)
}

func prepared(target, body string) *fasthttp.RequestCtx {
	ctx := new(fasthttp.RequestCtx)
	ctx.Request.Header.SetMethod("PUT")
	ctx.Request.SetRequestURI(target)
	if body != "" {
		ctx.Request.Header.SetContentType("application/x-www-form-urlencoded")
		ctx.Request.SetBodyString(body)
	}
	return ctx
}

// raced reports whether the race detector is on: it makes sync.Pool forget
// things on purpose.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestBeatsAllocateNothing covers the light beat and the full one.
func TestBeatsAllocateNothing(t *testing.T) {
	if raced() {
		t.Skip("the race detector allocates")
	}
	h := beatenServer(t).Handler()
	f := func(target, body string) {
		t.Helper()
		ctx := prepared(target, body)
		n := testing.AllocsPerRun(1000, func() {
			ctx.Response.Reset()
			h(ctx)
		})
		if got := string(ctx.Response.Body()); got != string(beatTaken) {
			t.Errorf("body is %s", got)
		}
		if n != 0 {
			t.Errorf("%s %s: %v allocations a beat", target, body, n)
		}
	}
	f(lightRequest())
	f(fullRequest())
}

func benchmarkHandler(b *testing.B, h fasthttp.RequestHandler, target, body string) {
	ctx := prepared(target, body)
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		h(ctx)
	}
	if string(ctx.Response.Body()) != string(beatTaken) {
		b.Fatalf("answer is %s", ctx.Response.Body())
	}
}

func BenchmarkBareHandler(b *testing.B) {
	target, body := lightRequest()
	benchmarkHandler(b, bare, target, body)
}

func BenchmarkBeatLight(b *testing.B) {
	target, body := lightRequest()
	benchmarkHandler(b, beatenServer(b).Handler(), target, body)
}

func BenchmarkBeatFull(b *testing.B) {
	target, body := fullRequest()
	benchmarkHandler(b, beatenServer(b).Handler(), target, body)
}

// BenchmarkBeatRatio asks our server and a bare handler the same things over
// loopback from another process, in turns, and reports beats per CPU-second of
// the serving process, ours over bare: the best round of each, which the rest
// of the machine disturbed least.
func BenchmarkBeatRatio(b *testing.B) {
	bareServer := (&Server{Log: silentLog()}).HTTP()
	bareServer.Handler = bare
	bareAddress := listen(b, bareServer)
	ours := listen(b, beatenServer(b).HTTP())
	f := func(b *testing.B, name, target, body string) {
		b.Helper()
		var bareCost, ourCost []float64
		for b.Loop() {
			bareCost = append(bareCost, cost(b, bareAddress, target, body))
			ourCost = append(ourCost, cost(b, ours, target, body))
		}
		b.ReportMetric(slices.Min(bareCost)/slices.Min(ourCost), name+"/bare")
		b.ReportMetric(slices.Min(ourCost)*1e6, "µs/"+name)
	}
	b.Run("light", func(b *testing.B) {
		target, body := lightRequest()
		f(b, "light", target, body)
	})
	b.Run("full", func(b *testing.B) {
		target, body := fullRequest()
		f(b, "full", target, body)
	})
}

func listen(b *testing.B, server *fasthttp.Server) string {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	ln, err := run.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Serve(ctx, ln, server) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return ln.Addr().String()
}

const (
	ratioConnections = 16
	ratioRequests    = 20000
)

// cost gives the CPU-seconds that serving one request takes this process.
func cost(b *testing.B, address, target, body string) float64 {
	b.Helper()
	client := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$")
	client.Env = append(os.Environ(), benchClient+"="+address)
	request := fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: Nacos-Java-Client:v1.4.8\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", target, address, len(body), body)
	client.Stdin = bytes.NewReader([]byte(request))
	before := cpu(b)
	if out, err := client.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return (cpu(b) - before).Seconds() / ratioRequests
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchClient names the server that this process, started by cost, is to ask.
const benchClient = "NACOS_BENCH_CLIENT"

// askAgain sends the request on standard input again and again, one at a time
// on each connection.
func askAgain(address string) error {
	request, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	faults := make([]error, ratioConnections)
	var wg sync.WaitGroup
	for i := range faults {
		wg.Go(func() { faults[i] = converse(address, request, ratioRequests/ratioConnections) })
	}
	wg.Wait()
	return errors.Join(faults...)
}

func converse(address string, request []byte, times int) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for range times {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := readAnswer(r); err != nil {
			return err
		}
	}
	return nil
}

func readAnswer(r *bufio.Reader) error {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, err = strconv.Atoi(string(bytes.TrimSpace(value)))
			if err != nil {
				return err
			}
		}
		if len(line) == 2 {
			_, err := r.Discard(length)
			return err
		}
	}
}
