package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// An Index is the identity copy of the agents in the message store.
type Index interface {
	storage.Index
	// ChannelAgents is that of storage.AgentReader.
	ChannelAgents(ctx context.Context, connector, channel string) ([]storage.IndexEntry, error)
}

// Config configures a Store.
type Config struct {
	// Dir is the data directory. It must exist and be locked, see Lock.
	Dir string
	// Index, when it is also an Ends, keeps where histories end.
	Index Index
	// Log gets what was repaired; nil discards it.
	Log *slog.Logger
	// OnDamage, if set, is called once per damaged agent with a sentence for
	// the user. It may call the Store.
	OnDamage func(id claybot.AgentID, sentence string)
	// InForce, if set, is the state of an agent with what applies to it now; own are its
	// settings. It must not call the Store.
	InForce func(a claybot.Agent, own claybot.Settings) claybot.AgentState
	// OnSettings, if set, is called if a state.json had settings that the index did not
	// know. It may call the Store.
	OnSettings func()
	// FS is the file system; nil is that of the machine.
	FS FS
}

// A Store keeps agents below a data directory. Its methods may be called by
// any number of goroutines.
type Store struct {
	fs         FS
	root       string // <dir>/agents
	index      Index
	log        *slog.Logger
	onDamage   func(claybot.AgentID, string)
	inForce    func(claybot.Agent, claybot.Settings) claybot.AgentState
	onSettings func()
	quarantine *quarantine

	keys      keyGates
	moving    gate // one MoveChannel at a time
	residents *residents
	tails     *tails
	endings   *endings
	stamps    *stamps
	sent      sentSizes
	own       *ownSettings
	behind    *behind

	mu      sync.Mutex
	orphans map[claybot.Descriptor]claybot.Agent // made, not yet indexed; by identity
	told    map[claybot.AgentID]bool             // damage was told
}

var (
	_ storage.Agents    = (*Store)(nil)
	_ storage.Histories = (*Store)(nil)
	_ storage.Files     = (*Store)(nil)
)

// Open opens the agents of a data directory: it removes agents that were never
// finished and brings the index in line with the directories, unless nothing has changed
// since both were. It reads only agents that the index does not know.
func Open(cfg Config) (*Store, error) {
	s := &Store{
		fs:        cfg.FS,
		root:      cfg.Dir + "/agents",
		index:     cfg.Index,
		log:       cfg.Log,
		onDamage:  cfg.OnDamage,
		keys:      keyGates{gates: make(map[claybot.Descriptor]*keyGate)},
		moving:    newGate(),
		residents: newResidents(residentLimit),
		tails:     newTails(tailsLimit),
		endings:   newEndings(cfg.Index),
		stamps:    newStamps(cfg.Index),
		inForce:   cfg.InForce,
		own:       newOwnSettings(cfg.Index),
		behind:    &behind{agents: make(map[claybot.AgentID]bool)},
		orphans:   make(map[claybot.Descriptor]claybot.Agent),
		told:      make(map[claybot.AgentID]bool),
	}
	if s.fs == nil {
		s.fs = osFS{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.quarantine = &quarantine{fs: s.fs, dir: cfg.Dir + "/quarantine", limit: quarantineLimit}
	for _, dir := range []string{s.root, s.quarantine.dir} {
		if err := s.fs.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, failed("open agents", err)
		}
	}
	if err := s.fs.SyncDir(cfg.Dir); err != nil {
		return nil, failed("open agents", err)
	}
	err := s.own.load(context.Background())
	if err == nil {
		err = s.reconcile(context.Background())
	}
	if err == nil {
		err = s.openSettings(context.Background())
	}
	if err != nil {
		return nil, failed("open agents", err)
	}
	s.onSettings = cfg.OnSettings // Open has told of those that it found
	return s, nil
}

// totalsTime bounds how long Close writes totals.
const totalsTime = 2 * time.Second

// Close frees the memory. Histories must be closed before.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), totalsTime)
	defer cancel()
	if err := s.saveTotals(ctx, true); err != nil {
		s.log.Warn("some state.json files lack the newest totals of the index", "err", err)
	}
	s.residents.close()
	s.saveStamp(ctx)
	return s.endings.save(context.Background())
}

func (s *Store) dir(id claybot.AgentID) string { return s.root + "/" + string(id) }

// Agent loads one agent; storage.ErrNotFound when there is none. A damaged
// descriptor.json is rebuilt from the index, a damaged state.json becomes the
// default one; the damaged bytes go to the quarantine.
func (s *Store) Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error) {
	if a, ok := s.residents.get(id); ok {
		return a, nil
	}
	var a claybot.Agent
	err := s.with(ctx, id, func(r *resident) error {
		a = cloned(*s.residents.agent(r))
		return nil
	})
	return a, err
}

// SaveState replaces the mutable part of an agent as a whole. Members of
// state.json that this version does not know are kept.
func (s *Store) SaveState(ctx context.Context, l storage.Lease, st claybot.AgentState) error {
	return s.with(ctx, l.Agent, func(r *resident) error {
		if err := r.admit(l); err != nil {
			return err
		}
		if err := s.putState(r, st); err != nil {
			return failed(fmt.Sprintf("save state of agent %s", r.id), err)
		}
		return nil
	})
}

// putState makes st the state of r, unless it is. It needs the gate.
func (s *Store) putState(r *resident, st claybot.AgentState) error {
	if s.same(r, st) {
		return nil
	}
	a := *s.residents.agent(r)
	a.State = st
	r.unsure = true
	if err := s.writeState(r, st); err != nil {
		return err
	}
	r.unsure = false
	s.residents.publish(r, a)
	return nil
}

// admit refuses a lease older than the newest one seen. It needs the gate.
func (r *resident) admit(l storage.Lease) error {
	if l.Token < r.token {
		return fmt.Errorf("agent %s, token %d after %d: %w", r.id, l.Token, r.token, storage.ErrLeaseLost)
	}
	r.token = l.Token
	return nil
}

// same reports that st is in state.json already. It needs the gate.
func (s *Store) same(r *resident, st claybot.AgentState) bool {
	return !r.unsure && reflect.DeepEqual(s.residents.agent(r).State, st)
}

// with calls fn with the agent's resident, loaded, while its gate is held.
func (s *Store) with(ctx context.Context, id claybot.AgentID, fn func(*resident) error) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrNotFound, err)
	}
	r, err := s.residents.pin(id)
	if err != nil {
		return fmt.Errorf("agent %s: %w", id, err)
	}
	defer s.residents.unpin(r)
	if err := r.gate.enter(ctx); err != nil {
		return fmt.Errorf("agent %s: %w", id, err)
	}
	defer s.leave(r)
	if err := s.load(ctx, r); err != nil {
		return err
	}
	return fn(r)
}

// leave opens the gate of r and reports the damage found in the meantime.
func (s *Store) leave(r *resident) {
	reports, found := r.reports, r.found
	r.reports, r.found = nil, false
	r.gate.leave()
	if found && s.onSettings != nil {
		s.onSettings()
	}
	if s.onDamage == nil || len(reports) == 0 {
		return
	}
	s.mu.Lock()
	told := s.told[r.id]
	s.told[r.id] = true
	s.mu.Unlock()
	if !told {
		s.onDamage(r.id, strings.Join(reports, " "))
	}
}
