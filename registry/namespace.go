package registry

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Namespace is a namespace that somebody created. Services may live in any
// other as well: a namespace need not be created to be used, as in Nacos.
type Namespace struct {
	ID          string // ^[\w-]+$, at most 128 characters
	Name        string // as consoles show it
	Description string
}

// publicNamespace is always there.
var publicNamespace = Namespace{ID: DefaultNamespace, Name: "public", Description: "Default Namespace"}

// namespaceMax is how long the id of a namespace may be
// (com.alibaba.nacos.core.namespace.NAMESPACE_ID_MAX_LENGTH of 2.5.1).
const namespaceMax = 128

// CreateNamespace adds a namespace: a *Refusal when there is one with that id,
// or when id or name hold what they may not.
func (s *Store) CreateNamespace(ctx context.Context, n Namespace) error {
	if err := n.check(); err != nil {
		return err
	}
	if _, exists := s.Namespace(n.ID); exists {
		return namespaceExists(n.ID)
	}
	return s.submit(ctx, command{op: opNamespace, namespace: n, mustExist: false})
}

// UpdateNamespace changes name and description of a namespace. One that nobody
// created is no error and stays unknown, as in Nacos.
func (s *Store) UpdateNamespace(ctx context.Context, n Namespace) error {
	if err := n.checkName(); err != nil {
		return err
	}
	if known, exists := s.Namespace(n.ID); !exists || known == n || isPublic(n.ID) {
		return nil
	}
	return s.submit(ctx, command{op: opNamespace, namespace: n, mustExist: true})
}

// DeleteNamespace forgets a namespace; its services stay, as in Nacos. One that
// nobody created is no error.
func (s *Store) DeleteNamespace(ctx context.Context, id string) error {
	if _, exists := s.Namespace(id); !exists || isPublic(id) {
		return nil
	}
	return s.submit(ctx, command{op: opNoNamespace, namespace: Namespace{ID: id}})
}

// Namespace gives a namespace that somebody created, or the public one, which
// "" names as well.
func (s *Store) Namespace(id string) (n Namespace, exists bool) {
	if isPublic(id) {
		return publicNamespace, true
	}
	n, exists = (*s.created.Load())[id]
	return n, exists
}

// CreatedNamespaces lists the public namespace and then those that somebody
// created, by id.
func (s *Store) CreatedNamespaces() []Namespace {
	created := *s.created.Load()
	all := []Namespace{publicNamespace}
	for _, id := range slices.Sorted(maps.Keys(created)) {
		all = append(all, created[id])
	}
	return all
}

func isPublic(id string) bool { return id == "" || id == DefaultNamespace }

// applyNamespace puts a new map in the place of the old one, which readers may
// still hold.
func (s *Store) applyNamespace(m command) error {
	old := *s.created.Load()
	_, exists := old[m.namespace.ID]
	switch {
	case m.op == opNamespace && exists && !m.mustExist:
		return namespaceExists(m.namespace.ID)
	case exists != (m.op == opNoNamespace || m.mustExist):
		return nil // gone, or changed when it was gone
	}
	next := maps.Clone(old)
	if m.op == opNoNamespace {
		delete(next, m.namespace.ID)
	} else {
		next[m.namespace.ID] = m.namespace
	}
	s.created.Store(&next)
	return nil
}

func namespaceExists(id string) error {
	return &Refusal{NamespaceExists, "namespaceId [" + id + "] already exist"}
}

func (n *Namespace) fields(c *codec) {
	c.text(&n.ID)
	c.text(&n.Name)
	c.text(&n.Description)
}

func (n Namespace) check() error {
	switch {
	case n.ID == "" || strings.ContainsFunc(n.ID, notWord):
		return &Refusal{BadNamespace, "namespaceId [" + n.ID + "] mismatch the pattern"}
	case len(n.ID) > namespaceMax:
		return &Refusal{BadNamespace, "too long namespaceId, over " + strconv.Itoa(namespaceMax)}
	}
	return n.checkName()
}

// notWord is what \w and - are not.
func notWord(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-'
}

// checkName refuses names with characters that a console could stumble over
// (^[^@#$%^&*]+$ of 2.5.1).
func (n Namespace) checkName() error {
	if n.Name == "" || strings.ContainsAny(n.Name, "@#$%^&*") {
		return &Refusal{BadNamespace, "namespaceName [" + n.Name + "] contains illegal char"}
	}
	return nil
}
