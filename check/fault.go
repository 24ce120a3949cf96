package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/sidebeat/sidebeat/netpolicy"
)

// starved is how much later than its deadline a question may end before the
// process itself, stopped or short of CPU, is taken for the cause.
const starved = time.Second

// theirs are the errors of the network that say something about the target.
// Every other one (no files, ports or memory left, a firewall or a route of our
// own missing) says that we could not ask.
var theirs = map[syscall.Errno]string{
	syscall.ECONNREFUSED: "refused",
	syscall.ECONNRESET:   "reset",
	syscall.ECONNABORTED: "reset",
	syscall.EPIPE:        "reset",
	syscall.EHOSTUNREACH: "host unreachable",
	syscall.EHOSTDOWN:    "host unreachable",
	syscall.ENOPROTOOPT:  "host unreachable", // ICMP: protocol unreachable
}

// fault judges an error of resolving, connecting, reading or writing. start is
// when the question was begun, ctx carries its deadline.
func fault(ctx context.Context, start time.Time, err error) Answer {
	var number syscall.Errno
	var name *net.DNSError
	switch {
	case errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, context.Canceled):
		return Answer{Kind: Unknown, Reason: "stopped while asking"}
	case errors.Is(err, netpolicy.ErrDenied):
		return Answer{Kind: Unknown, Reason: err.Error()}
	case errors.As(err, &name):
		return nameFault(name)
	case errors.As(err, &number) && number != syscall.ETIMEDOUT && !timedOut(err):
		if reason := theirs[number]; reason != "" {
			return Answer{Kind: Sick, Reason: reason}
		}
		return Answer{Kind: Unknown, Reason: "cannot ask: " + number.Error()}
	case timedOut(err) || ctx.Err() != nil:
		return timeout(ctx, start)
	}
	return Answer{Kind: Unknown, Reason: "cannot ask: " + err.Error()}
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &t) && t.Timeout() && !errors.Is(err, syscall.EAGAIN)
}

// nameFault tells a name that does not exist from a name server that does not
// answer: the second is not the target's fault.
func nameFault(err *net.DNSError) Answer {
	if err.IsNotFound {
		return Answer{Kind: Sick, Reason: "name not found: " + err.Name}
	}
	return Answer{Kind: Unknown, Reason: fmt.Sprintf("cannot resolve %s: %s", err.Name, err.Err)}
}

// timeout is the answer when the deadline of ctx has passed, or a share of it
// that one of several addresses had.
func timeout(ctx context.Context, start time.Time) Answer {
	deadline, ok := ctx.Deadline()
	if !ok {
		return Answer{Kind: Sick, Reason: "timeout after " + time.Since(start).Round(time.Millisecond).String()}
	}
	if late := time.Since(deadline); late > starved {
		return Answer{Kind: Unknown, Reason: fmt.Sprintf("cannot ask: this process was stopped or starved for %v", late.Round(time.Millisecond))}
	}
	// Earlier than the deadline: one of several addresses had its share.
	took := min(time.Since(start), deadline.Sub(start)).Round(time.Millisecond)
	return Answer{Kind: Sick, Reason: "timeout after " + took.String()}
}

// worst picks the answer of a host with several addresses none of which took
// the connection: what one of them said outweighs that another could not be
// asked, as on a machine without IPv6.
func worst(answers []Answer) Answer {
	if i := slices.IndexFunc(answers, func(a Answer) bool { return a.Kind == Sick }); i >= 0 {
		return answers[i]
	}
	return answers[0]
}
