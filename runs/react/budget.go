package react

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Budgets are what the loop does about a budget that is used up.
type Budgets interface {
	// Deciders are who may extend a budget in a chat, as "connector/userId", whether
	// the own person of the agent is among them, and whether no other person is.
	Deciders(a claybot.Agent) (operators []string, own, only bool)
	// Extend raises the limit of a budget and returns how it stands then. The same id
	// again changes nothing.
	Extend(ctx context.Context, e storage.Extension) (storage.Budget, error)
}

// maxExtensions is how often one pass has budgets extended.
const maxExtensions = 5

// An extension has a budget extended when it refuses a model call of the run.
type extension struct {
	turn    *runs.Turn
	talk    *conversation
	budgets Budgets // nil: the run ends
	log     *slog.Logger
	// limits counts how often the pass came to a limit, extended how often it had a
	// budget extended.
	limits, extended int
}

// limited decides what becomes of a model call that a hard budget has refused:
// the person may have an operator asked to extend it. It returns nil when the
// budget was extended, so that the call can be made again; a *runs.WaitError
// while a person is to be asked; and else how the run ends. An error that is no such
// refusal is returned as it is.
func (e *extension) limited(ctx context.Context, err error) error {
	limit, ok := errors.AsType[*llm.LimitError](err)
	if !ok {
		return err
	}
	asked := e.talk.asked(func(q claybot.Question) bool { return aboutBudget(q, limit.Key) })
	if !asked { // else an earlier pass has told it
		if told := e.turn.Emit(ctx, false, e.reached(limit)); told != nil {
			return told
		}
	}
	over := &runs.Error{Code: runs.CodeBudget, Text: limit.Text, Err: err, Say: limit.Text}
	e.limits++
	if !e.mayAsk(limit) {
		return over
	}
	operators, own, only := e.budgets.Deciders(e.turn.Agent)
	if len(operators) == 0 { // a question without named persons is for the user of the agent
		return over
	}
	round := fmt.Sprintf("budget/%d", e.limits)
	if !own {
		a, end := e.askOnce(ctx, round, e.mayIAsk(ctx, limit), over)
		if end != nil {
			return end
		}
		if !tools.Approved(a) {
			return over
		}
		if a.Via == claybot.ViaLimit {
			return nil
		}
	}
	a, end := e.askOnce(ctx, round+"/operator", e.extend(ctx, limit, operators, only), over)
	switch {
	case end != nil:
		return end
	case !tools.Approved(a):
		over.Say += " " + texts.Of(ctx).In(texts.NotExtended)
		return over
	case a.Via == claybot.ViaLimit: // raised otherwise: the call finds out whether that is enough
		return nil
	}
	key, by, ok := e.granted(a)
	if !ok {
		e.log.Warn("answered question is not about a budget", "question", a.Question)
		return over
	}
	if _, err := e.budgets.Extend(ctx, storage.Extension{ID: a.Question, Key: key, By: by, Who: a.By}); err != nil {
		if ctx.Err() != nil {
			return runs.Ended(ctx)
		}
		return fmt.Errorf("extend the budget: %w", err)
	}
	e.extended++
	return nil
}

// mayAsk reports whether a person is asked about a limit. A subagent ends: its
// parent comes to the same limit and asks. Where a no was said before, it holds.
func (e *extension) mayAsk(limit *llm.LimitError) bool {
	switch {
	case e.budgets == nil, e.turn.Reader == nil, limit.Key == "", limit.Final:
		return false
	case e.turn.Agent.Descriptor.Type == claybot.AgentSubagent, e.extended >= maxExtensions:
		return false
	}
	return !e.refusedBefore(limit.Key)
}

