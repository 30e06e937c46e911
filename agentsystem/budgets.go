package agentsystem

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
)

// NewLimiter returns a limiter of the model calls that the agents of s make. cfg names
// the store of the budgets, the rules and the operators; NewLimiter fills in the rest.
func NewLimiter(s *AgentSystem, cfg budgets.Config) *budgets.Limiter {
	cfg.Agents, cfg.Questions, cfg.Members = s.Index, s.Asked, s.Members
	cfg.Runs, cfg.People = limitedRuns{s}, s.People
	cfg.Profile = func(d claybot.Descriptor) string { return s.Profile(d).Name }
	cfg.Consoles, cfg.Zone, cfg.NewID, cfg.Log = people.OperatorConsoles, s.zone, runs.NewID, s.Log
	return budgets.New(cfg)
}

// limitedRuns implements budgets.Runs.
type limitedRuns struct{ system *AgentSystem }

func (l limitedRuns) Root(run claybot.RunID) claybot.RunID { return l.system.turns.Root(run) }

func (l limitedRuns) Resume(ctx context.Context, agent claybot.AgentID, run claybot.RunID, a claybot.Answered) error {
	_, err := l.system.Questions.PostAnswer(ctx, agent, run, a)
	return err
}
