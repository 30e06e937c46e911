package agentsystem_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
)

// nested are workflows that start each other: one is waited for and answers, one fails, and one is only
// started.
var nested = map[string]string{
	"parent": `
owner: chat/boss
start: first
nodes:
  first: {kind: flow, flow: child, text: "of {{ trigger.text }}", payload: {n: 2}, next: second}
  second: {kind: flow, flow: broken, next: third, error: third}
  third: {kind: flow, flow: child, text: alone, wait: false, next: tell}
  tell: {kind: reply, text: "sum {{ first.sum }}, {{ error.code | default('') }}", next: END}
`,
	"child": `
owner: chat/boss
start: rest
nodes:
  rest: {kind: wait, for: 1m, next: say}
  say: {kind: reply, text: "{{ trigger.user.name }}: {{ trigger.text }} in {{ trigger.channel }}", next: sum}
  sum: {kind: template, value: {sum: "{{ trigger.payload.n | default(0) }}"}, next: END}
`,
	"broken": `
owner: chat/boss
on_failure: [owner]
start: deeper
nodes:
  deeper: {kind: flow, flow: missing, next: END}
`,
	"missing": `
owner: chat/boss
start: look
nodes:
  look: {kind: template, value: "{{ trigger.payload.gone }}", next: END}
`,
	"open": `
owner: chat/boss
start: a
nodes:
  a: {kind: flow, flow: parent2, next: END}
`,
	"parent2": `
owner: chat/boss
start: a
nodes:
  a: {kind: flow, flow: long, next: END}
`,
	"long": `
owner: chat/boss
start: rest
nodes:
  rest: {kind: wait, for: 20d, next: END}
`,
	"fails": `
owner: chat/boss
start: a
nodes:
  a: {kind: flow, flow: broken, next: END}
`,
	"deep": `
owner: chat/boss
start: a
nodes:
  a: {kind: flow, flow: deep, next: END}
`,
}

// below are the agents of workflows that an agent started, and those that they started.
func (r *rig) below(id claybot.AgentID) (all []storage.IndexEntry) {
	for _, c := range r.childrenOf(id) {
		all = append(append(all, c), r.below(c.ID)...)
	}
	return all
}

// begins starts a workflow by a message of Ann, and returns its agent.
func (r *rig) begins(text string) claybot.AgentID {
	r.Helper()
	r.posts(ann, msg("start", text))
	got, err := r.db.AgentPage(r.Context(), storage.AgentQuery{Type: claybot.AgentFlow})
	if err != nil {
		r.Fatal(err)
	}
	i := slices.IndexFunc(got, func(e storage.IndexEntry) bool { return !e.Descriptor.Child() })
	if i < 0 {
		return ""
	}
	return got[i].ID
}

// lastOf is the newest run of an agent.
func (r *rig) lastOf(id claybot.AgentID) claybot.Run {
	r.Helper()
	run, err := r.db.LastRun(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return run
}

// A workflow starts others: their output is its node's, they act for the same person and answer in the same
// place, a failure leads to the error edge, and one that is only started goes on by itself.
func TestNestedFlows(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.workflows(nested)
		r.start()
		parent := r.begins("parent go")
		after(10 * time.Minute)
		r.wants("Ann: of parent go in dm-ann", "sum 2, flow_failed", "Ann: alone in dm-ann")
		names := []string{}
		for _, c := range r.below(parent) {
			names = append(names, c.Descriptor.Name)
			if d := c.Descriptor; d.Type != claybot.AgentFlow || d.Root != parent || d.Owner != "chat/ann" || d.Depth < 1 {
				t.Errorf("%+v", d)
			}
		}
		if slices.Sort(names); !slices.Equal(names, []string{"broken", "child", "child", "missing"}) {
			t.Errorf("started %q", names)
		}
	})
}

