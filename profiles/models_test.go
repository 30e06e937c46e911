package profiles_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
)

// a desk has one agent, whose run is run.
type desk struct {
	profiles.Index
	run    claybot.RunID
	stored claybot.Settings
}

func (d *desk) IndexedAgentByID(context.Context, claybot.AgentID) (storage.IndexEntry, error) {
	return storage.IndexEntry{ID: "a", Run: d.run}, nil
}

func (d *desk) SaveAgentSettings(_ context.Context, _ claybot.AgentID, own claybot.Settings) error {
	d.stored = own
	return nil
}

func (d *desk) AgentSettings(context.Context) (map[claybot.AgentID]claybot.Settings, error) {
	return map[claybot.AgentID]claybot.Settings{"a": d.stored}, nil
}

func (d *desk) Agent(context.Context, claybot.AgentID) (claybot.Agent, error) {
	return claybot.Agent{ID: "a"}, nil
}

// TestChooseModel: the newest choice holds, for runs that begin after it.
func TestChooseModel(t *testing.T) {
	a, listed := claybot.Agent{ID: "a"}, []string{"small", "tiny"}
	d := &desk{}
	var s *profiles.Profiles
	start := func() {
		s = profiles.New(profiles.Config{
			Index: d, Agents: d, Log: slog.New(slog.DiscardHandler), Engines: func() []string { return nil },
			Profile: func(claybot.Descriptor) profiles.Profile { return profiles.Profile{Model: "large", Models: listed} },
			Models:  func(claybot.Agent) []string { return []string{"dear", "large", "small", "tiny"} },
			Refresh: func(ctx context.Context) error { return s.Load(ctx) }, Changed: func(context.Context, claybot.AgentID) error { return nil },
		})
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	start()
	choose := func(id claybot.MessageID, at claybot.Time, name string, byPerson bool) {
		t.Helper()
		if err := s.ChooseModel(t.Context(), a, name, claybot.ModelChoice{Message: id, At: at, Listed: byPerson}); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(what, want string) {
		t.Helper()
		if got := s.OwnModel(a); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	configure := func(own claybot.Settings) {
		t.Helper()
		if err := s.Configure(t.Context(), "a", own, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	wants("at first", "")
	choose("1", 10, "small", true)
	choose("2", 10, "tiny", true)
	wants("two in one second", "tiny")
	choose("1", 10, "small", true)
	choose("0", 9, "small", true)
	start()
	choose("0", 9, "", true)
	choose("1", 10, "small", true)
	wants("older ones that come again", "tiny")
	choose("1b", 10, "small", true)
	choose("2", 10, "tiny", true)
	wants("three in one second", "small")
	configure(claybot.Settings{Model: "dear"})
	choose("1", 10, "small", true)
	wants("one that comes again after a change on the page", "dear")
	listed = nil
	wants("an operator needs no list", "dear")
	choose("3", 20, "dear", true)
	wants("a choice that is not listed", "")
	if v := s.ModelsOf(a, false); v.Names != nil || v.Now != "large" {
		t.Errorf("without a list: %+v", v)
	}
	if v := s.ModelsOf(a, true); !slices.Equal(v.Names, []string{"large", "dear", "small", "tiny"}) {
		t.Errorf("an operator chooses among %v", v.Names)
	}
	listed = []string{"small"}
	d.run = "r"
	choose("4", 30, "small", true)
	wants("a run that had begun", "")
	choose("5", 40, "dear", false)
	start()
	wants("and after a second choice and a restart", "")
	d.run = "q"
	wants("the next run", "dear")
	configure(claybot.Settings{})
	wants("a change on the page", "")
}
