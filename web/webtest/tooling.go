// Package webtest is what the tests of the API and of the pages share: the system as
// they see it, and tooling over real stores. Only tests import it.
package webtest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/memory"
	"github.com/claybot/claybot/tools/skills"
	"github.com/claybot/claybot/web"
)

// A Toolbench is tooling over the real store, tools and skills. Its workspaces and
// servers are lists: what they are made of lives outside of the daemon.
type Toolbench struct {
	db      *sqlite.DB
	agents  *files.Store
	set     *tools.Set
	library skills.Library
	Rooms   []web.WorkspaceView
	Removed []string // keys, with what was removed beside
	servers []web.ServerView
}

// NewToolbench makes tooling whose skills are folders of dir.
func NewToolbench(db *sqlite.DB, agents *files.Store, set *tools.Set, dir string) *Toolbench {
	return &Toolbench{
		db: db, agents: agents, set: set, library: skills.Library{Dir: dir, Pins: db},
		Rooms: []web.WorkspaceView{
			{Key: "agent/one", Provider: "docker", ID: "c0ffee", Image: "clay:1", State: "running", Made: 5, LastUsed: 6},
			{Key: "agent/two", Provider: "docker", State: "failed", Problem: "the image is missing"},
		},
		servers: []web.ServerView{{
			Name: "files", Transport: "stdio", State: "live", Tools: []string{"mcp_files_read"},
			Off: map[string]string{"mcp_files_write": "new"}, OffHash: "seen",
		}},
	}
}

// Tooling returns s as the contracts of package web.
func (s *Toolbench) Tooling() web.Tooling {
	return web.Tooling{Tools: s, Workspaces: s, Servers: s, Skills: s, Notes: s, NoteHistory: s}
}

// Tools implements web.Tools.
func (s *Toolbench) Tools(ctx context.Context, id claybot.AgentID) ([]web.ToolView, error) {
	if id != "" {
		if _, err := s.agents.Agent(ctx, id); err != nil {
			return nil, err
		}
	}
	var views []web.ToolView
	for _, t := range s.set.Tools() {
		spec, _ := s.set.Spec(t.Name)
		views = append(views, web.ToolView{
			Name: t.Name, Description: t.Description, Source: "claybot", Effect: spec.Effect.String(), Class: spec.Class.String(),
			Asks: "never", Timeout: tools.DefaultTimeout,
		})
	}
	return views, nil
}

// Workspaces implements web.Workspaces.
func (s *Toolbench) Workspaces(context.Context) ([]web.WorkspaceView, error) {
	return slices.Clone(s.Rooms), nil
}

// RemoveWorkspace implements web.Workspaces.
func (s *Toolbench) RemoveWorkspace(_ context.Context, key string, data bool) error {
	i := slices.IndexFunc(s.Rooms, func(w web.WorkspaceView) bool { return w.Key == key })
	if i < 0 {
		return storage.ErrNotFound
	}
	if s.Rooms = slices.Delete(s.Rooms, i, i+1); data {
		key += " with data"
	}
	s.Removed = append(s.Removed, key)
	return nil
}

// Servers implements web.Servers.
func (s *Toolbench) Servers(context.Context) ([]web.ServerView, error) { return s.servers, nil }

// AllowServer implements web.Servers.
func (s *Toolbench) AllowServer(_ context.Context, server, tool, hash, _ string) error {
	i := slices.IndexFunc(s.servers, func(v web.ServerView) bool { return v.Name == server })
	if i < 0 {
		return storage.ErrNotFound
	}
	switch _, off := s.servers[i].Off[tool]; {
	case hash != s.servers[i].OffHash:
		return web.Refusal("it has changed")
	case tool == "":
		clear(s.servers[i].Off)
	case off:
		delete(s.servers[i].Off, tool)
	default:
		return storage.ErrNotFound
	}
	return nil
}

