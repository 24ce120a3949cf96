package setting

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kelseyhightower/envconfig"
)

type sample struct {
	Service       string        `split_words:"true" desc:"name of the service"`
	CheckInterval time.Duration `split_words:"true" default:"2s" desc:"time between questions"`
	CheckFall     uint8         `split_words:"true" default:"3"`
	Shift         int16         `split_words:"true"`
	Weight        float64       `split_words:"true" default:"1"`
	Ephemeral     bool          `split_words:"true" default:"true"`
	Nacos         List          `split_words:"true" default:"http://127.0.0.1:8848"`
	Password      Secret        `split_words:"true" desc:"login"`
	Probe         inner         `split_words:"true"`
	Log
}

type inner struct {
	MaxHTTPConns int `split_words:"true" default:"7"`
}

func (s sample) Validate() error {
	var faults []error
	if s.Service == "" {
		faults = append(faults, errors.New("SIDEBEAT_SERVICE is required"))
	}
	if s.CheckInterval < time.Second {
		faults = append(faults, fmt.Errorf("SIDEBEAT_CHECK_INTERVAL=%s: at least 1s", s.CheckInterval))
	}
	return errors.Join(faults...)
}

func setenv(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestLoad(t *testing.T) {
	setenv(t, "SIDEBEAT_SERVICE", "orders", "SIDEBEAT_CHECK_INTERVAL", "1m30s", "SIDEBEAT_NACOS", " a, ,b ,",
		"SIDEBEAT_WEIGHT", "", "SIDEBEAT_SHIFT", "-12", "SIDEBEAT_PROBE_MAX_HTTP_CONNS", "9", "SIDEBEAT_EPHEMERAL", "false")
	var got sample
	warnings, err := Load(&got)
	if err != nil || warnings != nil {
		t.Fatalf("got %v and warnings %q, want neither", err, warnings)
	}
	want := sample{Service: "orders", CheckInterval: 90 * time.Second, CheckFall: 3, Shift: -12, Weight: 1,
		Nacos: List{"a", "b"}, Probe: inner{MaxHTTPConns: 9}, Log: Log{LogLevel: "info"}}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b Secret) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if weight, set := os.LookupEnv("SIDEBEAT_WEIGHT"); weight != "" || !set {
		t.Errorf("the empty SIDEBEAT_WEIGHT was not put back: %q %v", weight, set)
	}
}

func TestLoadTellsAllFaultsAtOnce(t *testing.T) {
	f := func(want []string, pairs ...string) {
		t.Helper()
		t.Run("", func(t *testing.T) {
			setenv(t, pairs...)
			_, err := Load(new(sample))
			if diff := cmp.Diff(want, lines(err)); diff != "" {
				t.Error(diff)
			}
			for i := 0; i < len(pairs); i += 2 {
				if got := os.Getenv(pairs[i]); got != pairs[i+1] {
					t.Errorf("%s is %q afterwards, want %q as before", pairs[i], got, pairs[i+1])
				}
			}
		})
	}
	f([]string{"SIDEBEAT_SERVICE is required"})
	f([]string{
		`cannot use SIDEBEAT_CHECK_FALL="256": give a whole decimal number, 0 to 255`,
		`cannot use SIDEBEAT_SHIFT="-32769": give a whole decimal number, -32768 to 32767`,
		`cannot use SIDEBEAT_WEIGHT="NaN": it is no number, such as 1 or 0.5`,
		`cannot use SIDEBEAT_CHECK_INTERVAL="5": a duration needs a unit, for example 5s or 5ms`,
		`cannot use SIDEBEAT_EPHEMERAL="yes": give true or false`,
		`cannot use SIDEBEAT_LOG_LEVEL="loud": give error, warn, info, debug or trace`,
		`SIDEBEAT_SERVICE is required`,
	}, "SIDEBEAT_CHECK_INTERVAL", "5", "SIDEBEAT_CHECK_FALL", "256", "SIDEBEAT_SHIFT", "-32769",
		"SIDEBEAT_WEIGHT", "NaN", "SIDEBEAT_EPHEMERAL", "yes", "SIDEBEAT_LOG_LEVEL", "loud")
	f([]string{`cannot use SIDEBEAT_CHECK_FALL="010": give a whole decimal number, 0 to 255`}, "SIDEBEAT_SERVICE", "s", "SIDEBEAT_CHECK_FALL", "010")
	f([]string{`cannot use SIDEBEAT_WEIGHT="inf": it is no number, such as 1 or 0.5`}, "SIDEBEAT_SERVICE", "s", "SIDEBEAT_WEIGHT", "inf")
	f([]string{`cannot use SIDEBEAT_CHECK_INTERVAL="2 weeks": it is no duration, such as 500ms, 5s or 1m30s`}, "SIDEBEAT_SERVICE", "s", "SIDEBEAT_CHECK_INTERVAL", "2 weeks")
	f([]string{"SIDEBEAT_CHECK_INTERVAL=1ms: at least 1s"}, "SIDEBEAT_SERVICE", "s", "SIDEBEAT_CHECK_INTERVAL", "1ms")
	f([]string{`cannot use SIDEBEAT_LOG_FORMAT="xml": give text or json`}, "SIDEBEAT_SERVICE", "s", "SIDEBEAT_LOG_FORMAT", "xml")
}

