package registry

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Texts and bounds are those of com.alibaba.nacos.naming.misc.SwitchManager of
// 2.5.1, text and bound of serverStatusSynchronizationPeriodMillis included,
// which do not fit each other.
const (
	minPushCache     = 10_000
	minCache         = 1_000
	minServiceStatus = 5_000
	minServerStatus  = 1_000
	minHealthMin     = 500
	minHealthMax     = 3_000
)

// switchSetters lists the entries with what each does to the switches.
var switchSetters = map[string]func(w *Switches, value string) error{
	"distroThreshold":    (*Switches).setDistroThreshold,
	"clientBeatInterval": func(w *Switches, v string) error { return setWhole(&w.ClientBeatInterval, v) },
	"pushVersion":        (*Switches).setPushVersion,
	"pushCacheMillis": func(w *Switches, v string) error {
		return setBounded(&w.PushCacheMillis, v, minPushCache, "min cache time for http or tcp is too small(<10000)")
	},
	"defaultCacheMillis": func(w *Switches, v string) error {
		return setBounded(&w.CacheMillis, v, minCache, "min default cache time  is too small(<1000)")
	},
	"masters":            func(w *Switches, v string) error { w.Masters = splitJava(v, ","); return nil },
	"distro":             func(w *Switches, v string) error { w.DistroEnabled = truth(v); return nil },
	"check":              func(w *Switches, v string) error { w.HealthCheckEnabled = truth(v); return nil },
	"healthCheckEnabled": func(w *Switches, v string) error { w.HealthCheckEnabled = truth(v); return nil },
	"pushEnabled":        func(w *Switches, v string) error { w.PushEnabled = truth(v); return nil },
	"serviceStatusSynchronizationPeriodMillis": func(w *Switches, v string) error {
		return setBounded(&w.ServiceStatusMillis, v, minServiceStatus, "serviceStatusSynchronizationPeriodMillis is too small(<5000)")
	},
	"serverStatusSynchronizationPeriodMillis": func(w *Switches, v string) error {
		return setBounded(&w.ServerStatusMillis, v, minServerStatus, "serverStatusSynchronizationPeriodMillis is too small(<15000)")
	},
	"healthCheckTimes":             (*Switches).setCheckTimes,
	"disableAddIP":                 func(w *Switches, v string) error { w.DisableAddIP = truth(v); return nil },
	"sendBeatOnly":                 func(w *Switches, v string) error { w.SendBeatOnly = truth(v); return nil },
	"limitedUrlMap":                (*Switches).setLimitedURLs,
	"enableStandalone":             (*Switches).setStandalone,
	"overriddenServerStatus":       (*Switches).setStatus,
	"defaultInstanceEphemeral":     func(w *Switches, v string) error { w.EphemeralByDefault = truth(v); return nil },
	"distroServerExpiredMillis":    func(w *Switches, v string) error { return setWhole(&w.DistroExpiredMillis, v) },
	"lightBeatEnabled":             func(w *Switches, v string) error { w.LightBeatEnabled = truth(v); return nil },
	"autoChangeHealthCheckEnabled": func(w *Switches, v string) error { w.AutoChangeHealth = truth(v); return nil },
	"httpHealthParams":             func(w *Switches, v string) error { return setHealthParams(&w.HTTPHealth, v, httpParams, true) },
	"tcpHealthParams":              func(w *Switches, v string) error { return setHealthParams(&w.TCPHealth, v, tcpParams, true) },
	"mysqlHealthParams":            func(w *Switches, v string) error { return setHealthParams(&w.MySQLHealth, v, mysqlParams, false) },
}

func knownSwitch(entry string) bool {
	_, known := switchSetters[entry]
	return known
}

// set changes one switch; after an error nothing has changed. What values and
// maps the switches shared before with others stay as they are.
func (w *Switches) set(entry, value string) error {
	if setter, known := switchSetters[entry]; known {
		return setter(w, value)
	}
	return nil
}

func badSwitch(text string) error { return &Refusal{BadSwitch, text} }

// truth reads a boolean as com.alibaba.nacos.common.utils.ConvertUtils does,
// and 1 as well.
func truth(value string) bool {
	return slices.Contains([]string{"true", "t", "yes", "y", "on", "1"}, strings.ToLower(value))
}

