package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// perform does what a line says, or looks; "" when all is as it should be.
func (s *stage) perform(l line) (complaint string) {
	if l.sees {
		got, err := s.look(l)
		if err != nil {
			return err.Error()
		}
		if got != l.want {
			return "got " + got
		}
		return ""
	}
	return judge(s.do(l), l.fails)
}

// judge compares an error with what should be: "", "refused", "not found", each
// perhaps with ": " and the text.
func judge(err error, want string) (complaint string) {
	kind, text, _ := strings.Cut(want, ": ")
	sentinel := map[string]error{"refused": registry.ErrRefused, "not found": registry.ErrNotFound}[kind]
	switch {
	case err == nil && want == "":
		return ""
	case err == nil:
		return "got no error"
	case sentinel == nil || !errors.Is(err, sentinel) || text != "" && err.Error() != text:
		return fmt.Sprintf("got %v", err)
	}
	return ""
}

func (s *stage) do(l line) error {
	ctx := s.Context()
	switch l.verb {
	case "restart":
		return s.restart()
	case "sleep":
		d, err := time.ParseDuration(l.words[0])
		s.sleep(d)
		return err
	case "create":
		c, err := serviceConfig(l.words)
		return errors.Join(err, s.store.CreateService(ctx, c))
	case "update":
		c, err := serviceConfig(l.words)
		return errors.Join(err, s.store.UpdateService(ctx, c))
	case "delete":
		return s.store.DeleteService(ctx, service(l.words[0]))
	case "configure":
		return s.store.SetCluster(ctx, registry.ClusterConfig{
			Cluster: registry.Cluster{Service: service(l.words[0]), Name: l.words[1]},
			Checker: registry.Checker{Type: l.words[2], UseInstancePort: true},
		})
	}
	return s.doInstance(l)
}

func (s *stage) doInstance(l line) error {
	ctx := s.Context()
	switch l.verb {
	case "operator":
		k, err := key(l.words)
		if err != nil {
			return err
		}
		o, err := overlay(l.words[2:])
		if err != nil {
			return err
		}
		if _, err := s.store.Get(ctx, k); errors.Is(err, registry.ErrNotFound) {
			k.Ephemeral = false
		}
		return s.store.Override(ctx, k, o)
	case "prober":
		k, err := key(l.words)
		if err != nil {
			return err
		}
		k.Ephemeral = false
		seen, err := s.store.Get(ctx, k)
		if err != nil {
			return err
		}
		return s.store.SetHealth(ctx, seen, l.words[2] == "healthy")
	}
	one, err := instance(l.words)
	if err != nil {
		return err
	}
	switch l.verb {
	case "register":
		return s.store.Register(ctx, one)
	case "mark":
		return s.store.Mark(ctx, one)
	case "beat":
		_, err = s.store.Beat(ctx, one)
		return err
	}
	return s.store.Deregister(ctx, one.Key)
}

func serviceConfig(words []string) (c registry.ServiceConfig, err error) {
	c.Service = service(words[0])
	if len(words) > 1 {
		c.ProtectThreshold, err = strconv.ParseFloat(strings.TrimPrefix(words[1], "protect="), 64)
	}
	return c, err
}

// look gives what a line looks at, as text.
func (s *stage) look(l line) (string, error) {
	switch l.verb {
	case "services":
		var names []string
		for _, one := range s.store.Services(registry.DefaultNamespace, "") {
			names = append(names, one.Name)
		}
		return something(names, " "), nil
	case "beats":
		k, err := key(l.words)
		if err != nil {
			return "", err
		}
		pace, err := s.store.Beat(s.Context(), registry.Instance{Key: k})
		return pace.String(), err
	case "truth":
		return show(s.store.All(service(l.words[0]))), nil
	}
	view := s.store.View(service(l.words[0]), registry.Query{HealthyOnly: l.verb == "healthy"})
	if view.Protected {
		return "protected " + show(view.Instances), nil
	}
	return show(view.Instances), nil
}

func show(all []registry.Instance) string {
	var texts []string
	for _, one := range all {
		words := []string{one.Address(), map[bool]string{true: "healthy", false: "unhealthy"}[one.Healthy]}
		if !one.Enabled {
			words = append(words, "disabled")
		}
		if one.Weight != 1 {
			words = append(words, fmt.Sprintf("weight=%v", one.Weight))
		}
		if one.Cluster != registry.DefaultCluster {
			words = append(words, "cluster="+one.Cluster)
		}
		texts = append(texts, strings.Join(words, " "))
	}
	return something(texts, ", ")
}

func something(texts []string, between string) string {
	if len(texts) == 0 {
		return "nothing"
	}
	return strings.Join(texts, between)
}
