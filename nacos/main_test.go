package nacos

import (
	"fmt"
	"os"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestMain wakes what fasthttp starts once per process, so that it does not
// start inside a bubble of synctest. A process that cost has started is not
// for tests but asks the server it is told.
func TestMain(m *testing.M) {
	if address := os.Getenv(benchClient); address != "" {
		if err := askAgain(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	new(fasthttp.ResponseHeader).Header()
	os.Exit(m.Run())
}
