package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// The state of the graphs below.
type (
	none   struct{}
	report struct {
		Summary string `json:"summary"`
	}
)

// planner is a graph that plans two steps, has the second one approved, and does
// what it may.
func planner() runs.Engine {
	return &runs.Graph[none, report]{
		Name: "plan", Start: "planner",
		Nodes: map[string]runs.Node[none, report]{"planner": plans, "confirm": confirms, "executor": executes},
		Edges: map[string][]string{"planner": {"confirm"}, "confirm": {"executor"}, "executor": {runs.End}},
	}
}

func plans(ctx context.Context, s *runs.State[none, report]) (string, error) {
	return "confirm", s.Emit(ctx, true, runs.Planned(s.Turn.Run.ID, []runs.PlannedStep{
		{ID: "s1", Tool: "look", Args: json.RawMessage(`{}`), Risk: "low"},
		{ID: "s2", Tool: "send", What: "send the letter", Args: json.RawMessage(`{"to":"ann"}`), Risk: "high", DependsOn: []string{"s1"}},
	}, "a letter to ann", "approve"))
}

func confirms(ctx context.Context, s *runs.State[none, report]) (string, error) {
	q := claybot.Question{Key: "s2", Text: "send {\"to\":\"ann\"}", Type: claybot.QuestionConfirm, Tool: "send", Digest: "d"}
	if strings.Contains(s.Turn.Messages[0].Text, "by yourself") {
		q.Tool = ""
	}
	answers, wait, err := s.Turn.Ask(ctx, "approvals/1", []claybot.Question{q})
	if wait != nil {
		return "", &runs.WaitError{Awaiting: *wait}
	}
	if err != nil {
		return "", err
	}
	a := answers[0]
	s.Output.Summary = fmt.Sprintf("%s %q %q", a.Value, a.Scope, a.Reason)
	return "executor", nil
}

func executes(ctx context.Context, s *runs.State[none, report]) (string, error) {
	run := s.Turn.Run.ID
	calls := []claybot.ToolCall{{ID: "s1-1", Name: "look", Args: "{}"}}
	approved := strings.HasPrefix(s.Output.Summary, "true")
	if approved {
		calls = append(calls, claybot.ToolCall{ID: "s2-1", Name: "send", Args: "{}"})
	}
	if err := s.Record(claybot.Record{Type: claybot.RecordAssistant, Step: 1, ToolCalls: calls}); err != nil {
		return "", err
	}
	for i, c := range calls {
		step := []string{"s1", "s2"}[i]
		if err := s.Emit(ctx, false, runs.StepBegan(run, step, c.Name, 1)); err != nil {
			return "", err
		}
		r := claybot.Record{Type: claybot.RecordTool, ToolCallID: c.ID, Name: c.Name, OK: true, Text: "done"}
		if c.Name == "send" {
			r.Undo = &claybot.Undo{Step: step, Tool: c.Name, What: "sent the letter", Call: &claybot.ToolCall{ID: "u", Name: "unsend", Args: "{}"}}
		}
		if err := s.Record(r); err != nil {
			return "", err
		}
		if err := s.Emit(ctx, false, runs.StepEnded(run, step, c.Name, 1, "ok")); err != nil {
			return "", err
		}
	}
	if !approved {
		if err := s.Emit(ctx, false, runs.StepEnded(run, "s2", "send", 0, "skipped: not approved")); err != nil {
			return "", err
		}
	}
	return runs.End, s.Record(claybot.Record{Type: claybot.RecordAssistant, Step: 2, Text: "that was it"})
}

// undoer is a graph that tells what it would take back.
func undoer() runs.Engine {
	undo := func(ctx context.Context, s *runs.State[none, report]) (string, error) {
		for _, m := range s.Turn.Messages {
			for _, u := range slices.Backward(m.Undo.Effects) {
				call := claybot.ToolCall{ID: "back-" + u.Step, Name: "take_back"}
				if err := s.Turn.Started(ctx, call, "idempotent"); err != nil {
					return "", err
				}
				err := s.Emit(ctx, false, runs.UndoTold(s.Turn.Run.ID, claybot.EventUndoQueued, u, ""), runs.UndoTold(s.Turn.Run.ID, claybot.EventUndoFinished, u, ""))
				if err != nil {
					return "", err
				}
			}
		}
		return runs.End, s.Record(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: "taken back"})
	}
	return &runs.Graph[none, report]{
		Name: "undo", Start: "undo", Nodes: map[string]runs.Node[none, report]{"undo": undo}, Edges: map[string][]string{"undo": {runs.End}},
	}
}

