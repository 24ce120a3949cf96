package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kinds of requests, each looked at by itself.
const (
	beat  = "beats"
	read  = "reads"
	write = "durable writes"
)

// seen is what clients saw.
type seen struct {
	mu            sync.Mutex
	answers       map[string]map[string]int // by kind and status
	last          map[string]time.Time      // when one was answered well
	longest       map[string]time.Duration  // without such an answer
	reason        string                    // of the first 503
	flips, missed int                       // see watch
}

// answered notes the end of one request.
func (s *seen) answered(kind, status string, well bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers, s.last, s.longest = map[string]map[string]int{}, map[string]time.Time{}, map[string]time.Duration{}
	}
	if s.answers[kind] == nil {
		s.answers[kind], s.last[kind] = map[string]int{}, time.Now()
	}
	s.answers[kind][status]++
	s.gap(kind)
	if well {
		s.last[kind] = time.Now()
	}
}

// refused keeps the words of the first 503.
func (s *seen) refused(status string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status == "503" && s.reason == "" {
		s.reason = string(body)
	}
}

// gap measures the silence that has not ended yet.
func (s *seen) gap(kind string) {
	s.longest[kind] = max(s.longest[kind], time.Since(s.last[kind]))
}

// silence gives the longest time without a good answer.
func (s *seen) silence(kind string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.longest[kind]
}

// count tells how many of a kind were answered so.
func (s *seen) count(kind, status string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[kind][status]
}

// others gives the statuses of a kind that are none of those.
func (s *seen) others(kind string, but ...string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var others []string
	for status, n := range s.answers[kind] {
		if !slices.Contains(but, status) {
			others = append(others, fmt.Sprintf("%s %d", status, n))
		}
	}
	return others
}

func (s *seen) changed() (flips, missed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flips, s.missed
}

// String gives it for the table.
func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, kind := range []string{beat, read, write} {
		if len(s.answers[kind]) == 0 {
			continue
		}
		var each []string
		for _, status := range slices.Sorted(maps.Keys(s.answers[kind])) {
			each = append(each, fmt.Sprintf("%s: %d", status, s.answers[kind][status]))
		}
		all = append(all, fmt.Sprintf("%s %s, at most %.2f s without", kind, strings.Join(each, ", "), s.longest[kind].Seconds()))
	}
	if s.reason != "" {
		all = append(all, fmt.Sprintf("503 says %.150q", s.reason))
	}
	if len(s.answers[beat]) > 0 {
		all = append(all, fmt.Sprintf("%d became unhealthy, %d left the list%s", s.flips, s.missed, map[bool]string{true: " until their next beat"}[s.missed > 0]))
	}
	return strings.Join(all, "; ")
}
