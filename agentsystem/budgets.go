package agentsystem

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// NewLimiter returns a limiter of the model calls that the agents of s make. cfg names
// the store of the budgets, the rules and the operators; NewLimiter fills in the rest.
func NewLimiter(s *AgentSystem, cfg budgets.Config) *budgets.Limiter {
	all := s.Control.budgets
	all.Store, all.Rules, all.Operators = cfg.Store, cfg.Rules, cfg.Operators
	return budgets.New(all)
}

// limitedRuns implements budgets.Runs.
type limitedRuns struct {
	work     *runs.AtWork
	ledger   *questions.Ledger
	runs     storage.RunReader
	receipts storage.Receipts
	index    storage.Index
}

func (l limitedRuns) Root(run claybot.RunID) claybot.RunID { return l.work.Root(run) }

// Budgets implements budgets.Runs.
func (l limitedRuns) Budgets(run claybot.RunID) []claybot.RunBudget {
	return l.work.Of(run).Budgets(run)
}

// Owner implements budgets.Runs. A paused run, and one of another member, is read from the store.
func (l limitedRuns) Owner(ctx context.Context, id claybot.RunID) (string, error) {
	w := l.work.Of(id)
	if w.Agent.ID == "" && id != "" {
		var err error
		if w, err = l.stored(ctx, id); err != nil {
			return "", storage.Ignore(err, storage.ErrNotFound)
		}
	}
	if root := w.Root(id); root != id {
		return l.Owner(ctx, root)
	}
	return w.Owner(), nil
}

// stored returns the work of a run that this process does not work on; an empty one where it
// has ended.
func (l limitedRuns) stored(ctx context.Context, id claybot.RunID) (w runs.Work, err error) {
	run, err := l.runs.Run(ctx, id)
	if err != nil || run.State.Ended() {
		return w, err
	}
	e, err := l.index.IndexedAgentByID(ctx, run.Agent)
	if err != nil {
		return w, err
	}
	w.Agent = claybot.Agent{ID: e.ID, Descriptor: e.Descriptor}
	for _, m := range run.Messages {
		r, err := l.receipts.Receipt(ctx, m)
		if err != nil {
			return runs.Work{}, err
		}
		w.Messages = append(w.Messages, r.Message)
	}
	return w, nil
}

func (l limitedRuns) Resume(ctx context.Context, agent claybot.AgentID, run claybot.RunID, a claybot.Answer) error {
	_, err := l.ledger.Post(ctx, agent, run, a)
	return err
}