// refusedBefore reports whether an earlier run of the agent asked about the same
// budget and was not allowed to go on. A run for each message would ask again and
// again otherwise.
func (e *extension) refusedBefore(key string) bool {
	refused := false
	for _, r := range e.talk.all() {
		q := r.Question
		if r.Type != claybot.RecordQuestion || q == nil || r.Run == e.turn.Run.ID || !aboutBudget(*q, key) {
			continue
		}
		i := slices.IndexFunc(e.talk.all(), func(a claybot.Record) bool {
			return a.Type == claybot.RecordAnswer && a.Answer != nil && a.Answer.Question == q.ID
		})
		refused = i < 0 || !tools.Approved(*e.talk.all()[i].Answer)
	}
	return refused
}

func aboutBudget(q claybot.Question, key string) bool {
	ask, ok := runs.BudgetAskOf(q)
	return ok && ask.Key == key
}

// askOnce puts one question. end is how the pass ends without an answer.
func (e *extension) askOnce(ctx context.Context, round string, q claybot.Question, over error) (a claybot.Answer, end error) {
	answers, wait, err := e.turn.Ask(ctx, round, []claybot.Question{q})
	switch {
	case errors.Is(err, runs.ErrNobody):
		return a, over
	case err != nil && ctx.Err() != nil:
		return a, runs.Ended(ctx)
	case err != nil:
		return a, fmt.Errorf("ask about the budget: %w", err)
	case wait != nil:
		w := *wait
		w.Reason = claybot.AwaitBudget
		return a, &runs.WaitError{Awaiting: w}
	case len(answers) != 1:
		return a, over
	}
	return answers[0], nil
}

// mayIAsk asks the agent's own person.
func (e *extension) mayIAsk(ctx context.Context, l *llm.LimitError) claybot.Question {
	return claybot.Question{
		Key: runs.KeyAskToExtend, Type: claybot.QuestionConfirm, Required: true, Once: true, Explicit: true,
		Digest: runs.BudgetAsk{Key: l.Key, Limit: l.Limit}.Digest(),
		Text:   l.Text + " " + texts.Of(ctx).In(texts.ShallExtend),
	}
}

// extend asks the operators for the least that lets the run go on; each time that the
// run comes to a limit again, for twice as much, so that it does not ask at each step.
// only: the person whose run it is decides, and no other person reads it.
func (e *extension) extend(ctx context.Context, l *llm.LimitError, operators []string, only bool) claybot.Question {
	by := l.Missing() << e.extended
	budget, who := cmp.Or(l.Of, l.Name), cmp.Or(e.turn.Agent.Descriptor.OwnerID(), string(e.turn.Agent.ID))
	if only {
		budget, who = cmp.Or(l.Name, l.Of), ""
	}
	return claybot.Question{
		Key: runs.KeyExtend, Type: claybot.QuestionConfirm, Required: true, Once: true, Explicit: true, Approvers: operators,
		Digest: runs.BudgetAsk{Key: l.Key, Limit: l.Limit, By: by}.Digest(),
		Text:   texts.Of(ctx).ExtendBudget(l, budget, by, who),
	}
}

// granted reads from a question that was answered what it was about: what was
// shown is done, whatever has been spent since.
func (e *extension) granted(a claybot.Answer) (key string, by int64, ok bool) {
	q := e.talk.question(a.Question)
	if q == nil {
		return "", 0, false
	}
	ask, ok := runs.BudgetAskOf(*q)
	return ask.Key, ask.By, ok && ask.By > 0
}

// reached tells that a budget has no room.
func (e *extension) reached(l *llm.LimitError) claybot.Event {
	facts := runs.BudgetReached{Scope: l.Key, Name: l.Name, Limit: l.Amount(l.Limit), Spent: l.Amount(l.Spent), TooSmall: l.Spent < l.Limit}
	if l.Key == "" {
		facts = runs.BudgetReached{Scope: l.Name, Name: l.Name}
	}
	data, _ := json.Marshal(facts) // strings always marshal
	return claybot.Event{V: 1, Run: e.turn.Run.ID, Type: claybot.EventBudgetReached, At: claybot.Now(), Data: data}
}
