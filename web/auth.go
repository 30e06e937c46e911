package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
)

const (
	codeLife   = 15 * time.Minute
	maxCodes   = 64
	tokenBytes = 32 // 256 bit

	ownerName   = "web.token"
	sessionName = "web.sessions.json"
	tokensName  = "web.tokens.json"
)

// A hash is what is kept of a secret. Secrets are random and of 256 bits, so
// that a plain hash of one tells nothing.
type hash [sha256.Size]byte

func digest(secret string) hash { return sha256.Sum256([]byte(secret)) }

// is compares in a time that depends on neither.
func (h hash) is(other hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// MarshalText is the hash as files have it.
func (h hash) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, h[:]), nil
}

// UnmarshalText refuses what is no whole hash.
func (h *hash) UnmarshalText(text []byte) error {
	b, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil || len(b) != len(h) {
		return errors.New("not a hash")
	}
	copy(h[:], b)
	return nil
}

// An auth knows who may come in. The owner's token is the one file that holds a
// secret; of tokens and sessions there are hashes, and login codes live in
// memory.
//
//	web.token          the owner's token
//	web.tokens.json    tokens of programs: name, scope, hash, times
//	web.sessions.json  browsers that logged in, by the hash of their cookie
//
// A tree keeps them: that of the data directory, or one that the members of a
// cluster share, which has the hashes of login codes as well; web.token is then a
// copy for people to read.
//
// Whoever is let in is registered until his request has ended, in one step with
// the check: a credential that ends takes everything with it that goes on in its
// name.
type auth struct {
	dir   string
	log   *slog.Logger
	guess guesses
	tree  *storage.Mirror

	disk sync.Mutex // held while a file is written; taken before mu
	view view

	mu       sync.Mutex
	unsaved  bool // the sessions here are not those of the file
	owner    hash
	codes    map[hash]time.Time // their ends
	sessions map[hash]session   // by the cookie
	tokens   []token
	under    holders
}

// newAuth reads what a tree has. Where it has no owner's token, that of the data
// directory becomes it.
func newAuth(dir string, tree *storage.Mirror, log *slog.Logger) (*auth, error) {
	secret, err := loadOwner(filepath.Join(dir, ownerName))
	if err != nil {
		return nil, err
	}
	a := &auth{
		dir: dir, log: log, tree: tree, view: newView(), owner: digest(secret),
		codes: make(map[hash]time.Time), sessions: make(map[hash]session), under: make(holders),
	}
	ctx, cancel := context.WithTimeout(context.Background(), treeTime)
	defer cancel()
	return a, a.join(ctx, secret)
}

// loadOwner reads the owner's token, or makes it.
func loadOwner(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if secret := strings.TrimSpace(string(b)); err == nil && usable(secret) {
		return secret, os.Chmod(path, 0o600)
	}
	secret := random()
	if err := replace(path, []byte(secret+"\n")); err != nil {
		return "", err
	}
	return secret, nil
}

// usable reports whether a text is long enough for a token.
func usable(text string) bool {
	return len(strings.TrimSpace(text)) >= base64.RawURLEncoding.EncodedLen(tokenBytes)
}

// copyOwner writes the owner's token where people look for it, when it is not
// there.
func copyOwner(path, secret string) error {
	if b, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(b)) == secret {
		return nil
	}
	return replace(path, []byte(secret+"\n"))
}

// random returns 256 random bits that fit into URLs and headers.
func random() string {
	var b [tokenBytes]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// replace writes a small file of the owner as a whole or not at all; then the
// error is storage.ErrFull.
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
		return fmt.Errorf("write %s: %w: %w", path, storage.ErrFull, err)
	}
	return nil
}

// newCode makes a one-time login code. When there are too many, the one that
// ends first goes. shared is false when other members should know it and do not.
func (a *auth) newCode() (code string, shared bool) {
	code = random()
	a.addCode(digest(code))
	return code, a.publish()
}

func (a *auth) addCode(code hash) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire()
	if len(a.codes) >= maxCodes {
		var first hash
		for k, end := range a.codes {
			if at, ok := a.codes[first]; !ok || end.Before(at) {
				first = k
			}
		}
		delete(a.codes, first)
	}
	a.codes[code] = time.Now().Add(codeLife)
}

// login exchanges a code, or the owner's token if that is to be taken, for the
// cookie of a new session. The session is good without its file: a full disk
// locks nobody out.
func (a *auth) login(secret string, token bool) (cookie string, ok bool) {
	sum := digest(secret)
	ok = a.useCode(sum)
	a.mu.Lock()
	if ok = ok || token && a.owner.is(sum); ok {
		cookie = a.begin(random())
	}
	a.mu.Unlock()
	if ok {
		a.note()
	}
	return cookie, ok
}

// useCode reports whether there is such a code; from now on there is not.
func (a *auth) useCode(sum hash) (ok bool) {
	a.mu.Lock()
	a.expire()
	for k := range a.codes {
		if k.is(sum) {
			ok = true
			delete(a.codes, k)
		}
	}
	a.mu.Unlock()
	return ok && a.spend(sum)
}

// rotateOwner makes a new token for the owner. It ends what was done with the
// old one, and every session and link: they came from whoever had it. When the
// token cannot be written, nothing changes; errReturns is about the sessions.
func (a *auth) rotateOwner() error {
	if err := a.writeOwner(random()); err != nil {
		return err
	}
	a.mu.Lock()
	clear(a.codes)
	a.endSessions()
	a.mu.Unlock()
	a.publish()
	return a.forget(cleared)
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
