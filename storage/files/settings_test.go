package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// settingsOf are the settings of an agent as a store has them, which its state.json and
// the index must have as well.
func settingsOf(t *testing.T, what string, s *Store, index *memoryIndex, id claybot.AgentID) claybot.Settings {
	t.Helper()
	if _, err := s.Agent(t.Context(), id); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	all, err := s.AgentSettings(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	f, err := s.peekState(id)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	own, _ := readSettings(f.Settings)
	if !reflect.DeepEqual(own, all[id]) || !reflect.DeepEqual(index.own[id], all[id]) {
		t.Errorf("%s: state.json has %+v, the index %+v, the store %+v", what, own, index.own[id], all[id])
	}
	return all[id]
}

// TestSettings changes settings, also by hand, and loses one of the places where they are.
func TestSettings(t *testing.T) {
	small := claybot.Settings{Model: "small", Tools: []string{}}
	for name, tt := range map[string]struct {
		before claybot.Settings
		// change is made while no process uses the directory.
		change func(t *testing.T, index *memoryIndex, id claybot.AgentID, state string)
		want   claybot.Settings
	}{
		"kept": {before: small, want: small},
		"none": {},
		"written by an older version": {
			change: func(t *testing.T, index *memoryIndex, id claybot.AgentID, state string) {
				writeFile(t, state, []byte(strings.Replace(readFile(t, state), `"settings": null,`, "", 1)))
				writeFile(t, state, []byte(strings.Replace(readFile(t, state), ",\n  \"settings\": null", "", 1)))
				index.own = map[claybot.AgentID]claybot.Settings{id: small}
			},
			want: small,
		},
		"changed by hand": {
			before: small,
			change: func(t *testing.T, _ *memoryIndex, _ claybot.AgentID, state string) {
				writeFile(t, state, []byte(strings.Replace(readFile(t, state), `"small"`, `"big"`, 1)))
			},
			want: claybot.Settings{Model: "big", Tools: []string{}},
		},
		"added by hand": {
			change: func(t *testing.T, _ *memoryIndex, _ claybot.AgentID, state string) {
				writeFile(t, state, []byte(strings.Replace(readFile(t, state), `"settings": null`, `"settings": {"model":"big","later":1}`, 1)))
			},
			want: claybot.Settings{Model: "big"},
		},
		"removed by hand": {
			before: small,
			change: func(t *testing.T, _ *memoryIndex, _ claybot.AgentID, state string) {
				var doc map[string]any
				if err := json.Unmarshal([]byte(readFile(t, state)), &doc); err != nil {
					t.Fatal(err)
				}
				doc["settings"] = claybot.Settings{}
				b, _ := json.Marshal(doc)
				writeFile(t, state, b)
			},
		},
		"unreadable": {
			before: small,
			change: func(t *testing.T, _ *memoryIndex, _ claybot.AgentID, state string) {
				writeFile(t, state, []byte(strings.Replace(readFile(t, state), `"small"`, `7`, 1)))
			},
			want: small,
		},
		"state.json lost": {
			before: small,
			change: func(t *testing.T, _ *memoryIndex, _ claybot.AgentID, state string) { writeFile(t, state, nil) },
			want:   small,
		},
		"copy lost": {
			before: small,
			change: func(_ *testing.T, index *memoryIndex, _ claybot.AgentID, _ string) { index.own = nil },
			want:   small,
		},
		"index lost": {
			before: small,
			change: func(_ *testing.T, index *memoryIndex, _ claybot.AgentID, _ string) { index.own, index.byID = nil, nil },
			want:   small,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, index := t.TempDir(), &memoryIndex{}
			s := open(t, Config{Dir: dir, Index: index})
			a := agentFor(t, s, someone)
			if !reflect.DeepEqual(tt.before, claybot.Settings{}) {
				if err := s.SaveAgentSettings(t.Context(), a.ID, tt.before); err != nil {
					t.Fatal(err)
				}
			}
			if got := settingsOf(t, "saved", s, index, a.ID); !reflect.DeepEqual(got, tt.before) {
				t.Errorf("saved: %+v, want %+v", got, tt.before)
			}
			if tt.change != nil {
				tt.change(t, index, a.ID, s.dir(a.ID)+"/state.json")
			}
			for range 2 {
				s = open(t, Config{Dir: dir, Index: index})
				if got := settingsOf(t, "opened", s, index, a.ID); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			}
			if err := s.SaveState(t.Context(), storage.Lease{Agent: a.ID}, claybot.AgentState{Engine: "other"}); err != nil {
				t.Fatal(err)
			}
			if got := settingsOf(t, "with another state", s, index, a.ID); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("with another state: %+v, want %+v", got, tt.want)
			}
			if err := s.Delete(t.Context(), a.ID); err != nil {
				t.Fatal(err)
			}
			if all, _ := s.AgentSettings(t.Context()); len(all)+len(index.own) > 0 {
				t.Errorf("after its end: %v, %v", all, index.own)
			}
		})
	}
}

