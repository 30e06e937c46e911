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
	"maps"
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

// A hash is the stored form of a secret. Secrets are 256 random bits, so a
// plain SHA-256 is safe.
type hash [sha256.Size]byte

func digest(secret string) hash { return sha256.Sum256([]byte(secret)) }

// is compares in constant time.
func (h hash) is(other hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// MarshalText encodes the hash for files.
func (h hash) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, h[:]), nil
}

// UnmarshalText decodes a hash and rejects any other length.
func (h *hash) UnmarshalText(text []byte) error {
	b, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil || len(b) != len(h) {
		return errors.New("not a hash")
	}
	copy(h[:], b)
	return nil
}

// An auth authenticates callers. Only the owner's token is stored as a secret; other
// tokens and sessions are stored as hashes, and login codes stay in memory.
//
//	web.token          the owner's token
//	web.tokens.json    tokens of programs: name, scope, hash, times
//	web.sessions.json  browsers that logged in, by the hash of their cookie
//
// A tree keeps them: that of the data directory, or one that the members of a
// cluster share, which has the hashes of login codes as well; web.token is then a
// copy for people to read.
//
// An authenticated request is registered until it has ended, in one step with the
// check: when a credential ends, all its active requests end.
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
	paces    paces
	under    holders
}

// newAuth reads the tree. Without an owner's token there, it takes that of the data
// directory.
func newAuth(dir string, tree *storage.Mirror, log *slog.Logger) (*auth, error) {
	secret, err := loadOwner(filepath.Join(dir, ownerName))
	if err != nil {
		return nil, err
	}
	a := &auth{
		dir: dir, log: log, tree: tree, view: newView(), owner: digest(secret),
		codes: make(map[hash]time.Time), sessions: make(map[hash]session), under: make(holders), paces: make(paces),
	}
	a.view.sessions.of(&a.mu, tree, func() map[hash]session { return a.sessions }, a.setSessions)
	a.view.codes.of(&a.mu, tree, func() map[hash]time.Time { return a.codes }, func(all map[hash]time.Time) { a.codes = all })
	ctx, cancel := context.WithTimeout(context.Background(), treeTime)
	defer cancel()
	f, err := storage.EditFile(ctx, tree, treeOwner, func(old storage.TreeFile) ([]byte, error) {
		if usable(string(old.Body)) {
			return nil, nil
		}
		return []byte(secret + "\n"), nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the shared credentials: %w", err)
	}
	a.view.owner = f.Version
	a.takeOwner(string(f.Body))
	return a, a.pull(ctx)
}

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

func usable(text string) bool {
	return len(strings.TrimSpace(text)) >= base64.RawURLEncoding.EncodedLen(tokenBytes)
}

// copyOwner writes the owner's token to the data directory, where operators expect it.
func copyOwner(path, secret string) error {
	if b, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(b)) == secret {
		return nil
	}
	return replace(path, []byte(secret+"\n"))
}

func random() string {
	var b [tokenBytes]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// replace atomically writes a small file with mode 0600; storage.ErrFull if it
// cannot.
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

// newCode makes a one-time login code. When there are too many, the one that ends
// first goes. shared is false when other members should know the code and do not.
func (a *auth) newCode() (code string, shared bool) {
	code = random()
	a.mu.Lock()
	expire(a.codes, a.sessions)
	if len(a.codes) >= maxCodes {
		var first hash
		for k, end := range a.codes {
			if at, ok := a.codes[first]; !ok || end.Before(at) {
				first = k
			}
		}
		delete(a.codes, first)
	}
	a.codes[digest(code)] = time.Now().Add(codeLife)
	a.mu.Unlock()
	return code, a.publish()
}

// login exchanges a code, or the owner's token, for the cookie of a new session. The
// session is valid before its file is written, even on a full disk. here says that the
// browser is on this machine.
func (a *auth) login(secret string, here bool) (cookie string, ok bool) {
	sum := digest(secret)
	ok = a.useCode(sum)
	a.mu.Lock()
	if ok = ok || a.owner.is(sum); ok {
		cookie = a.begin(random(), here)
	}
	a.mu.Unlock()
	if ok {
		a.note()
	}
	return cookie, ok
}

// useCode reports whether there is such a code, here and, as far as it was written, in
// the tree; from now on there is not. No other member knows an unwritten code.
func (a *auth) useCode(sum hash) bool {
	found := false
	a.mu.Lock()
	expire(a.codes, a.sessions)
	for k := range a.codes {
		if k.is(sum) {
			found = true
			delete(a.codes, k)
		}
	}
	a.mu.Unlock()
	if !found {
		return false
	}
	ctx, done := a.change()
	defer done()
	_, known := a.view.codes.base[sum]
	theirs, err := a.view.codes.sync(ctx, written)
	if !known {
		return true
	}
	if err != nil {
		a.log.Error("login links cannot be used while the store does not respond", "err", err)
		return false
	}
	_, there := theirs[sum]
	return there
}

// rotateOwner makes a new token for the owner. It ends the requests with the old one,
// and every session and link, which came from its holder. When the token cannot be
// written, nothing changes; errReturns is about the sessions.
func (a *auth) rotateOwner() error {
	ctx, done := a.change()
	secret := random()
	f, err := storage.EditFile(ctx, a.tree, treeOwner, func(storage.TreeFile) ([]byte, error) { return []byte(secret + "\n"), nil })
	if err == nil {
		a.view.owner = f.Version
		a.takeOwner(secret)
	}
	done()
	if err != nil {
		return err
	}
	a.mu.Lock()
	clear(a.codes)
	a.mu.Unlock()
	a.publish()
	return a.logoutAll()
}

// expire removes what has ended; its caller holds the mutex.
func expire(codes map[hash]time.Time, sessions map[hash]session) {
	now := time.Now()
	maps.DeleteFunc(codes, func(_ hash, end time.Time) bool { return now.After(end) })
	maps.DeleteFunc(sessions, func(_ hash, s session) bool { return now.After(s.Until) })
}
