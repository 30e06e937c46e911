package api_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// A responseBody is a response as clients read it.
type responseBody struct {
	ID, Object, Status, Model string
	Output                    []responseItem
	Error                     *struct{ Code, Message string }
	Usage                     *struct {
		Input   int `json:"input_tokens"`
		Output  int `json:"output_tokens"`
		Total   int `json:"total_tokens"`
		Details struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
	Metadata map[string]string
	Previous string `json:"previous_response_id"`
	Text     struct{ Format struct{ Type, Name string } }
}

type responseItem struct {
	ID, Type, Status, Name, Arguments, Output string
	Error                                     *string
	Content                                   []struct{ Type, Text string }
}

// said is the text of a response.
func (b responseBody) said() (text string) {
	for _, item := range b.Output {
		for _, c := range item.Content {
			text += c.Text
		}
	}
	return text
}

// respond requests a response with a token.
func (r *rig) respond(token, body string, head ...string) (b responseBody) {
	r.Helper()
	g := r.do("POST", "/v1/responses", body, append(head, "Authorization", "Bearer "+token)...)
	if g.code != http.StatusOK {
		r.Fatalf("%s = %d %s", body, g.code, g.body)
	}
	r.read(g.body, &b)
	return b
}

func (b responseBody) run() string { return strings.TrimPrefix(b.ID, "resp_") }

// X4: a response is the answer of an agent, which is the same for all that continues it.
func TestResponse(t *testing.T) {
	r := start(t)
	token := r.scoped("sdk", "chat")
	one := r.respond(token, `{"model":"claybot","input":"hello","instructions":"be brief","temperature":1,"metadata":{"a":"b"},"store":true,"tools":[]}`)
	if one.said() != "re: hello" || one.Object != "response" || one.Status != "completed" || one.Model != "claybot" || one.Metadata["a"] != "b" ||
		len(one.Output) != 1 || one.Output[0].Type != "message" || one.Usage == nil || one.Usage.Input != 10 || one.Usage.Output != 2 || one.Usage.Total != 12 || one.Usage.Details.Reasoning != 1 {
		t.Errorf("got %+v", one)
	}
	agent := r.run(one.run()).AgentID
	for name, body := range map[string]string{
		"previous":        `{"model":"claybot","previous_response_id":"` + one.ID + `","input":"more"}`,
		"item":            `{"model":"claybot","input":[{"role":"user","content":"hello"},{"type":"message","role":"assistant","id":"` + one.Output[0].ID + `","content":[{"type":"output_text","text":"re: hello"}]},{"role":"user","content":[{"type":"input_text","text":"more"}]}]}`,
		"reference":       `{"model":"agent:` + agent + `","input":[{"type":"item_reference","id":"` + one.Output[0].ID + `"},{"role":"developer","content":"x"},{"role":"user","content":"more"}]}`,
		"agent":           `{"model":"agent:` + agent + `","input":"more"}`,
		"previous, agent": `{"model":"agent:` + agent + `","previous_response_id":"` + one.ID + `","input":"more"}`,
	} {
		if b := r.respond(token, body, "Idempotency-Key", strings.ReplaceAll(name, ", ", "-")); b.said() != "re: more" || r.run(b.run()).AgentID != agent {
			t.Errorf("%s: %+v of the agent %s, want %s", name, b, r.run(b.run()).AgentID, agent)
		}
	}
	// Without what names a conversation, it is another one; a thread is the same as in chat completions.
	if b := r.respond(token, `{"model":"claybot","input":"hello again"}`); r.run(b.run()).AgentID == agent {
		t.Error("a conversation was continued that the request does not name")
	}
	g := r.do("POST", "/v1/chat/completions", `{"model":"night","user":"t","messages":[{"role":"user","content":"hi"}]}`, "Authorization", "Bearer "+token)
	var chat struct{ ID string }
	r.read(g.body, &chat)
	thread := r.run(strings.TrimPrefix(chat.ID, "chatcmpl-")).AgentID
	for _, body := range []string{
		`{"model":"night","conversation":"t","input":"more"}`, `{"model":"night","conversation":{"id":"t"},"input":"and more"}`, `{"model":"night","user":"t","input":"yet more"}`,
	} {
		if b := r.respond(token, body); r.run(b.run()).AgentID != thread {
			t.Errorf("%s is another thread", body)
		}
	}
}

// What claybot does not do it refuses, and names the field.
func TestResponseRefusals(t *testing.T) {
	r := start(t)
	token, other := r.scoped("sdk", "chat"), r.scoped("other", "operate")
	one := r.respond(token, `{"model":"claybot","input":"hello"}`)
	for body, want := range map[string]string{
		`{"model":"claybot","input":"x","store":false}`:                                                                                    "store must be true",
		`{"model":"claybot","input":"x","tools":[{"type":"function","name":"f"}]}`:                                                         "tools must be empty",
		`{"model":"claybot","input":"x","top_logprobs":2}`:                                                                                 "top_logprobs",
		`{"model":"claybot","input":"x","prompt":{"id":"p"}}`:                                                                              `Unknown field \"prompt\"`,
		`{"model":"claybot","input":[]}`:                                                                                                   "input must end with a message",
		`{"model":"claybot","input":7}`:                                                                                                    "input must be",
		`{"model":"claybot","input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`:                                         "function_call_output",
		`{"model":"claybot","input":[{"role":"user","content":[{"type":"input_audio"}]}]}`:                                                 "input_audio",
		`{"model":"claybot","input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]}`:         "fetches no URL",
		`{"model":"claybot","input":[{"role":"user","content":[{"type":"input_file","file_url":"https://example.com/a.pdf"}]}]}`:           "fetches no URL",
		`{"model":"claybot","input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}`:                               "file_id",
		`{"model":"claybot","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,!"}]}]}`:           "no valid base64",
		`{"model":"claybot","input":[{"role":"assistant","content":"earlier"},{"role":"user","content":"x"}]}`:                             "earlier answer",
		`{"model":"night","previous_response_id":"` + one.ID + `","input":"x"}`:                                                            "not of the model",
		`{"model":"claybot","previous_response_id":"` + one.ID + `","conversation":"c","input":"x"}`:                                       "exclude each other",
		`{"model":"claybot","conversation":"a\nb","input":"x"}`:                                                                            "control characters",
		`{"model":"claybot","input":[{"role":"user","content":[{"type":"input_file","filename":"a","file_data":"data:text/plain,%zz"}]}]}`: "no valid base64",
	} {
		g := r.do("POST", "/v1/responses", body, "Authorization", "Bearer "+token)
		if g.code != http.StatusBadRequest || !strings.Contains(g.body, want) || g.head.Get("X-Should-Retry") != "false" {
			t.Errorf("%s = %d %s, want %s", body, g.code, g.body, want)
		}
	}
	// The response of another token is not found, whatever the token may do.
	for _, c := range [][3]string{
		{"POST", "/v1/responses", `{"model":"claybot","previous_response_id":"` + one.ID + `","input":"x"}`},
		{"POST", "/v1/responses", `{"model":"claybot","input":[{"type":"item_reference","id":"` + one.Output[0].ID + `"},{"role":"user","content":"x"}]}`},
		{"GET", "/v1/responses/" + one.ID, ""},
		{"POST", "/v1/responses/" + one.ID + "/cancel", ""},
		{"GET", "/v1/responses/resp_none", ""},
		{"GET", "/v1/responses/none", ""},
	} {
		if g := r.do(c[0], c[1], c[2], "Authorization", "Bearer "+other); g.code != http.StatusNotFound || !strings.Contains(g.body, "No response with that id") {
			t.Errorf("%v = %d %s", c, g.code, g.body)
		}
	}
	if g := r.do("DELETE", "/v1/responses/"+one.ID, "", "Authorization", "Bearer "+token); g.code != http.StatusMethodNotAllowed || !strings.Contains(g.body, `"type":"invalid_request_error"`) {
		t.Errorf("a deletion = %d %s", g.code, g.body)
	}
	if n := r.runs(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// X4: images and files of both protocols become files of the message.
func TestFilesOfOpenAIClients(t *testing.T) {
	r := start(t)
	token := r.scoped("sdk", "chat")
	data := base64.StdEncoding.EncodeToString([]byte("bytes of a file"))
	parts := `[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,` + data + `"},{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,` + data + `"}]`
	body := `{"model":"claybot","conversation":"c","input":[{"role":"user","content":` + parts + `}]}`
	one := r.respond(token, body, "Idempotency-Key", "k")
	chat := `[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}},{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,` + data + `"}}]`
	g := r.do("POST", "/v1/chat/completions", `{"model":"claybot","user":"d","messages":[{"role":"user","content":`+chat+`}]}`, "Authorization", "Bearer "+token)
	var done struct{ ID string }
	r.read(g.body, &done)
	for _, run := range []string{one.run(), strings.TrimPrefix(done.ID, "chatcmpl-")} {
		history := r.do("GET", "/agents/"+r.run(run).AgentID+"/history", "").body
		for _, want := range []string{`"image.png"`, `"a.txt"`, `"image/png"`, `"text/plain"`} {
			if !strings.Contains(history, want) {
				t.Errorf("history %s has no %s", history, want)
			}
		}
	}
	if again := r.respond(token, body, "Idempotency-Key", "k"); again.ID != one.ID {
		t.Errorf("the retry is %s, not %s", again.ID, one.ID)
	}
	if n := r.runs(); n != 2 {
		t.Errorf("%d runs", n)
	}
}

// A stream has the events of a response in order, and its items and tools.
func TestStreamedResponse(t *testing.T) {
	r := start(t)
	token := r.scoped("sdk", "chat")
	looks := llmtest.Use(claybot.ToolCall{ID: "c", Name: "wait", Args: `{"seconds":0.001}`}, claybot.ToolCall{ID: "d", Name: "nothing", Args: `{}`})
	looks.Text = "Let me look."
	r.mind.plan("look", looks, llmtest.Say("There it is."))
	g := r.do("POST", "/v1/responses", `{"model":"claybot","conversation":"c","stream":true,"input":"look"}`, "Authorization", "Bearer "+token)
	if g.code != http.StatusOK || strings.Contains(g.body, "[DONE]") {
		t.Fatalf("%d %s", g.code, g.body)
	}
	var kinds []string
	var text string
	var last responseBody
	next := 0
	for e := range events(strings.NewReader(g.body)) {
		var x struct {
			Type     string
			Seq      int `json:"sequence_number"`
			Delta    string
			Response *responseBody
		}
		r.read(e.data, &x)
		if x.Type != e.event || x.Seq != next {
			t.Errorf("event %s: %s, number %d", e.event, e.data, next)
		}
		next++
		text += x.Delta
		if n := len(kinds); n == 0 || kinds[n-1] != x.Type {
			kinds = append(kinds, x.Type)
		}
		if x.Response != nil {
			last = *x.Response
		}
	}
	all := strings.ReplaceAll(strings.Join(kinds, " "), "response.", "")
	const message = "output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done"
	if !strings.HasPrefix(all, "created in_progress "+message+" output_item.added mcp_call.in_progress mcp_call_arguments.done ") || !strings.HasSuffix(all, message+" completed") ||
		!strings.Contains(all, "mcp_call.completed output_item.done") || !strings.Contains(all, "mcp_call.failed output_item.done") {
		t.Errorf("events %s", all)
	}
	if text != "Let me look.\n\nThere it is." || last.said() != text || last.Status != "completed" || len(last.Output) != 4 {
		t.Errorf("said %q, the response %+v", text, last)
	}
	if tool := last.Output[1]; tool.Type != "mcp_call" || tool.Name != "wait" || tool.Arguments != `{"seconds":0.001}` || tool.Status != "completed" || !strings.Contains(tool.Output, "waited") {
		t.Errorf("the tool %+v", tool)
	}
	if tool := last.Output[2]; tool.Name != "nothing" || tool.Status != "failed" || tool.Error == nil {
		t.Errorf("the tool that is none %+v", tool)
	}
	var now responseBody
	r.read(r.do("GET", "/v1/responses/"+last.ID, "", "Authorization", "Bearer "+token).body, &now)
	if now.said() != text || now.Status != "completed" || len(now.Output) != 4 || now.Output[1].ID != last.Output[1].ID {
		t.Errorf("later: %+v", now)
	}
}
