package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// approval is a graph that has one action approved, after it asked what colour
// it is to have where the message says so.
func approval(approvers ...string) runs.Engine {
	gate := func(ctx context.Context, s *runs.State[none, report]) (string, error) {
		qs := []claybot.Question{{Key: "s2", Text: "Paint it?", Type: claybot.QuestionConfirm, Tool: "paint", Approvers: approvers}}
		switch text := s.Turn.Messages[0].Text; {
		case strings.Contains(text, "coloured"):
			qs = append(qs, claybot.Question{Key: "colour", Text: "Which colour?", Type: claybot.QuestionText})
		case strings.Contains(text, "together"):
			qs[0].Need, qs[0].ApprovedBy = 3, []string{"slack/U2"}
		case strings.Contains(text, "approvers choose"):
			qs[0] = claybot.Question{Key: "s2", Text: "Which colour?", Type: claybot.QuestionText, Approvers: approvers}
		}
		answers, wait, err := s.Turn.Ask(ctx, "approvals/1", qs)
		switch {
		case wait != nil:
			return "", &runs.WaitError{Awaiting: *wait}
		case err != nil:
			return "", err
		}
		said := "painted:"
		for _, a := range answers {
			said += " " + string(a.Value)
		}
		return runs.End, s.Record(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: said})
	}
	return &runs.Graph[none, report]{Name: "plan", Start: "gate", Nodes: map[string]runs.Node[none, report]{"gate": gate}, Edges: map[string][]string{"gate": {runs.End}}}
}

// What a person says in a conversation approves nothing, in whatever words; an
// operator does, as before.
func TestCompletionDoesNotApprove(t *testing.T) {
	for _, approvers := range [][]string{nil, {"slack/U1"}} {
		r := start(t, func(r *rig) { r.engine, r.graphs = "plan", map[string]runs.Engine{"plan": approval(approvers...)} })
		c := r.client("operate")
		begin := func(thread, text string) (run, question, told string) {
			t.Helper()
			got, err := c.CreateChatCompletion(t.Context(), asking("claybot", thread, user(text)))
			if err != nil {
				t.Fatal(err)
			}
			run = strings.TrimPrefix(got.ID, "chatcmpl-")
			return run, r.run(run).Awaiting.Questions[0].ID, got.Choices[0].Message.Content
		}
		waits := func(told, question, what string) {
			t.Helper()
			for _, want := range []string{"This " + what + " waits for ", "on the page", question, "POST /questions/" + question + "/answer", strings.Join(approvers, "")} {
				if !strings.Contains(told, want) {
					t.Errorf("%q does not say %q", told, want)
				}
			}
		}
		run, question, told := begin("a", "paint it")
		waits(told, question, "approval")
		seen := []openai.ChatCompletionMessage{user("paint it"), {Role: "assistant", Content: told}}
		for _, text := range []string{"yes", "approve", "true", "s2: yes", "S2 : approve", question + ": yes", "/approve", "no", "deny", "what is it?"} {
			got, _, finish, err := r.streamed(c, asking("claybot", "a", append(seen, user(text))...))
			if err != nil || finish != "stop" || !strings.HasPrefix(got, "No message answers what waits here") {
				t.Errorf("%q is answered with %q, %q, %v", text, got, finish, err)
			}
			waits(got, question, "approval")
			seen = append(seen, user(text), openai.ChatCompletionMessage{Role: "assistant", Content: got})
		}
		if got := r.run(run); got.State != "AWAITING" || len(got.Awaiting.Questions) != 1 {
			t.Errorf("the run is %+v", got)
		}
		var q openQuestion
		if r.ask("GET", "/questions/"+esc(question), "", http.StatusOK, &q); q.Answer != nil {
			t.Fatalf("a message approves: %+v", q.Answer)
		}
		r.ask("POST", "/questions/"+esc(question)+"/answer", `{"value":"approve"}`, http.StatusAccepted, nil)
		if got := r.ended(run); got != "SUCCEEDED" {
			t.Errorf("the run is %s", got)
		}
		r.ask("GET", "/questions/"+esc(question), "", http.StatusOK, &q)
		if q.Answer == nil || q.Answer.Via != "http" || q.Answer.By != "operator" {
			t.Errorf("answered %+v", q.Answer)
		}
	}
}

