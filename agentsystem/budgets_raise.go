package agentsystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// limitError says in words what a store has refused of c. name is what the payer calls
// the budget.
func limitError(o *storage.OverBudgetError, name string, c llm.Charge) *llm.LimitError {
	e := &llm.LimitError{
		Key: o.Key, Name: name, Of: o.Name, Tokens: o.Unit == storage.UnitTokens,
		Limit: o.Limit + o.Extension, Spent: o.Spent, Left: o.Left(), Asked: o.Asked, Least: c.LeastMicroUSD,
	}
	if e.Tokens {
		e.Least = c.LeastTokens
	}
	e.Least = cmp.Or(e.Least, e.Asked)
	if e.Spent >= e.Limit {
		e.Text = fmt.Sprintf("%s is used up: %s.", upper(name), e.Standing())
		return e
	}
	aside := ""
	if o.Reserved > 0 {
		aside = ", " + e.Amount(o.Reserved) + " more is set aside for other runs"
	}
	takes := "needs at least " + e.Amount(e.Least)
	if e.Least <= e.Limit-e.Spent { // there is room for it as soon as others give some back
		takes = "may take up to " + e.Amount(e.Asked)
	}
	e.Text = fmt.Sprintf("%s is too small for the next step: %s%s, and the step %s.", upper(name), e.Standing(), aside, takes)
	return e
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// called is what people call the agent that pays.
func (w payer) called() string {
	if name := connectors.OneLine(w.root.Name, 60); name != "" {
		return "the agent " + name
	}
	if owner := w.root.OwnerID(); w.root.Foreground() && owner != "" {
		return "the agent of " + owner
	}
	return "the agent " + string(w.id)
}

// Extend raises the limit of a budget for the rest of its period, in its unit.
// The same id again changes nothing.
func (p *Purse) Extend(ctx context.Context, key string, by int64, who, id string) error {
	_, err := p.ExtendBudget(ctx, storage.Extension{ID: id, Key: key, By: by, Who: who})
	return err
}

// ExtendBudget is Extend that tells how the budget stands then;
// storage.ErrNotFound where nothing was ever spent on it. Runs that wait for more of
// it try again.
func (p *Purse) ExtendBudget(ctx context.Context, e storage.Extension) (storage.Budget, error) {
	b, err := p.Store.Extend(ctx, e)
	if err != nil {
		return b, err
	}
	p.system.Log.Info("budget extended", "budget", e.Key, "by", e.By, "who", e.Who, "id", e.ID)
	if err := p.Recheck(ctx); err != nil { // the next look does it
		p.system.Log.Warn("cannot look for runs that wait for a budget", "budget", e.Key, "err", err)
	}
	return p.configured(b), nil
}

// configured is b with the limit of the configuration, where b is of the present
// period: the store has the limit of the last call that was paid for.
func (p *Purse) configured(b storage.Budget) storage.Budget {
	if p.Rules == nil { // budgets are listed here, and nothing is paid
		return b
	}
	now := time.Now().In(p.system.zone())
	for _, r := range p.Rules() {
		head, tail, _ := strings.Cut(r.key("\x00", now), "\x00")
		if rest, ok := strings.CutPrefix(b.Key, head); ok && strings.HasSuffix(rest, tail) {
			b.Limit = r.Limit
			return b
		}
	}
	return b
}

// Budgets lists budgets, the one used last first, each with the limit of the
// configuration and how many runs wait for more of it.
func (p *Purse) Budgets(ctx context.Context, limit int) ([]storage.Budget, error) {
	list, err := p.Store.Budgets(ctx, limit)
	if err != nil {
		return nil, err
	}
	open, err := p.system.Asked.OpenQuestions(ctx, "", allQuestions)
	if err != nil {
		return nil, fmt.Errorf("count what waits for budgets: %w", err)
	}
	waiting := make(map[string][]claybot.RunID)
	for _, q := range open {
		if ask, ok := runs.BudgetAskOf(q.Question); ok && !slices.Contains(waiting[ask.Key], q.Run) {
			waiting[ask.Key] = append(waiting[ask.Key], q.Run)
		}
	}
	for i := range list {
		list[i] = p.configured(list[i])
		list[i].Waiting = len(waiting[list[i].Key])
	}
	return list, nil
}

// recheckEvery is how often Watch looks at the least: a new day brings new budgets.
const recheckEvery = 10 * time.Minute

// Watch lets runs that wait for a budget go on when there is more of it: at the start,
// when the configuration may have changed while nothing ran, and as time passes. It
// ends with ctx.
func (p *Purse) Watch(ctx context.Context) error {
	for {
		if err := p.Recheck(ctx); err != nil && ctx.Err() == nil {
			p.system.Log.Warn("cannot look for runs that wait for a budget; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(recheckEvery):
		}
	}
}

// Recheck lets the runs that wait for more of a budget try again whose limit is another
// than when they asked, or that no hard budget binds any more: it was removed, or a
// new day began. A run for which that is not enough asks anew, by the limit that holds
// now. Call it when the configuration has changed; doing it twice changes nothing.
func (p *Purse) Recheck(ctx context.Context) error {
	p.free() // calls that wait for room look again, too
	open, err := p.system.Asked.OpenQuestions(ctx, "", allQuestions)
	if err != nil {
		return fmt.Errorf("list open questions: %w", err)
	}
	var stored map[string]storage.Budget
	for _, q := range open {
		ask, ok := runs.BudgetAskOf(q.Question)
		if !ok {
			continue
		}
		if stored == nil {
			if stored, err = p.stored(ctx); err != nil {
				return err
			}
		}
		changed, err := p.changed(ctx, q, ask, stored[ask.Key])
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		a := claybot.Answered{Question: q.ID, Value: []byte("true"), Via: claybot.ViaLimit}
		if _, err := p.system.postAnswer(ctx, q.Agent, q.Run, a); err != nil {
			return fmt.Errorf("let run %s go on: %w", q.Run, err)
		}
		p.system.Log.Info("run goes on, the limit of its budget has changed", "run", q.Run, "agent", q.Agent, "budget", ask.Key)
	}
	return nil
}

// maxBudgets is more budgets than anybody has in use.
const maxBudgets = 100_000

func (p *Purse) stored(ctx context.Context) (map[string]storage.Budget, error) {
	list, err := p.Store.Budgets(ctx, maxBudgets)
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	all := make(map[string]storage.Budget, len(list))
	for _, b := range list {
		all[b.Key] = b
	}
	return all, nil
}

// changed reports whether a limit is another than a question says. A budget whose limit
// is not known frees nothing.
func (p *Purse) changed(ctx context.Context, q storage.OpenQuestion, ask runs.BudgetAsk, b storage.Budget) (bool, error) {
	run := q.Run
	if rest, ok := strings.CutPrefix(ask.Key, PerRun+"/"); ok { // the run that its chain began with
		root, _, _ := strings.Cut(rest, "/")
		run = claybot.RunID(root)
	}
	levels, _, _, err := p.levels(ctx, llm.Charge{Agent: q.Agent, Run: run})
	if _, faulty := errors.AsType[*llm.LimitError](err); faulty {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(levels, func(l storage.Level) bool { return l.Key == ask.Key })
	switch {
	case i < 0:
		return true, nil
	case ask.Limit < 0: // an older question does not say
		return levels[i].Limit > b.Limit, nil
	}
	return levels[i].Limit+b.Extension != ask.Limit, nil
}
