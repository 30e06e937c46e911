package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/llm/provider"
)

var responding = llm.Quirks{Responses: true, System: true}

// One request to /responses has all that one to /chat/completions has.
func TestResponses(t *testing.T) {
	s, c := serve(t, openaitest.Config{Key: fakeKey}, Config{Key: fakeKey, MaxTokens: 77, Quirks: &responding})
	s.Script(openaitest.Reply{Text: "wait", Calls: twoCalls, Piece: 3, Border: 7, Usage: &openaitest.Usage{Prompt: 100, Completion: 20, Cached: 60, Reasoning: 12}})
	picture := llm.Image{MIMEType: "image/png", Data: png, Name: "cat.png"}
	r := ask("go")
	r.Messages[0].Images = []llm.Image{picture}
	r.Messages = append(r.Messages,
		llm.Message{Role: llm.RoleAssistant, Content: "I look", Calls: []claybot.ToolCall{call("a")}},
		llm.Message{Role: llm.RoleTool, CallID: "a", Content: "a screen", Images: []llm.Image{picture, picture}})
	r.Tools = []llm.Tool{{Name: "clock"}, {Name: "shell", Parameters: []byte(`{"type":"object"}`)}}
	r.Format = &claybot.AnswerFormat{Schema: json.RawMessage(`{"type":"object"}`), Strict: true}
	shown := ""
	r.Delta = func(_ int, text string) { shown += text }
	resp, err := c.Chat(t.Context(), r)
	if err != nil || resp.Text != "wait" || shown != "wait" || resp.Stop != llm.StopTools || !slices.Equal(resp.Calls, twoCalls) || resp.State == nil || resp.Model != "test-model" {
		t.Fatalf("%+v, %v, shown %q", resp, err, shown)
	}
	if u := resp.Usage; u.Input != 100 || u.CachedInput != 60 || u.Output != 20 || u.Reasoning != 12 || u.LLMCalls != 1 {
		t.Errorf("usage %+v", u)
	}
	got := s.Requests()[0]
	if got.System != "be kind" || got.Agent != "agent1" || got.MaxTokens != 77 || len(got.Tools) != 2 || !strings.Contains(got.Format, `"json_schema"`) || !strings.Contains(got.Format, `"strict":true`) {
		t.Errorf("request %+v", got)
	}
	if m := got.Messages; len(m) != 3 || len(m[0].Images) != 1 || m[1].Content != "I look" || len(m[1].Calls) != 1 || len(m[2].Images) != 2 {
		t.Errorf("messages %+v", m)
	}
	if !strings.HasSuffix(c.URL, "/v1/responses") {
		t.Error(c.URL)
	}
}

// Encrypted reasoning goes back in its place, in the turn and in later ones; what is altered or of others does not, and costs
// one refusal at most.
func TestResponsesState(t *testing.T) {
	for name, change := range map[string]func(s *claybot.ModelState, of string) *claybot.ModelState{
		"own":  func(s *claybot.ModelState, _ string) *claybot.ModelState { return s },
		"none": func(*claybot.ModelState, string) *claybot.ModelState { return nil },
		"of another": func(s *claybot.ModelState, _ string) *claybot.ModelState {
			return &claybot.ModelState{Of: "x/m", Data: s.Data}
		},
		"of chat": func(_ *claybot.ModelState, of string) *claybot.ModelState {
			return &claybot.ModelState{Of: of, Data: json.RawMessage(`{"reasoning_content":"x"}`)}
		},
		"altered": func(s *claybot.ModelState, of string) *claybot.ModelState {
			return &claybot.ModelState{Of: of, Data: json.RawMessage(strings.ReplaceAll(string(s.Data), "gAAAA", "forged"))}
		},
		"more calls": func(_ *claybot.ModelState, of string) *claybot.ModelState {
			return &claybot.ModelState{Of: of, Data: json.RawMessage(`[{"call":true},{"call":true},{"call":true}]`)}
		},
		"longer text": func(_ *claybot.ModelState, of string) *claybot.ModelState {
			return &claybot.ModelState{Of: of, Data: json.RawMessage(`[{"bytes":999},{"bytes":-1}]`)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := serve(t, openaitest.Config{}, Config{Quirks: &responding})
			k := &talk{T: t}
			k.say("go")
			s.Script(openaitest.Reply{Text: "I look", Calls: []claybot.ToolCall{call("a"), call("b")}}, openaitest.Reply{Text: "done"})
			k.ask(c)
			answer := &k.history[len(k.history)-3]
			answer.State = change(answer.State, c.api.of)
			if name != "own" { // the server asks for the reasoning of its own calls alone
				for i := range answer.ToolCalls {
					answer.ToolCalls[i].ID += "x"
					k.history[len(k.history)-2+i].ToolCallID += "x"
				}
			}
			if resp := k.ask(c); resp.Text != "done" {
				t.Errorf("%+v", resp)
			}
			s.Script(openaitest.Reply{Text: "more"})
			k.say("again")
			if resp := k.ask(c); resp.Text != "more" {
				t.Errorf("%+v", resp)
			}
			if n := len(s.Refused()); n > 1 || (n == 1) != (name == "altered") {
				t.Errorf("%d refusals: %q", n, s.Refused())
			}
		})
	}
}