// chat says a text in the thread of a test, under a key where there is one, and
// returns what is answered.
func (r *rig) chat(text, key string) (said, run string) {
	r.Helper()
	g := r.do("POST", "/v1/chat/completions", `{"model":"claybot","user":"t","messages":[{"role":"user","content":"`+text+`"}]}`, "Idempotency-Key", key)
	var got openai.ChatCompletionResponse
	r.read(g.body, &got)
	if len(got.Choices) != 1 {
		r.Fatalf("%q = %d %s", text, g.code, g.body)
	}
	return got.Choices[0].Message.Content, strings.TrimPrefix(got.ID, "chatcmpl-")
}

// What is asked beside an approval is answered in the conversation, by itself
// and not in one breath with the approval.
func TestCompletionAnswersBesideAnApproval(t *testing.T) {
	r := start(t, func(r *rig) { r.engine, r.graphs = "plan", map[string]runs.Engine{"plan": approval()} })
	told, run := r.chat("paint it coloured", "")
	if !strings.HasPrefix(told, "Paint it?\n\nThis approval waits for an operator: ") || !strings.HasSuffix(told, "\n\nWhich colour?") {
		t.Fatalf("it asks %q", told)
	}
	open := func() string {
		t.Helper()
		var list struct{ Questions []openQuestion }
		r.ask("GET", "/questions", "", http.StatusOK, &list)
		var keys []string
		for _, q := range list.Questions {
			keys = append(keys, q.Key)
		}
		return strings.Join(keys, " ")
	}
	for i, text := range []string{"s2: yes", "colour: red\\nS2: yes"} {
		key := []string{"", "k1"}[i]
		if got, _ := r.chat(text, key); !strings.HasPrefix(got, "No message answers what waits here") || !strings.HasSuffix(got, "Which colour?") {
			t.Errorf("%q is answered with %q", text, got)
		}
	}
	if got := open(); !strings.Contains(got, "s2") || !strings.Contains(got, "colour") {
		t.Fatalf("open: %s", got)
	}
	for range 2 { // a repeat under the same key does nothing new
		if got, of := r.chat("yes", "k2"); !strings.HasPrefix(got, "Paint it?\n\nThis approval waits for an operator: ") || strings.Contains(got, "Which") || of != run {
			t.Errorf("answered with %q", got)
		}
		if got := open(); got != "s2" {
			t.Errorf("open: %s", got)
		}
	}
	r.ask("POST", "/agents/runs/"+run+"/answers", `{"answers":{"s2":"deny"}}`, http.StatusAccepted, nil)
	r.ended(run)
	if got := r.do("GET", "/agents/runs/"+run, "").body; !strings.Contains(got, `painted: false \"yes\"`) {
		t.Errorf("the run heard %s", got)
	}
}

