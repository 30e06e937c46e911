package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// A canned transport answers each request with one body, and counts them.
type canned struct {
	kind, body string
	calls      int
}

func (c *canned) RoundTrip(*http.Request) (*http.Response, error) {
	c.calls++
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(strings.NewReader(c.body))}, nil
}

// events is a stream of deltas with its end.
func events(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		_, _ = fmt.Fprintf(&b, "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", d) // a builder takes everything
	}
	return b.String() + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
}

// letters are deltas of one letter each.
func letters(text string) (all []string) {
	for _, r := range text {
		all = append(all, fmt.Sprintf(`{"content":%q}`, string(r)))
	}
	return all
}

// Answers as servers really give them are understood at the first try, and what is no text for people is
// not shown.
func TestShapes(t *testing.T) {
	const stream, whole = "text/event-stream", "application/json"
	for _, tt := range []struct {
		name, kind, body string
		want             string // text, and the names of calls
	}{
		{"text", stream, events(`{"content":"hi"}`), "hi"},
		{"parts", stream, events(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, `{"content":[{"type":"text","text":"hi"},{"type":"reference","reference_ids":[1]}]}`, `{"content":" you"}`), "hi you"},
		{"thinking as text", stream, events(`{"content":[{"type":"thinking","thinking":"hm"}]}`, `{"content":"hi"}`), "hi"},
		{"no content", stream, events(`{"content":null}`, `{"content":"hi"}`), "hi"},
		{"think tag", stream, events(`{"content":"<think>\nhm <b>\n</think>\n\nhi"}`), "hi"},
		{"think tag by letters", stream, events(letters("\n<think>hm < </thin </think>\n hi <think> you")...), "hi <think> you"},
		{"think tag that does not end", stream, events(`{"content":"<think>hm"}`), ""},
		{"nearly a think tag", stream, events(letters("<thin>k")...), "<thin>k"},
		{"half a think tag", stream, events(letters(" <thi")...), " <thi"},
		{"think tag within", stream, events(`{"content":"a <think>b</think>"}`), "a <think>b</think>"},
		{"only thought", stream, events(`{"content":"<think>hm</think>"}`), ""},
		{"whole", whole, `{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, "hi"},
		{"whole with parts and a call", whole, `{"choices":[{"message":{"content":[{"type":"text","text":"hi"}],"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, "hi look"},
		{"whole with a think tag", whole, `{"choices":[{"message":{"content":"<think>hm</think>hi"},"finish_reason":"stop"}]}`, "hi"},
		{"whole with odd usage", whole, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3.5,"completion_tokens":"1"}}`, "hi"},
		{"only the end mark, and usage", stream, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}],\"usage\":{\"prompt_tokens\":3}}\n\ndata: [DONE]\n\n", "hi"},
		{"deep parts", stream, events(`{"content":`+strings.Repeat(`[{"type":"thinking","thinking":`, 3000)+`"x"`+strings.Repeat(`}]`, 3000)+`}`, `{"content":"hi"}`), "hi"},
		{"blanks", stream, events(letters(strings.Repeat(" ", 5000) + "hi")...), strings.Repeat(" ", 5000) + "hi"},
		{"whole without a reason of the end", whole, `{"choices":[{"message":{"content":"hi"}}]}`, "hi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rt := &canned{kind: tt.kind, body: tt.body}
			shown := ""
			r := ask("x")
			r.Delta = func(_ int, text string) { shown += text }
			resp, err := llm.Retried(New(Config{BaseURL: "http://model.invalid/v1", Model: "m", HTTP: rt}), llm.Retries{}).Chat(t.Context(), r)
			got := resp.Text
			for _, c := range resp.Calls {
				got += " " + c.Name
			}
			if err != nil || got != tt.want || shown != resp.Text || rt.calls != 1 {
				t.Errorf("%q after showing %q, %v, %d requests; want %q", got, shown, err, rt.calls, tt.want)
			}
		})
	}
}

// What may be half an answer is none.
func TestHalfAnswers(t *testing.T) {
	const done = "data: [DONE]\n\n"
	choice := func(delta string) string { return "data: {\"choices\":[{\"index\":0,\"delta\":" + delta + "}]}\n\n" }
	for _, tt := range []struct{ name, kind, body string }{
		{"a call without arguments", "text/event-stream", choice(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"wipe","arguments":""}}]}`) + done},
		{"text and a call without arguments", "text/event-stream", choice(`{"content":"I call","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"wipe"}}]}`) + done},
		{"text of a server that gives reasons", "text/event-stream", choice(`{"content":"Do not"}`) + done},
		{"an error beside a message", "application/json", `{"error":{"message":"upstream broke","code":502},"choices":[{"message":{"content":"half an ans"},"finish_reason":null}]}`},
		{"no message", "application/json", `{"choices":[{"message":{},"finish_reason":null}]}`},
		{"no choice", "application/json", `{"choices":[]}`},
		{"cut JSON", "application/json", `{"choices":[{"message":{"content":"half`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rt := &canned{kind: "text/event-stream", body: events(`{"content":"hi"}`)}
			c := New(Config{BaseURL: "http://model.invalid/v1", Model: "m", HTTP: rt})
			if resp, err := c.Chat(t.Context(), ask("x")); err != nil || resp.Text != "hi" {
				t.Fatal(resp, err)
			}
			rt.kind, rt.body = tt.kind, tt.body
			if resp, err := c.Chat(t.Context(), ask("x")); err == nil {
				t.Errorf("taken for whole: %+v", resp)
			}
		})
	}
}

// Reasoning that is not shown is counted where the server counts nothing, and its bytes are text.
func TestHidden(t *testing.T) {
	thought := strings.Repeat("hm ", 20_000)
	for _, body := range []string{
		events(`{"content":"<think>` + thought + `</think>hi"}`), events(`{"reasoning_content":"`+thought+`"}`, `{"content":"hi"}`),
		events(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"` + thought + `"}]},{"type":"text","text":"hi"}]}`),
	} {
		resp, err := New(Config{BaseURL: "http://model.invalid/v1", Model: "m", HTTP: &canned{kind: "text/event-stream", body: body}}).Chat(t.Context(), ask("x"))
		if err != nil || resp.Text != "hi" || resp.Usage.Reasoning < 10_000 || resp.Usage.Output < resp.Usage.Reasoning {
			t.Errorf("%q, %+v, %v", resp.Text, resp.Usage, err)
		}
	}
	body := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\",\"extra_content\":{\"x\":\"\xff\xfe\"}},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	resp, err := New(Config{BaseURL: "http://model.invalid/v1", Model: "m", HTTP: &canned{kind: "text/event-stream", body: body}}).Chat(t.Context(), ask("x"))
	if err != nil || resp.State == nil || !utf8.Valid(resp.State.Data) {
		t.Errorf("%+v, %v", resp.State, err)
	}
}

// An echoing transport refuses reasoning, and repeats it, as servers do that check with pydantic.
type echoing struct{ refused int }

func (e *echoing) RoundTrip(r *http.Request) (*http.Response, error) {
	var in struct {
		Messages []struct {
			Reasoning *string `json:"reasoning_content"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	status, kind, body := http.StatusOK, "text/event-stream", events(`{"content":"hi"}`)
	for i, m := range in.Messages {
		if m.Reasoning != nil {
			e.refused++
			status, kind = http.StatusUnprocessableEntity, "application/json"
			body = fmt.Sprintf(`{"detail":[{"type":"extra_forbidden","loc":["body","messages",%d,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted","input":%q}]}`, i, *m.Reasoning)
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// What a server repeats of a request says nothing.
func TestEchoedReasoning(t *testing.T) {
	for _, thought := range []string{"all is here", "The file is missing."} {
		rt := new(echoing)
		c := New(Config{BaseURL: "http://model.invalid/v1", Model: "m", HTTP: rt})
		data, _ := json.Marshal(map[string]string{"reasoning_content": thought}) // strings always marshal
		for _, state := range []*claybot.ModelState{{Of: c.api.of, Data: data}, nil} {
			r := ask("x")
			r.Messages = append(r.Messages, llm.Message{Role: llm.RoleAssistant, Content: "y", State: state}, llm.Message{Role: llm.RoleUser, Content: "z"})
			if _, err := c.Chat(t.Context(), r); err != nil {
				t.Errorf("%q: %v", thought, err)
			}
		}
		if rt.refused != 1 {
			t.Errorf("%q: refused %d times", thought, rt.refused)
		}
	}
}