// TestSettingsFoundLate edits the file of an agent without settings: who uses the store is
// told when it is read.
func TestSettingsFoundLate(t *testing.T) {
	dir, index, told := t.TempDir(), &memoryIndex{}, 0
	a := agentFor(t, open(t, Config{Dir: dir, Index: index}), someone)
	s := open(t, Config{Dir: dir, Index: index, OnSettings: func() { told++ }})
	state := s.dir(a.ID) + "/state.json"
	writeFile(t, state, []byte(strings.Replace(readFile(t, state), `"settings": null`, `"settings": {"model":"big"}`, 1)))
	if got := settingsOf(t, "edited", s, index, a.ID); got.Model != "big" || told != 1 {
		t.Errorf("got %+v, told %d times", got, told)
	}
	index.cut = errors.New("the index is busy")
	if err := s.SaveAgentSettings(t.Context(), a.ID, claybot.Settings{Model: "small"}); !errors.Is(err, index.cut) {
		t.Errorf("got %v", err)
	}
	if got := settingsOf(t, "not saved", s, index, a.ID); got.Model != "big" {
		t.Errorf("got %+v", got)
	}
}

// TestSettingsPowerCut cuts the power after each operation of the move of settings from an
// older version's index into state.json, of a change, and of their end. What was confirmed
// is in force, and nothing else than what was asked for.
func TestSettingsPowerCut(t *testing.T) {
	steps := []claybot.Settings{{Model: "old"}, {Model: "new", MaxSteps: 3}, {}}
	for k, done := 1, false; !done; k++ {
		for seed := range uint64(6) {
			sc, fsys := newScenario()
			cfg := Config{Dir: "d", Index: sc.index, FS: fsys}
			a := agentFor(t, open(t, cfg), someone)
			state := "d/agents/" + string(a.ID) + "/state.json"
			data, err := read(fsys, state, documentLimit)
			if err == nil {
				err = replace(fsys, "d/agents/"+string(a.ID), "state.json", []byte(strings.Replace(string(data), ",\n  \"settings\": null", "", 1)))
			}
			if err != nil {
				t.Fatal(err)
			}
			sc.index.own = map[claybot.AgentID]claybot.Settings{a.ID: steps[0]}
			first := fsys.ops
			fsys.fail = func(op int) error {
				if op > first+k {
					return errCut
				}
				return nil
			}
			confirmed := 0
			s, err := Open(cfg)
			for i := 1; i < len(steps) && err == nil; i++ {
				if err = s.SaveAgentSettings(t.Context(), a.ID, steps[i]); err == nil {
					confirmed = i
				}
			}
			done = err == nil
			what := fmt.Sprintf("power cut after operation %d, seed %d", k, seed)
			cfg.FS = fsys.cut(rand.New(rand.NewPCG(seed, uint64(k))))
			for range 2 {
				got := settingsOf(t, what, open(t, cfg), sc.index, a.ID)
				allowed := steps[confirmed:min(confirmed+2, len(steps))]
				if !slices.ContainsFunc(allowed, func(want claybot.Settings) bool { return reflect.DeepEqual(got, want) }) {
					t.Fatalf("%s: got %+v, want one of %+v", what, got, allowed)
				}
			}
		}
	}
}

