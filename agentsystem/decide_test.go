package agentsystem_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// decides posts /approve or /deny, and returns how that is answered.
func (r *rig) decides(by claybot.Descriptor, id, name, text string) string {
	r.Helper()
	r.post(by, decision(by, id, name, text))
	synctest.Wait()
	said := ""
	for _, o := range r.receipt(claybot.MessageID(id)).Replies {
		said += o.Text
	}
	return said
}

func decision(by claybot.Descriptor, id, name, text string) claybot.AgentMessage {
	m := command(id, name)
	m.Text, m.From = text, claybot.Sender{UserID: by.UserID}
	return m
}

// saidTo is what was said to a question, as "value scope reason"; empty for
// nothing.
func (r *rig) saidTo(q claybot.Question) string {
	r.Helper()
	got, err := r.system.Questions.Answers.Question(r.Context(), q.ID)
	if err != nil {
		r.Fatal(err)
	}
	if got.Answer == nil {
		return ""
	}
	return strings.TrimSpace(strings.Join([]string{string(got.Answer.Value), string(got.Answer.Scope), got.Answer.Reason}, " "))
}

func TestDecide(t *testing.T) {
	t.Parallel()
	one, two := []string{"Pay?"}, []string{"Pay?", "Also?"}
	for _, tt := range []struct {
		open       []string
		name, text string // ID stands for the id of the last question
		reply      string // its beginning
		said       string // to the last question
	}{
		{nil, "approve", "", "Nothing needs", ""},
		{nil, "deny", "no", "Nothing needs", ""},
		{nil, "approve", "abcdef", "No pending approval", ""},
		{one, "approve", "", "Approved.", "true"},
		{one, "approve", "ID", "Approved.", "true"},
		{one, "approve", "ID[:6]", "Approved.", "true"},
		{one, "approve", "ID[:4] session", "Approved.", "true session"},
		{one, "approve", "ID[:6] always", "Approved.", "true always"},
		{one, "approve", "always", "Approved.", "true always"},
		{one, "approve", "ID[:6]  please", "I don't understand", ""},
		{one, "approve", "ID[:3]", "No pending approval", ""},
		{one, "approve", "IDx", "No pending approval", ""},
		{one, "approve", "' OR 1=1", "No pending approval", ""},
		{one, "deny", "", "Denied.", "false"},
		{one, "deny", "ID[:6]", "Denied.", "false"},
		{one, "deny", "ID[:6]   too dear ", "Denied.", "false  too dear"},
		{one, "deny", "too dear", "Denied.", "false  too dear"},
		{one, "deny", "always", "Denied.", "false  always"},
		{two, "approve", "", "Several actions need", ""},
		{two, "deny", "too dear", "Several actions need", ""},
		{two, "approve", "ID[:6]", "Approved.", "true"},
		{two, "deny", "ID[:6] too dear", "Denied.", "false  too dear"},
	} {
		bubble(t, func(r *rig) {
			r.approving()
			var last claybot.Question
			for _, text := range tt.open {
				d := claybot.User("chat", "dm-"+text, "user"+text)
				last = r.asksFor(d, "ask "+text, payment(text, "chat/bob"))[text]
			}
			text := tt.text
			for _, cut := range []struct {
				name string
				n    int
			}{{"ID[:3]", 3}, {"ID[:4]", 4}, {"ID[:6]", 6}, {"ID", len(last.ID)}} {
				if last.ID != "" {
					text = strings.ReplaceAll(text, cut.name, last.ID[:cut.n])
				}
			}
			if len(tt.open) == 1 && strings.HasPrefix(tt.text, "ID[:6]") {
				text = strings.ToUpper(text[:6]) + text[6:]
			}
			if got := r.decides(bob, "cmd", tt.name, text); !strings.HasPrefix(got, tt.reply) {
				t.Errorf("/%s %s: %q, want %q", tt.name, tt.text, got, tt.reply)
			}
			if last.ID != "" && r.saidTo(last) != tt.said {
				t.Errorf("/%s %s: %q was said, want %q", tt.name, tt.text, r.saidTo(last), tt.said)
			}
			if got := r.decides(ann, "other", "approve", ""); got != "Nothing needs your approval." {
				t.Errorf("another person: %q", got)
			}
		})
	}
}

// asksTwice is an engine that has two approvals, one after another.
func asksTwice(ctx context.Context, t *runs.Turn, yield func(claybot.Record, error) bool) {
	for _, text := range []string{"First?", "Second?"} {
		q := payment(text, "chat/bob").Question
		_, wait, err := t.Ask(ctx, text, []claybot.Question{q})
		switch {
		case err != nil:
			yield(claybot.Record{}, err)
			return
		case wait != nil:
			yield(claybot.Record{}, &runs.WaitError{Awaiting: *wait})
			return
		}
	}
	yield(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: "both"}, nil)
}