// A refusing transport gives reasoning, and refuses it when it comes back.
type refusing struct {
	recorded
	refused int
	bodies  []string
}

func (r *refusing) RoundTrip(hr *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return nil, err
	}
	r.bodies = append(r.bodies, string(body))
	p := &playing{all: []recorded{{200, "", `{"object":"response","status":"completed","output":[{"type":"reasoning","id":"rs_1","status":"completed","encrypted_content":"x","summary":[]},{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`}}}
	if strings.Contains(string(body), `"rs_1"`) {
		r.refused++
		p.all = []recorded{r.recorded}
	}
	return p.RoundTrip(hr)
}

// Reasoning that the provider refuses is left out of this request and of later ones: it is refused once.
func TestResponsesRefusedState(t *testing.T) {
	const lost = `{"error":{"message":"Item with id 'rs_1' not found. Items are not persisted when store is set to false.","type":"invalid_request_error","param":"input"}}`
	for name, answer := range map[string]recorded{
		"unknown parameter": refused(400, `{"error":{"message":"Unknown parameter: 'input[1].status'.","type":"invalid_request_error","param":"input[1].status","code":"unknown_parameter"}}`),
		"not persisted":     refused(400, lost),
		"not found":         refused(404, lost),
		"not verified":      refused(400, `{"error":{"message":"The encrypted content gAAA... could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`),
	} {
		rt := &refusing{recorded: answer}
		c := named(t, "openai-responses", "", "m", rt)
		k := &talk{T: t}
		k.say("go")
		k.ask(c)
		// The answers that come after the refusal are not its subject.
		history := k.history
		for range 2 {
			k.history = append(slices.Clone(history), claybot.Record{Type: claybot.RecordUser, At: 1, MessageID: "m9", Text: "more"})
			k.ask(c)
		}
		if rt.refused != 1 || strings.Contains(strings.Join(rt.bodies, ""), `"status"`) {
			t.Errorf("%s: %d refusals of %q", name, rt.refused, rt.bodies)
		}
	}
}

