package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// response reads a response with a token.
func (r *rig) response(token, id string) (b responseBody) {
	r.Helper()
	g := r.do("GET", "/v1/responses/"+id, "", "Authorization", "Bearer "+token)
	if g.code != http.StatusOK {
		r.Fatalf("the response %s = %d %s", id, g.code, g.body)
	}
	r.read(g.body, &b)
	return b
}

// unknownResponse expects that a token neither reads, cancels nor continues a response.
func (r *rig) unknownResponse(token, id string) {
	r.Helper()
	for _, c := range [][3]string{
		{"GET", "/v1/responses/" + id, ""},
		{"POST", "/v1/responses/" + id + "/cancel", ""},
		{"POST", "/v1/responses", `{"model":"claybot","previous_response_id":"` + id + `","input":"x"}`},
	} {
		if g := r.do(c[0], c[1], c[2], "Authorization", "Bearer "+token); g.code != http.StatusNotFound || !strings.Contains(g.body, "No response with that id") {
			r.Errorf("%v = %d %s", c, g.code, g.body)
		}
	}
}

// A message can join the run of another person: its response shows nothing of before, and a
// token with the scope chat does not cancel what is not its own.
func TestResponseOfARunOfOthers(t *testing.T) {
	r := start(t)
	first := r.say("hello")
	r.ended(first.Run)
	r.ask("PATCH", "/agents/"+first.Agent+"/settings", `{"whenBusy":"injectAfterTools"}`, http.StatusOK, nil)
	var out struct{ Token string }
	r.read(r.do("POST", "/tokens", `{"name":"desk","scope":"chat","agent":"`+first.Agent+`"}`).body, &out)
	token := out.Token
	looks := llmtest.Use(claybot.ToolCall{ID: "c", Name: "wait", Args: `{"seconds":0.001}`})
	looks.Text = "Their private words."
	r.mind.plan("their errand", looks)
	letThem, letMe := r.mind.hold("their errand", false), r.mind.hold("mine", false)
	theirs := r.say("their errand")
	r.until("their run works", func() bool { return r.run(theirs.Run).State == "RUNNING" })
	b := r.respond(token, `{"model":"claybot","background":true,"input":"mine"}`)
	letThem()
	r.until("the message has joined", func() bool { return len(r.run(theirs.Run).Messages) == 2 })
	if b = r.response(token, b.ID); b.run() != theirs.Run || b.Status != "in_progress" || len(b.Output) != 0 {
		t.Errorf("while it works: %+v", b)
	}
	if g := r.do("POST", "/v1/responses/"+b.ID+"/cancel", "", "Authorization", "Bearer "+token); g.code != http.StatusConflict || !strings.Contains(g.body, "messages of others") {
		t.Errorf("a cancel = %d %s", g.code, g.body)
	}
	letMe()
	if state := r.ended(theirs.Run); state != "SUCCEEDED" {
		t.Errorf("their run %s", state)
	}
	if b = r.response(token, b.ID); b.said() != "re: mine" || len(b.Output) != 1 || b.Status != "completed" {
		t.Errorf("at the end: %+v", b)
	}
	if g := r.do("POST", "/v1/responses/"+b.ID+"/cancel", "", "Authorization", "Bearer "+token); g.code != http.StatusOK {
		t.Errorf("a cancel after the end = %d %s", g.code, g.body)
	}
}

// What a message answers in a conversation of its own has a response, whatever began the run.
func TestResponseOfAnAnswer(t *testing.T) {
	r := start(t)
	token := r.scoped("sdk", "chat")
	one := r.respond(token, `{"model":"claybot","conversation":"c","input":"hello"}`)
	agent := r.run(one.run()).AgentID
	r.mind.plan("ask me", llmtest.Use(claybot.ToolCall{ID: "q", Name: "ask_user", Args: `{"question":"Which colour?","key":"colour"}`}), llmtest.Say("thanks"))
	var begun acceptedRun
	r.ask("POST", "/agents/runs", `{"agentId":"`+agent+`","text":"ask me"}`, http.StatusAccepted, &begun)
	r.until("the run waits", func() bool { return r.run(begun.Run).State == "AWAITING" })
	b := r.respond(token, `{"model":"claybot","conversation":"c","input":"red"}`)
	if b.run() != begun.Run || b.said() != "thanks" {
		t.Errorf("the answer to the answer: %+v", b)
	}
	if b = r.response(token, b.ID); !strings.HasSuffix(b.said(), "thanks") || b.Status != "completed" {
		t.Errorf("later: %+v", b)
	}
	if more := r.respond(token, `{"model":"claybot","previous_response_id":"`+b.ID+`","input":"more"}`); r.run(more.run()).AgentID != agent {
		t.Errorf("continued by %+v", more)
	}
	r.unknownResponse(r.scoped("other", "chat"), b.ID)
	r.unknownResponse(r.scoped("operator", "operate"), b.ID)
}

// A response that is read later is that of the request: the JSON alone, and whole, also after
// the agent was reset. It goes with the agent.
func TestResponseReadLater(t *testing.T) {
	r := start(t)
	token := r.scoped("sdk", "chat")
	looks := llmtest.Use(claybot.ToolCall{ID: "c", Name: "wait", Args: `{"seconds":0.001}`})
	looks.Text = "Let me count."
	r.mind.plan("count", looks, llmtest.Say(`{"n":3}`))
	long := strings.Repeat("A sentence. ", 400)
	r.mind.plan("at length", llmtest.Say(long))
	counted := r.respond(token, `{"model":"claybot","conversation":"c","background":true,"input":"count","text":{"format":{"type":"json_schema","name":"count","schema":`+countSchema+`}}}`)
	r.ended(counted.run())
	if b := r.response(token, counted.ID); b.said() != `{"n":3}` || len(b.Output) != 2 || b.Text.Format.Type != "json_schema" || b.Text.Format.Name != "count" {
		t.Errorf("JSON: %+v", b)
	}
	anyObject := r.respond(token, `{"model":"claybot","conversation":"d","background":true,"input":"count","text":{"format":{"type":"json_object"}}}`)
	r.ended(anyObject.run())
	if b := r.response(token, anyObject.ID); b.said() != `{"n":3}` || b.Text.Format.Type != "json_object" {
		t.Errorf("any JSON: %+v", b)
	}
	told := r.respond(token, `{"model":"claybot","conversation":"c","input":"at length"}`)
	agent := r.run(told.run()).AgentID
	r.ask("POST", "/agents/"+agent+"/reset", "", http.StatusAccepted, nil)
	r.ended(r.respond(token, `{"model":"claybot","conversation":"c","input":"anew"}`).run())
	if b := r.response(token, told.ID); b.said() != long || b.Text.Format.Type != "text" {
		t.Errorf("after a reset: %d bytes, want %d; format %+v", len(b.said()), len(long), b.Text)
	}
	operator := r.scoped("operator", "operate")
	theirs := r.respond(operator, `{"model":"agent:`+agent+`","input":"hello"}`)
	r.ask("DELETE", "/agents/"+agent, "", http.StatusNoContent, nil)
	r.unknownResponse(token, told.ID)
	r.unknownResponse(operator, theirs.ID)
}
