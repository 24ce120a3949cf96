package nacos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/sidebeat/sidebeat/registry"
)

// life is what a real client sent to Nacos 2.5.1, and heard. A token that it was
// given stands as <token>.
type life struct {
	Client, Mode string // life, restart (of the server), auth (is on)
	Steps        []lifeStep
}

type lifeStep struct {
	AtMillis            int `json:"at_ms"`
	Method, Path, Query string
	Headers             map[string]string
	Body                string
	Status              int
	Answer              string
	// In place of a request: what somebody else did, or a datagram.
	Event, UDP string
	Gzip       bool
	Port       int // of the subscriber
}

const (
	// lags: what Nacos shows is half a second old; ours shows what is.
	lags = "lags"
	// garbled: the Go client does not encode the JSON of its beats, and Nacos,
	// which decodes it, registers other metadata than was meant when it forgot
	// the instance. Ours knows JSON when it sees it.
	garbled = "garbled"
)

// betterThanRecorded are the steps at which ours differs, and why.
var betterThanRecorded = map[string]map[int]string{
	"nacos-client-1.4.8 restart":      {1: lags},
	"nacos-sdk-go-v1.1.6 restart":     {1: lags, 14: garbled, 18: garbled, 21: garbled, 24: garbled, 27: garbled},
	"nacos-sdk-python-2.0.11 life":    {10: lags, 14: lags},
	"nacos-sdk-python-2.0.11 restart": {2: lags},
	"npm-nacos-2.6.3 life":            {11: lags},
	"npm-nacos-2.6.3 restart":         {1: lags},
}

// TestClients plays the lives of real clients, each in its own dialect. All they
// hear must be the same, times aside.
func TestClients(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*.json")
	if err != nil || len(files) < 13 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	heard, pushed := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var l life
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		t.Run(l.key(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stage{life: l, box: newMailbox()}
				s.open(t)
				s.play(t)
				heard, pushed = heard+s.heard, pushed+s.pushed
				s.stop()
				time.Sleep(10 * time.Second) // fasthttp's worker pool looks around before it ends
			})
		})
	}
	t.Logf("%d answers and %d datagrams as recorded", heard, pushed)
}

func (l life) key() string { return l.Client + " " + l.Mode }

// stage is where a life is played.
type stage struct {
	life
	server        *Server
	serve         dialer
	stop          func()
	box           *mailbox
	token         string
	sent          []mail // and not acknowledged
	heard, pushed int
}

// open starts a server that knows nothing.
func (s *stage) open(t *testing.T) {
	t.Helper()
	s.server = &Server{Store: registry.NewStore(), Log: silentLog()}
	if s.Mode == "auth" {
		s.server.Access = guardOf(t, 0, userLine(t, "nacos", "nacos1", "admin"))
	}
	s.server.PushOver(s.box, false)
	s.serve, s.stop = serveUntil(t, s.server)
}

func (s *stage) play(t *testing.T) {
	t.Helper()
	began := time.Now()
	for n, one := range s.Steps {
		time.Sleep(time.Until(began.Add(time.Duration(one.AtMillis) * time.Millisecond)))
		switch {
		case one.Event == "restart":
			s.stop()
			s.box = newMailbox()
			s.open(t)
		case one.Event != "":
			s.other(t, one.Event)
		case one.UDP == "from server":
			s.comparePush(t, n)
		case one.UDP == "to server":
			for _, each := range s.sent {
				s.box.ack(t, each)
			}
			s.sent = nil
		default:
			s.ask(t, n)
		}
	}
	if guard := s.server.Access; guard != nil {
		if c := guard.Counts(); c.LoggedIn == 0 || c.Denied != 0 {
			t.Errorf("%+v", c)
		}
	}
}

// other is what somebody else did to the service that the client subscribed to.
func (s *stage) other(t *testing.T, what string) {
	t.Helper()
	service := registry.Service{Namespace: s.namespace(), Group: registry.DefaultGroup, Name: "cap-other"}
	one := registry.Instance{
		Key:    registry.Key{Service: service, Cluster: registry.DefaultCluster, IP: "10.1.1.2", Port: 9090, Ephemeral: true},
		Weight: 1, Enabled: true, Healthy: what == "other-up",
	}
	err := s.server.Store.Register(t.Context(), one)
	if what == "other-down" {
		err = s.server.Store.Deregister(t.Context(), one.Key)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *stage) namespace() string {
	for _, one := range s.Steps {
		for _, pair := range strings.FieldsFunc(one.Query+"&"+one.Body, func(r rune) bool { return r == '&' }) {
			if value, ok := strings.CutPrefix(pair, "namespaceId="); ok {
				return value
			}
		}
	}
	return ""
}

func (s *stage) ask(t *testing.T, n int) {
	t.Helper()
	one := s.Steps[n]
	header := http.Header{}
	for key, value := range one.Headers {
		if key != "Accept-Encoding" && !strings.EqualFold(key, "Connection") {
			header.Set(key, strings.ReplaceAll(value, "<token>", s.token))
		}
	}
	target := one.Path + "?" + strings.ReplaceAll(one.Query, "<token>", s.token)
	got := s.serve.do(t, one.Method, target, header, strings.ReplaceAll(one.Body, "<token>", s.token))
	var body loginBody
	if json.Unmarshal([]byte(got.body), &body) == nil && body.Token != "" {
		s.token = body.Token
	}
	type answer struct {
		Status int
		Body   string
	}
	want := answer{one.Status, masked(strings.ReplaceAll(one.Answer, "<token>", "TOKEN"))}
	if s.equal(t, n, gocmp.Diff(want, answer{got.status, masked(got.body)})) {
		s.heard++
	}
}

// equal tells whether a step is as recorded. One that is not has to be listed.
func (s *stage) equal(t *testing.T, n int, diff string) bool {
	t.Helper()
	switch why := betterThanRecorded[s.key()][n]; {
	case diff == "" && why != "":
		t.Errorf("step %d is equal, but listed as different: %s", n, why)
	case diff != "" && why == "":
		t.Errorf("step %d, %s %s, -recorded +ours:\n%s", n, s.Steps[n].Method, s.Steps[n].Path, diff)
	}
	return diff == ""
}

// comparePush holds the last datagram about a list against the recorded one.
// Ours came earlier, and more may have come.
func (s *stage) comparePush(t *testing.T, n int) {
	t.Helper()
	one := s.Steps[n]
	s.sent = append(s.sent, s.box.take()...)
	var recorded pushBody
	var named listBody
	if err := json.Unmarshal([]byte(one.Body), &recorded); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(recorded.Data), &named); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, m := range s.sent {
		body, zipped := m.push(t)
		var l listBody
		if err := json.Unmarshal([]byte(body.Data), &l); err != nil {
			t.Fatal(err)
		}
		if l.Name == named.Name && l.Clusters == named.Clusters {
			got = fmt.Sprint(m.peer.Port(), zipped, body.Type, masked(body.Data))
		}
	}
	want := fmt.Sprint(one.Port, one.Gzip, recorded.Type, masked(recorded.Data))
	if s.equal(t, n, gocmp.Diff(want, got)) {
		s.pushed++
	}
}
