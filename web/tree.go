package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
)

// The files of the tree of credentials. A data directory has its own names for the first
// three (see Names). In a cluster the tree also has the codes of login links, so that every
// member accepts them.
const (
	treeOwner    = "web/token"
	treeTokens   = "web/tokens.json"
	treeSessions = "web/sessions.json"
	treeCodes    = "web/codes.json"
)

// treeTime bounds how long a change of credentials waits for the tree.
const treeTime = 5 * time.Second

// Names maps paths in the tree to files of a data directory. A single machine has no file of
// login codes: links end with the process.
func Names() map[string]string {
	return map[string]string{treeOwner: ownerName, treeTokens: tokensName, treeSessions: sessionName}
}

// Load returns the reader for a file of a data directory. It ignores unreadable sessions:
// users log in again. It sets a file with damaged API tokens aside, logs that, and accepts
// none of them.
func Load(log *slog.Logger) func(path, file string) ([]byte, error) {
	return func(path, file string) ([]byte, error) {
		b, err := os.ReadFile(file)
		switch {
		case path == treeSessions:
			return loadSessions(b, err)
		case path == treeTokens && err == nil:
			return loadTokens(file, b, log)
		}
		return b, err
	}
}

// A view is the state of the files in the tree, which other members change too. It merges
// each change into the file; the auth keeps a change that cannot be written until it can.
// disk guards the view.
type view struct {
	sessions ledger[session]
	codes    ledger[time.Time]
	owner    int64 // versions read last
	tokens   int64
}

func newView() view {
	return view{
		sessions: ledger[session]{path: treeSessions, same: session.same},
		codes:    ledger[time.Time]{path: treeCodes, same: time.Time.Equal},
	}
}

// A ledger is a file of a Tree with one entry per secret.
type ledger[V any] struct {
	path    string
	same    func(a, b V) bool
	version int64
	base    map[hash]V // content of the file when last read or written

	tree storage.Tree
	mu   *sync.Mutex // held during calls of get and set, which access this member's entries
	get  func() map[hash]V
	set  func(map[hash]V)
}

func (l *ledger[V]) of(mu *sync.Mutex, tree storage.Tree, get func() map[hash]V, set func(map[hash]V)) {
	l.mu, l.tree, l.get, l.set = mu, tree, get, set
}

// merge applies to theirs the changes between base and ours.
func (l *ledger[V]) merge(base, ours, theirs map[hash]V) map[hash]V {
	out := make(map[hash]V, len(theirs))
	maps.Copy(out, theirs)
	for k, v := range ours {
		if old, ok := base[k]; !ok || !l.same(old, v) {
			out[k] = v
		}
	}
	for k := range base {
		if _, ok := ours[k]; !ok {
			delete(out, k)
		}
	}
	return out
}

// A way selects what sync does with the file.
type way int

const (
	pulled  way = iota // only read it
	written            // write this member's changes
	cleared            // write only this member's entries
)

