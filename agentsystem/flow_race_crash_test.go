package agentsystem_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// race has two workflows at work at once; the first one that ends wins.
var race = map[string]string{
	"race": `
owner: chat/boss
start: both
nodes:
  both: {kind: parallel, join: any, branches: {slow: {kind: flow, flow: slow}, quick: {kind: flow, flow: quick}}, next: tell}
  tell: {kind: reply, text: "{{ both.first }} won, {{ both.failed | length }} failed", next: END}
`,
	"slow":  "owner: chat/boss\nstart: rest\nnodes: {rest: {kind: wait, for: 20d, next: say}, say: {kind: reply, text: late, next: END}}\n",
	"quick": "owner: chat/boss\nstart: rest\nnodes: {rest: {kind: wait, for: 1m, next: five}, five: {kind: template, value: 5, next: END}}\n",
}

// The process dies after every step in turn: the branches of a node are started once, the first one wins, and
// the other one is stopped, which is no failure.
func TestCrashAroundBranches(t *testing.T) {
	steps := racingLife(t, -1)
	if steps < 20 {
		t.Fatalf("only %d steps: the test does not see them", steps)
	}
	every := 1
	if raced || testing.Short() {
		every = 3
	}
	for k := 0; k < steps; k += every {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			racingLife(t, k)
		})
	}
}

// flowAgents are the agents of workflows.
func (r *rig) flowAgents() []storage.IndexEntry {
	r.Helper()
	all, err := r.db.AgentPage(r.Context(), storage.AgentQuery{Type: claybot.AgentFlow})
	if err != nil {
		r.Fatal(err)
	}
	return all
}

// racingLife lets the two race in a process that dies after k steps, and in the one after it.
func racingLife(t *testing.T, k int) (steps int) {
	bubble(t, func(r *rig) {
		r.line, r.blowAfter = platforms[0].line, k
		r.workflows(race)
		r.start()
		r.source("race")
		after(2 * time.Minute)
		steps = len(r.fuse.steps)
		if r.fuse.dead() {
			t.Logf("the process died behind %q", r.fuse.steps[max(0, len(r.fuse.steps)-3):])
			r.crash()
			r.start()
			if _, err := r.db.Receipt(r.Context(), "race"); err != nil {
				r.source("race")
			}
			after(3 * time.Minute)
		}
		if got, want := r.chat.seen(), []string{"5 won, 0 failed"}; !slices.Equal(got, want) {
			t.Errorf("people see %q, want %q", got, want)
		}
		states := make(map[string][]claybot.RunState)
		for _, e := range r.flowAgents() {
			states[e.Descriptor.Name] = append(states[e.Descriptor.Name], r.lastOf(e.ID).State)
		}
		want := map[string][]claybot.RunState{"race": {claybot.RunSucceeded}, "slow": {claybot.RunCanceled}, "quick": {claybot.RunSucceeded}}
		if fmt.Sprint(states) != fmt.Sprint(want) {
			t.Errorf("runs %v, want %v", states, want)
		}
	})
	return steps
}
