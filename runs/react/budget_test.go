package react_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// A vault extends budgets, and its model is refused as long as there is not
// enough.
type vault struct {
	room      int64
	needs     int64
	own, only bool
	extended  map[string]int64
	broken    error
	calls     int
	operators []string
}

func (v *vault) Deciders(claybot.Agent) (operators []string, own, only bool) {
	return v.operators, v.own, v.only
}

func (v *vault) Extend(_ context.Context, e storage.Extension) (storage.Budget, error) {
	if v.broken != nil {
		return storage.Budget{}, v.broken
	}
	if v.extended == nil {
		v.extended = make(map[string]int64)
	}
	if _, again := v.extended[e.ID+" "+e.Who]; !again {
		v.extended[e.ID+" "+e.Who] = e.By
		v.room += e.By
	}
	return storage.Budget{}, nil
}

func (v *vault) Chat(context.Context, llm.Request) (llm.Response, error) {
	if v.room < v.needs {
		return llm.Response{}, fmt.Errorf("a route: %w", &llm.LimitError{
			Key: "owner/x y/day", Name: "your budget", Of: "the budget of x y for today", Limit: v.room, Asked: v.needs + 1000, Least: v.needs, Left: v.room, Text: "Your budget is used up.",
		})
	}
	v.calls++
	return llm.Response{Text: "done", Stop: llm.StopEnd}, nil
}

func ends(t *testing.T, err error) *runs.Error {
	t.Helper()
	e, ok := errors.AsType[*runs.Error](err)
	if !ok || e.Code != runs.CodeBudget || !strings.HasPrefix(e.Say, "Your budget is used up.") || e.Text != "Your budget is used up." {
		t.Fatalf("ends with %v", err)
	}
	return e
}

func TestBudgetIsExtended(t *testing.T) {
	v := &vault{needs: 25, operators: []string{"web/operator"}}
	j := newJournal("go")
	l := loop(v, nil)
	l.Budgets = v
	if got := until(t, j.run(t, l)); got != "answer/budget/1" {
		t.Fatalf("waits for %q", got)
	}
	own := j.last().Question
	if own.Type != claybot.QuestionConfirm || !own.Explicit || !own.Once || len(own.Approvers) > 0 || own.Text != "Your budget is used up. Shall I ask an operator to extend it?" {
		t.Errorf("the person is asked %+v", own)
	}
	j.say("budget/1", yes())
	if got := until(t, j.run(t, l)); got != "answer/budget/1/operator" {
		t.Fatalf("waits for %q", got)
	}
	q := j.last().Question
	if !slices.Equal(q.Approvers, []string{"web/operator"}) || !q.Explicit || !strings.Contains(q.Text, "Extend the budget of x y for today by $0.000025? So far nothing of $0 is spent") {
		t.Errorf("the operators are asked %+v", q)
	}
	if !strings.Contains(q.Text, "the next step needs at least $0.000025. A run of ") {
		t.Errorf("the operators read %q", q.Text)
	}
	v.needs = 30 // more than was shown: what was shown is done, and the rest is asked for
	j.say("budget/1/operator", yes())
	if got := until(t, j.run(t, l)); got != "answer/budget/2" {
		t.Fatalf("waits for %q", got)
	}
	if v.room != 25 {
		t.Errorf("extended %v", v.extended)
	}
	j.say("budget/2", yes())
	until(t, j.run(t, l))
	j.say("budget/2/operator", yes())
	if err := j.run(t, l); err != nil || v.calls != 1 || v.room != 35 || len(v.extended) != 2 {
		t.Errorf("%v after %d calls, extended %v", err, v.calls, v.extended)
	}
	reached := 0
	for _, e := range j.events {
		if e.Type == claybot.EventBudgetReached && strings.Contains(string(e.Data), `"scope":"owner/x y/day","name":"your budget"`) {
			reached++
		}
	}
	if reached != 1 {
		t.Errorf("%d events tell that the budget is used up", reached)
	}
}

// A limit that was raised while a question about it was open makes the question
// moot: the call is made again, without an extension. Where it still does not
// fit, there is a new question.
func TestBudgetWasRaised(t *testing.T) {
	raised := claybot.Answer{Value: []byte("true"), Via: claybot.ViaLimit}
	for _, asked := range []string{"budget/1", "budget/1/operator"} {
		for _, enough := range []bool{true, false} {
			v := &vault{needs: 25, operators: []string{"web/operator"}, own: asked != "budget/1"}
			j := newJournal("go")
			l := loop(v, nil)
			l.Budgets = v
			if got := until(t, j.run(t, l)); string(got) != "answer/"+asked {
				t.Fatalf("waits for %q", got)
			}
			v.room = 20
			if enough {
				v.room = 25
			}
			j.say(asked, raised)
			err := j.run(t, l)
			switch {
			case enough && (err != nil || v.calls != 1):
				t.Errorf("%s: %v after %d calls", asked, err, v.calls)
			case !enough && string(until(t, err)) != strings.Replace("answer/"+asked, "1", "2", 1):
				t.Errorf("%s: waits for %v", asked, err)
			}
			if len(v.extended) != 0 {
				t.Errorf("%s: extended %v", asked, v.extended)
			}
		}
	}
}