// sync reads the changes of other members, writes the file as selected by how, and returns
// the earlier content of the file.
func (l *ledger[V]) sync(ctx context.Context, how way) (theirs map[hash]V, err error) {
	var mine, merged map[hash]V
	f, err := storage.EditFile(ctx, l.tree, l.path, func(old storage.TreeFile) ([]byte, error) {
		theirs = make(map[hash]V)
		if json.Unmarshal(old.Body, &theirs) != nil || theirs == nil { // damaged: users log in again
			theirs = make(map[hash]V)
		}
		l.mu.Lock()
		mine = maps.Clone(l.get())
		l.mu.Unlock()
		base := l.base
		if how == cleared {
			base = theirs
		}
		merged = l.merge(base, mine, theirs)
		if how == pulled || maps.EqualFunc(merged, theirs, l.same) {
			return nil, nil
		}
		return json.Marshal(merged)
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(l.merge(mine, l.get(), merged)) // with concurrent changes
	l.version, l.base = f.Version, theirs
	if how != pulled {
		l.base = merged
	}
	return theirs, nil
}

// setSessions replaces the sessions and ends the requests of removed logins. The caller
// holds mu.
func (a *auth) setSessions(all map[hash]session) {
	here := make(map[string]bool, len(all))
	for _, s := range all {
		here[s.Login] = true
	}
	for _, s := range a.sessions {
		if !here[s.Login] {
			a.under.end(sessionKey(s.Login))
		}
	}
	a.sessions = all
}

// publish shares new codes with the other members and reports whether it succeeded.
func (a *auth) publish() bool {
	ctx, done := a.change()
	defer done()
	_, err := a.view.codes.sync(ctx, written)
	if err != nil {
		a.log.Warn("login link works on this member only: the store does not respond", "err", err)
	}
	return err == nil
}

// change starts a change of the tree: it locks disk, and done unlocks it.
func (a *auth) change() (ctx context.Context, done func()) {
	ctx, cancel := context.WithTimeout(context.Background(), treeTime)
	a.disk.Lock()
	return ctx, func() { a.disk.Unlock(); cancel() }
}

// takeOwner adopts the owner token of the tree. The data directory gets a copy for people to
// read if the tree is elsewhere.
func (a *auth) takeOwner(text string) {
	secret := strings.TrimSpace(text)
	sum := digest(secret)
	a.mu.Lock()
	if !a.owner.is(sum) {
		a.owner = sum
		a.under.end(tokenKey(owner))
	}
	a.mu.Unlock()
	if err := copyOwner(filepath.Join(a.dir, ownerName), secret); err != nil {
		a.log.Warn("failed to write the owner's token to the data directory", "err", err)
	}
}

// pull adopts the changes of other members.
func (a *auth) pull(ctx context.Context) error {
	a.disk.Lock()
	defer a.disk.Unlock()
	entries, err := a.tree.Entries(ctx, "web")
	if err != nil {
		return err
	}
	versions := make(map[string]int64, len(entries))
	for _, f := range entries {
		versions[f.Path] = f.Version
	}
	var errs []error
	if versions[treeSessions] != a.view.sessions.version {
		_, err := a.view.sessions.sync(ctx, pulled)
		errs = append(errs, err)
	}
	if versions[treeCodes] != a.view.codes.version {
		_, err := a.view.codes.sync(ctx, pulled)
		errs = append(errs, err)
	}
	if v := versions[treeOwner]; v != 0 && v != a.view.owner {
		f, err := readOne(ctx, a.tree, treeOwner)
		if errs = append(errs, err); err == nil {
			a.view.owner = f.Version
			if usable(string(f.Body)) {
				a.takeOwner(string(f.Body))
			}
		}
	}
	if versions[treeTokens] != a.view.tokens {
		f, err := readOne(ctx, a.tree, treeTokens)
		if errs = append(errs, err); err == nil {
			a.takeTokens(f)
		}
	}
	return errors.Join(errs...)
}

// readOne reads a file of the tree; Version is 0 if it does not exist.
func readOne(ctx context.Context, t storage.Tree, path string) (storage.TreeFile, error) {
	found, err := t.Read(ctx, path)
	if err != nil || len(found) == 0 {
		return storage.TreeFile{Path: path}, err
	}
	return found[0], nil
}

// takeTokens adopts the tokens of a file and ends the requests of deleted or rotated ones.
// The caller holds disk.
func (a *auth) takeTokens(f storage.TreeFile) {
	a.view.tokens = f.Version
	var all []token
	if f.Version != 0 {
		var err error
		if all, err = readTokens(f.Body); err != nil {
			a.log.Error("API tokens cannot be read, so none is accepted", "file", f.Path, "err", err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tokens {
		if !slices.ContainsFunc(all, func(x token) bool {
			return x.Name == t.Name && x.Hash == t.Hash && x.Expires == t.Expires && x.allows() == t.allows()
		}) {
			a.under.end(tokenKey(t.Name))
		}
	}
	a.tokens = all
}

// editTokens stores the list of tokens that edit returns for the present list; edit receives
// the index of name, or where it would be inserted. Then it ends the requests of deleted or
// rotated tokens. It writes the file first, because a restart restores what the file has.
func (a *auth) editTokens(name string, edit func(all []token, at int, found bool) ([]token, error)) error {
	ctx, done := a.change()
	defer done()
	f, err := storage.EditFile(ctx, a.tree, treeTokens, func(old storage.TreeFile) ([]byte, error) {
		var all []token
		if old.Version != 0 {
			var err error
			if all, err = readTokens(old.Body); err != nil {
				return nil, fmt.Errorf("read the API tokens: %w", err)
			}
		}
		at, found := slices.BinarySearchFunc(all, name, func(t token, name string) int { return cmp.Compare(t.Name, name) })
		all, err := edit(all, at, found)
		if err != nil {
			return nil, fmt.Errorf("token %s: %w", name, err)
		}
		return json.Marshal(fileOf(all))
	})
	if err == nil {
		a.takeTokens(f)
	}
	return err
}

// catchUp reads the changes of other members immediately and reports whether it did. It is
// for an unknown secret: a browser that has just logged in may reach another member with its
// next request.
func (a *auth) catchUp(ctx context.Context, secret string) bool {
	if len(secret) < len(random()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, treeTime)
	defer cancel()
	err := a.tree.Look(ctx)
	if err == nil {
		err = a.pull(ctx)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("failed to read sessions of other members", "err", err)
	}
	return err == nil
}

// follow adopts the changes of other members until ctx is done.
func (a *auth) follow(ctx context.Context) {
	told := false
	for {
		changed := a.tree.Changed()
		err := a.pull(ctx)
		if err == nil {
			told = false
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			continue
		}
		if !told && ctx.Err() == nil {
			told = true
			a.log.Warn("failed to follow credentials of other members, retrying", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(storage.LookEvery):
		}
	}
}
