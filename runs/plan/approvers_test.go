package plan_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs/plan"
)

// linked are people with several ids.
func linked(owner string) []string {
	for _, ids := range [][]string{{"slack/U1", "telegram/1", "web/operator"}, {"slack/U2", "telegram/2"}} {
		if slices.Contains(ids, owner) {
			return slices.Clone(ids)
		}
	}
	return []string{owner}
}

func approvedBy(who string) claybot.Answer {
	return claybot.Answer{Value: json.RawMessage("true"), By: who}
}

// A person counts once, under whatever id he answers.
func TestPeopleApprove(t *testing.T) {
	all := []string{"slack/U1", "slack/U2", "slack/U3"}
	for name, x := range map[string]struct {
		approvers []string
		by        []string // of each round
		asked     []string // in each round
		did       bool
		want      string
	}{
		"two people": {all, []string{"telegram/2", "slack/U1"}, []string{"slack/U1 slack/U2 slack/U3", "slack/U1 slack/U3"}, true, "All is done."},
		"one with two ids": {
			all,
			[]string{"slack/U1", "telegram/1", "telegram/1", "slack/U1"},
			[]string{"slack/U1 slack/U2 slack/U3", "slack/U2 slack/U3", "slack/U2 slack/U3", "slack/U2 slack/U3"},
			false, "not approved by 2 different people",
		},
		"both ids are named": {
			[]string{"slack/U1", "telegram/1", "slack/U3"},
			[]string{"telegram/1", "slack/U3"},
			[]string{"slack/U1 slack/U3", "slack/U3"},
			true, "All is done.",
		},
		"only one is named": {[]string{"slack/U1", "telegram/1"}, nil, nil, false, "not approved: it needs the approvals of 2 different people, and 1 may give one"},
		"an operator and another": {
			all,
			[]string{"operator", "slack/U2"},
			[]string{"slack/U1 slack/U2 slack/U3", "slack/U2 slack/U3"},
			true, "All is done.",
		},
		"an operator in his chat": {
			all,
			[]string{"operator", "telegram/1", "slack/U3"},
			[]string{"slack/U1 slack/U2 slack/U3", "slack/U2 slack/U3", "slack/U2 slack/U3"},
			true, "All is done.",
		},
		"two operators": {
			all,
			[]string{"operator", "token:ci", "slack/U3"},
			[]string{"slack/U1 slack/U2 slack/U3", "slack/U2 slack/U3", "slack/U2 slack/U3"},
			true, "All is done.",
		},
		"who is not known": {
			all,
			[]string{"", "slack/U2", "slack/U3"},
			[]string{"slack/U1 slack/U2 slack/U3", "slack/U1 slack/U2 slack/U3", "slack/U1 slack/U3"},
			true, "All is done.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			c := config(thinks(steps(step("a", "pay", "1"))), h.set(t), plan.Policy{Approvals: 2, Approvers: x.approvers})
			c.People = linked
			var asked []string
			err := d.run(t, plan.New(c), func(q claybot.Question) claybot.Answer {
				asked = append(asked, strings.Join(q.Approvers, " "))
				return approvedBy(x.by[len(asked)-1])
			})
			if err != nil || (len(h.words) == 1) != x.did || !strings.Contains(d.said(), x.want) {
				t.Errorf("%v, did %q, said %s", err, h.words, d.said())
			}
			if !slices.Equal(asked, x.asked) {
				t.Errorf("asked %q, want %q", asked, x.asked)
			}
		})
	}
}

// Whose word was asked for and who is named no more when he gives it does not
// approve anything.
func TestApproversChange(t *testing.T) {
	for name, x := range map[string]struct {
		before, now []string
		by          string
		did         bool
	}{
		"still named":            {[]string{"slack/U1"}, []string{"slack/U1", "slack/U3"}, "slack/U1", true},
		"named by another id":    {[]string{"slack/U1"}, []string{"telegram/1"}, "slack/U1", true},
		"removed":                {[]string{"slack/U1", "slack/U3"}, []string{"slack/U3"}, "slack/U1", false},
		"removed, his other id":  {[]string{"slack/U1", "slack/U3"}, []string{"slack/U3"}, "telegram/1", false},
		"an operator":            {[]string{"slack/U1"}, []string{"slack/U3"}, "operator", true},
		"the own person, before": {nil, []string{"slack/U3"}, "web/ann", false},
		"the own person, now":    {[]string{"slack/U1"}, nil, "slack/U1", false},
		"the own person, always": {nil, nil, "web/ann", true},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			policy := plan.Policy{Approvers: x.before}
			c := config(thinks(steps(step("a", "pay", "1"))), h.set(t), policy)
			c.Policy, c.People = func(claybot.Agent) plan.Policy { return policy }, linked
			wait, err := d.pass(t.Context(), plan.New(c))
			if err != nil || wait == nil {
				t.Fatal(wait, err)
			}
			policy.Approvers = x.now
			d.answer(t, wait, "a", approvedBy(x.by))
			if wait, err = d.pass(t.Context(), plan.New(c)); err != nil || wait != nil {
				t.Fatal(wait, err)
			}
			if (len(h.words) == 1) != x.did || !x.did && !strings.Contains(d.said(), "a (pay): not approved") {
				t.Errorf("did %q, said %s", h.words, d.said())
			}
		})
	}
}