func setWhole(to *int64, value string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return notWhole(value)
	}
	*to = n
	return nil
}

// notWhole says what java.lang.NumberFormatException does.
func notWhole(value string) error { return badSwitch(fmt.Sprintf("For input string: \"%s\"", value)) }

func setBounded(to *int64, value string, least int64, tooSmall string) error {
	var n int64
	if err := setWhole(&n, value); err != nil {
		return err
	}
	if n < least {
		return badSwitch(tooSmall)
	}
	*to = n
	return nil
}

func (w *Switches) setDistroThreshold(value string) error {
	f, err := strconv.ParseFloat(strings.TrimSpace(value), 32)
	switch {
	case strings.TrimSpace(value) == "":
		return badSwitch("empty String")
	case err != nil || f != f:
		return notWhole(value)
	case f <= 0:
		return badSwitch("distroThreshold can not be zero or negative: " + javaFloat(f))
	}
	w.DistroThreshold = float32(f)
	return nil
}

// javaFloat writes a float as Java does, as far as texts here need it.
func javaFloat(f float64) string {
	text := strconv.FormatFloat(f, 'f', -1, 32)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

func (w *Switches) setCheckTimes(value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return notWhole(value)
	}
	w.CheckTimes = int(n)
	return nil
}

const versionSyntax = `[0-9]+\.[0-9]+\.[0-9]+`

var versionPattern = regexp.MustCompile(`^(?:` + versionSyntax + `)$`)

func (w *Switches) setPushVersion(value string) error {
	parts := splitJava(value, ":")
	if len(parts) < 2 {
		return badSwitch("illegal format, must be 'type:version', but got: " + value)
	}
	if !versionPattern.MatchString(parts[1]) {
		return badSwitch("illegal version, must match: " + versionSyntax)
	}
	v := &w.PushVersions
	to, known := map[string]*string{"java": &v.Java, "python": &v.Python, "c": &v.C, "go": &v.Go, "csharp": &v.CSharp}[parts[0]]
	if !known {
		return badSwitch("unsupported client type: " + parts[0])
	}
	*to = parts[1]
	return nil
}

// setLimitedURLs reads "path:status,path:status"; an empty value changes nothing.
func (w *Switches) setLimitedURLs(value string) error {
	if value == "" {
		return nil
	}
	limited := map[string]int{}
	for _, one := range splitJava(value, ",") {
		parts := splitJava(one, ":")
		if len(parts) < 2 {
			return badSwitch("invalid input for limited urls")
		}
		if parts[0] == "" {
			return badSwitch("url can not be empty, url: ")
		}
		status, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			return notWhole(parts[1])
		}
		if status <= 0 {
			return badSwitch(fmt.Sprintf("illegal normal status code: %d", status))
		}
		limited[parts[0]] = int(status)
	}
	w.LimitedURLs = limited
	return nil
}

// splitJava splits as java.lang.String.split does: without the empty parts at
// the end.
func splitJava(text, by string) []string {
	parts := strings.Split(text, by)
	for len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// setStandalone follows what the switch is for: 2.5.1 takes it only when it is
// empty.
func (w *Switches) setStandalone(value string) error {
	if value != "" {
		w.EnableStandalone = truth(value)
	}
	return nil
}

func (w *Switches) setStatus(value string) error {
	if value == "null" {
		value = ""
	}
	w.OverriddenStatus = &value
	return nil
}

// setHealthParams reads {"max":..,"min":..,"factor":..}; what is left out is as
// it is by default.
func setHealthParams(to *HealthParams, value string, otherwise HealthParams, bounded bool) error {
	given := otherwise
	if err := json.Unmarshal([]byte(value), &given); err != nil {
		return badSwitch("json param invalid.")
	}
	switch {
	case bounded && given.Min < minHealthMin:
		return badSwitch("min check time for http or tcp is too small(<500)")
	case bounded && given.Max < minHealthMax:
		return badSwitch("max check time for http or tcp is too small(<3000)")
	case bounded && !(given.Factor >= 0 && given.Factor <= 1):
		return badSwitch("malformed factor")
	}
	*to = given
	return nil
}
