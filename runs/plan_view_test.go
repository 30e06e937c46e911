package runs

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

const planRun claybot.RunID = "r1"

func twoSteps() []PlannedStep {
	return []PlannedStep{
		{ID: "step-01", Tool: "search", Args: json.RawMessage(`{}`), Risk: "low"},
		{ID: "step-02", Tool: "send", What: "send the letter", Args: json.RawMessage(`{"to":"ann"}`), Risk: "high", DependsOn: []string{"step-01"}},
	}
}

func planned(mode string) claybot.Event { return Planned(planRun, twoSteps(), "a letter", mode) }

// approval is the pause in which the second step is to be approved.
func approval() claybot.Event {
	return Paused(planRun, claybot.Awaiting{Reason: claybot.AwaitApproval, Questions: []claybot.Question{
		{ID: "q1", Type: claybot.QuestionConfirm, ToolCallID: "step-02-0123456789abcdef", Tool: "send"},
	}})
}

func answeredEvent(id string) claybot.Event {
	return event(planRun, claybot.EventAnswered, 1, Answered{QuestionID: id, Via: claybot.ViaHTTP})
}

func call(id, tool string) claybot.ToolCall { return claybot.ToolCall{ID: id, Name: tool} }

func toolOK(id string) claybot.Event {
	ev, _ := EventOf(claybot.Record{Type: claybot.RecordTool, Run: planRun, ToolCallID: id, OK: true})
	return ev
}

// edge tells that a graph goes from one node to another.
func edge(from, to, why string) claybot.Event {
	ev, _ := EventOf(claybot.Record{Type: claybot.RecordNode, Run: planRun, Name: from, Next: to, Text: why})
	return ev
}

func toolFailed(id, why string) claybot.Event {
	ev, _ := EventOf(claybot.Record{Type: claybot.RecordTool, Run: planRun, ToolCallID: id, Text: why})
	return ev
}

// has is what a test says about a step.
type has struct {
	status   string
	attempts int
	err      string
	question string
}

