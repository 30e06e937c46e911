package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

const countSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

// X4: the format of an answer is honoured in both protocols: the answer matches, or there is none.
func TestAnswerFormat(t *testing.T) {
	r := start(t)
	looks := llmtest.Use(claybot.ToolCall{ID: "c", Name: "wait", Args: `{"seconds":0.001}`})
	looks.Text = "Let me count."
	r.mind.plan("count", looks, llmtest.Say(`{"n":3}`))
	r.mind.plan("not the JSON", llmtest.Say("never"), llmtest.Say("never"), llmtest.Say("never"))
	chat := func(user, text, format string) string {
		return `{"model":"claybot","user":"` + user + `","messages":[{"role":"user","content":"` + text + `"}],"response_format":` + format + `}`
	}
	wrapped := `{"type":"json_schema","json_schema":{"name":"count","strict":true,"schema":` + countSchema + `}}`
	if said := saidIn(t, r.do("POST", "/v1/chat/completions", chat("a", "count", wrapped))); said != `{"n":3}` {
		t.Errorf("chat: %s", said)
	}
	streamed := r.do("POST", "/v1/chat/completions", strings.Replace(chat("b", "count", wrapped), "{", `{"stream":true,`, 1))
	if said := streamedIn(t, streamed.body); said != `{"n":3}` {
		t.Errorf("chat, streamed: %s", said)
	}
	flat := `{"format":{"type":"json_schema","name":"count","strict":true,"schema":` + countSchema + `},"verbosity":"low"}`
	b := r.respond(r.token, `{"model":"claybot","input":"count","text":`+flat+`}`)
	if b.said() != `{"n":3}` || len(b.Output) != 2 {
		t.Errorf("response: %+v", b)
	}
	if b := r.respond(r.token, `{"model":"claybot","input":"hello","text":{"format":{"type":"text"}}}`); b.said() != "re: hello" {
		t.Errorf("text: %+v", b)
	}
	if g := r.do("POST", "/v1/chat/completions", chat("c", "say", wrapped)); g.code != http.StatusBadRequest || !strings.Contains(g.body, `"code":"format"`) || !strings.Contains(g.body, "run_failed") {
		t.Errorf("an answer that is no JSON = %d %s", g.code, g.body)
	}
	for format, want := range map[string]string{
		`{"type":"grammar"}`:     "Unknown format",
		`{"type":"json_schema"}`: "needs a schema",
		`{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}`:                                  "name of a schema",
		`{"type":"json_schema","json_schema":{"name":"a","schema":{"type":7}}}`:                            "schema is invalid",
		`{"type":"json_schema","json_schema":{"name":"a","schema":{"$ref":"https://example.com/s.json"}}}`: "schema is invalid",
		`{"type":"json_schema","json_schema":{"name":"a","schema":{"$ref":"#"}}}`:                          "leads back to itself",
	} {
		if g := r.do("POST", "/v1/chat/completions", chat("d", "count", format)); g.code != http.StatusBadRequest || !strings.Contains(g.body, want) {
			t.Errorf("%s = %d %s, want %s", format, g.code, g.body, want)
		}
	}
	// It joins no other run.
	letGo := r.mind.hold("slow", false)
	r.respond(r.token, `{"model":"claybot","conversation":"e","background":true,"input":"slow"}`)
	waits := r.respond(r.token, `{"model":"claybot","conversation":"e","background":true,"input":"count","text":`+flat+`}`)
	letGo()
	r.ended(waits.run())
	r.ask("GET", "/v1/responses/"+waits.ID, "", http.StatusOK, &b)
	if b.Status != "completed" || b.said() != `{"n":3}` {
		t.Errorf("beside another run: %+v", b)
	}
	r.engine = claybot.EnginePlan
	if g := r.do("POST", "/v1/responses", `{"model":"claybot","input":"count","text":`+flat+`}`); g.code != http.StatusBadRequest || !strings.Contains(g.body, "answers with text only") {
		t.Errorf("of an engine without formats = %d %s", g.code, g.body)
	}
}
