package people_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// Access that is listed for a former id of a chat holds for the one that it has, and for no other.
func TestAccessFollowsMoves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, allow, channel string
		want                 bool
	}{
		{"with its team", "slack:T1/C1", "T1/C9", true},
		{"without its team", "slack:C1", "T1/C9", true},
		{"by the id in between", "slack:C5", "T1/C9", true},
		{"a late message", "slack:C9", "T1/C1", true},
		{"another channel", "slack:C1", "T1/C2", false},
		{"another workspace", "slack:T2/C1", "T1/C9", false},
		{"another connector", "telegram:C1", "T1/C9", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			moves := people.NewMoves(nil)
			for i, x := range [][2]string{{"T1/C1", "T1/C5"}, {"T1/C5", "T1/C9"}, {"T1/C1", "T1/C9"}, {"T1/C9", "T1/C1"}} {
				if err := moves.Note(t.Context(), "slack", x[0], x[1], claybot.Time(i+1)); err != nil {
					t.Fatal(err)
				}
			}
			g := people.NewGate(nil, nil, func() people.Access { return people.Access{Mode: people.AccessAllowlist, Allow: []string{tt.allow}} }, moves)
			if got := g.Allowed(claybot.User("slack", tt.channel, "U1"), true); got != tt.want {
				t.Errorf("allowed: %v", got)
			}
		})
	}
}

// Renamed names what the configuration has to change; damaged marks say nothing.
func TestRenamed(t *testing.T) {
	t.Parallel()
	moves := people.MovesOf([]string{
		`{"connector":"slack","from":"T1/C1","to":"T1/C5"}`, `{"connector":"slack","from":"T1/C5","to":"T1/C9"}`,
		`{"connector":"telegram","from":"-100","to":"-1000000000100"}`, `{`, `{"connector":"slack"}`,
		`{"connector":"ring","from":"a","to":"b"}`, `{"connector":"ring","from":"b","to":"a"}`,
	})
	got := moves.Renamed([]string{"slack:C1", "slack:T1/C5", "slack:C9", "telegram:-100", "telegram", "discord:-100"})
	want := []people.Renamed{{"slack:C1", "slack:C9"}, {"slack:T1/C5", "slack:T1/C9"}, {"telegram:-100", "telegram:-1000000000100"}}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := moves.Named("telegram:-100"); got != "telegram:-1000000000100" {
		t.Errorf("named %s", got)
	}
}

// In a ring, which two members store that note opposite moves at once, each id stays itself.
func TestRing(t *testing.T) {
	t.Parallel()
	moves := people.MovesOf([]string{
		`{"connector":"chat","from":"a","to":"b"}`, `{"connector":"chat","from":"b","to":"a"}`,
		`{"connector":"chat","from":"c","to":"a"}`, `{"connector":"chat","from":"d","to":"e"}`,
	})
	for id, want := range map[string]string{"a": "a", "b": "b", "c": "c", "d": "e"} {
		if got := moves.Current("chat", id); got != want {
			t.Errorf("%s is now %s, want %s", id, got, want)
		}
	}
	if former := moves.Former("chat", "a"); len(former) > 0 {
		t.Errorf("former ids %q", former)
	}
}

