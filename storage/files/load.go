package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Notices to the user, sent once.
const (
	saidState   = "The settings of this agent were damaged and are back at their defaults; the conversation is kept."
	saidHistory = "A part of this conversation could not be read and was set aside; the rest is kept."
	saidGone    = "Your earlier conversation could not be read, so I don't remember it. We start a new one."
	saidBegin   = "The beginning of your conversation could not be read and was set aside; what came after it is kept."
	saidShorter = "The end of your earlier conversation could not be read; what came before it is kept."
)

// load reads the agent of r from its files. It needs the gate.
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
	s.log.Warn("descriptor.json unreadable; rebuilt from the index", "agent", id, "error", damage)
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
	s.log.Warn("state.json unreadable; reset to defaults", "agent", r.id, "error", damage)
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

// version is the format of the files written here.
const version = 1

// documentLimit bounds a descriptor.json or state.json.
const documentLimit = 1 << 20

// A descriptorFile is descriptor.json.
type descriptorFile struct {
	V  int             `json:"v"`
	ID claybot.AgentID `json:"id"`
	claybot.Descriptor
	CreatedAt claybot.Time `json:"createdAt"`
}

// A stateFile is state.json.
type stateFile struct {
	V int `json:"v"`
	claybot.AgentState
	// Marker is where the conversation begins in history.jsonl.
	Marker *marker `json:"lastMarker,omitempty"`
	// Settings are claybot.Settings, null: none; absent in files of older versions.
	Settings json.RawMessage `json:"settings,omitempty"`
}

// extras are the members of a document that this version does not know. They
// are preserved when the document is rewritten.
type extras map[string]json.RawMessage

// A newerError means that a file has a newer format. Such a file is not
// changed.
type newerError struct {
	file string
	v    int
}

func (e *newerError) Error() string {
	return fmt.Sprintf("%s has format %d and this claybot reads up to %d; use the newer claybot that wrote it",
		e.file, e.v, version)
}

func (e *newerError) Unwrap() error { return storage.ErrDamaged }

// encodeDocument returns doc as an indented JSON object that ends with the
// members of extra that doc has not.
func encodeDocument(doc any, extra extras) ([]byte, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if len(extra) > 0 {
		known, err := members(data)
		if err != nil {
			return nil, err
		}
		data = data[:len(data)-1] // every document has v, so a comma is right
		for _, name := range slices.Sorted(maps.Keys(extra)) {
			if known.has(name) {
				continue
			}
			key, err := json.Marshal(name)
			if err != nil {
				return nil, err
			}
			data = append(append(append(append(data, ','), key...), ':'), extra[name]...)
		}
		data = append(data, '}')
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// decodeDocument reads a document into doc, a pointer to a struct, and returns
// the members that doc does not know. It fails with a *newerError for a format
// from the future, and with any other error for damage.
func decodeDocument(file string, data []byte, doc any) (extras, error) {
	all, err := members(data)
	if err != nil {
		return nil, err
	}
	v := version
	if raw, ok := all["v"]; ok {
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, fmt.Errorf("format version: %w", err)
		}
	}
	if v > version {
		return nil, &newerError{file, v}
	}
	if v < 1 {
		return nil, fmt.Errorf("format version %d", v)
	}
	if err := json.Unmarshal(data, doc); err != nil {
		return nil, err
	}
	known, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	names, err := members(known)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return names.has(name) })
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

func members(data []byte) (extras, error) {
	var m extras
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("null instead of an object")
	}
	return m, nil
}

// has ignores case, as the decoding of known members does.
func (e extras) has(name string) bool {
	if _, ok := e[name]; ok {
		return true
	}
	for known := range e {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}
