package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// newPrefix is the prefix of agent directories that are being created.
const newPrefix = ".new-"

// AgentFor finds the agent of d or creates it. An agent in memory is found
// without I/O. After an error the next call for d continues where this one
// stopped: a descriptor never gets two agents.
func (s *Store) AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error) {
	return s.agentFor(ctx, d, nil)
}

// NewAgent is AgentFor for an agent that, when it is made now, begins with
// these background settings.
func (s *Store) NewAgent(ctx context.Context, d claybot.Descriptor, b claybot.Background) (claybot.Agent, error) {
	return s.agentFor(ctx, d, &b)
}

func (s *Store) agentFor(ctx context.Context, d claybot.Descriptor, b *claybot.Background) (claybot.Agent, error) {
	if a, ok := s.residents.find(d); ok && storage.Renamed(a.Descriptor, d) == a.Descriptor {
		return a, nil
	}
	if err := storage.CheckDescriptor(d); err != nil {
		return claybot.Agent{}, err
	}
	leave, err := s.keys.enter(ctx, d)
	if err != nil {
		return claybot.Agent{}, fmt.Errorf("agent for %s: %w", d.Key(), err)
	}
	defer leave()
	if a, ok := s.residents.find(d); ok && storage.Renamed(a.Descriptor, d) == a.Descriptor {
		return a, nil
	}
	a, err := s.known(ctx, d)
	if errors.Is(err, storage.ErrNotFound) {
		a, err = s.create(ctx, d, b)
	}
	if err != nil {
		return claybot.Agent{}, failed("agent for "+d.Key(), err)
	}
	return a, nil
}

// known finds the agent of d by the index; storage.ErrNotFound. It needs the
// gate of d.
func (s *Store) known(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error) {
	id, err := s.index.IndexedAgent(ctx, d)
	if err != nil {
		return claybot.Agent{}, err
	}
	a, err := s.Agent(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		if err := s.lost(ctx, id, d); err != nil {
			return a, err
		}
	}
	if err != nil {
		return a, err
	}
	d = storage.Renamed(a.Descriptor, d)
	if a.Descriptor == d {
		return a, nil
	}
	// It has another name or owner now, or a MoveChannel was cut short after
	// the index.
	a.Descriptor = d
	if err := s.index.IndexAgents(ctx, a); err != nil {
		return a, err
	}
	return s.rename(ctx, id, d)
}

// create makes the agent of d. It needs the gate of d.
func (s *Store) create(ctx context.Context, d claybot.Descriptor, b *claybot.Background) (_ claybot.Agent, err error) {
	defer s.stamps.change()(&err)
	key := d.Identity()
	s.mu.Lock()
	a, made := s.orphans[key]
	s.mu.Unlock()
	if !made {
		id, now := claybot.NewID(), claybot.Now()
		a = claybot.Agent{ID: id, Descriptor: d, CreatedAt: now, State: storage.NewState(now)}
		a.State.Background = b
		a.State = s.now(a, claybot.Settings{})
		a = cloned(a) // b is the caller's
		if err := s.build(a); err != nil {
			return claybot.Agent{}, err
		}
		s.mu.Lock()
		s.orphans[key] = a
		s.mu.Unlock()
	}
	if err := s.fs.SyncDir(s.root); err != nil {
		return claybot.Agent{}, err
	}
	if err := s.index.IndexAgents(ctx, a); err != nil {
		return claybot.Agent{}, err
	}
	s.mu.Lock()
	delete(s.orphans, key)
	s.mu.Unlock()
	r, err := s.residents.pin(a.ID)
	if err != nil {
		return claybot.Agent{}, err
	}
	s.residents.publish(r, a)
	s.residents.unpin(r)
	if s.onDamage != nil && s.endings.wasGone(ctx, d) {
		s.onDamage(a.ID, saidGone)
	}
	return cloned(a), nil
}

