package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/storage"
)

// maxTokens limits the number of tokens.
const maxTokens = 64

// tokenPrefix is the prefix of API tokens, by which scanners recognize leaked ones.
const tokenPrefix = "claybot_"

// A token is the stored part of an API token.
type token struct {
	Name  string `json:"name"`
	Scope Scope  `json:"scope"` // never Approve, and Chat not in the first list: older versions would reject the file
	// Approve distinguishes the scope approve from operate. Tokens from before that
	// scope do not have it, and keep what operate allowed then.
	Approve *bool        `json:"approve,omitempty"`
	Hash    hash         `json:"hash"`
	Created claybot.Time `json:"created"`
	Expires claybot.Time `json:"expires,omitempty"` // 0: never
	Limits
}

// Limits narrow an API token further than its scope.
type Limits struct {
	// Agent or Profile is what a token with the scope chat is bound to.
	Agent   claybot.AgentID `json:"agent,omitempty"`
	Profile string          `json:"profile,omitempty"`
	// Rate is how many requests a minute the token may make; 0: any number.
	Rate int `json:"rate,omitempty"`
	// Budget is how many tokens of models the conversations of a token with the scope chat
	// may take a day; 0: any number.
	Budget int64 `json:"budget,omitempty"`
}

// The most that Limits can be.
const (
	maxRate   = 100_000
	maxBudget = 1_000_000_000_000
)

func (l Limits) check(s Scope) error {
	switch {
	case l.Agent != "" && l.Profile != "":
		return errors.New("agent and profile exclude each other")
	case s != Chat && (l.Agent != "" || l.Profile != "" || l.Budget != 0):
		return errors.New("agent, profile and budget need the scope chat; other scopes reach every agent")
	case l.Agent != "" && l.Budget != 0:
		return errors.New("agent and budget exclude each other: the calls of an agent count on the budgets of its owner")
	case l.Agent != "" && l.Agent.Validate() != nil:
		return errors.New("agent must be the id of an agent")
	case len(l.Profile) > 100:
		return errors.New("profile is too long for the name of a profile")
	case l.Rate < 0 || l.Rate > maxRate:
		return fmt.Errorf("rate must be 1 to %d requests a minute", maxRate)
	case l.Budget < 0 || l.Budget > maxBudget:
		return fmt.Errorf("budget must be 1 to %d tokens a day", maxBudget)
	}
	return nil
}

// tokenNames matches valid names. They are part of user ids and URLs.
var tokenNames = lazyregexp.New(`^[a-z0-9][a-z0-9._-]*$`) // and at most 64 bytes

func (t token) check() error {
	switch {
	case len(t.Name) > 64 || !tokenNames.MatchString(t.Name):
		return errors.New("name must be 1 to 64 of a-z, 0-9, dot, dash and underscore, and begin with a letter or a digit")
	case t.Name == owner:
		return errors.New("name: owner is the name of the owner's own token")
	case !t.Scope.Valid():
		return errors.New("scope must be chat, read, operate, approve or admin")
	}
	return t.Limits.check(t.Scope)
}

// allows is the scope of the holder.
func (t token) allows() Scope {
	if t.Scope == Operate && (t.Approve == nil || *t.Approve) {
		return Approve
	}
	return t.Scope
}

// legacy reports whether t may approve only because it is older than the scope approve.
func (t token) legacy() bool { return t.Approve == nil && t.Scope.Allows(Operate) }

func (t token) over(now time.Time) bool {
	return t.Expires != 0 && !now.Before(t.Expires.Time())
}

func tokenKey(name string) string { return "token:" + name }

// byToken admits a token. It calls end if the token ends before the pass is released.
func (a *auth) byToken(secret string, end context.CancelCauseFunc) (pass, bool) {
	sum, now := digest(secret), time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	var p pass
	if a.owner.is(sum) {
		p.Caller = Caller{Name: owner, Scope: Admin}
	}
	for _, t := range a.tokens {
		if t.Hash.is(sum) && !t.over(now) {
			p.Caller, p.until = Caller{Name: t.Name, Scope: t.allows(), Agent: t.Agent, Profile: t.Profile}, t.Expires.Time()
			p.wait, p.spend = a.paces.wait(t, now), t.Budget > 0
		}
	}
	if p.Name == "" {
		return pass{}, false
	}
	return a.under.enter(&a.mu, p, tokenKey(p.Name), end), true
}