func withGraphs(r *rig) {
	r.graphs = map[string]runs.Engine{"plan": planner(), "undo": undoer()}
}

// plan starts a run of the plan engine and waits until it asks; question is the
// id of what it asks.
func (r *rig) plan(text string) (a acceptedRun, question string) {
	r.Helper()
	r.ask("POST", "/agents/runs", `{"text":"`+text+`","engine":"plan","descriptor":{"channelId":"main"}}`, http.StatusAccepted, &a)
	r.until("the run waits", func() bool { return r.run(a.Run).State == "AWAITING" })
	return a, r.run(a.Run).Awaiting.Questions[0].ID
}

type planned struct {
	RunID, Engine, State, Diff, Mode, Error string
	Steps                                   []struct {
		ID, Tool, What, Risk, Status, Error, QuestionID string
		Attempts                                        int
	}
	Graph struct {
		Current string
		Nodes   []struct {
			Node, State string
			Visits      int
		}
		Edges []struct{ From, To string }
	}
}

func (r *rig) planOf(run string) (p planned, states string) {
	r.Helper()
	r.ask("GET", "/agents/runs/"+run+"/plan", "", http.StatusOK, &p)
	for _, s := range p.Steps {
		states += s.ID + " " + s.Status + ";"
	}
	return p, states
}

// A plan is seen as it goes: planned, waiting for its approval, done, undone
// once.
func TestPlanAndUndo(t *testing.T) {
	r := start(t, withGraphs)
	a, question := r.plan("write to ann")
	p, states := r.planOf(a.Run)
	if states != "s1 pending;s2 waiting;" || p.Steps[1].QuestionID != question || p.Steps[1].What != "send the letter" || p.Diff != "a letter to ann" || p.Mode != "approve" {
		t.Errorf("the plan that waits: %+v", p)
	}
	if p.RunID != a.Run || p.Engine != "plan" || p.State != "AWAITING" || p.Graph.Current != "confirm" || len(p.Graph.Nodes) != 2 || p.Graph.Nodes[1].State != "waiting" || len(p.Graph.Edges) != 1 {
		t.Errorf("the graph of a run that waits: %+v", p)
	}
	undo := "/agents/runs/" + a.Run + "/undo"
	r.refused("POST", undo, "", 409, "refused", "still at work")
	r.ask("POST", "/questions/"+question+"/answer", `{"value":"approve","scope":"session"}`, http.StatusAccepted, nil)
	if got := r.ended(a.Run); got != "SUCCEEDED" {
		t.Fatalf("the run %s: %s", got, r.do("GET", "/agents/runs/"+a.Run, "").body)
	}
	if p, states = r.planOf(a.Run); states != "s1 ok;s2 ok;" || p.Graph.Current != "" || len(p.Graph.Edges) != 3 || p.Graph.Edges[2].To != "END" || p.Steps[1].Attempts != 1 {
		t.Errorf("the plan that is done: %+v", p)
	}
	var run struct {
		Engine, UndoOf string
		Result         struct{ Summary string }
		Undo           []struct {
			Step, Tool, What string
			Can              bool
		}
	}
	r.ask("GET", "/agents/runs/"+a.Run, "", http.StatusOK, &run)
	if run.Engine != "plan" || run.Result.Summary != `true "session" ""` || len(run.Undo) != 1 || !run.Undo[0].Can || run.Undo[0].What != "sent the letter" || run.Undo[0].Step != "s2" {
		t.Errorf("run %+v", run)
	}
	if list := r.do("GET", "/agents/runs", "").body; strings.Contains(list, "summary") || !strings.Contains(list, `"engine":"plan"`) {
		t.Errorf("a list of runs has what is long in it, or no engines: %s", list)
	}

	var back acceptedRun
	r.ask("POST", undo, "", http.StatusAccepted, &back)
	if back.Run == "" || back.Run == a.Run || back.Agent != a.Agent || back.State != "PENDING" || back.Message == "" || back.Stream != "/agents/runs/"+back.Run+"/stream" {
		t.Errorf("accepted %+v", back)
	}
	if got := r.ended(back.Run); got != "SUCCEEDED" {
		t.Fatalf("the undo %s: %v", got, r.stream(back.Stream))
	}
	r.ask("GET", "/agents/runs/"+back.Run, "", http.StatusOK, &run)
	if run.Engine != "undo" || run.UndoOf != a.Run {
		t.Errorf("the undo is %+v", run)
	}
	if _, states = r.planOf(back.Run); states != "s2 ok;" {
		t.Errorf("taken back: %s", states)
	}
	r.refused("POST", undo, "", 409, "refused", "undone already, by run "+back.Run)
	r.refused("POST", "/agents/runs/"+back.Run+"/undo", "", 409, "refused", "cannot be undone")
}