// A command that comes again decides nothing that it did not decide the first
// time: neither what was asked since, nor what there was too much of then.
func TestDecisionComesAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.approving()
		if got := r.decides(bob, "early", "approve", ""); got != "Nothing needs your approval." {
			t.Errorf("early: %q", got)
		}
		first := r.asksFor(ann, "one", payment("Pay?", "chat/bob"))["Pay?"]
		r.decides(bob, "early", "approve", "")
		if got := r.saidTo(first); got != "" {
			t.Errorf("the command from before the question says %q to it", got)
		}
		r.decides(bob, "now", "approve", "")
		second := r.asksFor(ann, "two", payment("Pay?", "chat/bob"))["Pay?"]
		if got := r.decides(bob, "now", "approve", ""); got != "Approved." || r.saidTo(first) != "true" || r.saidTo(second) != "" {
			t.Errorf("%q; %q and %q was said", got, r.saidTo(first), r.saidTo(second))
		}
	})
}

// The process dies at every step around /approve, and the platform sends it
// again to the next one, when the run has asked for the next thing already.
func TestCrashAroundADecision(t *testing.T) {
	t.Parallel()
	steps, every := 1, 1
	if raced || testing.Short() {
		every = 3
	}
	for k := 1; k <= steps; k += every {
		bubble(t, func(r *rig) {
			r.approving()
			r.engine = engineFunc(asksTwice)
			r.restart()
			r.post(ann, msg("begin", "begin"))
			synctest.Wait()
			first := r.open()[0].Question
			before := len(r.fuse.steps)
			r.fuse.blowIn(k)
			m := decision(bob, "cmd", "approve", "")
			if err := r.system.Post(r.Context(), bob, m); err != nil && !r.fuse.dead() {
				t.Fatal(err)
			}
			synctest.Wait()
			if !r.fuse.dead() {
				steps = k
				return
			}
			steps = k + every
			t.Logf("the process died behind %q", r.fuse.steps[before:])
			r.crash()
			r.start()
			after(20 * time.Second)
			r.post(bob, m)
			after(20 * time.Second)
			var left []claybot.Question
			for _, q := range r.open() {
				left = append(left, q.Question)
			}
			if r.saidTo(first) != "true" || len(left) != 1 || left[0].Text != "Second?" {
				t.Errorf("k=%d: %q was said to the first, open are %+v", k, r.saidTo(first), left)
			}
			if got := r.chat.seen("dm-bob"); len(got) != 2 || got[1] != "Approved." {
				t.Errorf("k=%d: bob sees %q", k, got)
			}
		})
	}
	if steps < 4 {
		t.Errorf("only %d steps: the test does not see them", steps)
	}
}

// What a program without the scope approve types approves and denies nothing: neither as a
// command nor as a text. It may still answer questions that are no approvals.
func TestProgramsDecideNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.approving()
		q := r.asksFor(ann, "ask", payment("Pay?"))["Pay?"]
		program := func(m claybot.AgentMessage) claybot.AgentMessage {
			m.From.Program = true
			return m
		}
		for _, name := range []string{"approve", "deny"} {
			for _, text := range []string{"", q.ID[:6]} {
				id := claybot.MessageID(name + text)
				r.post(ann, program(decision(ann, string(id), name, text)))
				synctest.Wait()
				if said := r.receipt(id).Replies; len(said) != 1 || !strings.Contains(said[0].Text, "scope approve") {
					t.Errorf("/%s %s: %+v", name, text, said)
				}
			}
		}
		for _, text := range []string{"yes", "no"} {
			r.post(ann, program(msg(text, text)))
			synctest.Wait()
			if got := r.receipt(claybot.MessageID(text)); got.Skipped != "" {
				t.Errorf("%q was %q", text, got.Skipped)
			}
		}
		if got := r.saidTo(q); got != "" {
			t.Fatalf("a program answered %q", got)
		}
		always := decision(ann, "always", "approve", q.ID[:6]+" always")
		always.From.NoRules = true
		r.post(ann, always)
		synctest.Wait()
		if said := r.receipt("always").Replies; len(said) != 1 || !strings.Contains(said[0].Text, "scope admin") || r.saidTo(q) != "" {
			t.Errorf("always without the right to change settings: %+v, %q", said, r.saidTo(q))
		}
		if got := r.decides(ann, "person", "approve", q.ID[:6]); got != "Approved." || r.saidTo(q) != "true" {
			t.Errorf("the person: %q, %q", got, r.saidTo(q))
		}
	})
}
