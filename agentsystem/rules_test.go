package agentsystem_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
)

// editable is payment with arguments that may be edited.
func editable(text string) askedFor {
	a := payment(text)
	a.Question.Args, a.Question.Rule = `{"sum":5}`, "pay(5)"
	return a
}

// fits takes arguments that name a sum.
func fits(_ claybot.Agent, call claybot.ToolCall) error {
	if call.Name != "pay" || !strings.Contains(call.Args, "sum") {
		return errors.New("field sum is missing")
	}
	return nil
}

// Arguments that do not fit keep the question open and say why; those that fit
// are the answer, by whatever way.
func TestEditedApproval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		say   func(r *rig, id, args string) string
		first string // what is said to bad arguments
	}{
		{"command", func(r *rig, _, args string) string { return r.decides(bob, "cmd"+args, "approve", args) }, "These arguments aren't valid: field sum is missing."},
		{"command with id", func(r *rig, id, args string) string { return r.decides(bob, "cmd"+args, "approve", id[:6]+" "+args) }, "These arguments aren't valid: field sum is missing."},
		{"form", func(r *rig, id, args string) string {
			return r.press(bob, id, "approve", func(t *connectors.Press) { t.Answer.Args = args }).Text
		}, "These arguments aren't valid: field sum is missing."},
	} {
		bubble(t, func(r *rig) {
			r.approving()
			r.system.Questions.Answers.CheckEdit = fits
			q := r.asksFor(bob, "ask", editable("Pay?"))["Pay?"]
			if got := tt.say(r, q.ID, `{"total":3}`); !strings.HasPrefix(got, tt.first) || r.saidTo(q) != "" {
				t.Errorf("%s: %q, and said is %q", tt.name, got, r.saidTo(q))
			}
			tt.say(r, q.ID, `{"sum": 3}`)
			got, err := r.system.Questions.Answers.Question(r.Context(), q.ID)
			if err != nil || got.Answer == nil || got.Answer.Args != `{"sum": 3}` || string(got.Answer.Value) != "true" {
				t.Errorf("%s: %+v, %v", tt.name, got.Answer, err)
			}
		})
	}
}

// Arguments go with one approval alone, of an action that has some.
func TestEditThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		q    askedFor
		said claybot.Answer
		want string
	}{
		{editable("Pay?"), claybot.Answer{Text: "deny"}, "You can only change the arguments when you approve."},
		{editable("Pay?"), claybot.Answer{Text: "approve", Scope: claybot.ApproveAlways}, "can only be approved once"},
		{payment("Pay?"), claybot.Answer{Text: "approve"}, "The arguments of this action can't be changed"},
	} {
		bubble(t, func(r *rig) {
			r.approving()
			r.system.Questions.Answers.CheckEdit = fits
			q := r.asksFor(bob, "ask", tt.q)["Pay?"]
			tt.said.Args, tt.said.By, tt.said.Via = `{"sum":3}`, "operator", claybot.ViaWeb
			var unfit *questions.AnswerError
			err := r.system.Questions.Answers.AnswerQuestion(r.Context(), q.ID, tt.said)
			if !errors.As(err, &unfit) || !strings.Contains(unfit.Faults["Pay?"], tt.want) || r.saidTo(q) != "" {
				t.Errorf("%+v: %v", tt.said, err)
			}
		})
	}
}

// What was approved for good is listed with who and when, until it is removed.
func TestRules(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.approving()
		q := r.asksFor(bob, "ask", editable("Pay?"))["Pay?"]
		r.press(bob, q.ID, "approve", func(t *connectors.Press) { t.Answer.Scope = claybot.ApproveAlways })
		synctest.Wait()
		id := r.agent(bob)
		all, err := r.system.Profiles.ApprovedRules(r.Context(), "")
		if err != nil || len(all) != 1 || all[0].Rule != "pay(5)" || all[0].Agent != id || all[0].By != "chat/bob" || all[0].At == 0 {
			t.Fatalf("%+v, %v", all, err)
		}
		if other, _ := r.system.Profiles.ApprovedRules(r.Context(), "another"); len(other) != 0 {
			t.Errorf("another agent has %v", other)
		}
		if err := r.system.Profiles.RemoveRule(r.Context(), id, "pay"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("a rule that is not there: %v", err)
		}
		if err := r.system.Profiles.RemoveRule(r.Context(), id, "pay(5)"); err != nil {
			t.Fatal(err)
		}
		if all, _ = r.system.Profiles.ApprovedRules(r.Context(), ""); len(all) != 0 || len(r.system.Profiles.OwnSettings(id).ApprovedBy) != 0 {
			t.Errorf("%v is left", all)
		}
	})
}