func TestUndoRefuses(t *testing.T) {
	r := start(t, withGraphs)
	a := r.say("hello")
	r.ended(a.Run)
	r.refused("POST", "/agents/runs/"+a.Run+"/undo", "", 409, "refused", "nothing that could be undone")
	r.refused("POST", "/agents/runs/nothing/undo", "", 404, "not_found", "No run")
	r.refused("POST", "/agents/runs/"+a.Run+"/undo?force=1", "", 400, "bad_request", "Unknown parameter")
	r.refused("GET", "/agents/runs/nothing/plan", "", 404, "not_found", "No run")
	if p, _ := r.planOf(a.Run); p.Engine != "react" || p.State != "SUCCEEDED" || p.Steps == nil || len(p.Steps) != 0 || len(p.Graph.Nodes) != 1 {
		t.Errorf("the plan of a run without one: %+v", p)
	}
}

// The plan of a run that has not begun is empty.
func TestPlanOfAReservedRun(t *testing.T) {
	r := start(t, withGraphs)
	defer r.mind.hold("slow", false)()
	a := r.say("slow")
	r.until("the run works", func() bool { return r.run(a.Run).State == "RUNNING" })
	b := r.say("waits behind it")
	if p, _ := r.planOf(b.Run); p.State != "PENDING" || len(p.Steps) != 0 || len(p.Graph.Nodes) != 0 {
		t.Errorf("plan %+v", p)
	}
}

func TestDeny(t *testing.T) {
	r := start(t, withGraphs)
	a, question := r.plan("write to ann")
	path := "/questions/" + question + "/answer"
	for _, tc := range [][2]string{
		{`{"value":"approve","scope":"forever"}`, "session or always"},
		{`{"value":"approve","scope":"Always"}`, "session or always"},
		{`{"value":"deny","scope":"always"}`, "Only an approval has a scope"},
		{`{"value":true,"reason":"fine"}`, "Only a denial has a reason"},
		{`{"value":"no","reason":"` + strings.Repeat("x", 1001) + `"}`, "1001 characters"},
		{`{"value":"no","reason":7}`, "The field reason must be a string"},
		{`{"value":"no","why":"x"}`, `Unknown field "why"`},
	} {
		r.refused("POST", path, tc[0], 400, "bad_request", tc[1])
	}
	r.refused("POST", path, `{"value":"perhaps"}`, 400, "values", "approve or deny")
	r.refused("POST", path, `{"value":"perhaps","scope":"session"}`, 400, "values", "approve or deny")
	if got := r.run(a.Run).State; got != "AWAITING" {
		t.Errorf("what was refused changed the run to %s", got)
	}
	read := r.scoped("looker", "read")
	r.refused("POST", path, `{"value":"approve","scope":"always"}`, 403, "scope", "", "Authorization", "Bearer "+read)
	r.ask("POST", path, `{"value":"deny","reason":" too\u0000 early "}`, http.StatusAccepted, nil)
	if got := r.ended(a.Run); got != "SUCCEEDED" {
		t.Fatalf("the run %s", got)
	}
	p, states := r.planOf(a.Run)
	if states != "s1 ok;s2 skipped;" || p.Steps[1].Error != "not approved" {
		t.Errorf("plan %+v", p)
	}
	if got := r.do("GET", "/agents/runs/"+a.Run, "").body; !strings.Contains(got, `false \"\" \"too early\"`) {
		t.Errorf("the reason is lost: %s", got)
	}
	r.refused("POST", path, `{"value":"approve"}`, 409, "state", "is already answered")
}

// Every word for yes approves, and always is told to the run.
func TestApproveWords(t *testing.T) {
	r := start(t, withGraphs)
	for _, tc := range [][2]string{{`"approve"`, "true"}, {`"Approved."`, "true"}, {`true`, "true"}, {`"yes"`, "true"}, {`"deny"`, "false"}, {`"denied"`, "false"}, {`false`, "false"}, {`"no"`, "false"}} {
		a, question := r.plan("write to ann")
		scope := "always"
		if tc[1] == "false" {
			scope = ""
		}
		r.ask("POST", "/questions/"+question+"/answer", `{"value":`+tc[0]+`,"scope":"`+scope+`"}`, http.StatusAccepted, nil)
		r.ended(a.Run)
		if got := r.do("GET", "/agents/runs/"+a.Run, "").body; !strings.Contains(got, fmt.Sprintf(`%s \"%s\"`, tc[1], scope)) {
			t.Errorf("%s is %s", tc[0], got)
		}
	}
}

