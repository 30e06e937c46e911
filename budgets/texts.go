package budgets

import (
	"cmp"
	"context"
	"fmt"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// limitError is the error of a call that the store refused on one of its budgets.
func limitError(voice texts.Voice, o *storage.OverBudgetError, on applicable, c llm.Charge) *llm.LimitError {
	e := &llm.LimitError{
		Key: o.Key, Name: on.names[o.Key], Of: o.Name, Tokens: o.Unit == storage.UnitTokens,
		Limit: o.Limit + o.Extension, Spent: o.Spent, Left: o.Left(), Asked: o.Asked, Least: c.LeastMicroUSD,
	}
	if e.Tokens {
		e.Least = c.LeastTokens
	}
	e.Final = ofToken(o.Key) || ofFlow(o.Key)
	e.Least = cmp.Or(e.Least, e.Asked)
	e.Text = voice.OverBudget(e, o.Reserved)
	if on.given[o.Key] {
		e.Text += " " + voice.In(texts.BudgetDefault)
	}
	return e
}

// refusal is the error of a call to which a rule with a Fault applies. Only operators
// read the fault.
func (l *Limiter) refusal(voice texts.Voice, who payer, fault string) *llm.LimitError {
	text := voice.In(texts.BudgetFault)
	if l.cfg.People.IsOperator(who.root.OwnerID()) {
		text += "\n\n" + fault
	}
	return &llm.LimitError{Name: "a budget", Text: text}
}

// stopped is the error of a call that the store refused on a hard budget which is used up.
// Operators are told, unless the budget is that of a program or of one run, or they read the
// refusal themselves. It returns once that is durable, so that a crash does not lose it: until then
// the run has not stopped.
func (l *Limiter) stopped(ctx context.Context, o *storage.OverBudgetError, on applicable, c llm.Charge) error {
	if l.cfg.Stopped != nil && !ofToken(o.Key) && o.Period != EveryRun && !l.cfg.People.IsOperator(on.payer.root.OwnerID()) {
		if err := l.cfg.Stopped(ctx, o.Key, o.Limit+o.Extension); err != nil {
			return fmt.Errorf("store that budget %s is used up: %w", o.Key, err)
		}
	}
	return limitError(texts.Of(ctx), o, on, c)
}
