package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// agents yields the rows of claybot.db with the state of each agent.
func (a *Archive) agents(ctx context.Context, t storage.Table) iter.Seq2[storage.Row, error] {
	own := t
	own.Columns = t.Columns[:len(t.Columns)-1]
	id, created := t.Column("id"), t.Column("created_at")
	return func(yield func(storage.Row, error) bool) {
		row := make(storage.Row, len(t.Columns))
		for r, err := range a.cfg.Tables.Rows(ctx, own) {
			if err == nil && t.Agent != "" && text(r[id]) != t.Agent {
				continue
			}
			if err == nil {
				copy(row, r)
				row[len(r)], err = a.state(a.folder(text(r[id])))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if number(row[created]) == 0 { // of an old version, which did not note it there
				var d descriptorFile
				if data, err := read(a.fs, a.folder(text(r[id]))+"/descriptor.json", documentLimit); err == nil && json.Unmarshal(data, &d) == nil {
					row[created] = int64(d.CreatedAt)
				}
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// state returns state.json in the form of databases: without the format version.
// nil means the initial state.
func (a *Archive) state(folder string) (any, error) {
	data, err := read(a.fs, folder+"/state.json", documentLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := decodeDocument("state.json", data, &stateFile{}); err != nil {
		if newer := (*newerError)(nil); errors.As(err, &newer) {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		a.remark("%s/state.json cannot be read and is copied as it is: %v", filepath.Base(folder), err)
		return string(data), nil
	}
	return withoutSettings(unversioned(data)), nil
}

// withTotals returns the state of an agent with the newer totals of its row. An
// unreadable state is returned unchanged.
func withTotals(state any, heard int64, usage string) any {
	all, err := members([]byte(text(state)))
	if err != nil {
		return state
	}
	var u claybot.Usage
	if err := json.Unmarshal([]byte(usage), &u); err != nil {
		return state
	}
	for name, v := range map[string]any{"lastUserAt": heard, "usage": u} {
		if all[name], err = json.Marshal(v); err != nil {
			return state
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return state
	}
	return string(b)
}

const versionMember = `{"v":1,`

// unversioned returns a document on one line without its version. The other members
// keep their order if the version comes first.
func unversioned(data []byte) string {
	var line bytes.Buffer
	if json.Compact(&line, data) != nil {
		return string(data)
	}
	if rest, ok := bytes.CutPrefix(line.Bytes(), []byte(versionMember)); ok {
		return "{" + string(rest)
	}
	all, err := members(data)
	if err != nil {
		return string(data)
	}
	delete(all, "v")
	b, err := json.Marshal(all)
	if err != nil {
		return string(data)
	}
	return string(b)
}

// versioned is the inverse of unversioned; it returns any other text unchanged.
func versioned(text string) []byte {
	if all, err := members([]byte(text)); err != nil || len(all) == 0 || all.has("v") {
		return []byte(text)
	}
	var out bytes.Buffer
	trimmed := bytes.TrimSpace([]byte(text))
	if json.Indent(&out, append([]byte(versionMember), trimmed[1:]...), "", "  ") != nil {
		return []byte(text)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// quarantined yields the deleted agents.
func (a *Archive) quarantined() iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		for id, name := range a.deleted {
			at, err := strconv.ParseInt(name[len(id)+1:], 10, 64)
			folder := a.quarantine() + "/" + name
			var descriptor string
			var state any
			if err == nil {
				descriptor, err = a.descriptor(folder)
			}
			if err == nil {
				state, err = a.state(folder)
			}
			if !yield(storage.Row{id, at, descriptor, state}, err) || err != nil {
				return
			}
		}
	}
}

// descriptor is the descriptor of descriptor.json as databases have it.
func (a *Archive) descriptor(folder string) (string, error) {
	data, err := read(a.fs, folder+"/descriptor.json", documentLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var d descriptorFile
	if _, err := decodeDocument("descriptor.json", data, &d); err != nil {
		a.remark("%s/descriptor.json cannot be read and is copied as it is: %v", filepath.Base(folder), err)
		return string(data), nil
	}
	b, err := json.Marshal(d.Descriptor)
	return string(b), err
}

// loadAgents adds agents, and makes the folder of each.
func (a *Archive) loadAgents(ctx context.Context, t storage.Table, rows iter.Seq2[storage.Row, error]) error {
	own := t
	own.Columns = t.Columns[:len(t.Columns)-1]
	id, descriptor, created := t.Column("id"), t.Column("descriptor"), t.Column("created_at")
	return a.cfg.Tables.Load(ctx, own, func(yield func(storage.Row, error) bool) {
		for r, err := range rows {
			if err == nil {
				err = a.makeFolder(a.root+"/"+text(r[id]), text(r[id]), text(r[descriptor]), claybot.Time(number(r[created])), r[len(r)-1])
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(r[:len(r)-1], nil) {
				return
			}
		}
	})
}

func (a *Archive) loadDeleted(r storage.Row) error {
	id := text(r[0])
	a.deleted[id] = fmt.Sprintf("%s-%d", id, number(r[1]))
	var st claybot.AgentState
	_ = json.Unmarshal([]byte(text(r[3])), &st) // it is only asked for when it began
	return a.makeFolder(a.quarantine()+"/"+a.deleted[id], id, text(r[2]), st.CreatedAt, r[3])
}

// makeFolder creates the folder of an agent. Unreadable documents are written
// unchanged.
func (a *Archive) makeFolder(folder, id, descriptor string, created claybot.Time, state any) error {
	if err := claybot.AgentID(id).Validate(); err != nil { // it is part of a path
		return err
	}
	if err := a.fs.Mkdir(folder); err != nil && (a.single == "" || !errors.Is(err, fs.ErrExist)) {
		return err
	}
	if descriptor != "" {
		data := []byte(descriptor)
		d := descriptorFile{V: version, ID: claybot.AgentID(id), CreatedAt: created}
		if json.Unmarshal(data, &d.Descriptor) == nil {
			var err error
			if data, err = encodeDocument(d, nil); err != nil {
				return err
			}
		}
		if err := write(unsynced{a.fs}, folder+"/descriptor.json", data); err != nil {
			return err
		}
	}
	if state == nil {
		return nil
	}
	return write(unsynced{a.fs}, folder+"/state.json", versioned(text(state)))
}

// results yields the long results of the tools of an agent.
func (a *Archive) results(agent string, yield func(storage.Row) bool) (bool, error) {
	dir := a.folder(agent) + "/results"
	entries, err := a.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	for _, e := range entries {
		if err != nil {
			break
		}
		var data []byte
		if data, err = read(a.fs, dir+"/"+e.Name(), 1<<30); err == nil && !yield(storage.Row{agent, e.Name(), string(data)}) {
			return false, nil
		}
	}
	return true, err
}

func (a *Archive) loadResult(r storage.Row) error {
	name, dir := text(r[1]), a.folder(text(r[0]))+"/results"
	if name != filepath.Base(name) || !filepath.IsLocal(name) {
		return fmt.Errorf("invalid result name %.100q", name)
	}
	if err := a.fs.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return write(unsynced{a.fs}, dir+"/"+name, []byte(text(r[2])))
}

// known are the names in the folder of an agent.
var known = []string{"descriptor.json", "state.json", "history.jsonl", "attachments", "results", "files"}

// strangers adds remarks about unknown files in the folder of an agent.
func (a *Archive) strangers(agent string) {
	entries, err := a.fs.ReadDir(a.folder(agent))
	if err != nil {
		return // the reader of the file reports it
	}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			a.remark("agents/%s/%.100s is not a claybot file and stays where it is", agent, e.Name())
		}
	}
}

// unsynced skips the sync of each file, because Finish syncs all.
type unsynced struct{ FS }

func (u unsynced) Open(name string, flag int) (File, error) {
	f, err := u.FS.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

type unsyncedFile struct{ File }

// Sync implements File.
func (unsyncedFile) Sync() error { return nil }
