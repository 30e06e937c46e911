package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
)

// The files of a Tree in which nodes share who may come in. They are those of the
// data directory, and the codes of login links besides: a link that one node made
// is opened at any of them.
const (
	sharedOwner    = "web/token"
	sharedTokens   = "web/tokens.json"
	sharedSessions = "web/sessions.json"
	sharedCodes    = "web/codes.json"
)

// sharedTime bounds what a change of who may come in waits for the store.
const sharedTime = 5 * time.Second

// shared is what an auth knows of the files that other nodes change, too. What
// this node has changed and could not write yet stays and is written later: each
// change is merged into the file as it is then. It is used with auth.disk held.
type shared struct {
	tree     *storage.Mirror
	sessions ledger[session]
	codes    ledger[time.Time]
	owner    int64 // versions that were read
	tokens   int64
}

func newShared(tree *storage.Mirror) *shared {
	return &shared{
		tree:     tree,
		sessions: ledger[session]{path: sharedSessions, same: session.same},
		codes:    ledger[time.Time]{path: sharedCodes, same: time.Time.Equal},
	}
}

// A ledger is a file of a Tree with one entry for each of some secrets.
type ledger[V any] struct {
	path    string
	same    func(a, b V) bool
	version int64
	base    map[hash]V // what the file had when it was last read or written
}

// merge is theirs with the changes that made ours of base.
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

// sync takes over what others have written and, with write, writes what is
// different here. get and set are for the entries here, called with mu held. It
// returns what the file had.
func (l *ledger[V]) sync(ctx context.Context, t storage.Tree, mu *sync.Mutex, get func() map[hash]V, set func(map[hash]V), write bool) (theirs map[hash]V, err error) {
	var mine, merged map[hash]V
	f, err := storage.EditFile(ctx, t, l.path, func(old storage.TreeFile) ([]byte, error) {
		theirs = make(map[hash]V)
		if json.Unmarshal(old.Body, &theirs) != nil || theirs == nil { // damaged: people log in again
			theirs = make(map[hash]V)
		}
		mu.Lock()
		mine = maps.Clone(get())
		mu.Unlock()
		merged = l.merge(l.base, mine, theirs)
		if !write || maps.EqualFunc(merged, theirs, l.same) {
			return nil, nil
		}
		return json.Marshal(merged)
	})
	if err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	set(l.merge(mine, get(), merged)) // with what was changed meanwhile
	l.version, l.base = f.Version, theirs
	if write {
		l.base = merged
	}
	return theirs, nil
}

// syncSessions brings the sessions here and those of all nodes together.
func (a *auth) syncSessions(ctx context.Context, write bool) error {
	_, err := a.shared.sessions.sync(ctx, a.shared.tree, &a.mu, func() map[hash]session { return a.sessions }, a.setSessions, write)
	return err
}

// setSessions replaces the sessions, and ends what goes on in the name of logins
// that are not among them any more; mu is held.
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

// syncCodes brings the codes together, and returns those that the file had.
func (a *auth) syncCodes(ctx context.Context, write bool) (map[hash]time.Time, error) {
	return a.shared.codes.sync(ctx, a.shared.tree, &a.mu,
		func() map[hash]time.Time { return a.codes }, func(all map[hash]time.Time) { a.codes = all }, write)
}

// spend reports whether a code, which was just taken out of those here, is not
// used up anywhere else. Nobody else knows a code that is not written yet.
func (a *auth) spend(code hash) bool {
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	a.disk.Lock()
	defer a.disk.Unlock()
	_, written := a.shared.codes.base[code]
	theirs, err := a.syncCodes(ctx, true)
	if !written {
		return true
	}
	if err != nil {
		a.log.Error("a login link cannot be used while the store cannot be reached", "err", err)
		return false
	}
	_, there := theirs[code]
	return there
}

// publish makes a new code known to the other nodes, and reports whether it is.
func (a *auth) publish() bool {
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	a.disk.Lock()
	defer a.disk.Unlock()
	_, err := a.syncCodes(ctx, true)
	if err != nil {
		a.log.Warn("a login link works on this node only: the store cannot be reached", "err", err)
	}
	return err == nil
}

// saveShared writes the sessions for all nodes.
func (a *auth) saveShared() error {
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	a.disk.Lock()
	defer a.disk.Unlock()
	err := a.syncSessions(ctx, true)
	a.mu.Lock()
	a.unsaved = err != nil
	a.mu.Unlock()
	return err
}

