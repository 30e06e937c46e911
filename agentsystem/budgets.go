package agentsystem

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
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
	work   *runs.AtWork
	ledger *questions.Ledger
}

func (l limitedRuns) Root(run claybot.RunID) claybot.RunID { return l.work.Root(run) }

func (l limitedRuns) Owner(run claybot.RunID) string {
	if w := l.work.Of(run); w.Agent.ID != "" {
		return w.Owner()
	}
	return ""
}

func (l limitedRuns) Resume(ctx context.Context, agent claybot.AgentID, run claybot.RunID, a claybot.Answer) error {
	_, err := l.ledger.Post(ctx, agent, run, a)
	return err
}
