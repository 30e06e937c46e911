package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func question(id string) claybot.Question {
	return claybot.Question{ID: id, Key: "key of " + id, Text: "Which " + id + "?", Type: claybot.QuestionSelect, Options: []string{"a", "b"}, Required: true}
}

// ask suspends a run for an hour until its questions are answered.
func (b *bed) ask(l storage.Lease, id claybot.RunID, questions ...claybot.Question) {
	b.Helper()
	b.noError(b.Suspend(b.ctx, l, id, asking(questions...)))
}

func asking(questions ...claybot.Question) storage.Pause {
	w := claybot.Awaiting{Reason: claybot.AwaitInfo, Until: claybot.At(time.Now().Add(time.Hour)), Questions: questions}
	for _, q := range questions {
		w.Answers = append(w.Answers, q.AnswerID())
	}
	return storage.Pause{Awaiting: w}
}

func answered(id, value string, run claybot.RunID) claybot.AgentMessage {
	return claybot.AgentMessage{
		ID: claybot.Question{ID: id}.AnswerID(), Type: claybot.MessageAnswer, Run: run, At: claybot.Now(),
		Answer: &claybot.Result{OK: true, To: &claybot.Answer{Question: id, Value: []byte(`"` + value + `"`), By: "U1", Via: claybot.ViaWeb}},
	}
}

func (b *bed) open(agent claybot.AgentID, want ...string) {
	b.Helper()
	ids := []string{}
	for _, q := range ok(b.OpenQuestions(b.ctx, agent, 100))(b) {
		if q.Answer != nil {
			b.Fatalf("open question %s has an answer", q.ID)
		}
		ids = append(ids, q.ID)
	}
	if want == nil {
		want = []string{}
	}
	b.equal("open questions", ids, want)
}

