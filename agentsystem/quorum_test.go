package agentsystem_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// quorum asks for the approvals of two people, one after another, and says what
// it heard.
func quorum(first claybot.Question, rest func(by string) claybot.Question) engineFunc {
	return func(ctx context.Context, t *runs.Turn, yield func(claybot.Record, error) bool) {
		said, by := "heard", ""
		for _, round := range []string{"one", "two"} {
			q := first
			if round == "two" {
				q = rest(by)
			}
			answers, wait, err := t.Ask(ctx, round, []claybot.Question{q})
			if wait != nil {
				err = &runs.WaitError{Awaiting: *wait}
			}
			if err != nil {
				yield(claybot.Record{}, err)
				return
			}
			by = answers[0].By
			said += " " + string(answers[0].Value) + " by " + by
		}
		yield(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: said}, nil)
	}
}

// vote begins a run of Ann that two people approve, of whom by does first, and
// returns the question that has an answer and the one that is open.
func (r *rig) vote(by string, approvers, left []string) (before, now claybot.Question) {
	r.Helper()
	r.approving()
	ask := func(by []string, who []string) claybot.Question {
		q := payment("Pay?", who...).Question
		q.Need, q.ApprovedBy, q.ToolCallID, q.Args = 2, by, "c1", `{"sum":5}`
		return q
	}
	r.engine = quorum(ask(nil, approvers), func(by string) claybot.Question { return ask([]string{by}, left) })
	r.restart()
	before = r.asksFor(ann, "begin")["Pay?"]
	said := claybot.Answer{Text: "approve", By: by, Via: claybot.ViaButton}
	if !strings.Contains(by, "/") {
		said.Via = claybot.ViaHTTP
	}
	if err := r.system.Questions.Answers.AnswerQuestion(r.Context(), before.ID, said); err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
	open, err := r.system.Questions.Answers.OpenQuestions(r.Context(), "")
	if err != nil || len(open) != 1 || open[0].ID == before.ID {
		r.Fatalf("open are %+v, %v", open, err)
	}
	next, ok := questions.NextApproval(before, open[0].Run, open)
	if !ok || next.ID != open[0].ID {
		r.Errorf("the approval that follows is %+v", next)
	}
	return before, open[0].Question
}

const approvedAlready = "You have already approved this; it still needs another approval."

// Who approves again uses up nothing: the question stays open for the others.
// This goes for operators together, who count once, and a no is heard.
func TestSecondYesOfTheSamePerson(t *testing.T) {
	t.Parallel()
	both := []string{"chat/ann", "chat/bob"}
	t.Run("operators", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(r *rig) {
			_, now := r.vote("operator", both, both)
			for _, by := range []string{"operator", "token:ci"} {
				for _, via := range []claybot.AnswerVia{claybot.ViaHTTP, claybot.ViaWeb} {
					err := r.system.Questions.Answers.AnswerQuestion(r.Context(), now.ID, claybot.Answer{Text: "approve", By: by, Via: via})
					if !errors.Is(err, questions.ErrApproved) {
						t.Errorf("%s again, %s: %v", by, via, err)
					}
				}
			}
			if got := r.saidTo(now); got != "" {
				t.Fatalf("a refused yes is stored: %q", got)
			}
			if got := r.decides(bob, "bob", "approve", now.ID); got != "Approved." {
				t.Errorf("bob reads %q", got)
			}
			if got := r.history(ann); got[len(got)-1] != "assistant_message heard true by operator true by chat/bob" {
				t.Errorf("history is %q", got)
			}
		})
	})
	t.Run("in a chat", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(r *rig) {
			before, now := r.vote("chat/ann", both, both[1:])
			if got := r.chat.seen("dm-ann"); !strings.HasPrefix(got[len(got)-1], "I'm waiting for approval by `Ann` (1 of 2 approvals). ") {
				t.Errorf("ann sees %q", got)
			}
			if got := r.chat.seen("room"); !strings.Contains(got[len(got)-1], "*1 of 2 approvals. Answer with `/approve ") {
				t.Errorf("bob sees %q", got)
			}
			for i, text := range []string{"", now.ID, now.ID[:6], before.ID, "session"} {
				if got := r.decides(ann, "again"+string(rune('a'+i)), "approve", text); got != approvedAlready {
					t.Errorf("/approve %s: ann reads %q", text, got)
				}
			}
			if got := r.press(ann, now.ID, "approve"); got.OK || !got.Again || got.Text != approvedAlready {
				t.Errorf("a press: ann reads %+v", got)
			}
			next := "It now waits for another approval as question " + now.ID[:6] + "."
			if got := r.decides(bob, "old", "approve", before.ID[:8]); got != "That has already been answered. "+next+" Send `/approve "+now.ID[:6]+"`." {
				t.Errorf("bob approves what has an answer, and reads %q", got)
			}
			if got := r.press(ann, before.ID, "approve"); got.OK || !strings.HasSuffix(got.Text, next) {
				t.Errorf("a press on the old question: %+v", got)
			}
			if got := r.decides(bob, "odd", "approve", "zzzzzz"); got != "No pending approval has that id." {
				t.Errorf("an id of nothing: %q", got)
			}
			if got := r.saidTo(now); got != "" {
				t.Fatalf("a refused yes is stored: %q", got)
			}
			if got := r.decides(ann, "no", "deny", now.ID+" on second thoughts"); got != "Denied." {
				t.Errorf("ann denies, and reads %q", got)
			}
			if got := r.history(ann); got[len(got)-1] != "assistant_message heard true by chat/ann false by chat/ann" {
				t.Errorf("history is %q", got)
			}
		})
	})
	t.Run("other arguments", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(r *rig) {
			_, now := r.vote("operator", both, both)
			r.system.Questions.Answers.CheckEdit = func(claybot.Agent, claybot.ToolCall) error { return nil }
			said := claybot.Answer{Text: "approve", By: "operator", Via: claybot.ViaHTTP, Args: `{"sum":4}`}
			if err := r.system.Questions.Answers.AnswerQuestion(r.Context(), now.ID, said); err != nil {
				t.Error(err)
			}
			if err := r.system.Questions.Answers.AnswerQuestion(r.Context(), now.ID, said); !errors.Is(err, storage.ErrState) {
				t.Errorf("what has an answer: %v", err)
			}
		})
	})
}
