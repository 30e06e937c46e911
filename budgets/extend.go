package budgets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

const (
	// recheckEvery is how often Watch rechecks: a new day brings new budgets.
	recheckEvery = 10 * time.Minute
	// allBudgets and allQuestions are above what any store holds.
	allBudgets   = 100_000
	allQuestions = 1_000_000
)

// Extend raises the limit of a budget for the rest of its period and returns how the
// budget stands then. Runs that wait for it try again. The same id again changes
// nothing. The error is storage.ErrNotFound where no call was ever made on the budget.
func (l *Limiter) Extend(ctx context.Context, e storage.Extension) (storage.Budget, error) {
	b, err := l.cfg.Store.Extend(ctx, e)
	if err != nil {
		return b, err
	}
	l.cfg.Log.Info("budget extended", "budget", e.Key, "by", e.By, "who", e.Who, "id", e.ID)
	if err := l.Recheck(ctx); err != nil { // Watch repeats it
		l.cfg.Log.Warn("failed to check the runs that wait for a budget", "budget", e.Key, "err", err)
	}
	return l.configured(b), nil
}

// configured returns b with the limit of the configuration where b is of the present
// period: the store knows the limit of the last call.
func (l *Limiter) configured(b storage.Budget) storage.Budget {
	if l.cfg.Rules == nil {
		return b
	}
	now := l.now()
	for _, r := range l.cfg.Rules() {
		head, tail, _ := strings.Cut(r.key("\x00", now), "\x00")
		if rest, ok := strings.CutPrefix(b.Key, head); ok && strings.HasSuffix(rest, tail) {
			b.Limit = r.Limit
			return b
		}
	}
	return b
}

// Budgets lists budgets, the most recently used first, each with the limit of the
// configuration and the number of runs that wait for it.
func (l *Limiter) Budgets(ctx context.Context, limit int) ([]storage.Budget, error) {
	list, err := l.cfg.Store.Budgets(ctx, limit)
	if err != nil {
		return nil, err
	}
	open, err := l.cfg.Questions.OpenQuestions(ctx, "", allQuestions)
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
		list[i] = l.configured(list[i])
		list[i].Waiting = len(waiting[list[i].Key])
	}
	return list, nil
}

// Deciders returns who may extend a budget in a chat, as "connector/userId", at least
// one, whether the agent's own person is among them, and whether no other person is.
func (l *Limiter) Deciders(a claybot.Agent) (operators []string, own, only bool) {
	if l.cfg.Operators != nil {
		operators = slices.Clone(l.cfg.Operators())
	}
	who := a.Descriptor.OwnerID()
	is := func(o string) bool { return slices.Contains(l.cfg.People.Identities(o), who) }
	own = slices.ContainsFunc(operators, is)
	switch {
	case len(operators) == 0: // without names, the question would be for the agent's own person
		own = slices.Contains(l.cfg.Consoles, who)
		return slices.Clone(l.cfg.Consoles), own, own
	case !own && slices.Contains(l.cfg.Consoles, who):
		return append(operators, who), true, false
	}
	return operators, own, !slices.ContainsFunc(operators, func(o string) bool { return !is(o) })
}

// Watch rechecks every ten minutes, until ctx is done. Recheck before: the configuration may have changed while no
// process ran.
func (l *Limiter) Watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(recheckEvery):
		}
		if err := l.Recheck(ctx); err != nil && ctx.Err() == nil {
			l.cfg.Log.Warn("failed to check the runs that wait for a budget; retrying", "err", err)
		}
	}
}

// Recheck resumes the runs that wait for a budget whose limit is no longer the one that
// they asked about, or that no longer applies to them because it was removed or a new
// day began. A run for which the new limit is still too small asks again. Call it when
// the configuration has changed; to call it twice changes nothing.
func (l *Limiter) Recheck(ctx context.Context) error {
	l.free()
	open, err := l.cfg.Questions.OpenQuestions(ctx, "", allQuestions)
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
			if stored, err = l.stored(ctx); err != nil {
				return err
			}
		}
		changed, err := l.changed(ctx, q, ask, stored[ask.Key])
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		a := claybot.Answer{Question: q.ID, Value: []byte("true"), Via: claybot.ViaLimit}
		if err := l.cfg.Runs.Resume(ctx, q.Agent, q.Run, a); err != nil {
			return fmt.Errorf("let run %s go on: %w", q.Run, err)
		}
		l.cfg.Log.Info("run resumed, the limit of its budget changed", "run", q.Run, "agent", q.Agent, "budget", ask.Key)
	}
	return nil
}

// stored returns all budgets of the store by key.
func (l *Limiter) stored(ctx context.Context) (map[string]storage.Budget, error) {
	list, err := l.cfg.Store.Budgets(ctx, allBudgets)
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	all := make(map[string]storage.Budget, len(list))
	for _, b := range list {
		all[b.Key] = b
	}
	return all, nil
}

// changed reports whether a limit is no longer the one that a question is about. A
// budget whose limit is unknown resumes no run.
func (l *Limiter) changed(ctx context.Context, q storage.OpenQuestion, ask runs.BudgetAsk, b storage.Budget) (bool, error) {
	run := q.Run
	if rest, ok := strings.CutPrefix(ask.Key, PerRun+"/"); ok { // the run that began its chain
		root, _, _ := strings.Cut(rest, "/")
		run = claybot.RunID(root)
	}
	on, err := l.levels(ctx, llm.Charge{Agent: q.Agent, Run: run})
	if _, faulty := errors.AsType[*llm.LimitError](err); faulty {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(on.levels, func(level storage.Level) bool { return level.Key == ask.Key })
	switch {
	case i < 0:
		return true, nil
	case ask.Limit < 0: // an older question does not say
		return on.levels[i].Limit > b.Limit, nil
	}
	return on.levels[i].Limit+b.Extension != ask.Limit, nil
}