func TestPlanOf(t *testing.T) {
	began := func(step string, n int) claybot.Event { return StepBegan(planRun, step, "x", n) }
	ended := func(step string, n int, status string) claybot.Event { return StepEnded(planRun, step, "x", n, status) }
	changed := twoSteps()[1:]
	other := twoSteps()
	other[0].Tool = "fetch"
	finished := Finished(planRun, "done", claybot.Usage{})
	for _, test := range []struct {
		name   string
		events []claybot.Event
		want   []has
		mode   string
	}{
		{"no plan", []claybot.Event{NodeBegan(planRun, "classify", 1), finished}, []has{}, ""},
		{"planned", []claybot.Event{planned("approve")}, []has{{StepPending, 0, "", ""}, {StepPending, 0, "", ""}}, "approve"},
		{"asked", []claybot.Event{planned("approve"), approval()}, []has{{StepPending, 0, "", ""}, {StepWaiting, 0, "", "q1"}}, "approve"},
		{"asked by key", []claybot.Event{planned("approve"), Paused(planRun, claybot.Awaiting{Questions: []claybot.Question{{ID: "q9", Key: "step-01"}}})}, []has{{StepWaiting, 0, "", "q9"}, {StepPending, 0, "", ""}}, "approve"},
		{"another question", []claybot.Event{planned("approve"), approval(), answeredEvent("q2"), answeredEvent("")}, []has{{StepPending, 0, "", ""}, {StepWaiting, 0, "", "q1"}}, "approve"},
		{"approved", []claybot.Event{planned("approve"), approval(), answeredEvent("q1")}, []has{{StepPending, 0, "", ""}, {StepPending, 0, "", ""}}, "approve"},
		{"denied", []claybot.Event{planned("approve"), approval(), answeredEvent("q1"), ended("step-02", 0, "not approved: too early")}, []has{{StepPending, 0, "", ""}, {StepSkipped, 0, "not approved: too early", ""}}, "approve"},
		{"skipped in words", []claybot.Event{planned("auto"), ended("step-02", 0, "skipped: it needs step-01")}, []has{{StepPending, 0, "", ""}, {StepSkipped, 0, "it needs step-01", ""}}, "auto"},
		{"at work", []claybot.Event{planned("auto"), began("step-01", 1)}, []has{{StepRunning, 1, "", ""}, {StepPending, 0, "", ""}}, "auto"},
		{
			"retried",
			[]claybot.Event{planned("auto"), began("step-01", 1), ended("step-01", 1, "retry: no network")},
			[]has{{StepRunning, 1, "no network", ""}, {StepPending, 0, "", ""}},
			"auto",
		},
		{
			"retried well",
			[]claybot.Event{planned("auto"), began("step-01", 1), ended("step-01", 1, "retry: no network"), began("step-01", 2), ended("step-01", 2, "ok")},
			[]has{{StepOK, 2, "", ""}, {StepPending, 0, "", ""}},
			"auto",
		},
		{
			"failed",
			[]claybot.Event{planned("auto"), began("step-01", 1), ended("step-01", 1, "failed"), toolFailed("step-01-ab", "no such page"), FellBack(planRun, "step-01 failed"), Failed(planRun, claybot.RunError{}, 1)},
			[]has{{StepFailed, 1, "no such page", ""}, {StepSkipped, 0, "the run ended before it", ""}},
			"auto",
		},
		{
			"a tool waits",
			[]claybot.Event{planned("auto"), began("step-01", 1), ToolWaits(planRun, call("step-01-ab", "search"), claybot.AwaitChildren)},
			[]has{{StepWaiting, 1, "", ""}, {StepPending, 0, "", ""}},
			"auto",
		},
		{
			"a tool goes on",
			[]claybot.Event{planned("auto"), began("step-01", 1), ended("step-01", 1, "waits"), ToolCalled(planRun, call("step-01-ab", "search"), "readOnly")},
			[]has{{StepRunning, 1, "", ""}, {StepPending, 0, "", ""}},
			"auto",
		},
		{"canceled", []claybot.Event{planned("auto"), began("step-01", 1), Stopped(planRun, "user", "")}, []has{{StepFailed, 1, "the run ended while it was at work", ""}, {StepSkipped, 0, "the run ended before it", ""}}, "auto"},
		{"expired", []claybot.Event{planned("approve"), approval(), Stopped(planRun, "time", "")}, []has{{StepSkipped, 0, "the run ended before it", ""}, {StepSkipped, 0, "the run ended before it", ""}}, "approve"},
		{
			"preview by the clock",
			[]claybot.Event{planned("auto"), Switched(planRun, "auto", "preview", "quiet hours"), edge("confirm", "summarize", "it is quiet"), edge("summarize", End, ""), finished},
			[]has{{StepSkipped, 0, "it is quiet", ""}, {StepSkipped, 0, "it is quiet", ""}},
			"preview",
		},
		{
			"no step told its end",
			[]claybot.Event{planned("auto"), began("step-01", 1), toolOK("step-01-ab"), toolFailed("step-02-cd", "cut off"), edge("executor", "summarize", "x")},
			[]has{{StepOK, 1, "", ""}, {StepFailed, 0, "cut off", ""}},
			"auto",
		},
		{
			"a result after the end",
			[]claybot.Event{planned("auto"), ended("step-01", 1, "ok"), toolFailed("step-01-ab", "x"), toolOK("step-01-ab"), ended("step-02", 1, "failed: why"), toolFailed("step-02-ab", "long why"), toolOK("step-02-ab")},
			[]has{{StepOK, 1, "", ""}, {StepFailed, 1, "why", ""}},
			"auto",
		},
		{"a switch without a plan", []claybot.Event{Switched(planRun, "first", "second", "no progress")}, []has{}, ""},
		{
			"the same plan again",
			[]claybot.Event{planned("auto"), began("step-02", 1), ended("step-02", 1, "ok"), Planned(planRun, changed, "less", "auto")},
			[]has{{StepOK, 1, "", ""}},
			"auto",
		},
		{
			"another plan",
			[]claybot.Event{planned("auto"), ended("step-01", 1, "ok"), Planned(planRun, other, "", "auto")},
			[]has{{StepPending, 0, "", ""}, {StepPending, 0, "", ""}},
			"auto",
		},
		{"an unknown step", []claybot.Event{planned("auto"), began("step-03", 1), ended("", 1, "ok"), toolFailed("step-011", "x")}, []has{{StepPending, 0, "", ""}, {StepPending, 0, "", ""}}, "auto"},
		{"broken data", []claybot.Event{planned("auto"), {Type: claybot.EventStepStarted, Data: json.RawMessage(`{"stepId":1}`)}, {Type: claybot.EventPlanGenerated, Data: json.RawMessage(`[`)}, {Type: claybot.EventToolFailed}}, []has{{StepPending, 0, "", ""}, {StepPending, 0, "", ""}}, "auto"},
		{
			"an undo", []claybot.Event{
				UndoTold(planRun, claybot.EventUndoQueued, claybot.Undo{Step: "b", Tool: "send"}, ""), UndoTold(planRun, claybot.EventUndoQueued, claybot.Undo{Step: "a", Tool: "book"}, ""),
				UndoTold(planRun, claybot.EventUndoFailed, claybot.Undo{Step: "b", Tool: "send"}, "cannot be undone"), UndoTold(planRun, claybot.EventUndoFinished, claybot.Undo{Step: "a", Tool: "book"}, ""),
			}, []has{{StepFailed, 0, "cannot be undone", ""}, {StepOK, 0, "", ""}}, "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := PlanOf(test.events)
			got := make([]has, 0, len(v.Steps))
			for _, s := range v.Steps {
				got = append(got, has{s.Status, s.Attempts, s.Error, s.Question})
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("steps:\n got %+v\nwant %+v", got, test.want)
			}
			if v.Mode != test.mode {
				t.Errorf("mode %q, want %q", v.Mode, test.mode)
			}
		})
	}
}

