package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/tools"
)

// A step runs with the arguments that a person gave it; of several people, the
// others approve these.
func TestEditedStep(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy plan.Policy
		say    []claybot.Answer
		words  []string
		want   string
	}{
		{"one", plan.Policy{}, []claybot.Answer{editedBy("web/ann", `{"word":"3"}`)}, []string{"3"}, "All is done."},
		{"does not fit", plan.Policy{}, []claybot.Answer{editedBy("web/ann", `{"word":3}`)}, nil, ""},
		{
			"two",
			plan.Policy{Approvals: 2, Approvers: []string{"slack/U1", "slack/U2"}},
			[]claybot.Answer{editedBy("slack/U1", `{"word":"3"}`), approvedBy("slack/U2")},
			[]string{"3"},
			"All is done.",
		},
		{
			"an edit voids what was said before",
			plan.Policy{Approvals: 2, Approvers: []string{"slack/U1", "slack/U2"}},
			[]claybot.Answer{approvedBy("slack/U1"), editedBy("slack/U2", `{"word":"3"}`), approvedBy("slack/U1")},
			[]string{"3"},
			"All is done.",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			n := 0
			err := d.run(t, plan.New(config(thinks(steps(step("a", "pay", "1"))), h.set(t), tt.policy)), func(q claybot.Question) claybot.Answer {
				if q.Args == "" {
					t.Errorf("it cannot be edited: %+v", q)
				}
				n++
				return tt.say[n-1]
			})
			if err != nil || n != len(tt.say) || !slices.EqualFunc(h.words, tt.words, func(got, want string) bool { return strings.Contains(got, want) }) || !strings.Contains(d.said(), tt.want) {
				t.Errorf("%v, asked %d times, did %q, said %s", err, n, h.words, d.said())
			}
		})
	}
}

func editedBy(who, args string) claybot.Answer {
	a := approvedBy(who)
	a.Args = args
	return a
}

// Plans keep the rules of the configuration, and the table.
func TestPlanRules(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules tools.Rules
		asks  bool
	}{
		{"risk asks", tools.Rules{}, true},
		{"never", tools.Rules{Confirm: []tools.Confirming{{Tools: "pay", When: tools.ConfirmNever}}}, false},
		{"allowed", tools.Rules{Allow: []string{"pa*"}}, false},
		{"always wins", tools.Rules{Ask: []string{"pay"}, Allow: []string{"pay"}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			c := config(thinks(steps(step("a", "pay", "1"))), h.set(t), plan.Policy{})
			c.Rules = func(claybot.Agent) tools.Rules { return tt.rules }
			asked := false
			err := d.run(t, plan.New(c), func(q claybot.Question) claybot.Answer {
				asked = true
				return yes(q)
			})
			if err != nil || asked != tt.asks || len(h.words) != 1 {
				t.Errorf("%v, asked %v, did %q", err, asked, h.words)
			}
		})
	}
}

// A tool of the machine itself is in no plan, and a dry plan does nothing.
func TestPlanRefusesAndIsDry(t *testing.T) {
	h, d := newHand(), newDesk("go")
	host := tools.Spec{Tool: llm.Tool{Name: "host"}, Class: tools.Host}
	err := d.run(t, plan.New(config(thinks(steps(step("a", "host", "1")), steps(step("a", "host", "1"))), h.set(t, tools.New(host, h.act("host", tools.Once, nil))), plan.Policy{})), yes)
	if !strings.Contains(d.said(), "the machine itself") || len(h.words) > 0 {
		t.Errorf("%v, did %q, said %s", err, h.words, d.said())
	}
	h, d = newHand(), newDesk("go")
	c := config(thinks(steps(step("a", "pay", "1"))), h.set(t), plan.Policy{})
	c.Dry = func(claybot.Agent) bool { return true }
	err = d.run(t, plan.New(c), func(q claybot.Question) claybot.Answer { t.Errorf("asks %+v", q); return yes(q) })
	if err != nil || len(h.words) > 0 {
		t.Errorf("%v, did %q", err, h.words)
	}
}
