package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A runOutput is what a run came to.
type runOutput struct {
	RunID    string           `json:"runId"`
	State    string           `json:"state"`
	Output   string           `json:"output"`
	Messages []claybot.Record `json:"messages"`
	Partial  bool             `json:"partial"`
	Usage    claybot.Usage    `json:"token_usage"`
	Next     string           `json:"next"`
}

// A run view cuts the reply, and a history forgets at a reset: the output of a run is whole.
func TestRunOutput(t *testing.T) {
	r := start(t)
	long := strings.Repeat("A sentence. ", 400)
	r.mind.plan("at length", llmtest.Use(claybot.ToolCall{ID: "c1", Name: "current_time", Args: `{}`}), llmtest.Say(long))
	before, a := r.say("before"), r.say("at length")
	r.ended(a.Run)
	c := r.say("after")
	r.ended(c.Run)
	r.ask("POST", "/agents/"+a.Agent+"/reset", "", http.StatusAccepted, nil)
	r.ended(r.say("anew").Run)

	read := func(query string) (out runOutput) {
		t.Helper()
		r.ask("GET", "/agents/runs/"+a.Run+"/output"+query, "", http.StatusOK, &out)
		if out.RunID != a.Run || out.State != "SUCCEEDED" || strings.TrimSpace(out.Output) != strings.TrimSpace(long) || out.Usage.LLMCalls != 2 || out.Usage.ToolCalls != 1 || out.Partial {
			t.Errorf("output %.100q…, %+v, partial %v", out.Output, out.Usage, out.Partial)
		}
		return out
	}
	whole := read("")
	var types []string
	for _, m := range whole.Messages {
		if m.Run != claybot.RunID(a.Run) {
			t.Errorf("a message of the run %s", m.Run)
		}
		types = append(types, string(m.Type))
	}
	if got := strings.Join(types, " "); !strings.Contains(got, "user_message assistant_message tool_result assistant_message") || whole.Next != "" {
		t.Errorf("messages %s, next %q", got, whole.Next)
	}
	first := read("?limit=1")
	rest := read("?limit=500&after=" + first.Next)
	if len(first.Messages) != 1 || len(rest.Messages) != len(whole.Messages)-1 || rest.Next != "" {
		t.Errorf("pages of %d and %d of %d messages, then %q", len(first.Messages), len(rest.Messages), len(whole.Messages), rest.Next)
	}
	if out := (runOutput{}); before.Run != "" {
		if r.ask("GET", "/agents/runs/"+before.Run+"/output", "", http.StatusOK, &out); out.Output != "re: before" {
			t.Errorf("the run before: %q", out.Output)
		}
	}
	r.refused("GET", "/agents/runs/"+a.Run+"/output?after=7-x", "", http.StatusConflict, "state", "was reset")
	r.refused("GET", "/agents/runs/"+a.Run+"/output?after=x", "", http.StatusBadRequest, "bad_request", "Invalid cursor")
	r.refused("GET", "/agents/runs/nothing/output", "", http.StatusNotFound, "not_found", "No run with that id")

	// The agent is gone with its records; the run is not.
	r.ask("DELETE", "/agents/"+a.Agent, "", http.StatusNoContent, nil)
	var out runOutput
	r.ask("GET", "/agents/runs/"+a.Run+"/output", "", http.StatusOK, &out)
	if len(out.Messages) != 0 || !out.Partial || !strings.HasPrefix(long, strings.TrimSuffix(out.Output, "…")) {
		t.Errorf("without the agent: %d messages, partial %v, %q", len(out.Messages), out.Partial, out.Output)
	}
}

// What an operator posts is due at once, whatever the debounce of the agent says.
func TestOperatorsAreNotDebounced(t *testing.T) {
	r := start(t)
	a := r.say("hello")
	r.ended(a.Run)
	r.ask("PATCH", "/agents/"+a.Agent+"/config", `{"debounceMs":3600000}`, http.StatusOK, nil)
	if got := r.ended(r.say("now").Run); got != "SUCCEEDED" {
		t.Errorf("the run %s", got)
	}
}