// A chat that gets an id back has it, in whatever order the moves are learned and with those of
// members that store no time; a late or redelivered report about an id changes nothing.
func TestMovedBack(t *testing.T) {
	t.Parallel()
	type report struct {
		from, to string
		at       claybot.Time
	}
	for _, tt := range []struct {
		name    string
		marks   []string // stored before
		reports []report
		want    map[string]string
	}{
		{"back", nil, []report{{"a", "b", 1}, {"b", "a", 2}}, map[string]string{"a": "a", "b": "a"}},
		{"back after a redelivery", nil, []report{{"a", "b", 1}, {"b", "a", 2}, {"a", "b", 1}}, map[string]string{"a": "a", "b": "a"}},
		{"back, learned first", nil, []report{{"b", "a", 2}, {"a", "b", 1}}, map[string]string{"a": "a", "b": "a"}},
		{"back and away", nil, []report{{"a", "b", 1}, {"b", "a", 2}, {"a", "b", 3}}, map[string]string{"a": "b", "b": "b"}},
		{"back the long way", nil, []report{{"a", "b", 1}, {"b", "c", 2}, {"c", "a", 3}}, map[string]string{"a": "a", "b": "a", "c": "a"}},
		{"back without a time", []string{`{"connector":"chat","from":"a","to":"b"}`}, []report{{"b", "a", 2}}, map[string]string{"a": "a", "b": "a"}},
		{"another chat has the id", nil, []report{{"a", "b", 1}, {"x", "a", 2}}, map[string]string{"a": "a", "b": "b", "x": "a"}},
		{"another chat has the id in between", nil, []report{{"a", "b", 1}, {"b", "c", 2}, {"x", "b", 3}}, map[string]string{"a": "c", "b": "b", "c": "c", "x": "b"}},
		{"a late report of the id before", nil, []report{{"a", "b", 2}, {"z", "a", 1}}, map[string]string{"a": "b", "b": "b", "z": "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "db"), sqlite.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			for _, mark := range tt.marks {
				if err := db.SetCheckpoint(t.Context(), storage.CheckpointMoved+"chat/a", mark); err != nil {
					t.Fatal(err)
				}
			}
			here := people.NewMoves(db)
			if err := here.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, x := range tt.reports {
				if err := here.Note(t.Context(), "chat", x.from, x.to, x.at); err != nil {
					t.Fatal(err)
				}
			}
			next := people.NewMoves(db)
			if err := next.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			changes := here.Changes()
			if err := here.Load(t.Context()); err != nil || here.Changes() != changes {
				t.Errorf("changed by what it knew: %v", err)
			}
			for name, m := range map[string]*people.Moves{"here": here, "after a restart": next} {
				for id, want := range tt.want {
					if got := m.Current("chat", id); got != want {
						t.Errorf("%s: %s is now %s, want %s", name, id, got, want)
					}
					if is := slices.Contains(m.Former("chat", want), id); is != (id != want) {
						t.Errorf("%s: %s is a former id of %s: %v", name, id, want, is)
					}
				}
			}
		})
	}
}

// A member that has not heard of a later move of a chat stores no earlier one over it, and learns
// the later one; this holds for reports of both members at once as well.
func TestSlowMember(t *testing.T) {
	t.Parallel()
	for range 20 {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "db"), sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		slow, fast := people.NewMoves(db), people.NewMoves(db)
		if err := fast.Note(t.Context(), "chat", "a", "c", 2); err != nil {
			t.Fatal(err)
		}
		if err := slow.Note(t.Context(), "chat", "a", "b", 1); err != nil {
			t.Fatal(err)
		}
		var at sync.WaitGroup
		at.Go(func() { _ = slow.Note(t.Context(), "chat", "x", "y", 1) })
		at.Go(func() { _ = fast.Note(t.Context(), "chat", "x", "z", 2) })
		at.Wait()
		next := people.NewMoves(db)
		if err := next.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, m := range map[string]*people.Moves{"the slow member": slow, "a new member": next} {
			if got := m.Current("chat", "a"); got != "c" {
				t.Errorf("%s: a is now %s", name, got)
			}
		}
		if got := next.Current("chat", "x"); got != "z" {
			t.Errorf("at once: x is now %s", got)
		}
	}
}

// failingMarks are checkpoints that cannot be listed.
type failingMarks struct{ storage.CheckpointSet }

func (failingMarks) ListCheckpoints(context.Context, string) ([]storage.Checkpoint, error) {
	return nil, errors.New("cut")
}

// A grant of another member is in force only with the move that explains it.
func TestGrantsComeWithMoves(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	pairing := func() people.Access { return people.Access{} }
	there, here := people.NewGate(db, db, pairing, people.NewMoves(db)), people.NewGate(db, db, pairing, people.NewMoves(db))
	if err := there.Grant(t.Context(), storage.Grant{Connector: "chat", Subject: "old", At: claybot.Now()}); err != nil {
		t.Fatal(err)
	}
	cut := people.NewGate(db, db, pairing, people.NewMoves(db))
	for _, g := range []*people.Gate{here, cut} {
		if err := g.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(there.Note(t.Context(), "chat", "old", "new", 1), there.MoveGrant(t.Context(), "chat", "old", "new")); err != nil {
		t.Fatal(err)
	}
	if err := here.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"old", "new"} {
		if !here.Allowed(claybot.User("chat", id, "ann"), true) {
			t.Errorf("%s has no access after Load", id)
		}
	}
	cut.Moves = people.NewMoves(failingMarks{db})
	if err := cut.Load(t.Context()); err == nil {
		t.Error("loaded without the moves")
	}
	if !cut.Granted("chat", "old") || cut.Granted("chat", "new") {
		t.Error("grants changed without the moves")
	}
}