// Skills implements web.Skills.
func (s *Toolbench) Skills(ctx context.Context) ([]web.SkillView, error) {
	all, err := s.library.Skills(ctx)
	var views []web.SkillView
	for _, k := range all {
		d := k.Difference()
		v := web.SkillView{
			Name: k.Name, Description: k.Description, State: string(k.State), Problem: k.Problem, Hash: k.Hash, Tools: k.Tools,
			Added: d.Added, Changed: d.Changed, Removed: d.Removed, NewTools: d.Tools,
		}
		if k.Pin != nil {
			v.AllowedBy, v.AllowedAt = k.Pin.By, k.Pin.At
		}
		views = append(views, v)
	}
	return views, err
}

// AgentSkills implements web.Skills: an agent may use all.
func (s *Toolbench) AgentSkills(context.Context, claybot.AgentID) ([]string, error) { return nil, nil }

// AllowSkill implements web.Skills.
func (s *Toolbench) AllowSkill(ctx context.Context, name, hash, by string) error {
	k, err := s.library.Skill(ctx, name)
	switch {
	case errors.Is(err, skills.ErrUnknown):
		return storage.ErrNotFound
	case err != nil:
		return err
	case k.Hash != hash:
		return web.Refusal("This skill has changed since you looked.")
	}
	_, err = s.library.Allow(ctx, name, hash, by)
	return err
}

// ForbidSkill implements web.Skills.
func (s *Toolbench) ForbidSkill(ctx context.Context, name, _ string) error {
	if _, err := s.library.Skill(ctx, name); errors.Is(err, skills.ErrUnknown) {
		return storage.ErrNotFound
	}
	return s.library.Forbid(ctx, name)
}

// Notes implements web.Notes.
func (s *Toolbench) Notes(ctx context.Context, scope string) ([]storage.Memory, error) {
	if scope != "global" && !strings.HasPrefix(scope, "agent/") && !strings.HasPrefix(scope, "owner/") {
		return nil, web.Refusal("A scope is agent/<id>, owner/<owner> or global.")
	}
	return s.db.Memories(ctx, scope)
}

// Note implements web.Notes.
func (s *Toolbench) Note(ctx context.Context, scope, path string) (storage.Memory, error) {
	return s.db.Memory(ctx, scope, path)
}

// SaveNote implements web.Notes.
func (s *Toolbench) SaveNote(ctx context.Context, scope, path, text, by string) error {
	return s.save(ctx, scope, path, text, storage.MemoryChange{By: by})
}

func (s *Toolbench) save(ctx context.Context, scope, path, text string, by storage.MemoryChange) error {
	err := memory.Save(ctx, s.db, scope, path, text, by)
	if no, ok := errors.AsType[*memory.Refused](err); ok {
		return web.Refusal(no.Text)
	}
	return err
}

// DropNote implements web.Notes.
func (s *Toolbench) DropNote(ctx context.Context, scope, path, by string) error {
	return s.db.DropMemory(ctx, scope, path, storage.MemoryChange{By: by})
}

// FindNotes implements web.Notes.
func (s *Toolbench) FindNotes(ctx context.Context, scope, query string) ([]storage.FoundMemory, error) {
	return s.db.FindMemories(ctx, []string{scope}, query, 50)
}

// NoteVersions implements web.NoteHistory.
func (s *Toolbench) NoteVersions(ctx context.Context, scope, path string) ([]storage.MemoryVersion, error) {
	return s.db.MemoryVersions(ctx, scope, path, 50)
}

// RevertNote implements web.NoteHistory.
func (s *Toolbench) RevertNote(ctx context.Context, scope string, version int64, by string) error {
	v, err := s.db.MemoryVersion(ctx, scope, version)
	if err != nil {
		return err
	}
	if v.Gone {
		return s.db.DropMemory(ctx, scope, v.Path, storage.MemoryChange{By: by})
	}
	return s.save(ctx, scope, v.Path, v.Text, storage.MemoryChange{By: by, Tainted: v.Tainted})
}