type flows = web.Flows

// oneFlow has one flow, news.
type oneFlow struct {
	flows
	started  []web.FlowStart
	replayed []web.FlowReplay
	by       []string
	ids      []claybot.MessageID
}

func (f *oneFlow) StartFlow(_ context.Context, id claybot.MessageID, name string, _ claybot.Sender, in web.FlowStart) (agentsystem.Accepted, error) {
	if name != "news" {
		return agentsystem.Accepted{}, storage.ErrNotFound
	}
	f.started, f.ids = append(f.started, in), append(f.ids, id)
	return agentsystem.Accepted{Run: "r1", Agent: "a1", Message: id, State: claybot.RunPending}, nil
}

func (f *oneFlow) ReplayFlow(_ context.Context, id claybot.MessageID, run claybot.RunID, _ claybot.Sender, in web.FlowReplay) (agentsystem.Accepted, error) {
	switch run {
	case "r1":
		f.replayed, f.ids = append(f.replayed, in), append(f.ids, id)
		return agentsystem.Accepted{Run: "r2", Agent: "a2", Message: id, State: claybot.RunPending}, nil
	case "chat":
		return agentsystem.Accepted{}, web.Refusal("the run chat is of the engine react, not of a workflow")
	}
	return agentsystem.Accepted{}, storage.ErrNotFound
}

// A dry replay needs the scope operate, a live one admin: it acts for another person.
func TestReplayScopes(t *testing.T) {
	f := new(oneFlow)
	r := start(t, func(r *rig) { r.wrap = func(b *web.Backend) { b.Flows, b.FlowRuns = f, f } })
	as := func(scope string) []string { return []string{"Authorization", "Bearer " + r.scoped(scope, scope)} }
	reader, operator := as("read"), as("operate")
	var a acceptedRun
	g := r.do("POST", "/agents/runs/r1/replay", `{"from":"pay","asBegun":true,"idempotencyKey":"k"}`, operator...)
	if r.read(g.body, &a); g.code != http.StatusAccepted || a.Run != "r2" || len(f.replayed) != 1 || f.replayed[0].From != "pay" || !f.replayed[0].AsBegun || f.replayed[0].Live {
		t.Errorf("%d %+v, replayed %+v", g.code, a, f.replayed)
	}
	r.ask("POST", "/agents/runs/r1/replay", `{"live":true,"again":["pay"]}`, http.StatusAccepted, nil)
	r.refused("POST", "/agents/runs/r1/replay", `{}`, http.StatusForbidden, "scope", "", reader...)
	r.refused("POST", "/agents/runs/r1/replay", `{"live":true}`, http.StatusForbidden, "scope", "needs the scope admin", operator...)
	r.refused("POST", "/agents/runs/r1/replay", `{"again":["pay"]}`, http.StatusBadRequest, "bad_request", "again goes with live")
	r.refused("POST", "/agents/runs/r1/replay", `{"idempotencyKey":"a b"}`, http.StatusBadRequest, "bad_request", "idempotency key")
	r.refused("POST", "/agents/runs/r1/replay", `{"form":"pay"}`, http.StatusBadRequest, "bad_request", "form")
	r.refused("POST", "/agents/runs/nothing/replay", `{}`, http.StatusNotFound, "not_found", "No run with that id")
	r.refused("POST", "/agents/runs/chat/replay", `{}`, http.StatusConflict, "refused", "of the engine react")
	if len(f.replayed) != 2 {
		t.Errorf("replayed %+v", f.replayed)
	}
}

func (f *oneFlow) WaitingRuns(_ context.Context, name string) (web.FlowUpgrade, error) {
	if name != "news" {
		return web.FlowUpgrade{}, storage.ErrNotFound
	}
	return web.FlowUpgrade{Flow: name, Version: "2", Texts: map[string]string{"1": "a"}, Runs: []web.FlowWaiting{{Run: "r1", Version: "1", Node: "ask"}}}, nil
}

