package openai

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

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