func (a *auth) list() []token {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.tokens)
}

// create creates a token and returns its secret, which is not stored. It returns
// storage.ErrState if the name is taken.
func (a *auth) create(t token) (token, string, error) {
	secret := tokenPrefix + random()
	t.Hash, t.Created, t.Approve = digest(secret), claybot.Now(), new(t.Scope.Allows(Approve))
	if t.Scope == Approve {
		t.Scope = Operate
	}
	err := a.editTokens(t.Name, func(all []token, at int, found bool) ([]token, error) {
		switch {
		case found:
			return nil, storage.ErrState
		case len(all) >= maxTokens:
			return nil, Refusal(fmt.Sprintf("There are already %d tokens; revoke one that is not needed.", maxTokens))
		}
		return slices.Insert(all, at, t), nil
	})
	return t, secret, err
}

// rotate replaces the secret of a token and ends its requests. It returns storage.ErrState
// for an expired token.
func (a *auth) rotate(name string) (t token, secret string, err error) {
	secret = tokenPrefix + random()
	err = a.editTokens(name, func(all []token, at int, found bool) ([]token, error) {
		switch {
		case !found:
			return nil, storage.ErrNotFound
		case all[at].over(time.Now()):
			return nil, storage.ErrState
		}
		all[at].Hash, all[at].Created = digest(secret), claybot.Now()
		t = all[at]
		return all, nil
	})
	return t, secret, err
}

// revoke deletes a token and ends its requests.
func (a *auth) revoke(name string) error {
	return a.editTokens(name, func(all []token, at int, found bool) ([]token, error) {
		if !found {
			return nil, storage.ErrNotFound
		}
		return slices.Delete(all, at, at+1), nil
	})
}

// A tokenFile is web.tokens.json. Each further list has the tokens that versions without
// what it is for cannot limit: such a version ignores the list, and drops it when it writes
// the file.
type tokenFile struct {
	Tokens  []token `json:"tokens"`
	Apart   []token `json:"apart,omitempty"`   // with the scope chat
	Limited []token `json:"limited,omitempty"` // with Limits
}

// fileOf returns the file of all tokens, which are sorted.
func fileOf(all []token) tokenFile {
	f := tokenFile{Tokens: []token{}}
	for _, t := range all {
		switch {
		case t.Limits != (Limits{}):
			f.Limited = append(f.Limited, t)
		case t.Scope == Chat:
			f.Apart = append(f.Apart, t)
		default:
			f.Tokens = append(f.Tokens, t)
		}
	}
	return f
}

// loadTokens validates the API tokens of a data directory. It sets a damaged file aside and
// then accepts none of its tokens.
func loadTokens(file string, b []byte, log *slog.Logger) ([]byte, error) {
	if _, err := readTokens(b); err != nil {
		aside := file + ".damaged"
		if err := os.Rename(file, aside); err != nil {
			return nil, fmt.Errorf("damaged tokens: %w", err)
		}
		log.Error("the tokens of programs cannot be read, so none is accepted; make new ones with claybot token create", "file", aside, "err", err)
		return nil, fs.ErrNotExist
	}
	return b, os.Chmod(file, 0o600)
}

// LegacyTokens returns the names of the API tokens in a data directory that may approve
// actions because they are older than the scope approve, sorted. A directory without tokens
// has none.
func LegacyTokens(dir string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, tokensName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := readTokens(b)
	var names []string
	for _, t := range all {
		if t.legacy() && !t.over(time.Now()) {
			names = append(names, t.Name)
		}
	}
	return names, err
}

// readTokens decodes web.tokens.json; one invalid entry invalidates all.
func readTokens(b []byte) ([]token, error) {
	var f tokenFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, err
	}
	all := slices.Concat(f.Tokens, f.Apart, f.Limited)
	slices.SortFunc(all, func(x, y token) int { return cmp.Compare(x.Name, y.Name) })
	for i, t := range all {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("token %d: %w", i, err)
		}
		if t.Hash == (hash{}) || t.Created < 0 || t.Expires < 0 || i > 0 && all[i-1].Name == t.Name {
			return nil, fmt.Errorf("token %d: not one that was written here", i)
		}
	}
	return all, nil
}
