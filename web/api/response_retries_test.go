package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

const pressResponse = `{"model":"claybot","input":"press"}`

// X1: the retry of a request for a response is the same message, also where it begins a
// conversation, and also on another start of the daemon.
func TestRetryOfAResponseIsTheSameMessage(t *testing.T) {
	for name, between := range map[string]func(r *rig, p *press){
		"at work": func(*rig, *press) {},
		"ended":   func(r *rig, p *press) { p.letGo(); r.ended(r.newest()) },
		"restarted": func(r *rig, p *press) {
			p.letGo()
			r.ended(r.newest())
			r.restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, p := withPress(t)
			r.lostAt("/v1/responses", pressResponse, func() { p.wait(t) })
			between(r, p)
			var again responseBody
			var wg sync.WaitGroup
			wg.Go(func() { again = r.respond(r.token, pressResponse) })
			p.letGo()
			wg.Wait()
			if again.said() != "pressed it" || again.ID != "resp_"+r.newest() {
				t.Errorf("the retry is answered with %+v", again)
			}
			if n, m := r.runs(), p.calls.Load(); n != 1 || m != 1 {
				t.Errorf("%d runs with %d calls of the tool, want one of each", n, m)
			}
			// What was answered is another conversation: it may be of another person.
			for _, head := range [][]string{nil, {"X-Stainless-Retry-Count", "0"}, {"X-Stainless-Retry-Count", "1"}} {
				if other := r.respond(r.token, pressResponse, head...); other.ID == again.ID || r.run(other.run()).AgentID == r.run(again.run()).AgentID {
					t.Errorf("a new message with %q got an earlier answer or its conversation", head)
				}
			}
		})
	}
}

// Two people of one program who begin with the same words at the same time have a conversation each.
func TestSameFirstWords(t *testing.T) {
	r := start(t)
	letGo := r.mind.hold("hello", false)
	const body = `{"model":"claybot","input":"hello"}`
	var said [4]responseBody
	var wg sync.WaitGroup
	for i, head := range [][]string{{"X-Stainless-Retry-Count", "0"}, {"X-Stainless-Retry-Count", "0"}, {"X-Stainless-Retry-Count", "1"}, nil} {
		wg.Go(func() { said[i] = r.respond(r.token, body, head...) })
		r.until("a run of its own", func() bool { return r.runs() == i+1 })
	}
	letGo()
	wg.Wait()
	agents := make(map[string]bool)
	for _, a := range said {
		agents[string(r.run(a.run()).AgentID)] = true
	}
	if len(agents) != len(said) {
		t.Errorf("%d people share %d conversations", len(said), len(agents))
	}
}

// A key stands for one message.
func TestKeyOfAResponse(t *testing.T) {
	r := start(t)
	one := r.respond(r.token, `{"model":"claybot","input":"hello"}`, "Idempotency-Key", "k")
	if again := r.respond(r.token, `{"model":"claybot","input":"hello","stream":false}`, "Idempotency-Key", "k"); again.ID != one.ID {
		t.Errorf("the retry is %s, not %s", again.ID, one.ID)
	}
	for _, body := range []string{
		`{"model":"claybot","input":"bye"}`, `{"model":"claybot","input":"hello","text":{"format":{"type":"json_object"}}}`, `{"model":"night","input":"hello"}`, `{"model":"claybot","conversation":"c","input":"hello"}`,
		`{"model":"claybot","input":[{"role":"user","content":[{"type":"input_text","text":"hello"},{"type":"input_file","file_data":"eA=="}]}]}`,
	} {
		g := r.do("POST", "/v1/responses", body, "Idempotency-Key", "k")
		if g.code != http.StatusConflict || !strings.Contains(g.body, "key_used") || g.head.Get("X-Should-Retry") != "false" {
			t.Errorf("%s under the key of another message = %d %s", body, g.code, g.body)
		}
	}
	if n := r.runs(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// A run that fails is an error that no client retries, in each way to read it.
func TestFailedResponse(t *testing.T) {
	r := start(t, func(r *rig) { r.alive = time.Hour })
	gone := llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "the account is closed"}}
	r.mind.plan("fail", gone, gone, gone)
	g := r.do("POST", "/v1/responses", `{"model":"claybot","conversation":"c","input":"fail"}`)
	if g.code != http.StatusBadRequest || !strings.Contains(g.body, `"type":"run_failed"`) || g.head.Get("X-Should-Retry") != "false" {
		t.Errorf("whole: %d %s", g.code, g.body)
	}
	var now responseBody
	r.read(r.do("GET", "/v1/responses/resp_"+r.newest(), "").body, &now)
	if now.Status != "failed" || now.Error == nil || !strings.Contains(now.Error.Message, "the account is closed") {
		t.Errorf("later: %+v", now)
	}
	g = r.do("POST", "/v1/responses", `{"model":"claybot","conversation":"c","stream":true,"input":"fail"}`)
	if !strings.Contains(g.body, "event: response.failed\n") || !strings.Contains(g.body, "the account is closed") || strings.Contains(g.body, "response.completed") {
		t.Errorf("streamed: %d %s", g.code, g.body)
	}
}