// A failure is told once, by the workflow that no other waits for.
func TestNestedFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.workflows(nested)
		r.start()
		parent := r.begins("fails x")
		after(time.Hour)
		run := r.lastOf(parent)
		if seen := r.chat.seen(); len(seen) != 1 || !strings.Contains(seen[0], "fails") || run.Error == nil || run.Error.Code != "flow_failed" || !strings.Contains(run.Error.Text, "flow_failed: deeper: flow: look") {
			t.Errorf("people see %q, %+v", seen, run.Error)
		}
	})
}

// A branch whose payload does not fit the input of its workflow fails, and those beside it work.
func TestBranchWithoutInput(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.workflows(map[string]string{
			"split": `
owner: chat/boss
start: look
nodes:
  look:
    kind: parallel
    on_error: collect
    branches:
      good: {kind: flow, flow: strict, payload: {n: 3}}
      bad: {kind: flow, flow: strict, payload: {n: "{{ trigger.text }}"}}
    next: tell
    error: sorry
  tell: {kind: reply, text: "{{ look.good.output }}, {{ look.bad.error }}", next: END}
  sorry: {kind: reply, text: "{{ error.code }}: {{ error.text }}", next: END}
`,
			"strict": `
owner: chat/boss
input: {n: integer}
start: rest
nodes:
  rest: {kind: wait, for: 1m, next: out}
  out: {kind: template, value: "{{ trigger.payload.n }}", next: END}
`,
		})
		r.start()
		parent := r.begins("split x")
		after(time.Hour)
		r.wants("3, look.bad: the input of the flow strict: payload.n does not fit; want integer")
		if all := r.below(parent); len(all) != 1 {
			r.Errorf("started %+v", all)
		}
	})
}

// Workflows are nested five deep at most.
func TestNestedTooDeeply(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.workflows(nested)
		r.start()
		parent := r.begins("deep x")
		after(time.Hour)
		if n := len(r.below(parent)); n != 5 || r.lastOf(parent).State != claybot.RunFailed {
			t.Errorf("%d below, %+v", n, r.lastOf(parent))
		}
	})
}

// The end of a workflow that waits for others ends them.
func TestStopOfNestedFlows(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		bubble(t, func(r *rig) {
			r.workflows(nested)
			r.start()
			parent := r.begins("open x")
			after(time.Minute)
			if crash {
				r.crash()
				r.start()
				after(time.Minute)
			}
			if n, err := r.system.Control.Stop(r.Context(), parent); err != nil || n != 3 {
				t.Errorf("stopped %d, %v", n, err)
			}
			after(time.Hour)
			all := r.below(parent)
			for _, id := range []claybot.AgentID{parent, all[0].ID, all[1].ID} {
				if run := r.lastOf(id); run.State != claybot.RunCanceled {
					t.Errorf("%s is %s", id, run.State)
				}
			}
			if seen := r.chat.seen(); len(seen) > 0 {
				t.Errorf("people see %q", seen)
			}
		})
	}
}

// The process dies after every step in turn around workflows that start each other: people read the same,
// and each is started once.
func TestCrashAroundNestedFlows(t *testing.T) {
	play := func(t *testing.T, k int) (steps int) {
		bubble(t, func(r *rig) {
			r.workflows(nested)
			r.line, r.blowAfter = platforms[0].line, k
			r.start()
			parent := r.begins("parent go")
			after(20 * time.Minute)
			if steps = len(r.fuse.steps); r.fuse.dead() {
				t.Logf("the process died behind %q", r.fuse.steps[max(0, steps-3):])
				r.crash()
				r.start()
				parent = r.begins("parent go")
				after(20 * time.Minute)
			}
			seen, want := r.chat.seen(), []string{"Ann: alone in dm-ann", "Ann: of parent go in dm-ann", "sum 2, flow_failed"}
			if slices.Sort(seen); !slices.Equal(seen, want) {
				t.Errorf("people see %q", seen)
			}
			if n := len(r.below(parent)); n != 4 {
				t.Errorf("%d workflows were started", n)
			}
			if run := r.lastOf(parent); run.State != claybot.RunSucceeded {
				t.Errorf("the run is %s, %+v", run.State, run.Error)
			}
		})
		return steps
	}
	steps := play(t, -1)
	if steps < 40 {
		t.Fatalf("only %d steps", steps)
	}
	crashes(t, steps, func(t *testing.T, k int) { play(t, k) })
}

