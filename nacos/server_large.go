package nacos

import (
	"io"
	"net/http"
	"sync"

	"github.com/valyala/fasthttp"
)

// mostAnswers bounds the bytes of large answers that are on their way: who asks
// for one and does not take it holds it for as long as an answer may take.
const mostAnswers = 256 << 20

// answers are the large answers on their way. One address may hold half of
// mostAnswers; whatever its size, one answer goes out when there is no other.
type answers struct {
	mu   sync.Mutex
	held int // bytes
}

// hold notes n bytes for an address, nil for all that came through no Bound.
func (a *answers) hold(by *guest, n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.note(by, n)
}

func (a *answers) note(by *guest, n int) bool {
	if a.held > 0 && a.held+n > mostAnswers || by != nil && by.answers > 0 && by.answers+n > mostAnswers/2 {
		return false
	}
	a.held += n
	if by != nil {
		by.answers += n
	}
	return true
}

func (a *answers) drop(by *guest, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(by, n)
}

func (a *answers) forget(by *guest, n int) {
	a.held -= n
	if by != nil {
		by.answers -= n
	}
}

// holdList is hold for a rendered list: it counts once, for whoever was first to
// ask, however many take it.
func (a *answers) holdList(by *guest, r *rendered) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.readers == 0 {
		if !a.note(by, cap(r.head)) {
			return false
		}
		r.first = by
	}
	r.readers++
	return true
}

func (a *answers) dropList(r *rendered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.readers--; r.readers == 0 {
		a.forget(r.first, cap(r.head))
		r.first = nil
	}
}

// largeAnswer is a body that is written from where it is. fasthttp closes it
// when it is written or cannot be.
type largeAnswer struct {
	parts [][]byte // what is left
	drop  func()
}

// Read implements io.Reader.
func (l *largeAnswer) Read(b []byte) (int, error) {
	for len(l.parts) > 0 && len(l.parts[0]) == 0 {
		l.parts = l.parts[1:]
	}
	if len(l.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(b, l.parts[0])
	l.parts[0] = l.parts[0][n:]
	return n, nil
}

// WriteTo implements io.WriterTo.
func (l *largeAnswer) WriteTo(w io.Writer) (sum int64, err error) {
	for len(l.parts) > 0 && err == nil {
		var n int
		n, err = w.Write(l.parts[0])
		l.parts, sum = l.parts[1:], sum+int64(n)
	}
	return sum, err
}

// Close implements io.Closer.
func (l *largeAnswer) Close() error {
	if l.drop != nil {
		l.drop()
		l.parts, l.drop = nil, nil
	}
	return nil
}

// sendLarge makes the parts the body of an answer.
func sendLarge(answer *fasthttp.Response, drop func(), parts ...[]byte) {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	answer.SetBodyStream(&largeAnswer{parts, drop}, size)
}

// release gives back what a large request would hold for as long as its
// connection is open, and has a large answer counted.
func (b *bounds) release(ctx *fasthttp.RequestCtx) {
	ctx.Request.ReleaseBody(smallBody)
	if ctx.Response.IsBodyStream() || len(ctx.Response.Body()) <= keptAnswer {
		return
	}
	body, by := ctx.Response.SwapBody(nil), guestOf(ctx.Conn())
	if !b.answers.hold(by, cap(body)) {
		ctx.Response.Reset()
		f := tooMuch()
		b.refuse(f.limit)
		writeBody(ctx, f.status, typeText, f.text)
		return
	}
	sendLarge(&ctx.Response, func() { b.answers.drop(by, cap(body)) }, body)
}

func tooMuch() *fault {
	f := boot(http.StatusServiceUnavailable, "too many large answers at once that nobody takes; try again")
	f.limit = limitRequests
	return f
}