// To approve for good changes a setting, which only an admin may.
func TestApproveAlwaysNeedsAdmin(t *testing.T) {
	r := start(t, withGraphs)
	a, question := r.plan("write to ann")
	path, approver := "/questions/"+question+"/answer", []string{"Authorization", "Bearer " + r.scoped("op", "approve")}
	r.refused("POST", path, `{"value":"approve","scope":"always"}`, 403, "scope", "needs the scope admin", approver...)
	if got := r.run(a.Run).State; got != "AWAITING" {
		t.Errorf("what was refused changed the run to %s", got)
	}
	if g := r.do("POST", path, `{"value":"approve","scope":"session"}`, approver...); g.code != http.StatusAccepted {
		t.Errorf("for the session = %d %s", g.code, g.body)
	}
	r.ended(a.Run)
	a, question = r.plan("write to ann")
	r.ask("POST", "/questions/"+question+"/answer", `{"value":"approve","scope":"always"}`, http.StatusAccepted, nil)
	if got := r.ended(a.Run); got != "SUCCEEDED" {
		t.Errorf("the run %s", got)
	}
}

// An agent that plans works otherwise for an admin alone: its policy binds plans.
func TestEngineOfAPlanner(t *testing.T) {
	r := start(t, withGraphs, func(r *rig) { r.engine = "plan" })
	operate := []string{"Authorization", "Bearer " + r.scoped("op", "operate")}
	const fresh = `{"text":"hello","engine":"react","descriptor":{"channelId":"fresh"}}`
	r.refused("POST", "/agents/runs", fresh, 403, "scope", "its policy covers only plans", operate...)
	r.refused("POST", "/agents/runs", `{"text":"hello","engine":"react"}`, 403, "scope", "needs the scope admin", operate...)
	if g := r.do("GET", "/agents", ""); strings.Contains(g.body, "fresh") {
		t.Errorf("what was refused made an agent: %s", g.body)
	}
	said := func(body string) (a acceptedRun) {
		t.Helper()
		g := r.do("POST", "/agents/runs", body, operate...)
		if g.code != http.StatusAccepted {
			t.Fatalf("%s = %d %s", body, g.code, g.body)
		}
		r.read(g.body, &a)
		return a
	}
	engine := func(run string) string {
		t.Helper()
		r.ended(run)
		var got struct{ Engine string }
		r.ask("GET", "/agents/runs/"+run, "", http.StatusOK, &got)
		return got.Engine
	}
	planned := said(`{"text":"write to ann","engine":"plan","descriptor":{"channelId":"fresh"}}`)
	r.until("the run waits", func() bool { return r.run(planned.Run).State == "AWAITING" })
	r.ask("POST", "/agents/runs/"+planned.Run+"/answers", `{"answers":{"s2":"no"}}`, http.StatusAccepted, nil)
	if got := engine(planned.Run); got != "plan" {
		t.Errorf("the engine is %q", got)
	}
	// The same of an agent that exists, by whatever name.
	byID := `{"text":"hello","engine":"react","agentId":"` + planned.Agent + `"}`
	r.refused("POST", "/agents/runs", fresh, 403, "scope", "its policy covers only plans", operate...)
	r.refused("POST", "/agents/runs", byID, 403, "scope", "its policy covers only plans", operate...)
	r.refused("POST", "/agents/runs", `{"text":"hello","engine":"react","agentId":"nobody"}`, 404, "not_found", "", operate...)
	var a acceptedRun
	r.ask("POST", "/agents/runs", byID, http.StatusAccepted, &a)
	if got := engine(a.Run); got != "react" {
		t.Errorf("for an admin the engine is %q", got)
	}
	// What counts is the engine that the agent has, not the one of its profile.
	r.ask("PATCH", "/agents/"+planned.Agent+"/settings", `{"engine":"react"}`, http.StatusOK, nil)
	if got := engine(said(byID).Run); got != "react" {
		t.Errorf("of an agent that does not plan, the engine is %q", got)
	}
}