// lost removes an agent whose directory is gone from the index. Unless it was deleted,
// the user is notified with their next message.
func (s *Store) lost(ctx context.Context, id claybot.AgentID, d claybot.Descriptor) (err error) {
	defer s.stamps.change()(&err)
	entries, err := s.fs.ReadDir(s.quarantine.dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), string(id)+"-") }) {
		s.log.Warn("deleted agent removed from the index", "agent", id)
	} else {
		s.log.Error("agent without a directory removed from the index", "agent", id, "key", d.Key())
		if err := s.endings.gone(ctx, d); err != nil {
			return err
		}
	}
	s.own.set(id, claybot.Settings{})
	return errors.Join(s.index.UnindexAgent(ctx, id), s.endings.forget(ctx, id))
}

// build atomically creates the directory of a. The name is durable only after
// the next sync of root.
func (s *Store) build(a claybot.Agent) (err error) {
	descriptor, err := encodeDocument(descriptorFile{V: version, ID: a.ID, Descriptor: a.Descriptor, CreatedAt: a.CreatedAt}, nil)
	if err != nil {
		return err
	}
	state, err := encodeDocument(stateFile{V: version, AgentState: a.State, Settings: noSettings}, nil)
	if err != nil {
		return err
	}
	start, err := new(encoder).linesAt([]claybot.Record{startRecord(a.CreatedAt)}, 0)
	if err != nil {
		return err
	}
	tmp := s.root + "/" + newPrefix + string(a.ID)
	if err := s.fs.Mkdir(tmp); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.fs.Remove(tmp) // else the next Open does
		}
	}()
	contents := []struct {
		name string
		data []byte
	}{{"descriptor.json", descriptor}, {"state.json", state}, {"history.jsonl", start}}
	errs := make([]error, len(contents))
	var wg sync.WaitGroup // concurrent syncs of one disk are faster
	for i, c := range contents {
		wg.Go(func() { errs[i] = write(s.fs, tmp+"/"+c.name, c.data) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := s.fs.SyncDir(tmp); err != nil {
		return err
	}
	if err := s.fs.Rename(tmp, s.dir(a.ID)); err != nil {
		return err
	}
	s.remember(a)
	return nil
}

// remember puts the empty tail of a history just made into the cache.
func (s *Store) remember(a claybot.Agent) {
	f, err := s.fs.Open(s.dir(a.ID)+"/history.jsonl", os.O_RDONLY)
	if err != nil {
		return // it will be read when it is needed
	}
	defer func() { _ = f.Close() }() // nothing was written
	if info, err := f.Stat(); err == nil {
		s.keepTail(&cachedTail{id: a.ID, marker: startRecord(a.CreatedAt), size: info.Size(), mod: info.ModTime()})
	}
}

func startRecord(at claybot.Time) claybot.Record {
	return claybot.Record{Type: claybot.RecordStart, V: version, At: at}
}

// MoveChannel gives the agents of a channel the new channel. An agent whose new
// descriptor is taken is not moved. The index changes first: what a crash
// leaves undone in a descriptor.json is done when the agent is next looked up,
// or by a second MoveChannel.
func (s *Store) MoveChannel(ctx context.Context, connector, from, to string) error {
	if from == to {
		return nil
	}
	if err := s.moving.enter(ctx); err != nil {
		return err
	}
	defer s.moving.leave()
	moved, err := s.index.ChannelAgents(ctx, connector, from)
	if err != nil {
		return fmt.Errorf("move channel of %s: %w", connector, err)
	}
	before, err := s.index.ChannelAgents(ctx, connector, to) // moved in the index
	if err != nil {
		return fmt.Errorf("move channel of %s: %w", connector, err)
	}
	for _, e := range append(moved, before...) {
		d := e.Descriptor
		d.ChannelID = to
		err := s.move(ctx, e, d)
		if class := storage.ClassOf(err); class == storage.ClassAgent || class == storage.ClassMember {
			s.log.Error("agent files of a moved channel unusable; updating them later", "agent", e.ID, "err", err)
			continue // the others follow now
		}
		if err != nil {
			return failed(fmt.Sprintf("move channel of agent %s", e.ID), err)
		}
	}
	return nil
}

// move gives the agent e the descriptor d.
func (s *Store) move(ctx context.Context, e storage.IndexEntry, d claybot.Descriptor) error {
	if e.Descriptor != d {
		leave, err := s.keys.enter(ctx, e.Descriptor)
		if err != nil {
			return err
		}
		defer leave()
	}
	leave, err := s.keys.enter(ctx, d)
	if err != nil {
		return err
	}
	defer leave()
	if e.Descriptor != d {
		taken, err := s.index.IndexedAgent(ctx, d)
		if err == nil {
			s.log.Warn("channel moved, but a different agent exists there", "agent", e.ID, "taken", taken)
			return nil
		}
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		// Its files are not needed for that, and may not be readable now.
		a := claybot.Agent{ID: e.ID, Descriptor: d, CreatedAt: e.CreatedAt}
		if err := s.index.IndexAgents(ctx, a); err != nil {
			return err
		}
	}
	_, err = s.rename(ctx, e.ID, d)
	return err
}

// rename writes d, which the index has for the agent id, into its
// descriptor.json. It needs the gate of d.
func (s *Store) rename(ctx context.Context, id claybot.AgentID, d claybot.Descriptor) (claybot.Agent, error) {
	var a claybot.Agent
	err := s.with(ctx, id, func(r *resident) error {
		a = *s.residents.agent(r)
		if a.Descriptor == d {
			return nil
		}
		f, extra, _, damage, err := s.parseDescriptor(id)
		if err != nil {
			return err
		}
		if damage != nil { // since it was loaded
			f = descriptorFile{ID: id, CreatedAt: a.CreatedAt}
		}
		f.Descriptor = d
		if err := s.writeDescriptor(f, extra); err != nil {
			return err
		}
		a.Descriptor = d
		s.residents.publish(r, a)
		return nil
	})
	return cloned(a), err
}

// Delete moves the directory of an agent to quarantine/<id>-<time> and then
// takes it out of the index. What a crash in between leaves undone, the next
// Open or Delete does. An open history of it fails with storage.ErrLeaseLost
// from then on.
func (s *Store) Delete(ctx context.Context, id claybot.AgentID) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("delete agent: %w: %w", storage.ErrNotFound, err)
	}
	d, err := s.index.IndexedDescriptor(ctx, id)
	indexed := err == nil
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
		return failed(fmt.Sprintf("delete agent %s", id), err)
	}
	if indexed {
		leave, err := s.keys.enter(ctx, d)
		if err != nil {
			return fmt.Errorf("delete agent %s: %w", id, err)
		}
		defer leave()
	}
	moved, err := s.remove(ctx, id)
	if err != nil {
		return failed(fmt.Sprintf("delete agent %s", id), err)
	}
	if !moved && !indexed {
		return fmt.Errorf("delete agent %s: %w", id, storage.ErrNotFound)
	}
	return nil
}

