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

// The files of the tree with credentials. A data directory has the first
// three under names of its own (see Names). Codes of login links are there too: in
// a cluster, a link that one member made opens at any of them.
const (
	treeOwner    = "web/token"
	treeTokens   = "web/tokens.json"
	treeSessions = "web/sessions.json"
	treeCodes    = "web/codes.json"
)

// treeTime bounds how long a change of credentials waits for the tree.
const treeTime = 5 * time.Second

// Names are the files of a data directory by their paths in the tree. A single
// machine has no file of login codes: links end with the process.
func Names() map[string]string {
	return map[string]string{treeOwner: ownerName, treeTokens: tokensName, treeSessions: sessionName}
}

// Load reads a file of a data directory for its tree. It ignores sessions that
// can't be read: people log in again. It sets damaged tokens of programs aside and
// logs that; none of them is accepted.
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

// A view is the state of the files in the tree, which other members change too. It
// merges each change into the file; a change that cannot be written stays in the auth
// until it can. disk guards it.
type view struct {
	sessions ledger[session]
	codes    ledger[time.Time]
	owner    int64 // versions that were read
	tokens   int64
}

func newView() view {
	return view{
		sessions: ledger[session]{path: treeSessions, same: session.same},
		codes:    ledger[time.Time]{path: treeCodes, same: time.Time.Equal},
	}
}

// A ledger is a file of a Tree with one entry for each of some secrets.
type ledger[V any] struct {
	path    string
	same    func(a, b V) bool
	version int64
	base    map[hash]V // what the file had when it was last read or written

	tree storage.Tree
	mu   *sync.Mutex // held while get and set are called, which are for the entries here
	get  func() map[hash]V
	set  func(map[hash]V)
}

func (l *ledger[V]) of(mu *sync.Mutex, tree storage.Tree, get func() map[hash]V, set func(map[hash]V)) {
	l.mu, l.tree, l.get, l.set = mu, tree, get, set
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

// A way says what sync does with the file.
type way int

const (
	pulled  way = iota // only read it
	written            // write what is different here
	cleared            // write what is here, and nothing of what others wrote
)

// sync takes over what others have written, writes the file as how says, and returns
// what the file had.
func (l *ledger[V]) sync(ctx context.Context, how way) (theirs map[hash]V, err error) {
	var mine, merged map[hash]V
	f, err := storage.EditFile(ctx, l.tree, l.path, func(old storage.TreeFile) ([]byte, error) {
		theirs = make(map[hash]V)
		if json.Unmarshal(old.Body, &theirs) != nil || theirs == nil { // damaged: people log in again
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
	l.set(l.merge(mine, l.get(), merged)) // with what was changed meanwhile
	l.version, l.base = f.Version, theirs
	if how != pulled {
		l.base = merged
	}
	return theirs, nil
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

// publish shares new codes with the other members, and reports whether it did.
func (a *auth) publish() bool {
	ctx, done := a.change()
	defer done()
	_, err := a.view.codes.sync(ctx, written)
	if err != nil {
		a.log.Warn("login link works on this member only: the store does not respond", "err", err)
	}
	return err == nil
}

// change begins a change of the tree: it takes disk, and done releases it.
func (a *auth) change() (ctx context.Context, done func()) {
	ctx, cancel := context.WithTimeout(context.Background(), treeTime)
	a.disk.Lock()
	return ctx, func() { a.disk.Unlock(); cancel() }
}

// takeOwner makes the token of the tree that of the owner here. People read it in
// the data directory, which has a copy where the tree is elsewhere.
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

// pull takes over what other members have changed.
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

// readOne reads a file of the tree; Version is 0 when there is none.
func readOne(ctx context.Context, t storage.Tree, path string) (storage.TreeFile, error) {
	found, err := t.Read(ctx, path)
	if err != nil || len(found) == 0 {
		return storage.TreeFile{Path: path}, err
	}
	return found[0], nil
}

// takeTokens takes over the tokens of a file, and ends the requests of those that are
// gone or have another secret; disk is held.
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
			return x.Name == t.Name && x.Hash == t.Hash && x.Expires == t.Expires && x.Scope == t.Scope
		}) {
			a.under.end(tokenKey(t.Name))
		}
	}
	a.tokens = all
}

// editTokens stores another list of tokens, which edit makes from the present one:
// where name is in it, or would be. Then it ends what is done with tokens that are
// gone or have another secret. The file comes first: what it does not have would
// return with the next start.
func (a *auth) editTokens(name string, edit func(all []token, at int, found bool) ([]token, error)) error {
	ctx, done := a.change()
	defer done()
	f, err := storage.EditFile(ctx, a.tree, treeTokens, func(old storage.TreeFile) ([]byte, error) {
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

// catchUp reads at once what other members have changed, and reports whether it did. It
// is for an unknown secret: a browser that has just logged in may reach another member
// with its next request.
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

// follow takes over what other members change, until ctx is done.
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
