package registry

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
)

// pageLen is the number of instances on a page.
const pageLen = 500

// List gives a page of the persistent instances with their true health and the
// overlays applied, ordered by service and address. from is "" or Next of the
// page before; instances that come and go meanwhile make no other one appear
// twice or not at all. The metadata maps are shared and must not be changed.
func (s *Store) List(_ context.Context, from string) (Page, error) {
	after, err := readCursor(from)
	if err != nil {
		return Page{}, err
	}
	_, services := s.sorted()
	at, _ := slices.BinarySearchFunc(services, after.Service, Service.Compare)
	page := Page{Checkers: map[Cluster]Checker{}}
	for _, service := range services[at:] {
		full := s.fill(&page, service, after)
		if full {
			page.Next = writeCursor(page.Instances[len(page.Instances)-1].Key)
			break
		}
	}
	return page, nil
}

// fill puts the instances of a service that come after the cursor on the page.
// It tells whether some did not fit.
func (s *Store) fill(page *Page, service Service, after Key) (full bool) {
	h := s.shard(service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	v := h.services[service]
	if v == nil || v.ephemeral {
		return false
	}
	at := 0
	if service == after.Service && after.IP != "" {
		var there bool
		if at, there = h.position(v, after.IP, after.Port); there {
			at++
		}
	}
	m := memo{}
	for _, slot := range v.slots[at:] {
		if len(page.Instances) == pageLen {
			return true
		}
		i := h.instance(v, slot, m)
		page.Instances = append(page.Instances, i)
		if c, set := v.cluster(i.Cluster); set {
			page.Checkers[c.Cluster] = c.Checker
		}
	}
	return false
}

// writeCursor names the last instance of a page.
func writeCursor(k Key) string {
	c := codec{}
	c.service(&k.Service)
	c.text(&k.IP)
	c.port(&k.Port)
	return base64.RawURLEncoding.EncodeToString(c.buf)
}

func readCursor(from string) (k Key, err error) {
	if from == "" {
		return k, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(from)
	c := codec{buf: raw, reading: true}
	c.service(&k.Service)
	c.text(&k.IP)
	c.port(&k.Port)
	if err != nil || c.err != nil || len(c.buf) > 0 || k.IP == "" {
		return k, fmt.Errorf("cannot list from %.80q: %w: it must be empty or what the page before gave", from, ErrRefused)
	}
	return k, nil
}
