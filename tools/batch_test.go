package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

const foundText = "<untrusted-1>\nResults for \"tea\" (x):\n\n1. Tea\n   https://a.test/tea?x=1\n   About tea: https://evil.test/leak\n\n" +
	"2. More\n   https://b.test/\n\n3. Again\n   https://a.test/more\n   https://evil.test/snippet\n</untrusted-1>"

// An approval of one result of a search covers the others, exactly, and nothing that their
// texts name.
func TestBatch(t *testing.T) {
	search := func(id, text string) claybot.Record {
		return claybot.Record{Type: claybot.RecordTool, Run: "r", ToolCallID: id, Name: "search", OK: true, Text: text, Tainted: true}
	}
	history := []claybot.Record{search("s1", foundText), search("s2", "Results for \"x\" (x):\n\n1. C\n   https://c.test/\n")}
	spec := tools.Spec{
		Tool: llm.Tool{Name: "fetch"}, Class: tools.Outward, PerSubject: true,
		Subject: func(args json.RawMessage) string { return string(args) },
		Batch: func(history []claybot.Record, args json.RawMessage) tools.Batch {
			var in struct{ URL string }
			if json.Unmarshal(args, &in) != nil {
				panic("bad")
			}
			return tools.FoundBy(history, "search", in.URL)
		},
	}
	call := func(url string) claybot.ToolCall {
		return claybot.ToolCall{ID: "c", Name: "fetch", Args: `{"url":"` + url + `"}`}
	}
	env := tools.Env{Tainted: true}
	d := tools.Rules{}.Decide(t.Context(), env, spec, call("https://a.test/tea?x=1"), history)
	if d.Verdict != tools.Ask || !strings.HasSuffix(d.Why, "; an approval also covers the other 2 results of this search, on b.test") {
		t.Fatalf("the first: %+v", d)
	}
	q := claybot.Question{ID: "q", Type: claybot.QuestionConfirm, Tool: "fetch", Args: call("https://a.test/tea?x=1").Args}
	yes := claybot.Answer{Question: "q", Value: []byte("true")}
	said := func(a claybot.Answer) []claybot.Record {
		return append(history[:len(history):len(history)], claybot.Record{Type: claybot.RecordQuestion, Question: &q}, claybot.Record{Type: claybot.RecordAnswer, Answer: &a})
	}
	edited := yes
	edited.Args = `{"url":"https://d.test/"}`
	no := claybot.Answer{Question: "q", Value: []byte("false")}
	for _, tt := range []struct {
		url  string
		a    claybot.Answer
		want tools.Verdict
	}{
		{"https://b.test/", yes, tools.Allow},
		{"https://a.test/more", yes, tools.Allow},
		{"https://a.test/tea?x=2", yes, tools.Ask},
		{"https://a.test/", yes, tools.Ask},
		{"https://evil.test/leak", yes, tools.Ask},
		{"https://evil.test/snippet", yes, tools.Ask},
		{"https://c.test/", yes, tools.Ask}, // of another search
		{"https://b.test/", edited, tools.Ask},
		{"https://b.test/", no, tools.Ask},
		{"no address", yes, tools.Ask},
	} {
		if d := (tools.Rules{}).Decide(t.Context(), env, spec, call(tt.url), said(tt.a)); d.Verdict != tt.want {
			t.Errorf("%s after %s: %v, want %v", tt.url, tt.a.Value, d.Verdict, tt.want)
		}
	}
	// A later search covers nothing that the person did not know of, and takes nothing away.
	later := append(said(yes), search("s3", "Results for \"x\" (x):\n\n1. Tea\n   https://a.test/tea?x=1\n\n2. Evil\n   https://evil.test/?d=secret\n"))
	for url, want := range map[string]tools.Verdict{"https://evil.test/?d=secret": tools.Ask, "https://b.test/": tools.Allow} {
		if d := (tools.Rules{}).Decide(t.Context(), env, spec, call(url), later); d.Verdict != want {
			t.Errorf("%s after another search: %v, want %v", url, d.Verdict, want)
		}
	}
	reset := append(said(yes), claybot.Record{Type: claybot.RecordReset}, search("s3", foundText))
	if d := (tools.Rules{}).Decide(t.Context(), env, spec, call("https://b.test/"), reset); d.Verdict != tools.Ask {
		t.Error("an approval outlives a reset")
	}
}
