package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
)

// completed says something in a thread under a key, and returns what the
// assistant says.
func (r *rig) completed(thread, key, text string) string {
	r.Helper()
	body, err := json.Marshal(map[string]any{
		"model": "claybot", "user": thread, "messages": []map[string]string{{"role": "user", "content": text}},
	})
	if err != nil {
		r.Fatal(err)
	}
	var out struct {
		Choices []struct{ Message struct{ Content string } }
	}
	g := r.do("POST", "/v1/chat/completions", string(body), "Idempotency-Key", key)
	if g.code != http.StatusOK {
		r.Fatalf("%s under %s = %d %s", text, key, g.code, g.body)
	}
	r.read(g.body, &out)
	return out.Choices[0].Message.Content
}

// runs counts all runs.
func (r *rig) runs() int {
	r.Helper()
	var list struct{ Runs []runRow }
	r.ask("GET", "/agents/runs", "", http.StatusOK, &list)
	return len(list.Runs)
}

// What comes again under its key is neither the answer to the question that it
// led to, nor a message when it was an answer.
func TestRepeatedCompletionsChangeNothing(t *testing.T) {
	r := start(t)
	r.mind.plan("ask me", llmtest.Use(claybot.ToolCall{ID: "q", Name: "ask_user", Args: `{"question":"Which town?"}`}), llmtest.Say("a fine town"))
	for _, c := range [][3]string{
		{"k1", "ask me", "Which town?"},
		{"k1", "ask me", "Which town?"},
		{"k2/odd", "Paris", "a fine town"},
		{"k2/odd", "Paris", "a fine town"},
		{"k1", "ask me", "Which town?"},
		{"k3", "hello", "re: hello"},
		{"k2/odd", "Paris", "a fine town"},
	} {
		if got := r.completed("t", c[0], c[1]); got != c[2] {
			t.Errorf("%s under %s is answered with %q, want %q", c[1], c[0], got, c[2])
		}
	}
	if n := r.runs(); n != 2 {
		t.Errorf("%d runs", n)
	}
	var list struct{ Questions []openQuestion }
	r.ask("GET", "/questions", "", http.StatusOK, &list)
	if len(list.Questions) != 0 {
		t.Errorf("open are %+v", list.Questions)
	}
}