// What cannot be read is not complained of a second time as missing or wrong.
func TestLoadComplainsOnceOfAVariable(t *testing.T) {
	setenv(t, "SIDEBEAT_CHECK_INTERVAL", "1x", "SIDEBEAT_SERVICE", "s")
	_, err := Load(new(picky))
	want := []string{`cannot use SIDEBEAT_CHECK_INTERVAL="1x": it is no duration, such as 500ms, 5s or 1m30s`}
	if diff := cmp.Diff(want, lines(err)); diff != "" {
		t.Error(diff)
	}
}

type picky struct {
	CheckInterval time.Duration `split_words:"true"`
}

func (p picky) Validate() error {
	if p.CheckInterval == 0 {
		return errors.New("SIDEBEAT_CHECK_INTERVAL is required")
	}
	return nil
}

// A struct without a Validate of its own has the one of what it embeds.
func TestLoadComplainsOnceOfWhatIsEmbedded(t *testing.T) {
	setenv(t, "SIDEBEAT_LOG_LEVEL", "loud")
	_, err := Load(new(struct{ Log }))
	want := []string{`cannot use SIDEBEAT_LOG_LEVEL="loud": give error, warn, info, debug or trace`}
	if diff := cmp.Diff(want, lines(err)); diff != "" {
		t.Error(diff)
	}
}

func TestLoadBlamesAWrongDefault(t *testing.T) {
	var c struct {
		Drain time.Duration `split_words:"true" default:"12"`
	}
	_, err := Load(&c)
	want := []string{`the default of SIDEBEAT_DRAIN is wrong: time: missing unit in duration "12"`}
	if diff := cmp.Diff(want, lines(err)); diff != "" {
		t.Error(diff)
	}
}

func TestLoadKeepsLoginsAndLongValuesOutOfErrors(t *testing.T) {
	var c struct {
		Nacos time.Duration `split_words:"true"`
		Drain time.Duration `split_words:"true"`
	}
	setenv(t, "SIDEBEAT_NACOS", "http://me:hunter2@host:8848", "SIDEBEAT_DRAIN", strings.Repeat("9", 10_000))
	_, err := Load(&c)
	if text := fmt.Sprint(err); strings.Contains(text, "hunter2") || !strings.Contains(text, "http://***@host:8848") || len(text) > 1000 {
		t.Errorf("got %d bytes: %.400s", len(text), text)
	}
}

// envconfig's own table is the judge of the names; its template engine must
// not be linked into what ships, so that only this test may call it.
func TestNamesAreThoseOfEnvconfig(t *testing.T) {
	f := func(spec any) {
		t.Helper()
		var want bytes.Buffer
		if err := envconfig.Usagef(prefix, spec, &want, "{{range .}}{{.Key}}={{.Tags.Get \"default\"}}\n{{end}}"); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, v := range Variables(spec) {
			if !strings.HasSuffix(v.Name, fileSuffix) {
				fmt.Fprintf(&got, "%s=%s\n", v.Name, v.Default)
			}
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Error(diff)
		}
	}
	f(new(sample))
	f(new(struct {
		A               string `split_words:"true"`
		URL             string `split_words:"true"`
		GRPCTLSName     string `split_words:"true"`
		IPv6Only        bool   `split_words:"true"`
		Rate99Percent   int    `split_words:"true"`
		IdleTimeoutHTTP time.Duration
		Skipped         string `ignored:"true"`
		hidden          string
	}))
}

func TestLoadRefusesWhatIsNoStruct(t *testing.T) {
	f := func(spec any) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%T was taken", spec)
			}
		}()
		Load(spec)
	}
	f(sample{})
	f(new(int))
}