// A question that is no approval has neither scope nor reason; an approval that
// is about no tool goes no further than once.
func TestScopeOfOtherQuestions(t *testing.T) {
	r := start(t, withGraphs)
	a := r.asks(`{"question":"Which?"}`)
	path := "/questions/" + r.run(a.Run).Awaiting.Questions[0].ID + "/answer"
	r.refused("POST", path, `{"value":"x","scope":"session"}`, 400, "bad_request", "is not an approval")
	r.refused("POST", path, `{"value":"x","reason":"y"}`, 400, "bad_request", "is not an approval")
	r.ask("POST", path, `{"value":"x","scope":"","reason":" "}`, http.StatusAccepted, nil)
	r.ended(a.Run)
	a, question := r.plan("write to ann by yourself")
	path = "/questions/" + question + "/answer"
	r.refused("POST", path, `{"value":"approve","scope":"session"}`, 400, "bad_request", "not for a tool")
	r.ask("POST", path, `{"value":"approve"}`, http.StatusAccepted, nil)
	if got := r.ended(a.Run); got != "SUCCEEDED" {
		t.Errorf("the run %s", got)
	}
}

type graphRow struct {
	Name, Start, Mermaid string
	Nodes                []string
	Edges                map[string][]string
}

func TestGraphs(t *testing.T) {
	r := start(t, withGraphs)
	var list struct{ Graphs []graphRow }
	r.ask("GET", "/graphs", "", http.StatusOK, &list)
	if len(list.Graphs) != 2 || list.Graphs[0].Name != "plan" || list.Graphs[1].Name != "undo" {
		t.Fatalf("graphs %+v", list.Graphs)
	}
	var g graphRow
	r.ask("GET", "/graphs/plan", "", http.StatusOK, &g)
	if g.Start != "planner" || strings.Join(g.Nodes, " ") != "planner confirm executor END" || len(g.Edges) != 3 || g.Edges["confirm"][0] != "executor" {
		t.Errorf("graph %+v", g)
	}
	if !strings.HasPrefix(g.Mermaid, "flowchart TD\n") || !strings.Contains(g.Mermaid, "planner --> confirm") || g.Mermaid != list.Graphs[0].Mermaid {
		t.Errorf("mermaid %s", g.Mermaid)
	}
	for _, name := range []string{"react", "Plan", "nothing", esc("../plan")} {
		r.refused("GET", "/graphs/"+name, "", 404, "not_found", "GET /graphs lists all graphs")
	}
	r.refused("GET", "/graphs?name=plan", "", 400, "bad_request", "Unknown parameter")
	// The engines that a run may have are these, but for the undo.
	r.refused("POST", "/agents/runs", `{"text":"x","engine":"Plan"}`, 400, "bad_request", "Use one of: react, plan.")
	r.refused("POST", "/agents/runs", `{"text":"x","engine":"undo"}`, 400, "bad_request", "Undo a run with POST /agents/runs/{run}/undo")
}

// A daemon without graphs has an empty list.
func TestNoGraphs(t *testing.T) {
	r := start(t)
	if g := r.do("GET", "/graphs", ""); g.code != http.StatusOK || strings.TrimSpace(g.body) != `{"graphs":[]}` {
		t.Errorf("%d %s", g.code, g.body)
	}
}

// The engine is that of one run: the next one has that of the profile.
func TestEngineOfOneRun(t *testing.T) {
	r := start(t, withGraphs)
	a, question := r.plan("write to ann")
	r.ask("POST", "/questions/"+question+"/answer", `{"value":"yes"}`, http.StatusAccepted, nil)
	r.ended(a.Run)
	// A key stands for one message and its engine.
	keyed := `{"text":"write to ann","engine":"plan","idempotencyKey":"k","descriptor":{"channelId":"main"}}`
	var one, two acceptedRun
	r.ask("POST", "/agents/runs", keyed, http.StatusAccepted, &one)
	r.ask("POST", "/agents/runs", keyed, http.StatusAccepted, &two)
	if one.Run != two.Run {
		t.Errorf("the same key gave %+v and %+v", one, two)
	}
	r.refused("POST", "/agents/runs", strings.Replace(keyed, `"plan"`, `"react"`, 1), 409, "key_used", "another message")
	r.ask("DELETE", "/agents/runs/"+one.Run, "", http.StatusAccepted, nil)
	r.ended(one.Run)

	b := r.say("hello")
	r.ended(b.Run)
	var run struct{ Engine, Output string }
	r.ask("GET", "/agents/runs/"+b.Run, "", http.StatusOK, &run)
	if run.Engine != "react" || run.Output != "re: hello" || b.Agent != a.Agent {
		t.Errorf("the run after it: %+v", run)
	}
}
