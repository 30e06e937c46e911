package workspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
)

// DefaultTTL is how long a workspace lives after its last use where nothing was
// said.
const DefaultTTL = 24 * time.Hour

// touchEvery is how exactly the time of the last use is kept.
const touchEvery = time.Minute

// A ManagerConfig says what a Manager works with.
type ManagerConfig struct {
	Providers []Provider
	Ledger    Ledger
	Node      string // of this process, in entries
	// TTL is that of workspaces which were found and that no agent asked for; 0 is
	// DefaultTTL.
	TTL time.Duration
	// Exists tells whether there is an agent; nil, and an error, leave every
	// workspace be.
	Exists func(ctx context.Context, id claybot.AgentID) (bool, error)
	// Erased is called after the data of a workspace is gone; nil: nobody is told.
	Erased func(ctx context.Context, provider string, key Key)
	Log    *slog.Logger
}

// A Manager opens workspaces, counts their users, and removes those that have expired
// or whose agent is gone. Each process has one.
//
// What it promises: a key is opened once at a time; a workspace in use is not
// removed for its age; a removal is begun by one only, by compare-and-set in the
// Ledger; one that fails is tried again.
type Manager struct {
	cfg       ManagerConfig
	log       *slog.Logger
	providers map[string]Provider
	wake      chan struct{} // holds one when there is a removal to try again

	life       context.Context //nolint:containedctx // of launched commands
	end        context.CancelFunc
	background sync.WaitGroup // watches them

	mu    sync.Mutex
	slots map[slotKey]*slot
}

type slotKey struct {
	provider string
	key      Key
}

type slot struct {
	turn  Turn // held while it is opened, removed or written to the ledger
	mu    sync.Mutex
	users int
	ws    Workspace // nil: it must be opened
	spec  Spec      // with which ws was opened
	entry Entry     // as it was written last

	launched map[string]Process // that run; see Launcher
}

// NewManager makes a Manager. Nothing is removed until Run.
func NewManager(cfg ManagerConfig) *Manager {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.TTL <= 0 {
		cfg.TTL = DefaultTTL
	}
	m := &Manager{cfg: cfg, log: cfg.Log, providers: make(map[string]Provider), slots: make(map[slotKey]*slot), wake: make(chan struct{}, 1)}
	m.life, m.end = context.WithCancel(context.Background())
	for _, p := range cfg.Providers {
		m.providers[p.Name()] = p
	}
	return m
}

// A Want is the workspace that is asked for.
type Want struct {
	Provider string
	Key      Key
	Spec     Spec
	TTL      time.Duration // 0: it stays until it is removed
	// Exact refuses a workspace that is in use with another Spec, with code Unavailable. Without it,
	// that is used as it is, and replaced once it is idle.
	Exact bool
}

// Check tells whether workspaces of a provider can be had, with the next step
// when they cannot.
func (m *Manager) Check(ctx context.Context, provider string) error {
	p, err := m.provider(provider)
	if err != nil {
		return err
	}
	return p.Check(ctx)
}

func (m *Manager) provider(name string) (Provider, error) {
	if p := m.providers[name]; p != nil {
		return p, nil
	}
	return nil, &Error{Code: Unavailable, Text: fmt.Sprintf("there is no provider %.80q of workspaces; ask the operator to choose one", name)}
}

func (m *Manager) slot(provider string, key Key) *slot {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := slotKey{provider, key}
	s := m.slots[k]
	if s == nil {
		s = &slot{turn: NewTurn()}
		m.slots[k] = s
	}
	return s
}

func (s *slot) opened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ws != nil
}

// Open opens a workspace. It can be kept: one that is removed or gone meanwhile
// is opened again by its next call. A changed Spec takes effect as soon as the
// workspace is not in use.
func (m *Manager) Open(ctx context.Context, w Want) (Workspace, error) {
	if w.Key == "" {
		return nil, &Error{Code: Refused, Text: "a workspace needs a key"}
	}
	h := &handle{m: m, want: w, slot: m.slot(w.Provider, w.Key)}
	ws, done, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	h.place = ws.Place()
	done(nil)
	return h, nil
}

