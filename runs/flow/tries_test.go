package flow_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/runs/runstest"
	"github.com/claybot/claybot/tools"
)

// A node that waits for its next try is seen to, and one whose error another node takes has failed. One whose budget is
// used up is not tried again.
func TestStatesOfTries(t *testing.T) {
	p := player(t, `
owner: chat/ann
start: ask
nodes:
  ask: {kind: agent, prompt: x, next: done, error: sorry}
  done: {kind: template, value: done, next: END}
  sorry: {kind: template, value: "{{ error.code }}", next: END}
`)
	for _, tt := range []struct {
		fails string // of the agent
		ask   []string
		code  string
	}{
		{"model_error: no answer", []string{"running", "retrying", "running", "retrying", "running", "failed"}, `"agent_failed"`},
		{"budget: nothing is left", []string{"running", "failed"}, `"budget"`},
	} {
		var v runs.GraphView
		var states []string
		slept := time.Duration(0)
		e := flow.New(flow.Config{
			Flow: func(context.Context, string, string) (*flows.Flow, error) { return p.Flow, nil }, Fill: p.Fill, Uses: p.Uses,
			Spawn: func(context.Context, tools.Env, []tools.Subagent, tools.Spawning) (tools.Result, error) {
				return tools.Result{Text: string(raw(t, []*claybot.Result{{Error: tt.fails}}))}, nil
			},
			Sleep: func(_ context.Context, d time.Duration) { slept += d },
		})
		fake := &runstest.Fake{EmitFunc: func(_ context.Context, _ bool, ev ...claybot.Event) error {
			for _, x := range ev {
				if v.Add(x); runs.DataOf[runs.NodeStarted](x).Node == "ask" {
					states = append(states, v.Nodes[0].State)
				}
			}
			return nil
		}}
		turn := fake.Turn(runs.Turn{Run: claybot.Run{ID: "r", Engine: "flow:every@1"}, Messages: []claybot.AgentMessage{{Payload: []byte("null")}}})
		var records []claybot.Record
		for r, err := range e.Run(t.Context(), turn) {
			if err != nil {
				t.Fatal(err)
			}
			r.Run = "r"
			records = append(records, r)
		}
		code, _, _ := e.Output(&runs.Turn{Run: claybot.Run{ID: "r"}, History: records})
		if !slices.Equal(states, tt.ask) || string(code) != tt.code || (slept > 0) != (len(tt.ask) > 2) || v.Nodes[0].Visits != 1 {
			t.Errorf("%s: %q, %s, slept %s, %s", tt.fails, states, code, slept, fmt.Sprint(v.Nodes))
		}
	}
}
