package slack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// OAuth is what an app needs that workspaces install themselves.
type OAuth struct {
	ClientID, ClientSecret string
	// ClientIDName and ClientSecretName are how the operator sets these.
	ClientIDName, ClientSecretName string
	// URL is the address, as browsers reach it, below which Install and Installed are served, with a slash.
	URL string
	// Again is the command that prints an install link.
	Again string
	// Secrets stores which workspaces have installed the app, and their tokens, for all members that share it.
	Secrets storage.Secrets
}

// Installed is what a Connector knows of a workspace that has installed the app itself.
type Installed struct {
	Team, Home   string // ids of the workspace and of the first one that installed the app
	ClientSecret string
	Again        string // see OAuth
}

// An installs is the stored form of who has installed the app, under the name of the connector. The tokens
// are stored apart from it, under the names of secretOf: their renewal changes nothing here.
type installs struct {
	// Home is the first workspace. It stays, so that no id changes its meaning.
	Home string    `json:"home"`
	All  []install `json:"installs"`
	// Spent are the codes of install links that have been used, with the end of their time.
	Spent map[string]time.Time `json:"spent,omitempty"`
}

// An install is one workspace.
type install struct {
	Team string    `json:"team"`
	Name string    `json:"name"` // as Slack says it
	At   time.Time `json:"at"`
	Gone time.Time `json:"gone,omitzero"` // when the app was removed from it
}

// String names the workspace for operators.
func (i install) String() string {
	if name := connectors.PersonName(i.Name); name != "" {
		return fmt.Sprintf("%s (%s)", name, i.Team)
	}
	return i.Team
}

// put adds a workspace, or replaces what is known of it.
func (l *installs) put(i install) {
	if l.Home == "" {
		l.Home = i.Team
	}
	l.All = slices.DeleteFunc(l.All, func(old install) bool { return old.Team == i.Team })
	l.All = append(l.All, i)
}

// spend notes that a code was used. Codes whose time is over need no note.
func (l *installs) spend(code invite, now time.Time) {
	for id, end := range l.Spent {
		if now.After(end) {
			delete(l.Spent, id)
		}
	}
	if l.Spent == nil {
		l.Spent = make(map[string]time.Time)
	}
	l.Spent[code.id()] = code.end
}

// A ledger stores who has installed the app, and the tokens. Callers in this process and, where members
// share the store, in all of them take turns.
type ledger struct {
	storage.Secrets
	name string // of the connector

	mu    sync.Mutex
	turns map[string]chan struct{} // each has room for one
}

var _ storage.SecretTurns = (*ledger)(nil)

// Turn implements storage.SecretTurns.
func (l *ledger) Turn(ctx context.Context, name string) (done func(), err error) {
	l.mu.Lock()
	turn := l.turns[name]
	if turn == nil {
		turn = make(chan struct{}, 1)
		l.turns[name] = turn
	}
	l.mu.Unlock()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	shared, ok := l.Secrets.(storage.SecretTurns)
	if !ok {
		return func() { <-turn }, nil
	}
	end, err := shared.Turn(ctx, name)
	if err != nil {
		<-turn
		return nil, err
	}
	return func() { end(); <-turn }, nil
}

// secretOf is the name under which the tokens of a workspace are stored.
func (l *ledger) secretOf(team string) string {
	sum := sha256.Sum256([]byte(l.name + "\x00" + team))
	return "team-" + hex.EncodeToString(sum[:12])
}

// read returns what is stored.
func (l *ledger) read() (*installs, error) {
	raw, err := l.Get(l.name)
	if err != nil {
		return nil, err
	}
	all := new(installs)
	if len(raw) > 0 && json.Unmarshal(raw, all) != nil {
		return nil, errors.New("what is stored of the workspaces that have installed the app is damaged; restore it from a backup")
	}
	return all, nil
}

// edit changes what is stored, one caller after another. Nothing is stored if fn fails.
func (l *ledger) edit(ctx context.Context, fn func(*installs) error) error {
	done, err := l.Turn(ctx, l.name)
	if err != nil {
		return fmt.Errorf("wait for others that change the list of workspaces: %w", err)
	}
	defer done()
	all, err := l.read()
	if err == nil {
		err = fn(all)
	}
	if err != nil {
		return err
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("write the list of workspaces: %w", err)
	}
	return l.Set(l.name, raw)
}

// tokens returns the stored tokens of a workspace, an empty pair for none.
func (l *ledger) tokens(team string) (*pair, error) {
	raw, err := l.Get(l.secretOf(team))
	if err != nil {
		return nil, err
	}
	return pairOf(raw), nil
}

// keep stores the tokens that a workspace has given, in place of older ones. It waits for a renewal of
// those.
func (l *ledger) keep(ctx context.Context, team string, p *pair) error {
	name := l.secretOf(team)
	done, err := l.Turn(ctx, name)
	if err != nil {
		return fmt.Errorf("wait for the renewal of older tokens: %w", err)
	}
	defer done()
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	for i := range storeTries {
		if i > 0 {
			time.Sleep(firstRetry << i)
		}
		if err = l.Set(name, raw); err == nil {
			return nil
		}
	}
	return err
}

// forget removes the tokens of a workspace and notes that the app was removed from it, unless it was
// installed again since.
func (l *ledger) forget(ctx context.Context, i install) error {
	return l.edit(ctx, func(all *installs) error {
		at := slices.IndexFunc(all.All, func(now install) bool { return now.Team == i.Team })
		if at < 0 || !all.All[at].At.Equal(i.At) || !all.All[at].Gone.IsZero() {
			return nil
		}
		all.All[at].Gone = time.Now().UTC().Truncate(time.Second)
		return l.Set(l.secretOf(i.Team), []byte("{}"))
	})
}