// enter finds the workspace of a handle for one use, which ends with done.
func (m *Manager) enter(ctx context.Context, s *slot, w Want) (Workspace, error) {
	if err := s.turn.Take(ctx); err != nil {
		return nil, err
	}
	defer s.turn.Give()
	s.mu.Lock()
	ws, users := s.ws, s.users
	same := ws != nil && reflect.DeepEqual(s.spec, w.Spec)
	fresh := same && s.entry.TTL == w.TTL && time.Since(s.entry.LastUsed) < touchEvery
	s.mu.Unlock()
	if ws != nil && !same && users > 0 {
		if w.Exact {
			return nil, &Error{Code: Unavailable, Text: "the workspace is still in use with its former settings; try again in a moment"}
		}
		m.log.Info("changed workspace is replaced once it is idle", "key", w.Key)
		same = true
	}
	if !fresh {
		if err := m.record(ctx, s, w); err != nil {
			return nil, err
		}
	}
	if !same {
		p, err := m.provider(w.Provider)
		if err != nil {
			return nil, err
		}
		if ws, err = p.Open(ctx, w.Key, w.Spec); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !same {
		s.ws, s.spec = ws, w.Spec
	}
	s.users++
	return ws, nil
}

// record writes that a workspace is used, before it is: what is not in the ledger
// was not made by us. It is called in the slot's turn.
func (m *Manager) record(ctx context.Context, s *slot, w Want) error {
	if _, err := m.provider(w.Provider); err != nil {
		return err
	}
	broken := func(err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &Error{Code: Unavailable, Text: "the list of workspaces cannot be written; try again later", Err: err}
	}
	for range 10 {
		e, ok, err := m.cfg.Ledger.WorkspaceEntry(ctx, m.cfg.Node, w.Provider, w.Key)
		if err != nil {
			return broken(err)
		}
		if ok && e.State == Terminating {
			// A removal did not come to its end. A new workspace begins behind it.
			if e, err = m.remove(ctx, s, e); err != nil {
				return &Error{Code: Unavailable, Text: "the workspace is being removed; try again in a moment", Err: err}
			}
		}
		now := time.Now().UTC()
		if !ok {
			e = Entry{Node: m.cfg.Node, Provider: w.Provider, Key: w.Key}
		}
		if e.State != Running {
			e.Changed = now
		}
		e.Agent, e.State, e.LastUsed, e.TTL = w.Key.Agent(), Running, now, w.TTL
		e.Image, e.Platform = w.Spec.Image, w.Spec.Platform
		e.Data, e.Tries, e.NextTry, e.Problem = false, 0, time.Time{}, ""
		saved, err := m.cfg.Ledger.SaveWorkspaceEntry(ctx, e)
		if err != nil {
			return broken(err)
		}
		if saved {
			e.Version++
			s.mu.Lock()
			s.entry = e
			s.mu.Unlock()
			return nil
		}
	}
	return broken(errors.New("it is written by others all the time"))
}

// remove does a removal that is claimed: it takes the workspace away and writes
// how that went. It is called in the slot's turn. The entry that it returns is
// the one in the ledger.
func (m *Manager) remove(ctx context.Context, s *slot, e Entry) (Entry, error) {
	s.mu.Lock()
	s.ws = nil
	s.entry = Entry{}
	s.mu.Unlock()
	s.halt()
	p, failed := m.provider(e.Provider)
	if failed == nil {
		failed = p.Remove(ctx, e.Key, e.Data)
	}
	now := time.Now().UTC()
	if failed == nil {
		e.State, e.Changed = Idle, now
		if e.Data {
			e.State = Removed
			if m.cfg.Erased != nil {
				m.cfg.Erased(ctx, e.Provider, e.Key)
			}
		}
		e.Tries, e.NextTry, e.Problem = 0, time.Time{}, ""
	} else {
		if ctx.Err() != nil {
			return e, context.Cause(ctx) // the next process tries again
		}
		e.Tries++
		e.NextTry, e.Problem = now.Add(backoff(e.Tries)), failed.Error()
		m.log.Warn("failed to remove workspace", "key", e.Key, "provider", e.Provider, "tries", e.Tries, "err", failed, "cause", errors.Unwrap(failed))
	}
	saved, err := m.cfg.Ledger.SaveWorkspaceEntry(ctx, e)
	if err == nil && !saved {
		err = errors.New("its entry was written by another")
	}
	if err != nil {
		return e, errors.Join(failed, fmt.Errorf("workspace %s: %w", e.Key, err))
	}
	e.Version++
	return e, failed
}

// maxBackoff is the longest time between two tries of a removal.
const maxBackoff = 15 * time.Minute

func backoff(tries int) time.Duration {
	if tries > 10 {
		return maxBackoff
	}
	return min(time.Second<<tries, maxBackoff)
}

// claim says that this manager removes a workspace: false when another was first, or
// has used it meanwhile.
func (m *Manager) claim(ctx context.Context, e Entry, data bool) (Entry, bool, error) {
	now := time.Now().UTC()
	if e.State != Terminating {
		e.Changed = now
	}
	e.State, e.Data = Terminating, e.Data || data
	saved, err := m.cfg.Ledger.SaveWorkspaceEntry(ctx, e)
	e.Version++
	return e, saved, err
}

// Remove takes the workspace of a key away, with its data if that is said,
// whether it is used or not. One that is not known is looked for with its
// provider all the same.
func (m *Manager) Remove(ctx context.Context, provider string, key Key, data bool) error {
	if _, err := m.provider(provider); err != nil {
		return err
	}
	s := m.slot(provider, key)
	if err := s.turn.Take(ctx); err != nil {
		return err
	}
	defer s.turn.Give()
	for range 10 {
		e, ok, err := m.cfg.Ledger.WorkspaceEntry(ctx, m.cfg.Node, provider, key)
		if err != nil {
			return fmt.Errorf("remove workspace %s: %w", key, err)
		}
		if !ok {
			now := time.Now().UTC()
			e = Entry{Node: m.cfg.Node, Provider: provider, Key: key, Agent: key.Agent(), LastUsed: now}
		}
		e, claimed, err := m.claim(ctx, e, data)
		if err != nil {
			return fmt.Errorf("remove workspace %s: %w", key, err)
		}
		if !claimed {
			continue
		}
		_, err = m.remove(ctx, s, e)
		if err != nil {
			m.again()
			return fmt.Errorf("remove workspace %s: %w", key, err)
		}
		return nil
	}
	return fmt.Errorf("remove workspace %s: its entry is written by others all the time", key)
}

// Forget removes the workspaces of agents that are deleted, with their data, in
// the order of the agents: children first. What cannot be removed now is tried
// again by Run; the error says what that is.
func (m *Manager) Forget(ctx context.Context, agents ...claybot.AgentID) error {
	all, err := m.cfg.Ledger.WorkspaceEntries(ctx, m.cfg.Node)
	if err != nil {
		return fmt.Errorf("forget workspaces: %w", err)
	}
	var errs []error
	for _, id := range agents {
		for _, e := range all {
			if id != "" && e.Agent == id && e.State != Removed {
				errs = append(errs, m.Remove(ctx, e.Provider, e.Key, true))
			}
		}
	}
	return errors.Join(errs...)
}

// A Listed is a workspace for lists.
type Listed struct {
	Entry
	Expires time.Time `json:"expires,omitzero"` // zero: never, or it is not running
	InUse   bool      `json:"inUse"`            // by this process, now
}

// List lists all known workspaces, of all cluster members, in the order of their keys.
func (m *Manager) List(ctx context.Context) ([]Listed, error) {
	entries, err := m.cfg.Ledger.WorkspaceEntries(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	list := make([]Listed, 0, len(entries))
	for _, e := range entries {
		l := Listed{Entry: e}
		if e.Node == m.cfg.Node {
			l.InUse = m.users(e) > 0
		}
		if e.State == Running && e.TTL > 0 {
			l.Expires = e.LastUsed.Add(e.TTL)
		}
		list = append(list, l)
	}
	slices.SortStableFunc(list, func(a, b Listed) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return list, nil
}

func (m *Manager) users(e Entry) int {
	m.mu.Lock()
	s := m.slots[slotKey{e.Provider, e.Key}]
	m.mu.Unlock()
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users
}
