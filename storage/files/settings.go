package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// noSettings is the member of a state.json of an agent that has had no settings, and
// resetSettings of one whose settings were reset, whatever the copy says.
var (
	noSettings    = []byte("null")
	resetSettings = []byte("{}")
)

// A settingsIndex keeps the copies of settings. An Index that has these methods is used
// as one.
type settingsIndex interface {
	AgentSettings(ctx context.Context) (map[claybot.AgentID]claybot.Settings, error)
	SaveAgentSettings(ctx context.Context, id claybot.AgentID, s claybot.Settings) error
}

// ownSettings are the agents that have some.
type ownSettings struct {
	index settingsIndex
	mu    sync.Mutex
	all   map[claybot.AgentID]claybot.Settings
}

func newOwnSettings(index storage.Index) *ownSettings {
	kept, _ := index.(settingsIndex)
	return &ownSettings{index: kept, all: make(map[claybot.AgentID]claybot.Settings)}
}

func (o *ownSettings) load(ctx context.Context) error {
	if o.index == nil {
		return nil
	}
	all, err := o.index.AgentSettings(ctx)
	if err == nil && all != nil {
		o.all = all
	}
	return err
}

func (o *ownSettings) of(id claybot.AgentID) claybot.Settings {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[id]
}

// body is the member of the state.json of an agent; nil when its settings are not known.
func (o *ownSettings) body(id claybot.AgentID) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	own, ok := o.all[id]
	if !ok {
		return nil
	}
	return settingsBody(own)
}

func (o *ownSettings) set(id claybot.AgentID, own claybot.Settings) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if bytes.Equal(settingsBody(own), noSettings) {
		delete(o.all, id)
		return
	}
	o.all[id] = own
}

// copy updates the copy in the index from state.json. If the index does not know the
// agent yet, adopt does it.
func (o *ownSettings) copy(ctx context.Context, id claybot.AgentID, own claybot.Settings) error {
	if o.index == nil {
		return nil
	}
	if err := o.index.SaveAgentSettings(ctx, id, own); !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	return nil
}

// settingsBody is the member of a state.json.
func settingsBody(own claybot.Settings) []byte {
	b, err := json.Marshal(own)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	if string(b) == "{}" {
		return noSettings
	}
	return b
}

// readSettings reads the member of a state.json; false: it is null, or none can be read.
func readSettings(body []byte) (own claybot.Settings, ok bool) {
	return own, body != nil && !bytes.Equal(body, noSettings) && json.Unmarshal(body, &own) == nil
}

// AgentSettings implements storage.Index.
func (s *Store) AgentSettings(context.Context) (map[claybot.AgentID]claybot.Settings, error) {
	s.own.mu.Lock()
	defer s.own.mu.Unlock()
	return maps.Clone(s.own.all), nil
}

// SaveAgentSettings implements storage.Index. The index gets the copy of settings before
// their state.json has them, and loses it afterwards, so that Open reads the file. After
// an error, or a crash in between, the settings are those of the file.
func (s *Store) SaveAgentSettings(ctx context.Context, id claybot.AgentID, own claybot.Settings) error {
	return s.with(ctx, id, func(r *resident) error {
		body, before := settingsBody(own), r.settings
		gone := bytes.Equal(body, noSettings)
		if gone {
			body = resetSettings
		} else if err := s.own.copy(ctx, id, own); err != nil {
			return err
		}
		a := *s.residents.agent(r)
		st := s.now(a, own)
		st.UpdatedAt = claybot.Now()
		r.settings, r.unsure = body, true
		if err := s.putState(r, st); err != nil {
			r.settings = before // which the next write saves
			return failed("save settings of agent "+string(id), err)
		}
		s.own.set(id, own)
		if gone {
			return s.own.copy(ctx, id, own)
		}
		return nil
	})
}

// now is the state of an agent with what is in force.
func (s *Store) now(a claybot.Agent, own claybot.Settings) claybot.AgentState {
	if s.inForce == nil {
		return a.State
	}
	return s.inForce(a, own)
}

// openSettings reads the state.json of each agent that has settings.
func (s *Store) openSettings(ctx context.Context) error {
	all, _ := s.AgentSettings(ctx) // it never fails
	for id := range all {
		err := s.with(ctx, id, func(*resident) error { return nil })
		switch class := storage.ClassOf(err); {
		case errors.Is(err, storage.ErrNotFound):
			s.own.set(id, claybot.Settings{})
		case class == storage.ClassAgent || class == storage.ClassMember:
			s.log.Warn("agent files unreadable; using the settings of the index", "agent", id, "err", err)
		case err != nil:
			return err
		}
	}
	return nil
}

// settle makes the settings in state.json and their copy the same. The file counts, unless
// it has no such member, as of an older version, null, or an unreadable one. It needs the
// gate.
func (s *Store) settle(ctx context.Context, r *resident) error {
	own, ok := readSettings(r.settings)
	known := s.own.body(r.id)
	switch {
	case ok && (bytes.Equal(settingsBody(own), known) || known == nil && bytes.Equal(settingsBody(own), noSettings)):
		return nil
	case ok:
		if err := s.own.copy(ctx, r.id, own); err != nil {
			return err
		}
		s.own.set(r.id, own)
		r.found = true
		s.log.Info("agent settings read from state.json", "agent", r.id)
		return nil
	case known == nil:
		return nil
	}
	r.settings, r.unsure = known, true
	if err := s.putState(r, s.residents.agent(r).State); err != nil {
		s.log.Warn("agent settings not yet written to state.json", "agent", r.id, "err", err)
	}
	return nil
}

// behind are the agents whose state.json may lack totals that the index has. true: since
// before the newest SaveTotals.
type behind struct {
	mu     sync.Mutex
	agents map[claybot.AgentID]bool
}

func (b *behind) note(id claybot.AgentID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.agents[id] = false
}

// quiet removes the agents that were noted before the last call, or all.
func (b *behind) quiet(all bool) (ids []claybot.AgentID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, waited := range b.agents {
		if waited || all {
			ids = append(ids, id)
			delete(b.agents, id)
		} else {
			b.agents[id] = true
		}
	}
	slices.Sort(ids)
	return ids
}

// SaveTotals writes the totals of the index into the state.json of each agent that has
// done nothing since the last call. Call it once a minute; Close does it for the others.
func (s *Store) SaveTotals(ctx context.Context) error { return s.saveTotals(ctx, false) }

func (s *Store) saveTotals(ctx context.Context, all bool) error {
	var errs []error
	for _, id := range s.behind.quiet(all) {
		e, err := s.index.IndexedAgentByID(ctx, id)
		if err == nil {
			err = s.with(ctx, id, func(r *resident) error {
				a := *s.residents.agent(r)
				st := s.now(a, s.own.of(id))
				st.LastUserAt, st.Usage = e.LastUserAt, e.Usage
				if s.same(r, st) {
					return nil
				}
				st.UpdatedAt = claybot.Now()
				return s.putState(r, st)
			})
		}
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			s.behind.note(id)
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}
