package runs_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/runstest"
)

// eventTypes reads the types of events from the source that declares them.
func eventTypes(t *testing.T) []claybot.EventType {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../run.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var types []claybot.EventType
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := v.Type.(*ast.Ident); !ok || kind.Name != "EventType" {
			return true
		}
		for _, value := range v.Values {
			s, err := strconv.Unquote(value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			types = append(types, claybot.EventType(s))
		}
		return true
	})
	return types
}

func TestEveryTypeHasFacts(t *testing.T) {
	types := eventTypes(t)
	if len(types) < 28 {
		t.Fatalf("only %d types found in the source", len(types))
	}
	known := make(map[claybot.EventType]bool)
	for _, et := range types {
		known[et] = true
		fact, ok := runs.Facts[et]
		if !ok {
			t.Errorf("%s has no facts", et)
			continue
		}
		data, err := json.Marshal(fact)
		if err != nil {
			t.Fatalf("%s: %v", et, err)
		}
		if err := runstest.CheckEvent(claybot.Event{V: 1, Run: "r", Type: et, Data: data}); err != nil {
			t.Error(err)
		}
	}
	for et := range runs.Facts {
		if !known[et] {
			t.Errorf("%s has facts and is not an event type", et)
		}
	}
}

func TestMadeEventsFitTheirFacts(t *testing.T) {
	call := claybot.ToolCall{ID: "c", Name: "shell", Args: `{"command":"ls"}`}
	usage := &claybot.Usage{Input: 1}
	made := []claybot.Event{
		runs.ToolCalled("r", call, "once"),
		runs.ToolCalled("r", claybot.ToolCall{ID: "c", Args: "no JSON"}, "readonly"),
		runs.NodeBegan("r", "model", 1),
		runs.NodeEnded("r", "model", 1, "two calls", time.Second),
		runs.ToolWaits("r", call, claybot.AwaitApproval),
		runs.Started("r", "atestagent00000000000000", "helper"),
		runs.Switched("r", "ask", "auto", "the operator changed it"),
		runs.Paused("r", claybot.Awaiting{
			Reason: claybot.AwaitInfo, Answers: []claybot.MessageID{"answer/q"}, Until: 9,
			Questions: []claybot.Question{{ID: "q", Text: "Where?", Type: claybot.QuestionText}},
		}),
		runs.Finished("r", "bye", *usage),
		runs.Failed("r", claybot.RunError{Code: runs.CodeModel, Text: "no answer"}, 2),
		runs.Stopped("r", "user", ""),
		runs.Began(claybot.Run{ID: "r", Agent: "atestagent00000000000000", Attempts: 1, Messages: []claybot.MessageID{"m"}}, []claybot.AgentMessage{{ID: "m", Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}),
		runs.Began(claybot.Run{ID: "r", Attempts: 2}, nil),
		runs.CallFailed("r", 5, runs.ModelCallFailed{Step: 1, Route: "fast", Try: 1, Class: "rate", Status: 429, MS: 3, Again: true, WaitMS: 500}),
		runs.ProviderChanged("r", runs.ProviderSwitched{From: "fast", To: "slow", Class: "rate"}),
		runs.Injected("r", []claybot.MessageID{"m"}),
	}
	records := []claybot.Record{
		{Type: claybot.RecordAssistant, Step: 1, Text: "hi", ToolCalls: []claybot.ToolCall{call}, Tokens: usage, Model: "m", MS: 3},
		{Type: claybot.RecordTool, ToolCallID: "c", Name: "shell", OK: true, Text: "ok", MS: 3, Saved: "results/c.txt"},
		{Type: claybot.RecordTool, ToolCallID: "c", Name: "shell", Text: "no", Interrupted: true},
		{Type: claybot.RecordSummary, Keep: 4, Tokens: usage},
		{Type: claybot.RecordAnswer, Answer: &claybot.Answer{Question: "q", Via: claybot.ViaWeb, By: "operator"}},
	}
	for _, r := range records {
		r.Run = "r"
		ev, ok := runs.EventOf(r)
		if !ok {
			t.Errorf("no event for %s", r.Type)
		}
		made = append(made, ev)
	}
	for _, ev := range made {
		if err := runstest.CheckEvent(ev); err != nil {
			t.Errorf("%s: %v", ev.Data, err)
		}
	}
}

func TestCheckEventRefuses(t *testing.T) {
	good := claybot.Event{V: 1, Run: "r", Seq: 1, Type: claybot.EventRunCanceled, Data: json.RawMessage(`{"by":"user"}`)}
	if err := runstest.CheckEvent(good); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*claybot.Event)
		want   string
	}{
		"type":        {func(e *claybot.Event) { e.Type = "Made" }, `"Made"`},
		"no type":     {func(e *claybot.Event) { e.Type = "" }, "no such type"},
		"version":     {func(e *claybot.Event) { e.V = 2 }, "version 2"},
		"run":         {func(e *claybot.Event) { e.Run = "" }, "no run"},
		"seq":         {func(e *claybot.Event) { e.Seq = -1 }, "seq -1"},
		"no data":     {func(e *claybot.Event) { e.Data = nil }, "not an object"},
		"null":        {func(e *claybot.Event) { e.Data = json.RawMessage("null") }, "not an object"},
		"list":        {func(e *claybot.Event) { e.Data = json.RawMessage("[]") }, "not an object"},
		"field":       {func(e *claybot.Event) { e.Data = json.RawMessage(`{"by":"user","more":1}`) }, "more"},
		"kind":        {func(e *claybot.Event) { e.Data = json.RawMessage(`{"by":1}`) }, "by"},
		"cut":         {func(e *claybot.Event) { e.Data = json.RawMessage(`{"by":"us`) }, "EOF"},
		"two objects": {func(e *claybot.Event) { e.Data = json.RawMessage(`{"by":"user"}{}`) }, "follows"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := good
			tt.change(&e)
			if err := runstest.CheckEvent(e); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want something with %q", err, tt.want)
			}
		})
	}
}
