package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
)

// asks makes the model ask, and starts a run that does.
func (r *rig) asks(args string) acceptedRun {
	r.Helper()
	r.mind.plan("ask me", llmtest.Use(claybot.ToolCall{ID: "q", Name: "ask_user", Args: args}), llmtest.Say("thanks"))
	a := r.say("ask me")
	r.until("the run waits", func() bool { return r.run(a.Run).State == "AWAITING" })
	return a
}

type openQuestion struct {
	ID, Key, Text, RunID, AgentID string
	Options                       []string
	Answer                        *struct {
		Value any
		Via   string
		By    string
	}
}

func TestAnswerQuestion(t *testing.T) {
	r := start(t)
	a := r.asks(`{"question":"Which colour?","key":"colour","type":"select","options":["red","green"]}`)
	run := r.run(a.Run)
	if run.Awaiting == nil || run.Awaiting.Reason != "missing_info" || len(run.Awaiting.Questions) != 1 || run.Awaiting.Questions[0].Key != "colour" {
		t.Fatalf("the run waits for %+v", run.Awaiting)
	}
	var list struct{ Questions []openQuestion }
	r.ask("GET", "/questions?state=open", "", http.StatusOK, &list)
	if len(list.Questions) != 1 || list.Questions[0].RunID != a.Run || list.Questions[0].AgentID != a.Agent || len(list.Questions[0].Options) != 2 {
		t.Fatalf("questions %+v", list.Questions)
	}
	id := list.Questions[0].ID
	path := "/questions/" + esc(id) + "/answer"
	for _, tc := range [][3]string{
		{`{"value":"blue"}`, "values", ""},
		{`{"value":null}`, "bad_request", "value is missing"},
		{`{}`, "bad_request", "value is missing"},
		{`{"value":{}}`, "bad_request", "must be a string"},
		{`{"value":[{}]}`, "bad_request", "must be a string"},
		{`{"answer":"red"}`, "bad_request", "answer"},
	} {
		r.refused("POST", path, tc[0], 400, tc[1], tc[2])
	}
	r.ask("POST", path, `{"value":"green"}`, http.StatusAccepted, nil)
	if got := r.ended(a.Run); got != "SUCCEEDED" {
		t.Errorf("the run %s", got)
	}
	r.refused("POST", path, `{"value":"red"}`, 409, "state", "is already answered")
	var q openQuestion
	r.ask("GET", "/questions/"+esc(id), "", http.StatusOK, &q)
	if q.Answer == nil || q.Answer.Value != "green" || q.Answer.Via != "http" || q.Answer.By != "operator" {
		t.Errorf("answered %+v", q.Answer)
	}
	r.ask("GET", "/questions?agent="+a.Agent, "", http.StatusOK, &list)
	if len(list.Questions) != 0 {
		t.Errorf("still open: %+v", list.Questions)
	}
	types := ""
	all := r.stream(a.Stream)
	r.checkOrder(all, 0)
	for _, e := range stored(all) {
		types += e.event + " "
	}
	if !strings.Contains(types, "AwaitingInput ") || !strings.Contains(types, "Answered ") {
		t.Errorf("events %s", types)
	}
	r.refused("GET", "/questions/nothing", "", 404, "not_found", "GET /questions lists")
	r.refused("POST", "/questions/nothing/answer", `{"value":"x"}`, 404, "not_found", "No question")
	r.refused("GET", "/questions?state=closed", "", 400, "bad_request", "open")
}

// All answers of a set are taken, or none.
func TestAnswerRun(t *testing.T) {
	r := start(t)
	a := r.asks(`{"questions":[{"question":"How many?","key":"n","type":"number","min":1},{"question":"Sure?","key":"sure","type":"boolean"}]}`)
	path := "/agents/runs/" + a.Run + "/answers"
	r.refused("POST", path, `{"answers":{"n":3,"sure":"perhaps"}}`, 400, "values", "sure")
	r.refused("POST", path, `{"answers":{"n":0,"sure":"perhaps"}}`, 400, "values", "n:")
	r.refused("POST", path, `{"answers":{"m":3}}`, 400, "values", "m:")
	r.refused("POST", path, `{"answers":{}}`, 400, "bad_request", "answers is empty")
	r.refused("POST", path, `{}`, 400, "bad_request", "answers is empty")
	r.refused("POST", path, `{"answers":[3]}`, 400, "bad_request", "answers must be an object")
	if got := r.run(a.Run).State; got != "AWAITING" {
		t.Errorf("what was refused changed the run to %s", got)
	}
	r.ask("POST", path, `{"answers":{"n":3.5,"sure":true}}`, http.StatusAccepted, nil)
	if got := r.ended(a.Run); got != "SUCCEEDED" {
		t.Errorf("the run %s", got)
	}
	r.refused("POST", path, `{"answers":{"n":3}}`, 409, "state", "does not wait")
	r.refused("POST", "/agents/runs/nothing/answers", `{"answers":{"n":3}}`, 404, "not_found", "No run")
	b := r.say("hello")
	r.ended(b.Run)
	r.refused("POST", "/agents/runs/"+b.Run+"/answers", `{"answers":{"n":3}}`, 409, "state", "does not wait")
}

// A late desk is one whose questions have all expired.
type late struct{ web.Questions }

func (l late) Question(ctx context.Context, id string) (storage.OpenQuestion, error) {
	q, err := l.Questions.Question(ctx, id)
	q.Expires = 1
	return q, err
}

func TestExpiredQuestion(t *testing.T) {
	r := start(t, func(r *rig) { r.wrap = func(d *web.Backend) { d.Questions = late{d.Questions} } })
	r.asks(`{"question":"Why?"}`)
	var list struct{ Questions []openQuestion }
	r.ask("GET", "/questions", "", http.StatusOK, &list)
	r.refused("POST", "/questions/"+esc(list.Questions[0].ID)+"/answer", `{"value":"x"}`, 410, "expired", "has expired")
}

// A run that was canceled takes no answer.
func TestAnswerOfACanceledRun(t *testing.T) {
	r := start(t)
	a := r.asks(`{"question":"Why?"}`)
	var list struct{ Questions []openQuestion }
	r.ask("GET", "/questions", "", http.StatusOK, &list)
	r.ask("DELETE", "/agents/runs/"+a.Run, "", http.StatusAccepted, nil)
	if got := r.ended(a.Run); got != "CANCELED" {
		t.Fatalf("the run %s", got)
	}
	r.refused("POST", "/questions/"+esc(list.Questions[0].ID)+"/answer", `{"value":"x"}`, 409, "state", "")
}

// How answers in JSON become texts.
func TestValues(t *testing.T) {
	for in, want := range map[string]string{
		`"x"`: "x", `3`: "3", `-1.50`: "-1.50", `true`: "true", `false`: "false", `["a","b"]`: "a, b", `[1,"b"]`: "1, b", `[]`: "", `""`: "",
	} {
		got, err := api.ParseValue(in)
		if err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{`null`, `{}`, `[{}]`, `[null]`} {
		if got, err := api.ParseValue(in); err == nil && in != `null` {
			t.Errorf("%s is %q", in, got)
		}
	}
}