// TestRestoredFromFiles loses the index, and with it or not the descriptors: who was heard
// last, since when agents exist, and what they used are as before.
func TestRestoredFromFiles(t *testing.T) {
	dir, index := t.TempDir(), &memoryIndex{}
	s := open(t, Config{Dir: dir, Index: index})
	var agents []claybot.Agent
	for i, user := range []string{"1", "2"} {
		a := agentFor(t, s, claybot.User("telegram", user, user))
		at := a.CreatedAt + claybot.Time(1000*(2-i))
		appendTo(t, s, a.ID, claybot.Record{Type: claybot.RecordUser, Text: "hello", At: at})
		e := index.byID[a.ID]
		e.LastUserAt, e.Usage = at-500, claybot.Usage{Input: 7, LLMCalls: 1} // less than the history has
		index.byID[a.ID] = e
		agents = append(agents, a)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/agents/"+string(agents[0].ID)+"/descriptor.json", []byte("{"))
	writeFile(t, dir+"/agents/"+string(agents[0].ID)+"/state.json", []byte("{"))
	s = open(t, Config{Dir: dir, Index: index})
	if a, err := s.Agent(t.Context(), agents[0].ID); err != nil || a.CreatedAt != agents[0].CreatedAt {
		t.Errorf("rebuilt: %+v, %v, want createdAt %d", a, err, agents[0].CreatedAt)
	}
	if f, err := s.peekState(agents[1].ID); err != nil || f.Usage.LLMCalls != 1 || f.LastUserAt != agents[1].CreatedAt+500 {
		t.Errorf("totals of an agent that was closed at once: %+v, %v", f, err)
	}
	lost := &memoryIndex{}
	open(t, Config{Dir: dir, Index: lost})
	for i, a := range agents {
		e := lost.byID[a.ID]
		if e.LastUserAt != a.CreatedAt+claybot.Time(1000*(2-i)) || e.CreatedAt != a.CreatedAt {
			t.Errorf("agent %d: %+v, want lastUserAt %d after %d", i, e, 1000*(2-i), a.CreatedAt)
		}
	}
	if u := lost.byID[agents[1].ID].Usage; u.LLMCalls != 1 || u.Input != 7 {
		t.Errorf("usage %+v", u)
	}
}

// TestSettingsReset cuts a reset between its two writes: the file counts.
func TestSettingsReset(t *testing.T) {
	dir, index := t.TempDir(), &memoryIndex{}
	s := open(t, Config{Dir: dir, Index: index})
	a := agentFor(t, s, someone)
	for _, own := range []claybot.Settings{{Model: "small"}, {}} {
		if err := s.SaveAgentSettings(t.Context(), a.ID, own); err != nil {
			t.Fatal(err)
		}
	}
	index.own = map[claybot.AgentID]claybot.Settings{a.ID: {Model: "small"}} // as the crash leaves it
	for range 2 {
		if got := settingsOf(t, "opened", open(t, Config{Dir: dir, Index: index}), index, a.ID); got.Model != "" {
			t.Errorf("the reset is undone: %+v", got)
		}
	}
}

// TestTotals writes those of an agent once it is quiet, and not while it works.
func TestTotals(t *testing.T) {
	dir, index := t.TempDir(), &memoryIndex{}
	s := open(t, Config{Dir: dir, Index: index})
	a := agentFor(t, s, someone)
	use := func(calls int64) {
		e := index.byID[a.ID]
		e.Usage.LLMCalls = calls
		index.byID[a.ID] = e
		appendTo(t, s, a.ID, said("x"))
	}
	for i, want := range []int64{0, 0, 2, 2} {
		if i < 2 {
			use(int64(i) + 1)
		}
		if err := s.SaveTotals(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f, err := s.peekState(a.ID); err != nil || f.Usage.LLMCalls != want {
			t.Errorf("minute %d: %d calls, %v, want %d", i, f.Usage.LLMCalls, err, want)
		}
	}
}
