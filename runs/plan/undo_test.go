package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/texts"
)

// effect is one that a tool had with a word, and how it is taken back; with no
// tool, nothing does.
func effect(step, tool, word, back string) claybot.Undo {
	u := claybot.Undo{Step: step, Tool: tool, What: tool + " " + word}
	if back != "" {
		u.Call = &claybot.ToolCall{Name: back, Args: `{"word":"` + word + `"}`}
	}
	return u
}

// undo makes the run one that takes effects back.
func (d *desk) undo(all ...claybot.Undo) {
	d.messages[0].Type, d.messages[0].Undo = claybot.MessageSystem, &claybot.Undoing{Run: "old", Effects: all}
	d.records[0].Type, d.records[0].Text = claybot.RecordSystem, "Take back what run old did."
}

func TestUndo(t *testing.T) {
	h, d := newHand(), newDesk("")
	d.undo(
		effect("a", "put", "1", "unput"), effect("b", "mail", "2", ""), effect("c", "put", "3", "unput"),
		effect("d", "put", "1", "unput"), effect("e", "put", "5", "gone"), effect("f", "put", "6", "unput"),
	)
	h.faults["unput"] = []error{nil, errors.New("it is used")}
	g := plan.NewUndo(config(nil, h.set(t), plan.Policy{}))
	if err := d.run(t, g, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"unput 6", "unput 3"}; !slices.Equal(h.words, want) {
		t.Errorf("did %q, want %q", h.words, want)
	}
	want := "Undone:\n- put 6\n- put 3\n\n" +
		"Could not be undone:\n- put 5: unknown tool \"gone\"\n- put 1; put 1: it is used\n\n" +
		"Cannot be undone:\n- mail 2"
	if d.said() != want {
		t.Errorf("said %s, want %s", d.said(), want)
	}
	if q, f, x := d.count(claybot.EventUndoQueued), d.count(claybot.EventUndoFinished), d.count(claybot.EventUndoFailed); q != 5 || f+x != 5 {
		t.Errorf("%d queued, %d finished, %d failed", q, f, x)
	}
	if out := d.output(t); len(out.Undo) != 0 {
		t.Errorf("an undo has effects: %+v", out.Undo)
	}
	for _, r := range d.records {
		if r.Undo != nil {
			t.Errorf("an undo has an effect: %+v", r)
		}
	}
	for _, st := range runs.PlanOf(d.events).Steps {
		if st.Status != runs.StepOK && st.Status != runs.StepFailed {
			t.Errorf("the page shows %s as %s", st.ID, st.Status)
		}
	}
	d.valid(t)
}

func TestUndoNothing(t *testing.T) {
	for name, all := range map[string][]claybot.Undo{
		"There is nothing to undo.":            nil,
		"Cannot be undone:\n- mail 1":          {effect("a", "mail", "1", "")},
		"Cannot be undone:\n- put 1":           {{Step: "a", Tool: "put", What: "put 1", Call: &claybot.ToolCall{Name: "unput", Args: "{"}}},
		"Cannot be undone:\n- using send mail": {{Step: "a_1", Tool: "send_mail"}},
	} {
		h, d := newHand(), newDesk("")
		d.undo(all...)
		if err := d.run(t, plan.NewUndo(config(nil, h.set(t), plan.Policy{})), nil); err != nil {
			t.Fatal(err)
		}
		if d.said() != name || len(h.words) > 0 {
			t.Errorf("said %q, want %q", d.said(), name)
		}
		d.valid(t)
	}
}

