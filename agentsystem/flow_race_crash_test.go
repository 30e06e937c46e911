package agentsystem_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
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
	afterEveryStep(t, 20, 3, racingLife)
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

// busyOnce cannot make the agent of a branch once.
type busyOnce struct {
	agentsystem.Agents
	name  string
	tries *atomic.Int32
}

func (b busyOnce) NewAgent(ctx context.Context, d claybot.Descriptor, bg claybot.Background) (claybot.Agent, error) {
	if d.Name == b.name && b.tries.Add(1) == 1 {
		return claybot.Agent{}, fmt.Errorf("make an agent: %w", storage.ErrBusy)
	}
	return b.Agents.NewAgent(ctx, d, bg)
}

// A database that is busy while branches are started ends no run: it is resumed, and finds the branch that was started.
func TestBranchesOfABusyStore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"slow", "quick"} {
		bubble(t, func(r *rig) {
			tries := new(atomic.Int32)
			r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
				s.Agents = busyOnce{s.Agents, name, tries}
				return s
			}
			r.line = platforms[0].line
			r.workflows(race)
			r.start()
			r.source("race")
			after(5 * time.Minute)
			if got, want := r.chat.seen(), []string{"5 won, 0 failed"}; !slices.Equal(got, want) || tries.Load() != 2 {
				t.Errorf("%s: people see %q after %d tries, want %q", name, got, tries.Load(), want)
			}
			if n := len(r.flowAgents()); n != 3 {
				t.Errorf("%s: %d agents of workflows, want 3", name, n)
			}
		})
	}
}

// losing has a branch that waits for a workflow, and starts one without waiting.
var losing = map[string]string{
	"race":    strings.ReplaceAll(race["race"], "flow: slow", "flow: waiting"),
	"waiting": "owner: chat/boss\nstart: loose\nnodes: {loose: {kind: flow, flow: alone, wait: false, next: below}, below: {kind: flow, flow: slow, next: END}}\n",
	"alone":   "owner: chat/boss\nstart: rest\nnodes: {rest: {kind: wait, for: 1h, next: say}, say: {kind: reply, text: alone, next: END}}\n",
	"slow":    race["slow"],
	"quick":   race["quick"],
}

// A branch that is stopped ends what it waits for. What it started without waiting goes on.
func TestStoppedBranchEndsItsOwn(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.workflows(losing)
		r.start()
		r.source("race")
		after(2 * time.Hour)
		if got, want := r.chat.seen(), []string{"5 won, 0 failed", "alone"}; !slices.Equal(got, want) {
			t.Errorf("people see %q, want %q", got, want)
		}
		for _, e := range r.flowAgents() {
			want := claybot.RunSucceeded
			if e.Descriptor.Name == "waiting" || e.Descriptor.Name == "slow" {
				want = claybot.RunCanceled
			}
			if got := r.lastOf(e.ID).State; got != want {
				t.Errorf("%s is %s, want %s", e.Descriptor.Name, got, want)
			}
		}
	})
}
