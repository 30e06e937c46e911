package runs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/runstest"
)

// What the calls of a node took is told once: with the record of its end, or as
// lost where it works again or fails.
func TestGraphCountsEveryCallOnce(t *testing.T) {
	for _, tt := range []struct {
		name       string
		fails      []error
		used, lost int64
	}{
		{"well", []error{nil}, 10, 0},
		{"again", []error{&runs.TransientError{Err: errors.New("busy")}, nil}, 10, 10},
		{"failed", []error{errors.New("no")}, 0, 10},
		{"waits", []error{&runs.WaitError{Awaiting: claybot.Awaiting{Until: 1}}}, 10, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				g := &graph{
					Name: "one", Start: "a",
					Nodes: map[string]node{"a": func(_ context.Context, s *state) (string, error) {
						s.Used("m", claybot.Usage{Input: 10})
						n++
						return runs.End, tt.fails[n-1]
					}},
					Edges: map[string][]string{"a": {runs.End}},
				}
				var used, lost claybot.Usage
				var recorded int64
				fake := &runstest.Fake{
					UsedFunc: func(u claybot.Usage) { used = used.Add(u) },
					LostFunc: func(model string, u claybot.Usage) {
						if model != "m" {
							t.Errorf("lost by the model %q", model)
						}
						lost = lost.Add(u)
					},
				}
				turn := fake.Turn(runs.Turn{Run: claybot.Run{ID: "r1"}})
				for r, err := range g.Run(t.Context(), turn) {
					if err == nil && r.Tokens != nil {
						recorded += r.Tokens.Input
					}
				}
				if used.Input != tt.used || recorded != tt.used || lost.Input != tt.lost || used.LLMCalls+lost.LLMCalls != int64(len(tt.fails)) {
					t.Errorf("used %+v, recorded %d, lost %+v", used, recorded, lost)
				}
			})
		})
	}
}