// Answers of this API that end in each way, right and wrong.
func TestResponsesShapes(t *testing.T) {
	stream := func(all ...string) recorded {
		return recorded{200, "", "data: " + strings.Join(all, "\n\ndata: ") + "\n\n"}
	}
	const (
		message = `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}`
		hi      = `{"type":"response.output_text.delta","output_index":0,"delta":"hi"}`
		said    = `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"hi"}]}}`
		whole   = `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":1}}}`
		begun   = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"look","arguments":""}}`
		made    = `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"look","arguments":"{}"}}`
	)
	good := stream(message, hi, said, whole)
	for _, tt := range []struct {
		name     string
		answers  []recorded
		want     string
		requests int
	}{
		{"text", []recorded{good}, "hi", 1},
		{"unknown events", []recorded{stream(`{"type":"response.queued"}`, message, `{"type":"response.content_part.added","output_index":0}`, hi, said, `{"type":"news","x":[1]}`, whole, "[DONE]")}, "hi", 1},
		{"only the ends", []recorded{stream(said, whole)}, "hi", 1},
		{"call", []recorded{stream(begun, made, whole)}, " look", 1},
		{"refusal", []recorded{stream(message, `{"type":"response.refusal.delta","output_index":0,"delta":"no"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"refusal","refusal":"no"}]}}`, whole)}, "no", 1},
		{"bound", []recorded{stream(message, hi, said, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`)}, "hi (length)", 1},
		{"bound in a call", []recorded{stream(begun, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`)}, " (length)", 1},
		{"filter", []recorded{stream(message, hi, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`)}, "hi", 1},
		{"whole", []recorded{{200, "", `{"object":"response","status":"completed","error":null,"output":[{"type":"reasoning","id":"rs","encrypted_content":"x","summary":[]},{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":3,"output_tokens":1}}`}}, "hi", 1},
		{"no end", []recorded{stream(message, hi, said), good}, "hi", 2},
		{"no end each time", []recorded{stream(message, hi, said)}, "!transient", 2},
		{"no end of a call", []recorded{stream(begun, whole), stream(begun, made, whole)}, " look", 2},
		{"failed", []recorded{stream(message, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"It broke."}}}`), good}, "hi", 2},
		{"failed after its tokens each time", []recorded{stream(message, hi, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"It broke."},"usage":{"input_tokens":3,"output_tokens":1}}}`)}, "!transient", 2},
		{"invalid prompt", []recorded{stream(message, `{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"Invalid prompt."}}}`)}, "!permanent", 1},
		{"rate in the stream", []recorded{stream(`{"type":"error","code":"rate_limit_exceeded","message":"Slow down.","param":null}`), good}, "hi", 2},
		{"too long in the stream", []recorded{stream(`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}`)}, "!context", 1},
		{"delta of nothing", []recorded{stream(hi)}, "!transient", 2},
		{"no JSON", []recorded{stream(`{"type":`)}, "!transient", 2},
		{"canceled", []recorded{stream(message, `{"type":"response.completed","response":{"status":"cancelled"}}`)}, "!transient", 2},
		{"wrong key", []recorded{refused(401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`)}, "!permanent", 1},
		{"no reasoning", []recorded{refused(400, `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`), good}, "hi", 2},
		{"no format", []recorded{refused(400, `{"error":{"message":"Unsupported parameter: 'text.format' is not supported with this model.","type":"invalid_request_error","param":"text.format","code":"unsupported_parameter"}}`), good}, "hi", 2},
		{"altered reasoning", []recorded{refused(400, `{"error":{"message":"The encrypted content gAAA... could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`)}, "!permanent", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := &playing{all: tt.answers}
				resp, err := llm.Retried(named(t, "openai-responses", "", "m", rt), llm.Retries{}).Chat(t.Context(), toolTurn())
				got := resp.Text
				for _, c := range resp.Calls {
					got += " " + c.Name
				}
				if resp.Stop == llm.StopLength {
					got += " (length)"
				}
				if e, failed := errors.AsType[*llm.Error](err); failed {
					got = "!" + string(e.Class)
				}
				if got != tt.want || rt.requests != tt.requests || rt.paid > 2 {
					t.Errorf("%q after %d requests, %d paid, want %q after %d; %v", got, rt.requests, rt.paid, tt.want, tt.requests, err)
				}
			})
		})
	}
}

