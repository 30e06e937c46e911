package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
)

// An AuthForTest shows the clockwork of logins to tests in a bubble of time,
// where no real server can run.
type AuthForTest struct {
	t *testing.T
	a *auth
}

// DirectoryForTest is the tree of a single machine over its data directory.
func DirectoryForTest(dir string, log *slog.Logger) *storage.Mirror {
	return storage.MirrorAlone(files.OpenNamed(dir, Names(), Load(log)))
}

// NewAuthForTest opens the logins of a data directory.
func NewAuthForTest(t *testing.T, dir string) AuthForTest {
	log := slog.New(slog.DiscardHandler)
	a, err := newAuth(dir, DirectoryForTest(dir, log), log)
	if err != nil {
		t.Fatal(err)
	}
	return AuthForTest{t, a}
}

func (x AuthForTest) Code() string               { code, _ := x.a.newCode(); return code }
func (x AuthForTest) Session(cookie string) bool { return x.a.session(cookie) }
func (x AuthForTest) Sessions() int              { return len(x.a.sessions) }
func (x AuthForTest) Under() int                 { return len(x.a.under) }

func (x AuthForTest) Login(secret string) (string, bool) {
	return x.LoginHere(secret, false)
}

func (x AuthForTest) LoginHere(secret string, here bool) (string, bool) {
	return x.a.login(secret, here)
}

// Here reports whether a session began on the machine.
func (x AuthForTest) Here(cookie string) bool {
	p, ok := x.a.bySession(cookie, func(error) {})
	if ok {
		p.leave()
	}
	return ok && p.Here
}

func (x AuthForTest) Renew(cookie string) string { return x.a.renew(cookie) }

// Keep writes what could not be written, until ctx is done.
func (x AuthForTest) Keep(ctx context.Context) { x.a.keep(ctx) }

func (x AuthForTest) Logout(cookie string) {
	if err := x.a.logout(cookie); err != nil {
		x.t.Error(err)
	}
}

func (x AuthForTest) Create(name string, scope Scope, expires time.Time) (string, error) {
	_, secret, err := x.a.create(token{Name: name, Scope: scope, Expires: claybot.At(expires)})
	return secret, err
}

// CreateLimited creates a token with limits.
func (x AuthForTest) CreateLimited(name string, scope Scope, l Limits) (string, error) {
	_, secret, err := x.a.create(token{Name: name, Scope: scope, Limits: l})
	return secret, err
}

// Wait is how long the holder of a token must wait for the next request.
func (x AuthForTest) Wait(secret string) time.Duration {
	p, ok := x.a.byToken(secret, func(error) {})
	if !ok {
		x.t.Fatal("unknown token")
	}
	p.leave()
	return p.wait
}

func (x AuthForTest) Rotate(name string) (string, error) {
	_, secret, err := x.a.rotate(name)
	return secret, err
}

func (x AuthForTest) Revoke(name string) error { return x.a.revoke(name) }

// Enter admits a caller by cookie or token, and reports what ends the caller's request.
func (x AuthForTest) Enter(secret string) (who Caller, ended func() bool, leave func(), ok bool) {
	ctx, end := context.WithCancelCause(context.Background())
	p, ok := x.a.bySession(secret, end)
	if !ok {
		p, ok = x.a.byToken(secret, end)
	}
	if p.full {
		return p.Caller, nil, nil, false
	}
	return p.Caller, func() bool { return errors.Is(context.Cause(ctx), ErrLoggedOut) }, p.leave, ok
}

// MaxRequests is how many requests one credential can have under way.
const MaxRequests = maxRequests

// A GuessesForTest shows the lock-out.
type GuessesForTest struct{ g *guesses }

func NewGuessesForTest() GuessesForTest { return GuessesForTest{new(guesses)} }

func (x GuessesForTest) Wrong(addr string)                { x.g.wrong(addr) }
func (x GuessesForTest) Locked(addr string) time.Duration { return x.g.locked(addr) }
func (x GuessesForTest) People() int                      { return len(x.g.by) }

// PageForTest is what TCP serves at an address, for requests from anywhere.
func (s *Server) PageForTest(ctx context.Context, addr net.Addr) http.Handler {
	return s.pageHandler(ctx, addr)
}

// WaitForTest is how long requests may take to end with the server.
func (s *Server) WaitForTest(d time.Duration) { s.grace = d }

// CodeForTest is that of a fresh link, of a server that need not run.
func (s *Server) CodeForTest() string { code, _ := s.auth.newCode(); return code }

// LinksForTest are the links of a page at an address.
func (s *Server) LinksForTest(addr string, own []net.Addr) []string { return s.links(addr, own) }

// BelieveForTest is what proxies are believed.
func BelieveForTest(trusted []netip.Prefix, r *http.Request) (addr, host string, tls bool) {
	r = proxies(trusted).believe(r)
	return caller(r), r.Host, secure(r)
}

// Pure functions: where the page listens and is reached, and what headers say.
var (
	Network    = network
	Place      = place
	Reachable  = reachable
	Exposed    = exposed
	Bearer     = bearer
	Bound      = bound
	ReadTokens = readTokens
	Limited    = limited
	Watch      = (*limit).watch
)