// An approver who is removed while others are asked, or while the steps run, has
// not approved.
func TestApproverRemovedLater(t *testing.T) {
	policy := plan.Policy{Approvals: 2, Approvers: []string{"slack/U1", "slack/U2", "slack/U3"}}
	var asked []string
	h, d := newHand(), newDesk("go")
	c := config(thinks(steps(step("a", "pay", "1"))), h.set(t), policy)
	c.Policy, c.People = func(claybot.Agent) plan.Policy { return policy }, linked
	by := []string{"slack/U1", "slack/U2", "slack/U3"}
	err := d.run(t, plan.New(c), func(q claybot.Question) claybot.Answer {
		asked = append(asked, strings.Join(q.Approvers, " "))
		if len(asked) == 2 {
			policy.Approvers = policy.Approvers[1:]
		}
		return approvedBy(by[len(asked)-1])
	})
	if want := []string{"slack/U1 slack/U2 slack/U3", "slack/U2 slack/U3", "slack/U3"}; err != nil || !slices.Equal(asked, want) || len(h.words) != 1 {
		t.Errorf("%v, asked %q, did %q", err, asked, h.words)
	}

	h, d = newHand(), newDesk("go")
	policy = plan.Policy{Approvers: []string{"slack/U1"}}
	c = config(thinks(steps(step("a", "put", "1"), step("b", "pay", "2"))), h.set(t), policy)
	c.Policy = func(claybot.Agent) plan.Policy { return policy }
	wait, err := d.pass(t.Context(), plan.New(c))
	if err != nil || wait == nil {
		t.Fatal(wait, err)
	}
	d.answer(t, wait, "b", approvedBy("slack/U1"))
	d.keep = true
	d.after = func(op string) { d.dead = d.dead || strings.HasPrefix(op, "start a") }
	if _, err := d.pass(t.Context(), plan.New(c)); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	d.after = nil
	policy.Approvers = []string{"slack/U3"}
	if err := d.run(t, plan.New(c), nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.words, []string{"put 1"}) || !strings.Contains(d.said(), "b (pay): not approved") {
		t.Errorf("did %q, said %s", h.words, d.said())
	}
}

// What several people decide, or people who are named, is decided each time: no
// word of one of them, nor a rule, counts for later.
func TestApprovedOnce(t *testing.T) {
	for name, x := range map[string]struct {
		policy plan.Policy
		once   bool
	}{
		"the own person": {plan.Policy{}, false},
		"an approver":    {plan.Policy{Approvers: []string{"web/bob"}}, true},
		"several":        {plan.Policy{Approvals: 2, Approvers: []string{"web/bob", "web/cyd"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			for round := range 2 {
				if round == 1 { // the next run of the agent
					for i := range d.records {
						d.records[i].Run = "old"
					}
					next := newDesk("go")
					next.records = append(d.records, next.records...)
					d = next
				}
				c := config(thinks(steps(step("a", "pay", "1"))), h.set(t), x.policy)
				asked := 0
				err := d.run(t, plan.New(c), func(q claybot.Question) claybot.Answer {
					asked++
					if q.Once != x.once {
						t.Errorf("once is %v", q.Once)
					}
					a := value("true")
					if len(q.Approvers) > 0 {
						a.By = q.Approvers[0]
					}
					a.Scope = claybot.ApproveSession
					return a
				})
				if err != nil || (asked > 0) != (round == 0 || x.once) {
					t.Errorf("round %d: %v, %d asked", round, err, asked)
				}
			}
		})
	}
	for name, x := range map[string]claybot.Record{
		"a rule":      {},
		"his session": {Type: claybot.RecordAnswer, Run: "old", Answer: &claybot.Answer{Question: "q", Value: json.RawMessage("true"), Scope: claybot.ApproveSession}},
	} {
		h, d := newHand(), newDesk("go")
		c := config(thinks(steps(step("a", "pay", "1"))), h.set(t), plan.Policy{Approvers: []string{"web/bob"}})
		if x.Type == "" {
			c.Approved = func(claybot.Agent) []string { return []string{"pay"} }
		} else {
			asked := claybot.Record{Type: claybot.RecordQuestion, Run: "old", Question: &claybot.Question{ID: "q", Type: claybot.QuestionConfirm, Tool: "pay"}}
			d.records = append([]claybot.Record{asked, x}, d.records...)
		}
		if wait, err := d.pass(t.Context(), plan.New(c)); err != nil || wait == nil || len(h.words) > 0 {
			t.Errorf("%s: %v %v, did %q", name, wait, err, h.words)
		}
	}
}