// A question for approvers is not the person's to answer either.
func TestCompletionDoesNotAnswerForApprovers(t *testing.T) {
	r := start(t, func(r *rig) {
		r.engine, r.graphs = "plan", map[string]runs.Engine{"plan": approval("slack/U1", "slack/U2")}
	})
	_, run := r.chat("the approvers choose", "")
	question := r.run(run).Awaiting.Questions[0].ID
	got, _ := r.chat("red", "")
	if want := "This question waits for slack/U1, slack/U2, or for an operator: on the page, with claybot answer " + question; !strings.Contains(got, want) {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got := r.run(run).State; got != "AWAITING" {
		t.Errorf("the run is %s", got)
	}
	r.ask("POST", "/questions/"+esc(question)+"/answer", `{"value":"blue"}`, http.StatusAccepted, nil)
	if got := r.ended(run); got != "SUCCEEDED" {
		t.Errorf("the run is %s", got)
	}
}

// Who approves reads how many more people must; who denies, that it was taken.
func TestMoreMustApprove(t *testing.T) {
	for answer, want := range map[string]int{`{"value":"approve"}`: 1, `{"value":"deny"}`: 0} {
		r := start(t, func(r *rig) { r.engine, r.graphs = "plan", map[string]runs.Engine{"plan": approval()} })
		a := r.say("paint it together")
		r.until("it asks", func() bool { return r.run(a.Run).State == "AWAITING" })
		id := r.run(a.Run).Awaiting.Questions[0].ID
		var done struct{ More int }
		r.ask("POST", "/questions/"+esc(id)+"/answer", answer, http.StatusAccepted, &done)
		if done.More != want {
			t.Errorf("%s: %d more, want %d", answer, done.More, want)
		}
	}
}

// twoApprove is a graph that has one action approved by two people.
func twoApprove() runs.Engine {
	gate := func(ctx context.Context, s *runs.State[none, report]) (string, error) {
		q := claybot.Question{Text: "Paint it?", Type: claybot.QuestionConfirm, Tool: "paint", ToolCallID: "c1", Need: 2}
		for _, round := range []string{"approvals/1", "approvals/2"} {
			answers, wait, err := s.Turn.Ask(ctx, round, []claybot.Question{q})
			switch {
			case wait != nil:
				return "", &runs.WaitError{Awaiting: *wait}
			case err != nil:
				return "", err
			}
			q.ApprovedBy = append(q.ApprovedBy, answers[0].By)
		}
		return runs.End, s.Record(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: "done"})
	}
	return &runs.Graph[none, report]{Name: "plan", Start: "gate", Nodes: map[string]runs.Node[none, report]{"gate": gate}, Edges: map[string][]string{"gate": {runs.End}}}
}

// An operator who approves again is refused and uses up nothing; who answers what
// has an answer reads where the next approval is asked for. A no is taken.
func TestOperatorApprovesAgain(t *testing.T) {
	r := start(t, func(r *rig) { r.engine, r.graphs = "plan", map[string]runs.Engine{"plan": twoApprove()} })
	a := r.say("paint it")
	asks := func(not string) (id string) {
		r.until("it asks", func() bool {
			got := r.run(a.Run)
			if got.State != "AWAITING" || len(got.Awaiting.Questions) == 0 {
				return false
			}
			id = got.Awaiting.Questions[0].ID
			return id != not
		})
		return id
	}
	answer := func(id, body string, status int) string {
		t.Helper()
		got := r.do("POST", "/questions/"+esc(id)+"/answer", body)
		if got.code != status {
			t.Errorf("%s = %d %s, want %d", body, got.code, got.body, status)
		}
		return got.body
	}
	first := asks("")
	answer(first, `{"value":"approve"}`, http.StatusAccepted)
	second := asks(first)
	if got := answer(second, `{"value":"approve"}`, http.StatusConflict); !strings.Contains(got, `"approved"`) || !strings.Contains(got, "You have already approved this; it still needs another approval.") {
		t.Errorf("a second yes: %s", got)
	}
	if got := answer(first, `{"value":"approve"}`, http.StatusConflict); !strings.Contains(got, "The question is already answered. The action now waits for another approval, question "+second+".") {
		t.Errorf("the old question: %s", got)
	}
	var q openQuestion
	if r.ask("GET", "/questions/"+esc(second), "", http.StatusOK, &q); q.Answer != nil {
		t.Fatalf("the second yes is stored: %+v", q.Answer)
	}
	answer(second, `{"value":"deny"}`, http.StatusAccepted)
	r.ended(string(a.Run))
	if got := answer(first, `{"value":"approve"}`, http.StatusConflict); !strings.Contains(got, "The question is already answered.") {
		t.Errorf("the old question, when nothing waits: %s", got)
	}
}
