package web

import (
	"testing"
	"time"
)

// An AuthForTest shows the clockwork of logins to tests in a bubble of time,
// where no real server can run.
type AuthForTest struct {
	t *testing.T
	a *auth
}

// NewAuthForTest opens the logins of a data directory.
func NewAuthForTest(t *testing.T, dir string) AuthForTest {
	a, err := newAuth(dir)
	if err != nil {
		t.Fatal(err)
	}
	return AuthForTest{t, a}
}

func (x AuthForTest) Code() string               { return x.a.newCode() }
func (x AuthForTest) Session(cookie string) bool { return x.a.session(cookie) }

func (x AuthForTest) Login(secret string) (string, bool) {
	cookie, ok, err := x.a.login(secret, true)
	if err != nil {
		x.t.Error(err)
	}
	return cookie, ok
}

func (x AuthForTest) Rotate(cookie string) string {
	fresh, err := x.a.rotate(cookie)
	if err != nil {
		x.t.Error(err)
	}
	return fresh
}

// A GuessesForTest shows the lock-out.
type GuessesForTest struct{ g *guesses }

func NewGuessesForTest() GuessesForTest { return GuessesForTest{new(guesses)} }

func (x GuessesForTest) Wrong(addr string)                { x.g.wrong(addr) }
func (x GuessesForTest) Locked(addr string) time.Duration { return x.g.locked(addr) }
func (x GuessesForTest) People() int                      { return len(x.g.by) }

// Pure functions: where the page listens and is reached, and how lists cut texts.
var (
	Shorten   = shorten
	Network   = network
	Reachable = reachable
)
