package nacos

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Fifty instances beat at once, with bodies, by way of a server that sends
// every third request elsewhere: no request ever carries the data of two
// instances, and none is made again where a redirect leads
// (go-resty/resty#568).
func TestBodiesAreNotMixedUp(t *testing.T) {
	var mu sync.Mutex
	mixed, bodies := 0, 0
	look := func(body string) {
		form, err := url.ParseQuery(body)
		var b beatBody
		if err != nil || json.Unmarshal([]byte(form.Get("beat")), &b) != nil {
			mixed++
			return
		}
		bodies++
		n := int(b.Port) - 8000
		if b.IP != fmt.Sprintf("10.0.0.%d", n) || b.Service != fmt.Sprintf("DEFAULT_GROUP@@s%d", n) || b.Metadata["pad"] != strings.Repeat(fmt.Sprint(n), 10*n) {
			mixed++
		}
	}
	elsewhere := scriptedServer(t, func(_ int, q asked, w io.Writer) bool { return nacosAnswer(0, q, w) })
	s := scriptedServer(t, func(n int, q asked, w io.Writer) bool {
		if q.body != "" {
			mu.Lock()
			look(q.body)
			mu.Unlock()
		}
		if n%3 == 2 {
			return say(w, 307, "", "", "Location: "+elsewhere.url()+q.path)
		}
		return say(w, 200, "application/json", `{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":false}`)
	})
	c := opened(t, ClientConfig{Servers: []string{s.url()}})
	if _, err := c.Beat(t.Context(), orders()); err != nil { // from now on beats are full
		t.Fatal(err)
	}
	var beating sync.WaitGroup
	for n := 1; n <= 50; n++ {
		beating.Go(func() {
			i := orders()
			i.Name, i.IP, i.Port = fmt.Sprintf("s%d", n), fmt.Sprintf("10.0.0.%d", n), uint16(8000+n)
			i.Metadata = map[string]string{"pad": strings.Repeat(fmt.Sprint(n), 10*n)}
			for range 10 {
				c.Beat(t.Context(), i) // two thirds of the tries are answered; what matters is what was sent
			}
		})
	}
	beating.Wait()
	if mixed > 0 || bodies < 500 {
		t.Errorf("%d of %d bodies are mixed up", mixed, bodies)
	}
	if n := len(elsewhere.requests()); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}