// remove moves the directory of an agent to the quarantine and takes it out of the index;
// false if there is no directory.
func (s *Store) remove(ctx context.Context, id claybot.AgentID) (moved bool, err error) {
	defer s.stamps.change()(&err)
	if moved, err = s.setAside(ctx, id); err != nil {
		return false, err
	}
	s.own.set(id, claybot.Settings{})
	return moved, errors.Join(s.index.UnindexAgent(ctx, id), s.endings.forget(ctx, id))
}

// setAside moves the directory of an agent to the quarantine and drops the
// agent from memory; false if there is no directory.
func (s *Store) setAside(ctx context.Context, id claybot.AgentID) (moved bool, err error) {
	r, err := s.residents.pin(id)
	if err != nil {
		return false, err
	}
	defer s.residents.unpin(r)
	if err := r.gate.enter(ctx); err != nil {
		return false, err
	}
	defer r.gate.leave()
	moved, err = exists(s.fs, s.dir(id))
	if err != nil {
		return false, err
	}
	if moved {
		to := fmt.Sprintf("%s/%s-%d", s.quarantine.dir, id, claybot.Now())
		if err := s.fs.Rename(s.dir(id), to); err != nil {
			return false, err
		}
	}
	r.writer = nil
	s.settled(r) // its history is gone, so no work on it remains
	s.residents.retract(r)
	s.tails.Take(id)
	s.sent.forget(id)
	// The new name first: a crash may leave both names, and never none.
	return moved, errors.Join(s.fs.SyncDir(s.quarantine.dir), s.fs.SyncDir(s.root))
}
