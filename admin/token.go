package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/valyala/fasthttp"
)

func (s *Server) token() (string, error) {
	if s.Token == nil {
		return "", nil
	}
	return s.Token()
}

// admitted tells whether a request may change something, and answers it when
// it may not. A loopback address of the caller proves nothing where others
// reach us too: a proxy beside us has one.
func (s *Server) admitted(ctx *fasthttp.RequestCtx) bool {
	want, err := s.token()
	switch {
	case err != nil:
		s.Log.WithField("cause", err).Error("the admin token cannot be read, POST is refused")
		answer(ctx, fasthttp.StatusServiceUnavailable, "the token cannot be read, the log says why")
		return false
	case want == "" && s.local:
		return true
	case want == "":
		answer(ctx, fasthttp.StatusForbidden, "refused: this is open to other machines and SIDEBEAT_ADMIN_TOKEN is not set")
		return false
	}
	got, _ := strings.CutPrefix(string(ctx.Request.Header.Peek("Authorization")), "Bearer ")
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	if subtle.ConstantTimeCompare(a[:], b[:]) == 1 {
		return true
	}
	ctx.Response.Header.Set("WWW-Authenticate", "Bearer")
	answer(ctx, fasthttp.StatusUnauthorized, "give SIDEBEAT_ADMIN_TOKEN as Authorization: Bearer")
	return false
}
