package files

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// TestPruneCutShort cuts the power after each operation of PruneHistories, with the ends of
// histories saved and not saved: the agent remembers what it did, is told of no damage, and
// goes on. The next call removes the rest.
func TestPruneCutShort(t *testing.T) {
	young := func(text string) claybot.Record { r := said(text); r.At = claybot.Now() + 1000_000; return r }
	summary := claybot.Record{Type: claybot.RecordSummary, At: 2, Text: "summary", Keep: 1}
	for _, tt := range []struct {
		name    string
		records []claybot.Record
		want    []string
		idle    bool
	}{
		{"reset", []claybot.Record{said("a"), reset, said("b"), young("c")}, []string{"b", "c"}, false},
		{"summary", []claybot.Record{said("a"), said("b"), summary, young("c")}, []string{"b", "summary", "c"}, false},
		{"idle", []claybot.Record{said("a"), reset, said("b"), said("c")}, []string{"b", "c"}, true},
	} {
		for k, done := 0, false; !done; k++ {
			for seed := range uint64(6) {
				what := fmt.Sprintf("%s, power cut after operation %d, seed %d", tt.name, k, seed)
				_, fsys := newScenario()
				index, told := new(endsIndex), []string(nil)
				cfg := Config{Dir: "d", Index: index, FS: fsys, OnDamage: func(_ claybot.AgentID, text string) { told = append(told, text) }}
				s := open(t, cfg)
				a := agentFor(t, s, someone)
				for _, r := range tt.records {
					appendTo(t, s, a.ID, r)
				}
				if err := s.SaveEnds(t.Context()); err != nil {
					t.Fatal(err)
				}
				ends, first := maps.Clone(index.marks), fsys.ops
				before := claybot.Now() + 1000
				fsys.fail = func(op int) error {
					if op > first+k {
						return errCut
					}
					return nil
				}
				_ = s.PruneHistories(t.Context(), before)
				done = fsys.ops <= first+k
				cfg.FS = fsys.cut(rand.New(rand.NewPCG(seed, uint64(k))))
				if seed%2 == 0 {
					index.marks = ends // they were not saved any more
				}
				s = open(t, cfg)
				if c, err := s.Check(t.Context(), 0); err != nil || len(c.Shorter)+len(c.Damaged)+len(c.Unread) > 0 {
					t.Fatalf("%s: check found %+v, %v", what, c, err)
				}
				want := tt.want
				if tt.idle && len(texts(records(t, s, a.ID))) == 0 {
					want = nil
				}
				wantTexts(t, what, records(t, s, a.ID), want...)
				last := young("d")
				if tt.idle {
					last.At = 1
				}
				appendTo(t, s, a.ID, last)
				if err := s.PruneHistories(t.Context(), before); err != nil {
					t.Fatal(err)
				}
				if want = append(want[:len(want):len(want)], "d"); tt.idle {
					want = nil
				}
				wantTexts(t, what, records(t, s, a.ID), want...)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open(t, cfg)
				appendTo(t, s, a.ID, said("e"))
				wantTexts(t, what, records(t, s, a.ID), append(want, "e")...)
				if len(told) > 0 {
					t.Fatalf("%s: told %q", what, told)
				}
			}
		}
	}
}

// TestPruneResults: long tool results go with the records that name them.
func TestPruneResults(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	a := agentFor(t, s, someone)
	for _, call := range []string{"old", "new"} {
		path, err := s.SaveResult(t.Context(), a.ID, call, "text")
		if err != nil {
			t.Fatal(err)
		}
		appendTo(t, s, a.ID, claybot.Record{Type: claybot.RecordTool, At: 1, ToolCallID: call, Saved: path}, reset)
	}
	appendTo(t, s, a.ID, said("x"), claybot.Record{Type: claybot.RecordUser, At: claybot.Now() + 1000_000, Text: "y"})
	if err := s.PruneHistories(t.Context(), claybot.Now()+1000); err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"old", "new"} {
		there, err := exists(s.fs, s.dir(a.ID)+"/results/"+storage.ResultName(call))
		if err != nil || there {
			t.Errorf("%s: there %v, %v", call, there, err)
		}
	}
	wantTexts(t, "pruned", records(t, s, a.ID), "x", "y")
}