// forgetAll writes down that all sessions have ended, those that are not known
// here as well.
func (a *auth) forgetAll() error {
	if a.shared == nil {
		return a.forget()
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	a.disk.Lock()
	defer a.disk.Unlock()
	f, err := storage.EditFile(ctx, a.shared.tree, sharedSessions, func(storage.TreeFile) ([]byte, error) { return []byte("{}"), nil })
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved = err != nil; err != nil {
		return fmt.Errorf("%w: %w", errReturns, err)
	}
	a.shared.sessions.version, a.shared.sessions.base = f.Version, nil
	return nil
}

// join takes over what the nodes share. When there is no owner's token yet, it is
// the one of the data directory.
func (a *auth) join(ctx context.Context, secret string) error {
	f, err := storage.EditFile(ctx, a.shared.tree, sharedOwner, func(old storage.TreeFile) ([]byte, error) {
		if usable(string(old.Body)) {
			return nil, nil
		}
		return []byte(secret + "\n"), nil
	})
	if err != nil {
		return fmt.Errorf("the logins of all nodes: %w", err)
	}
	a.shared.owner = f.Version
	a.takeOwner(string(f.Body))
	return a.pull(ctx)
}

// takeOwner makes the token of all nodes that of the owner here. Its copy in the
// data directory is for people to read.
func (a *auth) takeOwner(text string) {
	secret := strings.TrimSpace(text)
	sum := digest(secret)
	a.mu.Lock()
	if !a.owner.is(sum) {
		a.owner = sum
		a.under.end(tokenKey(owner))
	}
	a.mu.Unlock()
	if err := copyOwner(a.path(ownerName), secret); err != nil {
		a.log.Warn("the owner's token is not in the data directory of this node", "err", err)
	}
}

// pull takes over what other nodes have changed.
func (a *auth) pull(ctx context.Context) error {
	a.disk.Lock()
	defer a.disk.Unlock()
	entries, err := a.shared.tree.Entries(ctx, "web")
	if err != nil {
		return err
	}
	versions := make(map[string]int64, len(entries))
	for _, f := range entries {
		versions[f.Path] = f.Version
	}
	var errs []error
	if versions[sharedSessions] != a.shared.sessions.version {
		errs = append(errs, a.syncSessions(ctx, false))
	}
	if versions[sharedCodes] != a.shared.codes.version {
		_, err := a.syncCodes(ctx, false)
		errs = append(errs, err)
	}
	if v := versions[sharedOwner]; v != 0 && v != a.shared.owner {
		errs = append(errs, a.pullFile(ctx, sharedOwner, func(f storage.TreeFile) {
			a.shared.owner = f.Version
			if usable(string(f.Body)) {
				a.takeOwner(string(f.Body))
			}
		}))
	}
	if versions[sharedTokens] != a.shared.tokens {
		errs = append(errs, a.pullFile(ctx, sharedTokens, a.takeTokens))
	}
	return errors.Join(errs...)
}

func (a *auth) pullFile(ctx context.Context, path string, take func(storage.TreeFile)) error {
	found, err := a.shared.tree.Read(ctx, path)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		found = []storage.TreeFile{{Path: path}}
	}
	take(found[0])
	return nil
}

// takeTokens makes a file the tokens of programs; disk is held.
func (a *auth) takeTokens(f storage.TreeFile) {
	a.shared.tokens = f.Version
	var all []token
	if f.Version != 0 {
		var err error
		if all, err = readTokens(f.Body); err != nil {
			a.log.Error("the tokens of programs cannot be read, so none is accepted", "file", f.Path, "err", err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setTokens(all)
}

// setTokens replaces the tokens, and ends what is done with those that are gone
// or have another secret; mu is held.
func (a *auth) setTokens(all []token) {
	for _, t := range a.tokens {
		if !slices.ContainsFunc(all, func(x token) bool {
			return x.Name == t.Name && x.Hash == t.Hash && x.Expires == t.Expires && x.Scope == t.Scope
		}) {
			a.under.end(tokenKey(t.Name))
		}
	}
	a.tokens = all
}

// changeShared is change for the tokens of all nodes.
func (a *auth) changeShared(name string, edit func(all []token, at int, found bool) ([]token, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	a.disk.Lock()
	defer a.disk.Unlock()
	f, err := storage.EditFile(ctx, a.shared.tree, sharedTokens, func(old storage.TreeFile) ([]byte, error) {
		var all []token
		if old.Version != 0 {
			var err error
			if all, err = readTokens(old.Body); err != nil {
				return nil, fmt.Errorf("the tokens of programs cannot be read: %w", err)
			}
		}
		at, found := slices.BinarySearchFunc(all, name, func(t token, name string) int { return cmp.Compare(t.Name, name) })
		all, err := edit(all, at, found)
		if err != nil {
			return nil, fmt.Errorf("token %s: %w", name, err)
		}
		return json.Marshal(tokenFile{all})
	})
	if err == nil {
		a.takeTokens(f)
	}
	return err
}

// writeOwner makes a secret the owner's, on all nodes where they share it; disk is
// held.
func (a *auth) writeOwner(secret string) error {
	if a.shared == nil {
		return replace(a.path(ownerName), []byte(secret+"\n"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	f, err := storage.EditFile(ctx, a.shared.tree, sharedOwner, func(storage.TreeFile) ([]byte, error) { return []byte(secret + "\n"), nil })
	if err != nil {
		return err
	}
	a.shared.owner = f.Version
	a.takeOwner(secret)
	return nil
}

// catchUp learns at once what other nodes have changed, and reports whether there
// may be news. It is for a secret that nobody knows here: a browser that has just
// logged in may be sent to another node with its next request.
func (a *auth) catchUp(ctx context.Context, secret string) bool {
	if a.shared == nil || len(secret) < len(random()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	err := a.shared.tree.Look(ctx)
	if err == nil {
		err = a.pull(ctx)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("cannot find out who has logged in elsewhere", "err", err)
	}
	return err == nil
}

// follow takes over what other nodes change, until ctx is done.
func (a *auth) follow(ctx context.Context) {
	told := false
	for {
		changed := a.shared.tree.Changed()
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
			a.log.Warn("cannot find out who may come in elsewhere; tried again until it works", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(storage.LookEvery):
		}
	}
}