// What a stream brings in pieces, at the end of an item and at the end of the answer is one answer: nothing of it is lost, and where
// they differ, it is no answer.
func TestResponsesSettled(t *testing.T) {
	const (
		begun  = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"look","arguments":""}}`
		args   = `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\":1}"}`
		whole  = `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"x\": 1}"}`
		other  = `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"x\":2}"}`
		end    = `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"look"}}`
		none   = `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"look","arguments":""}}`
		second = `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"look","arguments":"{\"x\":2}"}}`
		half   = `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","status":"incomplete","call_id":"a","name":"look","arguments":"{\"x\":"}}`
		text   = `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}`
		hi     = `{"type":"response.output_text.delta","output_index":0,"delta":"hi"}`
		said   = `{"type":"message","status":"completed","content":[{"type":"output_text","text":"hi"}]}`
		called = `{"type":"function_call","call_id":"a","name":"look","arguments":"{\"x\":1}"}`
	)
	done := func(item string) string {
		return `{"type":"response.output_item.done","output_index":0,"item":` + item + `}`
	}
	completed := func(items ...string) string {
		return `{"type":"response.completed","response":{"status":"completed","output":[` + strings.Join(items, ",") + `]}}`
	}
	const bound = `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`
	for _, tt := range []struct {
		name   string
		events []string
		want   string
	}{
		{"arguments in pieces alone", []string{begun, args, end, completed()}, ` look({"x":1})`},
		{"arguments at their end alone", []string{begun, whole, end, completed()}, ` look({"x": 1})`},
		{"arguments each time", []string{begun, args, whole, done(called), completed(called)}, ` look({"x":1})`},
		{"arguments that nothing follows", []string{begun, args, none, completed()}, ` look({"x":1})`},
		{"arguments of nothing", []string{begun, none, completed()}, ` look()`},
		{"no arguments", []string{begun, end, completed()}, "!transient"},
		{"other arguments at their end", []string{begun, args, other, end, completed()}, "!transient"},
		{"other arguments at the end of the item", []string{begun, args, second, completed()}, "!transient"},
		{"end of the arguments of no call", []string{text, whole, completed()}, "!transient"},
		{"half a call", []string{begun, half, completed()}, "!transient"},
		{"half a call at a bound", []string{begun, half, bound}, " (length)"},
		{"half a text", []string{text, hi, done(strings.Replace(said, "completed", "incomplete", 1)), completed()}, "!transient"},
		{"half a text at a bound", []string{text, hi, done(strings.Replace(said, "completed", "incomplete", 1)), bound}, "hi (length)"},
		{"only the end", []string{completed(said, called)}, `hi look({"x":1})`},
		{"a call only at the end", []string{text, hi, done(said), completed(said, called)}, "!transient"},
		{"no items at the end", []string{text, hi, done(said), completed()}, "hi"},
		{"no text at its end", []string{text, hi, done(`{"type":"message","content":[]}`), completed()}, "hi"},
		{"more text at its end", []string{text, hi, done(strings.Replace(said, `"hi"`, `"hi, all of it"`, 1)), completed()}, "hi, all of it"},
		{"less text at its end", []string{text, hi, done(strings.Replace(said, `"hi"`, `"h"`, 1)), completed()}, "!transient"},
		{"other text at its end", []string{text, hi, done(strings.Replace(said, `"hi"`, `"no"`, 1)), completed()}, "!transient"},
		{"more text behind another item", []string{text, hi, strings.Replace(done(said), `"output_index":0`, `"output_index":1`, 1), done(strings.Replace(said, `"hi"`, `"hi, all"`, 1)), completed()}, "!transient"},
	} {
		body, shown := "data: "+strings.Join(tt.events, "\n\ndata: ")+"\n\n", ""
		r := ask("x")
		r.Delta = func(_ int, text string) { shown += text }
		resp, err := named(t, "openai-responses", "", "m", &canned{kind: "text/event-stream", body: body}).Chat(t.Context(), r)
		got := resp.Text
		if err == nil && shown != got {
			t.Errorf("%s: shows %q of %q", tt.name, shown, got)
		}
		for _, c := range resp.Calls {
			got += " " + c.Name + "(" + c.Args + ")"
		}
		if resp.Stop == llm.StopLength {
			got += " (length)"
		}
		if e, failed := errors.AsType[*llm.Error](err); failed {
			got = "!" + string(e.Class)
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q; %v", tt.name, got, tt.want, err)
		}
	}
}

// A stream that breaks at any byte is no answer.
func TestResponsesCut(t *testing.T) {
	s, c := serve(t, openaitest.Config{}, Config{Quirks: &responding})
	for at := 50; at < 1100; at += 75 {
		s.Script(openaitest.Reply{Text: "hello", Calls: twoCalls, Piece: 2, Fault: openaitest.FaultCut, CutAt: at})
		if resp, err := c.Chat(t.Context(), ask("x")); err == nil {
			t.Errorf("cut at %d: %+v", at, resp)
		}
	}
}

// What is too large is not kept, and the answer is.
func TestResponsesStateTooLarge(t *testing.T) {
	for _, n := range []int{provider.MaxState / 2, 2 * provider.MaxState} {
		body := `{"object":"response","status":"completed","output":[{"type":"reasoning","id":"rs","encrypted_content":"` + strings.Repeat("x", n) + `"},{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`
		resp, err := named(t, "openai-responses", "", "m", &canned{kind: "application/json", body: body}).Chat(t.Context(), ask("x"))
		if err != nil || resp.Text != "hi" || (resp.State != nil) != (n < provider.MaxState) {
			t.Errorf("%d bytes: %q, %v, %d kept", n, resp.Text, err, resp.State.Size())
		}
	}
}

// What was written to the provider's cache counts apart, and is a part of the input.
func TestResponsesUsage(t *testing.T) {
	for written, want := range map[int]int64{0: 0, 30: 30, 90: 40, -1: 0} {
		body := fmt.Sprintf(`{"object":"response","status":"completed","output":[],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":%d},"output_tokens":1}}`, written)
		resp, err := named(t, "openai-responses", "", "m", &canned{kind: "application/json", body: body}).Chat(t.Context(), ask("x"))
		if err != nil || resp.Usage.CacheWrite != want || resp.Usage.CachedInput != 60 {
			t.Errorf("%d written: %+v, %v", written, resp.Usage, err)
		}
	}
}