// The policy and its approvals hold for undo.
func TestUndoByPolicy(t *testing.T) {
	for name, x := range map[string]struct {
		policy plan.Policy
		say    string
		did    []string
		said   string
	}{
		"approved": {plan.Policy{}, "true", []string{"unpay 2", "unput 1"}, "Undone:\n- pay 2\n- put 1"},
		"denied":   {plan.Policy{}, "false", []string{"unput 1"}, "Undone:\n- put 1\n\nNot run:\n- pay 2: not approved"},
		"auto":     {plan.Policy{Mode: plan.ModeAuto}, "", []string{"unpay 2", "unput 1"}, "Undone:\n- pay 2\n- put 1"},
		"preview":  {plan.Policy{Mode: plan.ModePreview}, "", nil, "Would be undone:\n- pay 2\n- put 1\n\nNothing was run: plans are only shown here."},
		"denied tool": {
			plan.Policy{Mode: plan.ModeAuto, Deny: []string{"unpay"}},
			"",
			[]string{"unput 1"},
			"Undone:\n- put 1\n\nNot run:\n- pay 2: the policy does not allow it",
		},
		"what only undo uses": {plan.Policy{Mode: plan.ModeAuto, Allow: []string{"p*"}}, "", []string{"unpay 2", "unput 1"}, "Undone:\n- pay 2\n- put 1"},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("")
			d.undo(effect("a", "put", "1", "unput"), effect("b", "pay", "2", "unpay"))
			say := func(claybot.Question) claybot.Answer {
				return claybot.Answer{Value: json.RawMessage(x.say), By: "web/ann"}
			}
			if x.say == "" {
				say = nil
			}
			if err := d.run(t, plan.NewUndo(config(nil, h.set(t), x.policy)), say); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(h.words, x.did) || d.said() != x.said {
				t.Errorf("did %q, said %s", h.words, d.said())
			}
			if calls := len(strings.Fields(d.waves())); calls != len(x.did) || len(d.started) != len(x.did) {
				t.Errorf("%d calls, %d started", calls, len(d.started))
			}
			queued := 2
			if x.policy.Mode == plan.ModePreview {
				queued = 0
			}
			if n := d.count(claybot.EventUndoQueued); n != queued {
				t.Errorf("%d are queued", n)
			}
		})
	}
}

// An undo that is held back, or that is not approved, has not begun to take back
// anything: it records no call and starts no tool.
func TestUndoHeld(t *testing.T) {
	for name, x := range map[string]struct {
		policy plan.Policy
		say    string
		change func(*plan.Policy) // while the question waits
		said   string
	}{
		"preview":       {plan.Policy{Mode: plan.ModePreview}, "", nil, "plans are only shown here"},
		"quiet, shown":  {plan.Policy{Quiet: &plan.Quiet{To: 24 * 60, What: plan.QuietPlanOnly}}, "", nil, "it is quiet until"},
		"quiet, no":     {plan.Policy{Quiet: &plan.Quiet{To: 24 * 60, What: plan.QuietDefer}}, "false", nil, "you did not want it during quiet hours"},
		"denied":        {plan.Policy{}, "false", nil, "Not run:\n- pay 2: not approved"},
		"shown by now":  {plan.Policy{}, "true", func(p *plan.Policy) { p.Mode = plan.ModePreview }, "plans are only shown here"},
		"not his now":   {plan.Policy{}, "true", func(p *plan.Policy) { p.Approvers = []string{"web/bob"} }, "Not run:\n- pay 2: not approved"},
		"no tool, held": {plan.Policy{Mode: plan.ModePreview}, "", nil, "plans are only shown here"},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("")
			back := "unpay"
			if name == "no tool, held" {
				back = "gone"
			}
			d.undo(effect("b", "pay", "2", back))
			c := config(nil, h.set(t), x.policy)
			policy := x.policy
			c.Policy = func(claybot.Agent) plan.Policy { return policy }
			say := func(claybot.Question) claybot.Answer {
				if x.change != nil {
					x.change(&policy)
				}
				return value(x.say)
			}
			if x.say == "" {
				say = nil
			}
			if err := d.run(t, plan.NewUndo(c), say); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(d.said(), x.said) {
				t.Errorf("said %s", d.said())
			}
			if d.waves() != "" || len(d.started) > 0 || len(h.words) > 0 || d.usage.ToolCalls > 0 {
				t.Errorf("calls %q, started %v, did %q", d.waves(), d.started, h.words)
			}
		})
	}
}

// An approval of an undo names the date of what is undone: it may be read a day later.
func TestUndoAsksWithDates(t *testing.T) {
	h, d := newHand(), newDesk("")
	reminder := effect("a", "remind_me", "1", "unpay")
	due := time.Now().Add(12 * time.Hour).UTC()
	reminder.What = fmt.Sprintf(texts.DidRemind, due.Format(time.RFC3339))
	d.undo(reminder)
	asked := ""
	err := d.run(t, plan.NewUndo(config(nil, h.set(t), plan.Policy{})), func(q claybot.Question) claybot.Answer {
		asked = q.Text
		return claybot.Answer{Value: json.RawMessage("true"), By: "web/ann"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := due.Format("It undoes: set a reminder for Monday, 2 January"); !strings.Contains(asked, want) {
		t.Errorf("asked %s\nwant %s", asked, want)
	}
}
