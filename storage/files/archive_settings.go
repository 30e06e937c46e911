package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// settingsMember is the one of state.json that databases have as rows of their own.
const settingsMember = "settings"

// settings yields the settings of agents: those of state.json, or, where an older version
// wrote that, the copy in claybot.db.
func (a *Archive) settings(ctx context.Context, t storage.Table) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		known := make(map[string]bool)
		for r, err := range a.cfg.Tables.Rows(ctx, t) {
			id := ""
			if err == nil {
				id = text(r[0])
			}
			if err == nil && t.Agent != "" && id != t.Agent {
				continue
			}
			if raw := a.settingsOf(id); raw != nil && err == nil {
				known[id], r[1] = true, string(raw)
				if hasNone(raw) {
					continue
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
		for id, err := range a.ids(ctx, t.Agent) {
			raw := a.settingsOf(id)
			if err == nil && (known[id] || raw == nil || hasNone(raw)) {
				continue
			}
			if !yield(storage.Row{id, string(raw)}, err) || err != nil {
				return
			}
		}
	}
}

func hasNone(raw []byte) bool {
	return bytes.Equal(raw, noSettings) || bytes.Equal(raw, resetSettings)
}

// settingsOf is the member of the state.json of an agent, on one line; nil when it has
// none, or no file that can be read, which a.state tells of.
func (a *Archive) settingsOf(id string) []byte {
	if _, gone := a.deleted[id]; gone || claybot.AgentID(id).Validate() != nil {
		return nil
	}
	data, err := read(a.fs, a.folder(id)+"/state.json", documentLimit)
	if err != nil {
		return nil
	}
	all, err := members(data)
	if err != nil {
		return nil
	}
	return compacted(all[settingsMember])
}

func compacted(raw json.RawMessage) []byte {
	var line bytes.Buffer
	if raw == nil || json.Compact(&line, raw) != nil {
		return nil
	}
	return line.Bytes()
}

// withoutSettings is a document on one line without that member. The others keep their
// order where that is possible.
func withoutSettings(doc string) string {
	all, err := members([]byte(doc))
	if err != nil || all[settingsMember] == nil {
		return doc
	}
	member := `,"` + settingsMember + `":` + string(all[settingsMember])
	if strings.Count(doc, member) == 1 {
		return strings.Replace(doc, member, "", 1)
	}
	delete(all, settingsMember)
	b, err := json.Marshal(all)
	if err != nil {
		return doc
	}
	return string(b)
}

// loadSettings adds settings to claybot.db, and to the state.json of their agents. The next
// start does the latter where this cannot.
func (a *Archive) loadSettings(ctx context.Context, t storage.Table, rows iter.Seq2[storage.Row, error]) error {
	return a.cfg.Tables.Load(ctx, t, func(yield func(storage.Row, error) bool) {
		for r, err := range rows {
			if err == nil {
				err = a.putSettings(r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	})
}

// putSettings writes settings into the state.json of their agent, if it has one.
func (a *Archive) putSettings(r storage.Row) error {
	if claybot.AgentID(text(r[0])).Validate() != nil { // it is part of a path
		return nil
	}
	name := a.folder(text(r[0])) + "/state.json"
	data, err := read(a.fs, name, documentLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if all, err := members(data); err != nil || len(all) == 0 || !json.Valid([]byte(text(r[1]))) {
		return nil
	}
	var out bytes.Buffer
	data = bytes.TrimSuffix(bytes.TrimSpace(data), []byte("}"))
	if err := json.Indent(&out, []byte(string(data)+`,"`+settingsMember+`":`+text(r[1])+"}"), "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	return write(unsynced{a.fs}, name, out.Bytes())
}
