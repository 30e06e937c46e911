package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	codeLife    = 15 * time.Minute
	sessionLife = 12 * time.Hour
	// rotateAfter is how old a session may be when the page is opened before it
	// is replaced; the old one then works for overlap more.
	rotateAfter = time.Hour
	overlap     = time.Minute

	maxCodes    = 64
	maxSessions = 64
	tokenBytes  = 32 // 256 bit

	tokenName   = "web.token"
	sessionName = "web.sessions.json"
)

// An auth knows who is logged in. The token is the one file that holds a
// secret; login codes live in memory and sessions are stored as hashes.
type auth struct {
	token [sha256.Size]byte // hash
	path  string            // of the sessions
	guess guesses

	disk sync.Mutex // held while the sessions are written; taken before mu

	mu       sync.Mutex
	codes    map[[sha256.Size]byte]time.Time // hash → end
	sessions map[string]session              // by the hash of the cookie
}

// A session is one browser that logged in.
type session struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// newAuth reads the token and the sessions of a data directory. Sessions that
// cannot be read are forgotten: people log in again.
func newAuth(dir string) (*auth, error) {
	token, err := loadToken(filepath.Join(dir, tokenName))
	if err != nil {
		return nil, err
	}
	a := &auth{
		token:    sha256.Sum256([]byte(token)),
		path:     filepath.Join(dir, sessionName),
		codes:    make(map[[sha256.Size]byte]time.Time),
		sessions: make(map[string]session),
	}
	if b, err := os.ReadFile(a.path); err == nil {
		if err := json.Unmarshal(b, &a.sessions); err != nil || a.sessions == nil {
			a.sessions = make(map[string]session)
		}
	}
	return a, nil
}

// loadToken reads the bearer token, or makes it.
func loadToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if token := strings.TrimSpace(string(b)); err == nil && len(token) >= base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return token, os.Chmod(path, 0o600)
	}
	token := random()
	if err := replace(path, []byte(token+"\n")); err != nil {
		return "", err
	}
	return token, nil
}

// random returns 256 random bits that fit into URLs and headers.
func random() string {
	var b [tokenBytes]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// replace writes a small file of the owner as a whole or not at all.
func replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error that matters is the other one
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// isToken reports whether s is the bearer token.
func (a *auth) isToken(s string) bool {
	sum := sha256.Sum256([]byte(s))
	return subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1
}

// newCode makes a one-time login code. When there are too many, the one that
// ends first goes.
func (a *auth) newCode() string {
	code := random()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire()
	if len(a.codes) >= maxCodes {
		var first [sha256.Size]byte
		for k, end := range a.codes {
			if at, ok := a.codes[first]; !ok || end.Before(at) {
				first = k
			}
		}
		delete(a.codes, first)
	}
	a.codes[sha256.Sum256([]byte(code))] = time.Now().Add(codeLife)
	return code
}

// login exchanges a code, or the token if that is to be taken, for the cookie of
// a new session. The lookup by hash takes no time that depends on the secret.
func (a *auth) login(secret string, token bool) (cookie string, ok bool, err error) {
	sum := sha256.Sum256([]byte(secret))
	a.mu.Lock()
	a.expire()
	_, ok = a.codes[sum]
	delete(a.codes, sum)
	if ok = ok || token && a.isToken(secret); ok {
		cookie = a.begin()
	}
	a.mu.Unlock()
	if ok {
		err = a.save()
	}
	return cookie, ok, err
}

// begin adds a session; mu is held.
func (a *auth) begin() string {
	for len(a.sessions) >= maxSessions {
		oldest := ""
		for k, s := range a.sessions {
			if oldest == "" || s.Since.Before(a.sessions[oldest].Since) {
				oldest = k
			}
		}
		delete(a.sessions, oldest)
	}
	cookie, now := random(), time.Now()
	a.sessions[key(cookie)] = session{Since: now, Until: now.Add(sessionLife)}
	return cookie
}

// session reports whether the cookie is of a session that goes on.
func (a *auth) session(cookie string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.sessions[key(cookie)]
	return ok && time.Now().Before(s.Until)
}

// rotate replaces an old session by a new one and returns the new cookie, or
// nothing when the session is young. Requests under way may use the old one
// for a minute more.
func (a *auth) rotate(cookie string) (string, error) {
	a.mu.Lock()
	s, ok := a.sessions[key(cookie)]
	now := time.Now()
	if !ok || now.After(s.Until) || now.Sub(s.Since) < rotateAfter || s.Until.Sub(now) <= overlap {
		a.mu.Unlock()
		return "", nil
	}
	s.Until = now.Add(overlap)
	a.sessions[key(cookie)] = s
	a.expire()
	fresh := a.begin()
	a.mu.Unlock()
	return fresh, a.save()
}

// logout ends a session.
func (a *auth) logout(cookie string) error {
	a.mu.Lock()
	delete(a.sessions, key(cookie))
	a.mu.Unlock()
	return a.save()
}

// expire forgets what has ended; mu is held.
func (a *auth) expire() {
	now := time.Now()
	for k, end := range a.codes {
		if now.After(end) {
			delete(a.codes, k)
		}
	}
	for k, s := range a.sessions {
		if now.After(s.Until) {
			delete(a.sessions, k)
		}
	}
}

// save writes the sessions as they are now. The file is small and written when
// somebody logs in or out.
func (a *auth) save() error {
	a.disk.Lock()
	defer a.disk.Unlock()
	a.mu.Lock()
	b, err := json.Marshal(a.sessions)
	a.mu.Unlock()
	if err != nil {
		return err
	}
	return replace(a.path, b)
}

func key(cookie string) string {
	sum := sha256.Sum256([]byte(cookie))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

const (
	guessLimit  = 10
	guessWindow = time.Minute
	guessLock   = 5 * time.Minute
	guessPeople = 1024
)

// guesses counts wrong secrets by address. After ten within a minute the
// address is locked for five, loopback too. Behind a proxy everybody has one
// address, so a lock shuts out neither sessions nor one-time codes, which nobody
// can guess. The zero value is ready.
type guesses struct {
	mu sync.Mutex
	by map[string]*guesser
}

type guesser struct {
	wrong []time.Time
	until time.Time // locked
}

// locked reports how long the address has to wait.
func (g *guesses) locked(addr string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.by[addr]
	if p == nil {
		return 0
	}
	return max(0, time.Until(p.until))
}

// wrong counts one wrong secret.
func (g *guesses) wrong(addr string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	p := g.by[addr]
	if p == nil {
		if g.by == nil || len(g.by) >= guessPeople {
			g.forget(now)
		}
		p = &guesser{}
		g.by[addr] = p
	}
	for len(p.wrong) > 0 && now.Sub(p.wrong[0]) >= guessWindow {
		p.wrong = p.wrong[1:]
	}
	p.wrong = append(p.wrong, now)
	if len(p.wrong) >= guessLimit {
		p.wrong, p.until = nil, now.Add(guessLock)
	}
}

// forget makes room: those who neither are locked nor guessed lately go, and
// all when that is not enough; mu is held.
func (g *guesses) forget(now time.Time) {
	for addr, p := range g.by {
		if now.After(p.until) && (len(p.wrong) == 0 || now.Sub(p.wrong[len(p.wrong)-1]) >= guessWindow) {
			delete(g.by, addr)
		}
	}
	if g.by == nil || len(g.by) >= guessPeople {
		g.by = make(map[string]*guesser)
	}
}