var questionTests = []storeTest{
	{"open until it is answered", func(b *bed) {
		l, _ := b.begin("r1")
		asked := claybot.Now()
		b.ask(l, "r1", question("q1"), question("q2"))
		b.again()
		b.open(b.agent, "q1", "q2")
		want := storage.OpenQuestion{Question: question("q1"), Run: "r1", Agent: b.agent, Asked: asked}
		b.equal("found", ok(b.Question(b.ctx, "q1"))(b), want)
		b.equal("listed", ok(b.OpenQuestions(b.ctx, "", 1))(b), []storage.OpenQuestion{want})
		b.to(b.agent, answered("q1", "a", "r1"))
		b.open("", "q2")
		want.Answer = answered("q1", "a", "r1").Answer.To
		got := ok(b.Question(b.ctx, "q1"))(b)
		b.equal("the answer", *got.Answer, *want.Answer)
		b.to(b.agent, answered("q1", "b", "r1")) // the first one counts
		b.equal("still", string(ok(b.Question(b.ctx, "q1"))(b).Answer.Value), `"a"`)
		b.to(b.agent, answered("q2", "b", "r1"))
		b.open("")
		h, reason := b.resume("r1")
		b.equal("why", reason, "answers")
		b.succeed(h.Lease, "r1")
		b.again()
		b.open("")
		b.equal("kept", string(ok(b.Question(b.ctx, "q2"))(b).Answer.Value), `"b"`)
	}},
	{"open only while its run waits for it", func(b *bed) {
		l, _ := b.begin("r1")
		b.ask(l, "r1", question("q1"), question("q2"))
		asked := ok(b.Question(b.ctx, "q1"))(b).Asked
		time.Sleep(2 * time.Hour)
		b.open("", "q1", "q2") // also when its time is over: it will be told
		h, reason := b.resume("r1")
		b.equal("why", reason, "timeout")
		b.open("")
		again := question("q1")
		again.Text = "Once more?"
		b.ask(h.Lease, "r1", again)
		b.open("", "q1")
		q := ok(b.Question(b.ctx, "q1"))(b)
		b.equal("asked again", []any{q.Text, q.Asked}, []any{"Once more?", asked})
		b.deliver(b.typed(claybot.MessageCancel, "stop"))
		h = b.hold(nodeOne)
		ok(b.Finish(b.ctx, h.Lease, "r1", storage.Outcome{State: claybot.RunCanceled, Events: []claybot.Event{{Type: claybot.EventRunCanceled}}}))(b)
		b.open("")
		b.equal("not answered", ok(b.Question(b.ctx, "q1"))(b).Answer, (*claybot.Answer)(nil))
		b.equal("late", b.to(b.agent, answered("q1", "a", "r1")).Skipped, "run_ended")
	}},
	{"of an agent that is removed", func(b *bed) {
		l, _ := b.begin("r1")
		b.ask(l, "r1", question("q1"))
		b.noError(b.UnindexAgent(b.ctx, b.agent))
		b.open("")
	}},
	{"answered before the pause", func(b *bed) {
		l, _ := b.begin("r1")
		b.to(b.agent, answered("q1", "a", "r1"))
		b.ask(l, "r1", question("q1"), question("q2"))
		b.open("", "q2")
		b.equal("its answer", ok(b.Question(b.ctx, "q1"))(b).Answer.By, "U1")
	}},
	{"of several agents, the oldest first", func(b *bed) {
		first := b.agent
		l, _ := b.begin("r1")
		b.ask(l, "r1", question("q9"), question("q8"))
		time.Sleep(ms)
		b.agent = b.newAgent("C2")
		l, _ = b.begin("r2")
		b.ask(l, "r2", question("q1"))
		b.open("", "q8", "q9", "q1")
		b.open(first, "q8", "q9")
		b.open(b.agent, "q1")
		b.open("unknown")
		b.equal("limit", len(ok(b.OpenQuestions(b.ctx, "", 2))(b)), 2)
	}},
	{"for those who approve", func(b *bed) {
		l, _ := b.begin("r1")
		mine, ours, other := question("q1"), question("q2"), question("q3")
		mine.Approvers, ours.Approvers, other.Approvers = []string{"chat/a_b"}, []string{"chat/<c>", "chat/a_b"}, []string{"chat/axb"}
		other.Text = `"chat/a_b" may not.`
		b.ask(l, "r1", mine, ours, other, question("q4"))
		ids := func(people ...string) (ids []string) {
			for _, q := range ok(b.OpenQuestionsFor(b.ctx, people, 100))(b) {
				ids = append(ids, q.ID)
			}
			return ids
		}
		b.equal("of one", ids("chat/a_b"), []string{"q1", "q2"})
		b.equal("of another", ids("chat/<c>"), []string{"q2"})
		b.equal("of two", ids("chat/axb", "chat/<c>"), []string{"q2", "q3"})
		b.equal("of none", ids("chat/b", "q4"), []string(nil))
		b.equal("no people", ids(), []string(nil))
		b.equal("limit", len(ok(b.OpenQuestionsFor(b.ctx, []string{"chat/a_b"}, 1))(b)), 1)
		b.to(b.agent, answered("q1", "a", "r1"))
		b.equal("answered", ids("chat/a_b"), []string{"q2"})
	}},
	{"refused", func(b *bed) {
		l, _ := b.begin("r1")
		_, err := b.Question(b.ctx, "q1")
		b.is(err, storage.ErrNotFound)
		if b.Suspend(b.ctx, l, "r1", asking(claybot.Question{Text: "?"})) == nil {
			b.Fatal("a question without an id")
		}
		b.ask(l, "r1", question("q1"))
		b.agent = b.newAgent("C2")
		l, _ = b.begin("r2")
		if b.Suspend(b.ctx, l, "r2", asking(question("q2"), question("q1"))) == nil {
			b.Fatal("the question of another run")
		}
		b.equal("untouched", []any{b.run("r2").State, ok(b.Question(b.ctx, "q1"))(b).Run}, []any{claybot.RunRunning, "r1"})
		b.open("", "q1")
	}},
	{"removed with their run", func(b *bed) {
		l, _ := b.begin("r1")
		b.ask(l, "r1", question("q1"))
		b.to(b.agent, answered("q1", "a", "r1"))
		h, _ := b.resume("r1")
		b.succeed(h.Lease, "r1")
		b.noError(b.Prune(b.ctx, time.Now().Add(89*24*time.Hour), Retention))
		ok(b.Question(b.ctx, "q1"))(b)
		b.noError(b.Prune(b.ctx, time.Now().Add(91*24*time.Hour), Retention))
		_, err := b.Question(b.ctx, "q1")
		b.is(err, storage.ErrNotFound)
	}},
}
