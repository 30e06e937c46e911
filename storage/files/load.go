package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// What the user is told, once.
const (
	saidState   = "The settings of this agent were damaged and are back at their defaults; the conversation is kept."
	saidHistory = "A part of this conversation could not be read and was set aside; the rest is kept."
	saidGone    = "Your earlier conversation could not be read, so I don't remember it. We start a new one."
	saidBegin   = "The beginning of your conversation could not be read and was set aside; what came after it is kept."
	saidShorter = "The end of your earlier conversation could not be read; what came before it is kept."
)

// load makes r known from its files. It needs the gate.
func (s *Store) load(ctx context.Context, r *resident) error {
	if s.residents.agent(r) != nil {
		return nil
	}
	there, err := exists(s.fs, s.dir(r.id))
	if err != nil {
		return failed(fmt.Sprintf("load agent %s", r.id), err)
	}
	if !there {
		return fmt.Errorf("agent %s: %w", r.id, storage.ErrNotFound)
	}
	d, err := s.readDescriptor(ctx, r.id)
	if err != nil {
		return failed(fmt.Sprintf("load agent %s", r.id), err)
	}
	st, err := s.readState(r, d.CreatedAt)
	if err != nil {
		return failed(fmt.Sprintf("load agent %s", r.id), err)
	}
	created := d.CreatedAt
	if created == 0 {
		created = st.CreatedAt // of a rebuilt descriptor
	}
	s.residents.publish(r, claybot.Agent{ID: r.id, Descriptor: d.Descriptor, CreatedAt: created, State: st})
	return s.settle(ctx, r)
}

// readDescriptor reads descriptor.json, or rebuilds it from the index.
func (s *Store) readDescriptor(ctx context.Context, id claybot.AgentID) (descriptorFile, error) {
	d, _, data, damage, err := s.parseDescriptor(id)
	if err != nil || damage == nil {
		return d, err
	}
	indexed, err := s.index.IndexedDescriptor(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return d, fmt.Errorf("%w: descriptor.json is unreadable and there is no copy of it: %w", storage.ErrDamaged, damage)
	}
	if err != nil {
		return d, err
	}
	if data != nil {
		if _, err := s.quarantine.keep(string(id)+".descriptor", data); err != nil {
			return d, err
		}
	}
	d = descriptorFile{ID: id, Descriptor: indexed}
	if st, err := s.peekState(id); err == nil {
		d.CreatedAt = st.CreatedAt
	}
	if e, err := s.index.IndexedAgentByID(ctx, id); err == nil && e.CreatedAt != 0 {
		d.CreatedAt = e.CreatedAt
	}
	if err := s.writeDescriptor(d, nil); err != nil {
		return d, err
	}
	s.log.Warn("descriptor.json was unreadable and is rebuilt from the index", "agent", id, "error", damage)
	return d, nil
}

// parseDescriptor reads descriptor.json as it is. damage says why its content,
// data, is useless; nil data: there is no file.
func (s *Store) parseDescriptor(id claybot.AgentID) (d descriptorFile, extra extras, data []byte, damage, err error) {
	data, err = read(s.fs, s.dir(id)+"/descriptor.json", documentLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil, nil, err, nil
	}
	if err != nil {
		return d, nil, nil, nil, err
	}
	extra, damage = decodeDocument("descriptor.json", data, &d)
	if newer := (*newerError)(nil); errors.As(damage, &newer) {
		return d, nil, data, nil, damage
	}
	if damage == nil {
		damage = storage.CheckDescriptor(d.Descriptor)
	}
	if damage == nil && d.ID != id {
		damage = fmt.Errorf("the id is %.40q", string(d.ID))
	}
	return d, extra, data, damage, nil
}

func (s *Store) writeDescriptor(d descriptorFile, extra extras) error {
	d.V = version
	data, err := encodeDocument(d, extra)
	if err != nil {
		return err
	}
	return replace(s.fs, s.dir(d.ID), "descriptor.json", data)
}

// readState reads state.json, or writes the defaults when it is unreadable.
func (s *Store) readState(r *resident, created claybot.Time) (claybot.AgentState, error) {
	data, err := read(s.fs, s.dir(r.id)+"/state.json", documentLimit)
	var f stateFile
	var damage error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		damage = err
	case err != nil:
		return claybot.AgentState{}, err
	default:
		r.extra, damage = decodeDocument("state.json", data, &f)
	}
	if damage == nil && f.Marker != nil {
		r.marker = newest(r.marker, *f.Marker)
	}
	if damage == nil {
		r.settings = f.Settings
	}
	if newer := (*newerError)(nil); errors.As(damage, &newer) {
		return claybot.AgentState{}, damage
	}
	if damage == nil {
		if f.Engine == "" {
			f.Engine = storage.DefaultEngine
		}
		return f.AgentState, nil
	}
	if data != nil {
		if _, err := s.quarantine.keep(string(r.id)+".state", data); err != nil {
			return claybot.AgentState{}, err
		}
	}
	st := storage.NewState(created)
	r.settings = s.own.body(r.id)
	if err := s.writeState(r, st); err != nil {
		return claybot.AgentState{}, err
	}
	s.log.Warn("state.json was unreadable and is back at the defaults", "agent", r.id, "error", damage)
	r.reports = append(r.reports, saidState)
	return st, nil
}

// peekState reads state.json without repairing it.
func (s *Store) peekState(id claybot.AgentID) (f stateFile, err error) {
	data, err := read(s.fs, s.dir(id)+"/state.json", documentLimit)
	if err != nil {
		return f, err
	}
	_, err = decodeDocument("state.json", data, &f)
	return f, err
}

func (s *Store) writeState(r *resident, st claybot.AgentState) error {
	f := stateFile{V: version, AgentState: st}
	if r.marker.Seq > 0 {
		f.Marker = &r.marker
	}
	if f.Settings = r.settings; f.Settings == nil {
		f.Settings = noSettings
	}
	data, err := encodeDocument(f, r.extra)
	if err != nil {
		return err
	}
	return replace(s.fs, s.dir(r.id), "state.json", data)
}