// The process dies after every step in turn around the end of a workflow that waits for others: where it
// has ended, so have they.
func TestCrashAroundStopOfNestedFlows(t *testing.T) {
	play := func(t *testing.T, k int) (steps int) {
		bubble(t, func(r *rig) {
			r.workflows(nested)
			r.start()
			parent := r.begins("open x")
			after(time.Minute)
			r.shut()
			r.blowAfter = k
			r.start()
			after(time.Minute)
			_, _ = r.system.Control.Stop(r.Context(), parent) // the process may die
			after(time.Minute)
			if steps = len(r.fuse.steps); r.fuse.dead() {
				r.crash()
				r.start()
				after(time.Hour)
			}
			state := r.lastOf(parent).State
			if k < 0 && state != claybot.RunCanceled {
				t.Errorf("the run is %s", state)
			}
			for _, c := range r.below(parent) {
				if below := r.lastOf(c.ID).State; state.Ended() && !below.Ended() {
					t.Errorf("%s is %s, the run that waited for it %s", c.Descriptor.Name, below, state)
				}
			}
		})
		return steps
	}
	steps := play(t, -1)
	crashes(t, steps, func(t *testing.T, k int) { play(t, k) })
}

// An agent starts a workflow that names its profile, and no other; what it gives goes to no other chat.
func TestAgentStartsFlow(t *testing.T) {
	t.Parallel()
	const mine = `
owner: chat/boss
agents: [plain]
start: out
nodes:
  out: {kind: template, value: {n: "{{ trigger.payload.n }}", said: "{{ trigger.text }} by {{ trigger.user.name }}"}, next: END}
`
	const other = `
owner: chat/boss
agents: [other]
start: out
nodes: {out: {kind: template, value: x, next: END}}
`
	const leaks = `
owner: chat/ann
agents: [plain]
start: open
nodes:
  open: {kind: reply, text: "it began", to: [chat/dm-bob], next: out}
  out: {kind: reply, text: "{{ trigger.text }}", to: [chat/dm-bob], next: END}
`
	for _, tt := range []struct {
		tool, flow, want string
		sent             []string
	}{
		{"spawn_and_await", "mine", `"output":"{\"n\":7,\"said\":\"gold by Ann\"}"`, nil}, // its other name
		{"spawn_and_wait", "mine", `"output":"{\"n\":7,\"said\":\"gold by Ann\"}"`, nil},
		{"spawn_and_wait", "other", "the flow \"other\" is not for agents of the profile plain", nil},
		{"spawn_and_wait", "none", "there is no flow \"none\"", nil},
		{"spawn_and_wait", "leaks", "not_approved", []string{"it began"}},
	} {
		bubble(t, func(r *rig) {
			r.profile.Name = "plain"
			r.workflows(map[string]string{"mine": mine, "other": other, "leaks": leaks})
			r.mind.plan("begin", llmtest.Use(with(tt.tool, obj{"tasks": []obj{{"task": "gold", "target": "flow:" + tt.flow, "payload": obj{"n": 7}}}})), llmtest.Say("done"))
			r.start()
			r.say("begin")
			after(time.Hour)
			if got := r.result(ann, "spawn_and_wait").Text; !strings.Contains(got, tt.want) {
				t.Errorf("%s: %s", tt.flow, got)
			}
			if got := r.sees("dm-bob"); !slices.Equal(got, tt.sent) {
				t.Errorf("%s: bob sees %q", tt.flow, got)
			}
		})
	}
}