// Who decides alone about the own budget reads of it as their own.
func TestOwnBudget(t *testing.T) {
	v := &vault{needs: 25, operators: []string{"terminal/operator"}, own: true, only: true}
	j := newJournal("go")
	l := loop(v, nil)
	l.Budgets = v
	until(t, j.run(t, l))
	want := "Extend your budget by $0.000025? So far nothing of $0 is spent, and the next step needs at least $0.000025. Your run waits for it."
	if q := j.last().Question; q.Text != want {
		t.Errorf("asked %q", q.Text)
	}
}

func TestBudgetWithoutAYes(t *testing.T) {
	no := claybot.Answer{Value: []byte("false"), Via: claybot.ViaButton}
	silence := claybot.Answer{Value: []byte("false"), Via: claybot.ViaDefault}
	for _, tt := range []struct {
		name    string
		own     bool
		answers map[string]claybot.Answer
		asks    []string
	}{
		{"the person says no", false, map[string]claybot.Answer{"budget/1": no}, []string{"budget/1"}},
		{"the person says nothing", false, map[string]claybot.Answer{"budget/1": silence}, []string{"budget/1"}},
		{"the operator says no", false, map[string]claybot.Answer{"budget/1": yes(), "budget/1/operator": no}, []string{"budget/1", "budget/1/operator"}},
		{"an operator is asked at once", true, map[string]claybot.Answer{"budget/1/operator": no}, []string{"budget/1/operator"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &vault{needs: 5, operators: []string{"web/operator"}, own: tt.own}
			j := newJournal("go")
			l := loop(v, nil)
			l.Budgets = v
			var err error
			for _, round := range tt.asks {
				if got := until(t, j.run(t, l)); string(got) != "answer/"+round {
					t.Fatalf("waits for %q", got)
				}
				j.say(round, tt.answers[round])
			}
			err = j.run(t, l)
			ends(t, err)
			if v.calls != 0 || len(v.extended) != 0 || !slices.Equal(j.asked(), tt.asks) {
				t.Errorf("%d calls, extended %v, asked %v", v.calls, v.extended, j.asked())
			}
			// A later run of the same agent does not ask again.
			for i := range j.records {
				j.records[i].Run = "before"
			}
			j.records = append(j.records, user("m9", "again"))
			ends(t, j.run(t, l))
			if !slices.Equal(j.asked(), tt.asks) {
				t.Errorf("asked %v", j.asked())
			}
		})
	}
}

func TestBudgetAsksNobody(t *testing.T) {
	for name, set := range map[string]func(j *journal, turn *runs.Turn, v *vault) bool{
		"no person":     func(j *journal, _ *runs.Turn, _ *vault) bool { j.nobody = true; return true },
		"no way to ask": func(_ *journal, turn *runs.Turn, _ *vault) bool { turn.Reader = nil; return true },
		"no budgets":    func(*journal, *runs.Turn, *vault) bool { return false },
		"no operators":  func(_ *journal, _ *runs.Turn, v *vault) bool { v.operators = nil; return true },
		"a subagent": func(_ *journal, turn *runs.Turn, _ *vault) bool {
			turn.Agent.Descriptor.Type = claybot.AgentSubagent
			return true
		},
	} {
		v := &vault{needs: 5, operators: []string{"web/operator"}}
		j := newJournal("go")
		l, turn := loop(v, nil), j.turn()
		if set(j, turn, v) {
			l.Budgets = v
		}
		ends(t, j.pass(t.Context(), l, turn, 0, true))
		if len(j.asked()) != 0 {
			t.Errorf("%s: asked %v", name, j.asked())
		}
	}
}

// A price that is missing is nothing that an extension helps with.
func TestMissingPriceEndsTheRun(t *testing.T) {
	v := &vault{}
	j := newJournal("go")
	l := loop(refusing{llm.PriceMissing("m", "your budget")}, nil)
	l.Budgets = v
	e, ok := errors.AsType[*runs.Error](j.run(t, l))
	if !ok || e.Code != runs.CodeBudget || !strings.Contains(e.Say, "model.prices") || len(j.asked()) != 0 {
		t.Errorf("ends with %+v, asked %v", e, j.asked())
	}
}

// A refusing model refuses.
type refusing struct{ err error }

func (r refusing) Chat(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{}, r.err
}

// An extension that fails is no success and no refusal: a pass that comes again
// finds the yes and extends.
func TestExtensionThatFails(t *testing.T) {
	v := &vault{needs: 5, operators: []string{"web/operator"}, own: true, broken: errors.New("the disk is full")}
	j := newJournal("go")
	l := loop(v, nil)
	l.Budgets = v
	until(t, j.run(t, l))
	j.say("budget/1/operator", yes())
	err := j.run(t, l)
	if e, ok := errors.AsType[*runs.Error](err); ok || !errors.Is(err, v.broken) {
		t.Fatalf("%v %+v", err, e)
	}
	v.broken = nil
	if err := j.run(t, l); err != nil || v.calls != 1 {
		t.Errorf("%v after %d calls", err, v.calls)
	}
}