// A run that fails after the first sign of life is a response that failed.
func TestFailedResponseKeptAlive(t *testing.T) {
	r, p := withPress(t, func(r *rig) { r.alive = time.Millisecond })
	r.mind.plan("fail", append(pressing("")[:1], llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "the account is closed"}})...)
	resp := r.open("POST", "/v1/responses", `{"model":"claybot","input":"fail"}`)
	defer resp.Body.Close()
	p.letGo()
	var b strings.Builder
	for buf := make([]byte, 512); ; {
		n, err := resp.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			break
		}
	}
	var got responseBody
	r.read(b.String(), &got)
	if resp.StatusCode != http.StatusOK || got.Status != "failed" || got.Error == nil || !strings.Contains(got.Error.Message, "the account is closed") || got.Output[0].Name != "press" {
		t.Errorf("%d %s", resp.StatusCode, b.String())
	}
}

// A response in the background is read later, and canceled; a question of the agent is a
// response, and the next message of the conversation answers it.
func TestResponseInTheBackground(t *testing.T) {
	r, p := withPress(t)
	one := r.respond(r.token, `{"model":"claybot","background":true,"input":"press"}`)
	if one.Status != "queued" && one.Status != "in_progress" {
		t.Errorf("at once: %+v", one)
	}
	p.wait(t)
	var now responseBody
	r.ask("GET", "/v1/responses/"+one.ID, "", http.StatusOK, &now)
	if now.Status != "in_progress" || len(now.Output) != 1 || now.Output[0].Status != "in_progress" || now.Model != "claybot" {
		t.Errorf("at work: %+v", now)
	}
	for range 2 {
		r.ask("POST", "/v1/responses/"+one.ID+"/cancel", "", http.StatusOK, nil)
		r.ended(one.run())
	}
	r.ask("GET", "/v1/responses/"+one.ID, "", http.StatusOK, &now)
	if now.Status != "cancelled" {
		t.Errorf("canceled: %+v", now)
	}
	r.mind.plan("ask me", llmtest.Use(claybot.ToolCall{ID: "q", Name: "ask_user", Args: `{"question":"Which town?"}`}), llmtest.Say("a fine town"))
	asked := r.respond(r.token, `{"model":"claybot","input":"ask me"}`)
	if !strings.Contains(asked.said(), "Which town?") || asked.Status != "completed" {
		t.Errorf("a question: %+v", asked)
	}
	file := `{"model":"claybot","previous_response_id":"` + asked.ID + `","input":[{"role":"user","content":[{"type":"input_file","file_data":"eA=="}]}]}`
	if g := r.do("POST", "/v1/responses", file); g.code != http.StatusBadRequest || !strings.Contains(g.body, "A question is pending") {
		t.Errorf("a file as an answer = %d %s", g.code, g.body)
	}
	if b := r.respond(r.token, `{"model":"claybot","previous_response_id":"`+asked.ID+`","input":"Paris"}`); b.said() != "a fine town" || b.Status != "completed" {
		t.Errorf("an answer: %+v", b)
	}
}