func (f *oneFlow) UpgradeRuns(_ context.Context, _, version, by string) (web.FlowUpgraded, error) {
	if version != "2" {
		return web.FlowUpgraded{}, web.Refusal("the version 1 is not the one in force")
	}
	f.by = append(f.by, by)
	return web.FlowUpgraded{Moved: []claybot.RunID{"r1"}, Kept: []web.FlowWaiting{}}, nil
}

func TestUpgradeScopes(t *testing.T) {
	f := new(oneFlow)
	r := start(t, func(r *rig) { r.wrap = func(b *web.Backend) { b.Flows, b.FlowRuns = f, f } })
	operator := []string{"Authorization", "Bearer " + r.scoped("operator", "operate")}
	var plan web.FlowUpgrade
	r.ask("GET", "/flows/news/upgrade", "", http.StatusOK, &plan)
	r.ask("POST", "/flows/news/upgrade", `{"version":"`+plan.Version+`"}`, http.StatusOK, nil)
	r.refused("GET", "/flows/nothing/upgrade", "", http.StatusNotFound, "not_found", "No such flow")
	r.refused("POST", "/flows/news/upgrade", `{"version":"1"}`, http.StatusConflict, "refused", "not the one in force")
	r.refused("POST", "/flows/news/upgrade", `{}`, http.StatusBadRequest, "bad_request", "version is empty")
	r.refused("POST", "/flows/news/upgrade", `{"version":"2"}`, http.StatusForbidden, "scope", "", operator...)
	if len(f.by) != 1 {
		t.Errorf("upgraded by %q", f.by)
	}
}

func TestStartFlowsByName(t *testing.T) {
	f := new(oneFlow)
	r := start(t, func(r *rig) { r.wrap = func(b *web.Backend) { b.Flows, b.FlowRuns = f, f } })
	var a acceptedRun
	r.ask("POST", "/agents/runs", `{"engine":"flow:news","text":"what is new","idempotencyKey":"k1"}`, http.StatusAccepted, &a)
	if a.Run != "r1" || a.Stream != "/agents/runs/r1/stream" || len(f.started) != 1 || f.started[0].Text != "what is new" {
		t.Errorf("accepted %+v, started %+v", a, f.started)
	}
	// It is the message that the other path would have stored.
	r.ask("POST", "/flows/news/runs", `{"text":"what is new","idempotencyKey":"k1"}`, http.StatusAccepted, &a)
	if len(f.ids) != 2 || f.ids[0] != f.ids[1] {
		t.Errorf("ids %v", f.ids)
	}
	for _, tc := range [][2]string{
		{`{"engine":"flow:nothing","text":"x"}`, `No workflow "nothing"`},
		{`{"engine":"flow:","text":"x"}`, `No workflow ""`},
		{`{"engine":"flow:news@0123","text":"x"}`, "Use flow: and its name alone"},
		{`{"engine":"flow:news","agentId":"x","text":"x"}`, "an agent of its own"},
		{`{"engine":"flow:news","descriptor":{"channelId":"c"},"text":"x"}`, "an agent of its own"},
		{`{"engine":"flow:news","stateless":true,"text":"x"}`, "an agent of its own"},
		{`{"engine":"flow:news","text":"x","files":[{"name":"a","mimeType":"text/plain","data":"eA=="}]}`, "an agent of its own"},
		{`{"engine":"flow:news","text":"x","idempotencyKey":"a b"}`, "idempotency key"},
	} {
		r.refused("POST", "/agents/runs", tc[0], http.StatusBadRequest, "bad_request", tc[1])
	}
	r.refused("POST", "/agents/runs", `{"engine":"flow:news","text":"x"}`, http.StatusForbidden, "scope", "", "Authorization", "Bearer "+r.scoped("reader", "read"))
	if len(f.started) != 2 {
		t.Errorf("started %+v", f.started)
	}
	r = start(t)
	r.refused("POST", "/agents/runs", `{"engine":"flow:news","text":"x"}`, http.StatusNotFound, "off", "no workflows")
}
