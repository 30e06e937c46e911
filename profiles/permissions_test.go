package profiles_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
)

// family are agents by id, with the settings of some; broken cannot be read.
type family struct {
	profiles.Index
	agents   map[claybot.AgentID]claybot.Agent
	settings map[claybot.AgentID]claybot.Settings
	broken   claybot.AgentID
}

func (f family) Agent(_ context.Context, id claybot.AgentID) (claybot.Agent, error) {
	a, ok := f.agents[id]
	switch {
	case id == f.broken:
		return a, errors.New("the disk does not answer")
	case !ok:
		return a, storage.ErrNotFound
	}
	return a, nil
}

func (f family) AgentSettings(context.Context) (map[claybot.AgentID]claybot.Settings, error) {
	return f.settings, nil
}

// TestPermissions: a subagent may do what its settings, its start and all of its creators
// permit, and where that cannot be read there is an error.
func TestPermissions(t *testing.T) {
	denied := func(names ...string) claybot.Permissions {
		return claybot.Permissions{Tools: claybot.ToolPermissions{Deny: names}}
	}
	child := func(id, parent claybot.AgentID, p *claybot.Permissions) claybot.Agent {
		return claybot.Agent{ID: id, Descriptor: claybot.Descriptor{Type: claybot.AgentSubagent, Parent: parent}, State: claybot.AgentState{Background: &claybot.Background{Permissions: p}}}
	}
	own := func(p claybot.Permissions) claybot.Settings { return claybot.Settings{Permissions: &p} }
	agents := map[claybot.AgentID]claybot.Agent{
		"root": {ID: "root"}, "a": child("a", "root", nil), "b": child("b", "a", new(denied("start"))),
		"orphan": child("orphan", "gone", new(denied("start"))), "x": child("x", "y", nil), "y": child("y", "x", nil), "self": child("self", "self", nil),
	}
	settings := map[claybot.AgentID]claybot.Settings{"root": own(denied("root")), "a": own(denied("a")), "b": own(denied("b")), "y": own(denied("y"))}
	read := func(f family, id claybot.AgentID) (string, error) {
		s := profiles.New(profiles.Config{Index: f, Agents: f, Log: slog.New(slog.DiscardHandler)})
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		p, err := s.Permissions(t.Context(), f.agents[id])
		return strings.Join(p.Tools.Deny, " "), err
	}
	for id, want := range map[claybot.AgentID]string{"root": "root", "a": "root a", "b": "root a start b", "orphan": "start", "x": "y", "self": ""} {
		if got, err := read(family{agents: agents, settings: settings}, id); err != nil || got != want {
			t.Errorf("%s: denied %q, %v; want %q", id, got, err, want)
		}
	}
	if got, err := read(family{agents: agents, settings: settings, broken: "a"}, "b"); err == nil {
		t.Errorf("a creator that cannot be read: denied %q", got)
	}
	delete(settings, "root")
	settings["a"] = claybot.Settings{Tools: []string{"wait"}}
	s := profiles.New(profiles.Config{Index: family{settings: settings}, Agents: family{agents: agents}})
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Permissions(t.Context(), agents["b"]); err != nil || !p.Uses("wait") || p.Uses("shell") {
		t.Errorf("the tools of a creator: %+v, %v", p, err)
	}
}