func TestUnknownNames(t *testing.T) {
	f := func(name string, want ...string) {
		t.Helper()
		t.Run("", func(t *testing.T) {
			setenv(t, "SIDEBEAT_SERVICE", "s", name, "tcp://10.96.0.7:8848")
			got, _ := Load(new(sample))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
	f("SIDEBEAT_CHECK_INTERVALL", "unknown setting SIDEBEAT_CHECK_INTERVALL; did you mean SIDEBEAT_CHECK_INTERVAL?")
	f("SIDEBEAT_PASSWORDFILE", "unknown setting SIDEBEAT_PASSWORDFILE; did you mean SIDEBEAT_PASSWORD_FILE?")
	f("SIDEBEAT_XYZZY", "unknown setting SIDEBEAT_XYZZY")
	f("SIDEBEAT_PORTS", "unknown setting SIDEBEAT_PORTS")
	f("SIDEBEATLOG")
	f("OTHER_CHECK_INTERVALL")
	for _, link := range []string{"SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8848_TCP",
		"PORT_8848_TCP_PROTO", "PORT_8848_UDP_PORT", "PORT_53_SCTP_ADDR", "REGISTRY_PORT_8848_TCP_ADDR", "REGISTRY_SERVICE_HOST"} {
		f("SIDEBEAT_" + link)
	}
}

func TestHelpAndPrint(t *testing.T) {
	type short struct {
		Drain    time.Duration `split_words:"true" default:"12s" desc:"how long"`
		Nacos    List          `split_words:"true" desc:"registries"`
		Metadata string        `split_words:"true"`
		Password Secret        `split_words:"true" desc:"login"`
	}
	setenv(t, "SIDEBEAT_NACOS", "http://me:hunter2@a:1,b", "SIDEBEAT_PASSWORD", "hunter3", "SIDEBEAT_METADATA", "a b\n")
	var c short
	if _, err := Load(&c); err != nil {
		t.Fatal(err)
	}
	var help, print strings.Builder
	Help(&help, &c)
	Print(&print, &c)
	wantHelp := `  SIDEBEAT_DRAIN          how long (12s)
  SIDEBEAT_NACOS          registries
  SIDEBEAT_METADATA       
  SIDEBEAT_PASSWORD       login
  SIDEBEAT_PASSWORD_FILE  file that holds SIDEBEAT_PASSWORD instead; read again when it changes
`
	wantPrint := `SIDEBEAT_DRAIN=12s
SIDEBEAT_NACOS=http://***@a:1,b
SIDEBEAT_METADATA="a b\n"
SIDEBEAT_PASSWORD=***
`
	if diff := cmp.Diff(wantHelp+wantPrint, help.String()+print.String()); diff != "" {
		t.Error(diff)
	}
}

func TestHideSecrets(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := hideSecrets(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	f("http://a:1,https://b/nacos", "http://a:1,https://b/nacos")
	f("http://me:pw@a:1,http://me:p/w@b", "http://***@a:1,http://***@b")
	f("http://:8080/x#status=200&header=Authorization:Bearer%20abc&body=a@b tcp://:1", "http://:8080/x#status=200&header=Authorization:***&body=a@b tcp://:1")
	f("http://:8080/x#header=X-Token%3Aabc", "http://:8080/x#header=X-Token%***")
	f("exec:/alive?arg=-v&env=PW=secret#timeout=1s", "exec:/alive?arg=-v&env=PW=***#timeout=1s")
	f("exec:/alive?env=PATH&arg=x", "exec:/alive?env=PATH&arg=x")
}

func FuzzLoad(f *testing.F) {
	f.Add("5s", "3", "1", "true")
	f.Add("5", "010", "NaN", "yes")
	f.Fuzz(func(t *testing.T, interval, fall, weight, ephemeral string) {
		for name, value := range map[string]string{"CHECK_INTERVAL": interval, "CHECK_FALL": fall, "WEIGHT": weight, "EPHEMERAL": ephemeral} {
			if strings.ContainsRune(value, 0) {
				t.Skip("the environment holds no NUL")
			}
			t.Setenv(prefix+"_"+name, value)
		}
		var c sample
		if _, err := Load(&c); c.Weight != c.Weight || c.Weight-c.Weight != 0 || err != nil && len(err.Error()) > 8000 {
			t.Errorf("got weight %v and %d bytes of error", c.Weight, len(err.Error()))
		}
	})
}
