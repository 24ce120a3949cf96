package nacos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"github.com/sidebeat/sidebeat/registry"
)

// namespaceBody is a namespace as the console lists it
// (com.alibaba.nacos.core.namespace.model.Namespace).
type namespaceBody struct {
	ID          string `json:"namespace"` // "" is the public one
	Name        string `json:"namespaceShowName"`
	Description string `json:"namespaceDesc"`
	Quota       int    `json:"quota"`       // of configurations, which there are none of
	Configs     int    `json:"configCount"` // none
	Type        int    `json:"type"`
}

// Types of namespaces (com.alibaba.nacos.core.namespace.model.NamespaceTypeEnum).
const (
	namespacePublic = 0
	namespaceCustom = 2
)

// namespaceQuota is what Nacos shows when nobody set one.
const namespaceQuota = 200

func toNamespace(n registry.Namespace) namespaceBody {
	body := namespaceBody{ID: n.ID, Name: n.Name, Description: n.Description, Quota: namespaceQuota, Type: namespaceCustom}
	if n.ID == registry.DefaultNamespace {
		body.ID, body.Type = "", namespacePublic
	}
	return body
}

// namespaces lists what was created; with show=all it tells of one, with
// checkNamespaceIdExist=true whether there is one.
func namespaces(_ context.Context, s *Server, c *call) (any, error) {
	switch {
	case c.form.text(paramShow) == "all":
		if err := c.needBySpring(paramNamespace); err != nil {
			return nil, err
		}
		n, exists := s.Store.Namespace(c.form.text(paramNamespace))
		if !exists {
			return nil, notFound("namespaceId [ " + c.form.text(paramNamespace) + " ] not exist")
		}
		return toNamespace(n), nil
	case c.form.text(paramNamespaceExists) == "true":
		id := c.form.text(paramNewNamespace)
		_, exists := s.Store.Namespace(id)
		return exists && id != "", nil
	}
	list := []namespaceBody{}
	for _, n := range s.Store.CreatedNamespaces() {
		list = append(list, toNamespace(n))
	}
	return restResult(list), nil
}

// createNamespace answers whether it did. Without an id it makes one.
func createNamespace(ctx context.Context, s *Server, c *call) (any, error) {
	if err := c.needBySpring(paramNamespaceName); err != nil {
		return nil, err
	}
	id := c.form.text(paramNewNamespace)
	if id == "" {
		id = newUUID()
	}
	n := registry.Namespace{ID: id, Name: c.form.text(paramNamespaceName), Description: c.form.text(paramNamespaceText)}
	return s.wroteNamespace(func() error { return s.Store.CreateNamespace(ctx, n) })
}

func updateNamespace(ctx context.Context, s *Server, c *call) (any, error) {
	if err := c.needBySpring(paramNamespaceID, paramNamespaceShow); err != nil {
		return nil, err
	}
	n := registry.Namespace{
		ID: c.form.text(paramNamespaceID), Name: c.form.text(paramNamespaceShow), Description: c.form.text(paramNamespaceText),
	}
	return s.wroteNamespace(func() error { return s.Store.UpdateNamespace(ctx, n) })
}

func deleteNamespace(ctx context.Context, s *Server, c *call) (any, error) {
	if err := c.needBySpring(paramNamespace); err != nil {
		return nil, err
	}
	return s.wroteNamespace(func() error { return s.Store.DeleteNamespace(ctx, c.form.text(paramNamespace)) })
}

// wroteNamespace answers true, or false for what is refused, as the console
// API does.
func (s *Server) wroteNamespace(write func() error) (any, error) {
	if err := s.durable(); err != nil {
		return nil, err
	}
	err := write()
	if errors.Is(err, registry.ErrRefused) {
		return false, nil
	}
	return err == nil, err
}

// oneNamespace tells of the namespace that the call names, by that name.
func oneNamespace(_ context.Context, s *Server, c *call) (any, error) {
	id := c.form.text(paramNamespace)
	n, exists := s.Store.Namespace(id)
	if !exists {
		return nil, &coded{http.StatusNotFound, codeNoNamespace, "namespaceId [ " + id + " ] not exist"}
	}
	body := toNamespace(n)
	body.ID = id
	return body, nil
}

// namespaceForm reads what v2 and v3 write: both have to be there, the id may be
// empty.
func (c *call) namespaceForm() (registry.Namespace, error) {
	for _, name := range []string{paramNamespace, paramNamespaceName} {
		if !c.form.given(name) {
			return registry.Namespace{}, invalid(codeMissing, "required parameter '"+name+"' is missing")
		}
	}
	return registry.Namespace{
		ID: c.form.text(paramNamespace), Name: c.form.text(paramNamespaceName), Description: c.form.text(paramNamespaceText),
	}, nil
}

// makeNamespace answers true; without an id it makes one.
func (s *Server) makeNamespace(ctx context.Context, c *call) (any, error) {
	n, err := c.namespaceForm()
	if err != nil {
		return nil, err
	}
	if n.ID == "" {
		n.ID = newUUID()
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	return true, s.Store.CreateNamespace(ctx, n)
}

func createNamespaceV2(ctx context.Context, s *Server, c *call) (any, error) {
	outcome, err := s.makeNamespace(ctx, c)
	if isRefusal(err, registry.NamespaceExists) {
		err = invalid(codeNamespace, "the namespaceId is existed, namespaceId: "+c.form.text(paramNamespace))
	}
	return outcome, err
}

func createNamespaceV3(ctx context.Context, s *Server, c *call) (any, error) {
	outcome, err := s.makeNamespace(ctx, c)
	if isRefusal(err, registry.NamespaceExists) {
		err = &coded{http.StatusInternalServerError, codeNamespaceExists, err.Error()}
	}
	return outcome, err
}

func isRefusal(err error, reason registry.Reason) bool {
	var r *registry.Refusal
	return errors.As(err, &r) && r.Reason == reason
}

// updateNamespaceV2 answers true, also when there is none to update.
func updateNamespaceV2(ctx context.Context, s *Server, c *call) (any, error) {
	n, err := c.namespaceForm()
	if err != nil {
		return nil, err
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	return true, s.Store.UpdateNamespace(ctx, n)
}

// dropNamespace answers true, also when there was none.
func dropNamespace(ctx context.Context, s *Server, c *call) (any, error) {
	if err := s.durable(); err != nil {
		return nil, err
	}
	return true, s.Store.DeleteNamespace(ctx, c.form.text(paramNamespace))
}

// countNamespaces tells 1 when there is one of this id, else 0. Nobody has
// created the public one.
func countNamespaces(_ context.Context, s *Server, c *call) (any, error) {
	for _, n := range s.Store.CreatedNamespaces() {
		if n.ID == c.form.text(paramNamespace) && n.ID != registry.DefaultNamespace {
			return 1, nil
		}
	}
	return 0, nil
}

// newUUID makes a random id of RFC 9562, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
