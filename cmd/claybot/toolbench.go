package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/tools/memory"
	"github.com/claybot/claybot/tools/skills"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/workspace"
)

// A toolbench shows the tools of agents to the pages, the API and the commands.
type toolbench struct {
	config  *settings
	log     *slog.Logger
	stores  *stores
	tooling *tooling
	rules   func(claybot.Agent) tools.Rules
	model   func(claybot.Agent) configs.Model
}

// newToolbench returns the daemon's toolbench as the contracts of package web.
func newToolbench(d *daemon) web.Tooling {
	t := toolbench{d.config, d.log, d.stores, d.tooling, d.engines.rules, d.models.model}
	return web.Tooling{Tools: t, Workspaces: t, Servers: t, Skills: t, Notes: t, NoteHistory: t}
}

// Skills implements web.Skills.
func (w toolbench) Skills(ctx context.Context) ([]web.SkillView, error) {
	all, err := w.stores.skills().Skills(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]web.SkillView, len(all))
	for i, s := range all {
		diff := s.Difference()
		views[i] = web.SkillView{
			Name: s.Name, Description: s.Description, State: string(s.State), Problem: s.Problem, Hash: s.Hash, Tools: s.Tools, Command: s.Command,
			Added: diff.Added, Changed: diff.Changed, Removed: diff.Removed, NewTools: diff.Tools,
		}
		if s.Pin != nil {
			views[i].AllowedBy, views[i].AllowedAt = s.Pin.By, s.Pin.At
		}
	}
	return views, nil
}

// AgentSkills implements web.Skills.
func (w toolbench) AgentSkills(ctx context.Context, id claybot.AgentID) ([]string, error) {
	a, err := w.stores.agents.Agent(ctx, id)
	return w.config.profile(a).Notes.Skills, err
}

// AllowSkill implements web.Skills.
func (w toolbench) AllowSkill(ctx context.Context, name, hash, by string) error {
	s, err := w.stores.skills().Skill(ctx, name)
	switch {
	case errors.Is(err, skills.ErrUnknown):
		return storage.ErrNotFound
	case err != nil:
		return err
	case s.State == skills.Broken:
		return web.Refusal("This skill cannot be used: " + s.Problem + ".")
	case s.Hash != hash:
		return web.Refusal("This skill has changed since you looked. Look at it again.")
	}
	if _, err = w.stores.skills().Allow(ctx, name, hash, by); err == nil {
		w.log.Info("skill allowed", "skill", name, "hash", hash, "by", by)
	}
	return err
}

// ForbidSkill implements web.Skills.
func (w toolbench) ForbidSkill(ctx context.Context, name, by string) error {
	if _, err := w.stores.skills().Skill(ctx, name); errors.Is(err, skills.ErrUnknown) {
		return storage.ErrNotFound
	}
	err := w.stores.skills().Forbid(ctx, name)
	if err == nil {
		w.log.Info("skill forbidden", "skill", name, "by", by)
	}
	return err
}

var scopeForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(agent/[a-z][a-z0-9]{1,31}|owner/\S{1,300}|global)$`)
})

// checkScope refuses what no agent reads.
func checkScope(scope string) error {
	if !scopeForm().MatchString(scope) {
		return web.Refusal("A scope is agent/<id>, owner/<owner> or global.")
	}
	return nil
}

// Notes implements web.Notes.
func (w toolbench) Notes(ctx context.Context, scope string) ([]storage.Memory, error) {
	if err := checkScope(scope); err != nil {
		return nil, err
	}
	return w.stores.db.Memories(ctx, scope)
}

// Note implements web.Notes.
func (w toolbench) Note(ctx context.Context, scope, path string) (storage.Memory, error) {
	return w.stores.db.Memory(ctx, scope, path)
}

// SaveNote implements web.Notes. What the operator writes is no longer tainted; what a
// program writes with its token is: claybot does not know where it has that from.
func (w toolbench) SaveNote(ctx context.Context, scope, path, text, by string) error {
	if err := checkScope(scope); err != nil {
		return err
	}
	return w.save(ctx, scope, path, text, storage.MemoryChange{By: by, Tainted: by != web.Operator})
}

func (w toolbench) save(ctx context.Context, scope, path, text string, by storage.MemoryChange) error {
	err := memory.Save(ctx, w.stores.db, scope, path, text, by)
	if refused, ok := errors.AsType[*memory.Refused](err); ok {
		return web.Refusal(refused.Text)
	}
	return err
}

// DropNote implements web.Notes.
func (w toolbench) DropNote(ctx context.Context, scope, path, by string) error {
	return w.stores.db.DropMemory(ctx, scope, path, storage.MemoryChange{By: by})
}

// maxShown is how many notes or versions are listed.
const maxShown = 100

// FindNotes implements web.Notes.
func (w toolbench) FindNotes(ctx context.Context, scope, query string) ([]storage.FoundMemory, error) {
	if err := checkScope(scope); err != nil {
		return nil, err
	}
	return w.stores.db.FindMemories(ctx, []string{scope}, query, maxShown)
}

// NoteVersions implements web.NoteHistory.
func (w toolbench) NoteVersions(ctx context.Context, scope, path string) ([]storage.MemoryVersion, error) {
	return w.stores.db.MemoryVersions(ctx, scope, path, maxShown)
}

// RevertNote implements web.NoteHistory. The text keeps the mark that it had; see SaveNote.
func (w toolbench) RevertNote(ctx context.Context, scope string, version int64, by string) error {
	v, err := w.stores.db.MemoryVersion(ctx, scope, version)
	if err != nil {
		return err
	}
	if v.Gone {
		err = w.stores.db.DropMemory(ctx, scope, v.Path, storage.MemoryChange{By: by})
		if errors.Is(err, storage.ErrNotFound) {
			return nil // it is gone
		}
		return err
	}
	return w.save(ctx, scope, v.Path, v.Text, storage.MemoryChange{By: by, Tainted: v.Tainted || by != web.Operator})
}

// Tools implements web.Tools.
func (w toolbench) Tools(ctx context.Context, id claybot.AgentID) ([]web.ToolView, error) {
	agent := claybot.Agent{Descriptor: claybot.Descriptor{Type: claybot.AgentUser, Connector: "terminal"}}
	if id != "" {
		var err error
		if agent, err = w.stores.agents.Agent(ctx, id); err != nil {
			return nil, err
		}
	}
	set := w.tooling.box.of(agent)
	var added []string
	if id != "" {
		records, err := w.stores.agents.Records(ctx, id)
		if err != nil {
			return nil, err
		}
		added = set.Added(records)
	}
	declared, model := make(map[string]int), w.model(agent)
	for _, t := range set.Shown(added) {
		declared[t.Name] = t.Bytes()
	}
	prices := pricesOf(model)
	views := make([]web.ToolView, 0, len(set.Tools()))
	for _, t := range set.Tools() {
		spec, _ := set.Spec(t.Name)
		cost, _ := prices.Cost(model.ID(), claybot.Usage{Input: llm.Tokens(declared[t.Name])}) // 0 if the price is unknown
		views = append(views, web.ToolView{
			Name: t.Name, Description: t.Description, Source: cmp.Or(spec.Source, "claybot"), Group: set.GroupOf(t.Name), InRequest: declared[t.Name], Cost: cost,
			Effect: spec.Effect.String(), Class: spec.Class.String(), Asks: asks(w.rules(agent), agent, spec),
			Timeout: cmp.Or(spec.Timeout, tools.DefaultTimeout), Parameter: parametersOf(t.Parameters),
		})
	}
	slices.SortFunc(views, func(a, b web.ToolView) int { return strings.Compare(a.Name, b.Name) })
	return views, nil
}

// asks says when a person is asked before a call of a tool, whatever its
// arguments.
func asks(r tools.Rules, agent claybot.Agent, spec tools.Spec) string {
	call := claybot.ToolCall{Name: spec.Name, Args: "{}"}
	if spec.Source == "" && spec.Class == tools.Outward { // what is listed depends on the arguments
		spec.Listed = nil
	}
	clean := r.Decide(context.Background(), tools.Env{Agent: agent}, spec, call, nil)
	tainted := r.Decide(context.Background(), tools.Env{Agent: agent, Tainted: true}, spec, call, nil)
	switch {
	case clean.Verdict == tools.Refuse:
		return "refused"
	case clean.Verdict == tools.Ask && spec.Class == tools.Outward && tainted.Verdict == tools.Ask && !spec.Confirm:
		return "unless listed"
	case clean.Verdict == tools.Ask:
		r.Allow = []string{spec.Name}
		if r.Decide(context.Background(), tools.Env{Agent: agent}, spec, call, nil).Verdict == tools.Allow {
			return "unless allowed"
		}
		return "always"
	case tainted.Verdict == tools.Refuse:
		return "refused after outside text"
	case tainted.Verdict == tools.Ask:
		return "after outside text"
	}
	return "never"
}

// parametersOf names the arguments of a tool.
func parametersOf(schema json.RawMessage) []string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s) // what has no properties has no names
	return slices.Sorted(maps.Keys(s.Properties))
}

// Workspaces implements web.Workspaces.
func (w toolbench) Workspaces(ctx context.Context) ([]web.WorkspaceView, error) {
	all, err := w.tooling.workspaces.manager.List(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]web.WorkspaceView, len(all))
	for i, l := range all {
		views[i] = web.WorkspaceView{
			Key: string(l.Key), Agent: l.Agent, Provider: l.Provider, Image: l.Image, Platform: l.Platform, State: string(l.State),
			LastUsed: claybot.At(l.LastUsed), Problem: l.Problem,
		}
		if !l.Expires.IsZero() {
			views[i].Expires = claybot.At(l.Expires)
		}
	}
	return views, nil
}

// RemoveWorkspace implements web.Workspaces.
func (w toolbench) RemoveWorkspace(ctx context.Context, key string, data bool) error {
	all, err := w.tooling.workspaces.manager.List(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(l workspace.Listed) bool { return string(l.Key) == key })
	if i < 0 {
		return storage.ErrNotFound
	}
	err = w.tooling.workspaces.manager.Remove(ctx, all[i].Provider, all[i].Key, data)
	if known, ok := errors.AsType[*workspace.Error](err); ok {
		return web.Refusal(known.Text)
	}
	return err
}

// Servers implements web.Servers.
func (w toolbench) Servers(context.Context) ([]web.ServerView, error) {
	return w.tooling.servers.views(), nil
}

// AllowServer implements web.Servers.
func (w toolbench) AllowServer(ctx context.Context, server, tool, hash, by string) error {
	allowed, err := w.tooling.servers.manager.Allow(ctx, server, tool, hash)
	switch {
	case errors.Is(err, mcp.ErrUnknown):
		return storage.ErrNotFound
	case err != nil:
		return web.Refusal(err.Error())
	}
	w.log.Info("MCP server tools allowed", "server", server, "tools", allowed, "by", by)
	return nil
}