// Of several questions, a repeat is told which are left, and does not answer the
// next one.
func TestRepeatedAnswerToOneOfSeveralQuestions(t *testing.T) {
	r := start(t)
	r.mind.plan("ask me", llmtest.Use(claybot.ToolCall{ID: "q", Name: "ask_user", Args: `{"questions":[{"question":"Who?","key":"who"},{"question":"Where?","key":"where"}]}`}),
		llmtest.Use(claybot.ToolCall{ID: "p", Name: "ask_user", Args: `{"question":"When?"}`}), llmtest.Say("thanks"))
	for _, c := range [][3]string{
		{"k1", "ask me", "Who?\n\nWhere?"},
		{"k2", "Ann", "Where?"},
		{"k2", "Ann", "Where?"},
		{"k1", "ask me", "Who?\n\nWhere?"},
		{"k3", "Paris", "When?"},
		{"k3", "Paris", "When?"},
		{"k4", "soon", "thanks"},
		{"k4", "soon", "thanks"},
	} {
		if got := r.completed("t", c[0], c[1]); got != c[2] {
			t.Errorf("%s under %s is answered with %q, want %q", c[1], c[0], got, c[2])
		}
	}
	if n := r.runs(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// A faint desk stores the message of an answer but not the answer, as a daemon
// does that dies in between.
type faint struct {
	web.Questions
	r    *rig
	fell *bool
}

func (f faint) AnswerSaid(ctx context.Context, run claybot.RunID, values map[string]string, m claybot.AgentMessage, by string, via claybot.AnswerVia) error {
	if *f.fell {
		return f.Questions.AnswerSaid(ctx, run, values, m, by, via)
	}
	*f.fell = true
	q, err := f.Questions.OpenQuestions(ctx, "")
	if err != nil {
		return err
	}
	m.Answer = &claybot.Result{OK: true, RunID: run, Output: `[{"questionId":"` + q[0].ID + `","value":"Paris","via":"http","messageId":"` + string(m.ID) + `"}]`}
	if _, err := f.r.db.Post(ctx, storage.Posting{To: q[0].Agent, Message: m, Skip: "answer"}); err != nil {
		return err
	}
	return storage.ErrFull
}

// A repeat brings to its end what a full disk or a crash cut in the middle.
func TestRepeatOfAHalfStoredAnswer(t *testing.T) {
	fell := false
	r := start(t, func(r *rig) { r.wrap = func(d *web.Backend) { d.Questions = faint{d.Questions, r, &fell} } })
	r.mind.plan("ask me", llmtest.Use(claybot.ToolCall{ID: "q", Name: "ask_user", Args: `{"question":"Which town?"}`}), llmtest.Say("a fine town"))
	r.completed("t", "k1", "ask me")
	body := `{"model":"claybot","user":"t","messages":[{"role":"user","content":"Paris"}]}`
	if g := r.do("POST", "/v1/chat/completions", body, "Idempotency-Key", "k2"); g.code != http.StatusServiceUnavailable {
		t.Fatalf("with a full disk: %d %s", g.code, g.body)
	}
	if got := r.completed("t", "k2", "Paris"); got != "a fine town" {
		t.Errorf("again: %q", got)
	}
	if n := r.runs(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// A nosy desk counts what completions look for.
type nosy struct {
	web.Questions
	web.Agents
	all, entries *int
}

func (n nosy) OpenQuestions(ctx context.Context, agent claybot.AgentID) ([]storage.OpenQuestion, error) {
	if agent == "" {
		*n.all++
	}
	return n.Questions.OpenQuestions(ctx, agent)
}

func (n nosy) Agent(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error) {
	*n.entries++
	return n.Agents.Agent(ctx, id)
}

// A completion looks at the questions of its own agent, however many others ask.
func TestCompletionLooksAtItsOwnQuestions(t *testing.T) {
	all, entries := 0, 0
	r := start(t, func(r *rig) {
		r.wrap = func(d *web.Backend) {
			n := nosy{d.Questions, d.Agents, &all, &entries}
			d.Questions, d.Agents = n, n
		}
	})
	r.mind.plan("ask me", llmtest.Use(claybot.ToolCall{ID: "q", Name: "ask_user", Args: `{"question":"Which town?"}`}), llmtest.Say("a fine town"))
	for _, thread := range []string{"one", "two", "three"} {
		r.completed(thread, "k-"+thread, "ask me")
	}
	if got := r.completed("four", "k-four", "hello"); got != "re: hello" {
		t.Errorf("a thread that is asked nothing: %q", got)
	}
	if got := r.completed("two", "k-answer", "Paris"); got != "a fine town" {
		t.Errorf("a thread that is asked: %q", got)
	}
	if all != 0 || entries != 0 {
		t.Errorf("the questions of all agents were read %d times, and %d agents looked up", all, entries)
	}
	var list struct{ Questions []openQuestion }
	r.ask("GET", "/questions", "", http.StatusOK, &list)
	if len(list.Questions) != 2 {
		t.Errorf("open are %+v", list.Questions)
	}
}

// An event is encoded once, not once for each reader.
func TestEventsAreEncodedOnce(t *testing.T) {
	r := start(t)
	a := r.say(strings.Repeat("long ", 400))
	r.ended(a.Run)
	var all []runs.Update
	for u, err := range r.system.Overview.Watch(t.Context(), claybot.RunID(a.Run), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if u.Event != nil {
			all = append(all, u)
		}
	}
	r.stop() // what a daemon does meanwhile would be counted, too
	for _, u := range all {
		frame := string(api.UpdateFrame(u))
		if !strings.Contains(frame, "data: "+string(runs.Encode(*u.Event))+"\n\n") {
			t.Errorf("frame %s", frame)
		}
		if n, fresh := testing.AllocsPerRun(20, func() { api.UpdateFrame(u) }), testing.AllocsPerRun(20, func() { api.UpdateFrame(runs.Update{Event: u.Event}) }); n >= fresh {
			t.Errorf("a frame of %s takes %v allocations for the second reader, %v without what was encoded", u.Event.Type, n, fresh)
		}
	}
}