func TestPlanOfTellsTheError(t *testing.T) {
	v := PlanOf([]claybot.Event{planned("auto"), FellBack(planRun, "step-01 failed")})
	if v.Error != "step-01 failed" || v.Diff != "a letter" {
		t.Errorf("error %q, diff %q", v.Error, v.Diff)
	}
	if s := v.Steps[1]; s.What != "send the letter" || string(s.Args) != `{"to":"ann"}` || s.Risk != "high" {
		t.Errorf("the step lost what was planned: %+v", s)
	}
}

// An empty plan is an empty list in JSON: programs range over it.
func TestPlanOfNothingAsJSON(t *testing.T) {
	got, err := json.Marshal(PlanOf(nil))
	if want := `{"steps":[],"graph":{"nodes":[],"edges":[]}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestGraphOf(t *testing.T) {
	done := func(node string, n int, result string) claybot.Event {
		return NodeEnded(planRun, node, n, result, 5*time.Millisecond)
	}
	toWait := []claybot.Event{
		NodeBegan(planRun, "a", 1), done("a", 1, "fine"), edge("a", "b", ""),
		NodeBegan(planRun, "b", 1), done("b", 1, "waits"),
	}
	for _, test := range []struct {
		name    string
		events  []claybot.Event
		current string
		nodes   []NodeSeen
		edges   []EdgeSeen
	}{
		{"nothing", nil, "", []NodeSeen{}, []EdgeSeen{}},
		{"at work", toWait[:1], "a", []NodeSeen{{"a", 1, NodeRunning, "", 0}}, []EdgeSeen{}},
		{"between two", toWait[:3], "b", []NodeSeen{{"a", 1, NodeDone, "fine", 5}}, []EdgeSeen{{"a", "b", 1, ""}}},
		{"waits", toWait, "b", []NodeSeen{{"a", 1, NodeDone, "fine", 5}, {"b", 1, NodeWaiting, "waits", 5}}, []EdgeSeen{{"a", "b", 1, ""}}},
		{
			"back and forth", append(slices.Clone(toWait), NodeBegan(planRun, "b", 2), done("b", 2, ""), edge("b", "a", ""), NodeBegan(planRun, "a", 2), done("a", 2, ""), edge("a", "b", "")),
			"b",
			[]NodeSeen{{"a", 2, NodeDone, "", 10}, {"b", 2, NodeDone, "", 10}},
			[]EdgeSeen{{"a", "b", 2, ""}, {"b", "a", 1, ""}},
		},
		{
			"begun again after a crash",
			[]claybot.Event{NodeBegan(planRun, "a", 1), NodeBegan(planRun, "a", 1)},
			"a",
			[]NodeSeen{{"a", 1, NodeRunning, "", 0}},
			[]EdgeSeen{},
		},
		{
			"the end", append(slices.Clone(toWait[:2]), edge("a", End, ""), Finished(planRun, "", claybot.Usage{})),
			"",
			[]NodeSeen{{"a", 1, NodeDone, "fine", 5}},
			[]EdgeSeen{{"a", End, 1, ""}},
		},
		{"canceled while it waits", append(slices.Clone(toWait[3:]), Stopped(planRun, "user", "")), "", []NodeSeen{{"b", 1, NodeStopped, "waits", 5}}, []EdgeSeen{}},
		{"failed", []claybot.Event{NodeBegan(planRun, "a", 1), Failed(planRun, claybot.RunError{}, 0)}, "", []NodeSeen{{"a", 1, NodeFailed, "", 0}}, []EdgeSeen{}},
		{"told to fail", []claybot.Event{NodeBegan(planRun, "a", 1), done("a", 1, "failed")}, "a", []NodeSeen{{"a", 1, NodeFailed, "failed", 5}}, []EdgeSeen{}},
		{"waits for its next try", []claybot.Event{NodeBegan(planRun, "a", 1), done("a", 1, NodeRetrying)}, "a", []NodeSeen{{"a", 1, NodeRetrying, NodeRetrying, 5}}, []EdgeSeen{}},
		{"tries again", []claybot.Event{NodeBegan(planRun, "a", 1), done("a", 1, NodeRetrying), NodeBegan(planRun, "a", 1)}, "a", []NodeSeen{{"a", 1, NodeRunning, "", 5}}, []EdgeSeen{}},
		{"canceled before its next try", []claybot.Event{NodeBegan(planRun, "a", 1), done("a", 1, NodeRetrying), Stopped(planRun, "user", "")}, "", []NodeSeen{{"a", 1, NodeStopped, NodeRetrying, 5}}, []EdgeSeen{}},
		{"cut off", []claybot.Event{NodeBegan(planRun, "a", 1), done("a", 1, "cut off")}, "a", []NodeSeen{{"a", 1, NodeStopped, "cut off", 5}}, []EdgeSeen{}},
		{
			"cut off behind its record",
			[]claybot.Event{NodeBegan(planRun, "a", 1), done("a", 1, "cut off"), edge("a", "b", "fine"), edge("c", "d", "")},
			"d",
			[]NodeSeen{{"a", 1, NodeDone, "fine", 5}},
			[]EdgeSeen{{"a", "b", 1, "fine"}, {"c", "d", 1, ""}},
		},
		{"broken data", []claybot.Event{{Type: claybot.EventNodeStarted, Data: json.RawMessage(`{}`)}, {Type: claybot.EventEdgeTaken}, {Type: claybot.EventNodeFinished, Data: json.RawMessage(`"x"`)}}, "", []NodeSeen{}, []EdgeSeen{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := GraphOf(test.events)
			if v.Current != test.current || !slices.Equal(v.Nodes, test.nodes) || !slices.Equal(v.Edges, test.edges) {
				t.Errorf("got %+v\nwant current %q, %+v, %+v", v, test.current, test.nodes, test.edges)
			}
		})
	}
}

// Whatever stands in the events, a view has only states that it documents.
func FuzzPlanOf(f *testing.F) {
	add := func(events ...claybot.Event) {
		b, _ := json.Marshal(events)
		f.Add(b)
	}
	add(planned("approve"), approval(), StepBegan(planRun, "step-01", "x", 1), StepEnded(planRun, "step-01", "x", 1, "ok"))
	add(NodeBegan(planRun, "a", 1), UndoTold(planRun, claybot.EventUndoQueued, claybot.Undo{}, ""), Stopped(planRun, "user", ""))
	f.Add([]byte(`[{"type":"PlanGenerated","data":{"steps":[{"id":""},{"id":"a"},{"id":"a"}]}},{"type":"StepStarted","data":{"stepId":"a","attempt":-5}}]`))
	states := []string{StepPending, StepWaiting, StepRunning, StepOK, StepFailed, StepSkipped}
	nodes := []string{NodeRunning, NodeRetrying, NodeWaiting, NodeDone, NodeFailed, NodeStopped}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var events []claybot.Event
		if json.Unmarshal(raw, &events) != nil {
			return
		}
		v := PlanOf(events)
		for _, s := range v.Steps {
			if !slices.Contains(states, s.Status) || s.Attempts < 0 {
				t.Errorf("step %+v", s)
			}
		}
		for _, n := range v.Graph.Nodes {
			if !slices.Contains(nodes, n.State) || n.Visits < 1 || n.MS < 0 {
				t.Errorf("node %+v", n)
			}
		}
	})
}
