package plan

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// A confirmation settles one thing after another before a plan runs.
type confirmation struct {
	cfg       *Config
	inputs    *inputs
	quiet     *quietHours
	approvals *approvals
}

// A stage settles one thing before the plan runs. It returns where to go
// instead, empty for on.
type stage func(ctx context.Context, s *state, p Policy) (string, error)

// plan settles what is missing, what the policy says and who approves. It is
// entered again after each pause, with the same plan.
func (c *confirmation) plan(ctx context.Context, s *state) (string, error) {
	return c.settle(ctx, s, nodeExecutor, c.inputs.settle, c.inputs.fill, preview, c.quiet.settle, budget, c.approvals.settle)
}

// undo makes the plan of what is taken back, and settles what the policy
// says and who approves.
func (c *confirmation) undo(ctx context.Context, s *state) (string, error) {
	if !s.Scratch.Filled {
		s.Scratch.Filled = true
		s.Scratch.Mode = c.cfg.policy(s).Mode
		takeBack(s)
	}
	return c.settle(ctx, s, nodeUndo, preview, c.quiet.settle, queued, c.approvals.settle)
}

func (c *confirmation) settle(ctx context.Context, s *state, on string, stages ...stage) (string, error) {
	s.Output.Awaiting = nil
	c.cfg.ready(ctx, s)
	p := c.cfg.policy(s)
	if err := follow(ctx, s, p.Mode); err != nil {
		return "", err
	}
	if len(s.Scratch.Steps) == 0 {
		s.Because("nothing to do")
		return nodeSummarize, nil
	}
	if s.Scratch.Asking != nil {
		if next, err := hear(ctx, s, p, c.hearer(s.Scratch.Asking.Kind)); err != nil || next != "" {
			return next, err
		}
	}
	for _, stage := range stages {
		if next, err := stage(ctx, s, p); err != nil || next != "" {
			return next, err
		}
	}
	return on, nil
}

// hearer is the part whose round of questions is open.
func (c *confirmation) hearer(kind string) hearer {
	switch kind {
	case askInputs:
		return c.inputs.hear
	case askQuiet:
		return c.quiet.hear
	}
	return c.approvals.hear
}

// follow goes by another mode when the settings have changed.
func follow(ctx context.Context, s *state, mode Mode) error {
	before := s.Scratch.Mode
	if before == mode {
		return nil
	}
	s.Scratch.Mode = mode
	if before == "" {
		return nil
	}
	return tell(ctx, s, runs.Switched(s.Turn.Run.ID, string(before), string(mode), "settings"))
}

// preview holds the plan back where plans are only shown.
func preview(_ context.Context, s *state, p Policy) (string, error) {
	if p.Mode == ModePreview {
		return hold(s, texts.PlanPreview)
	}
	return "", nil
}

// budget holds back what would cost too much by its own guess.
func budget(ctx context.Context, s *state, p Policy) (string, error) {
	var cost int64
	for _, st := range s.Scratch.Steps {
		cost += st.CostMicroUSD
	}
	if p.Budget <= 0 || cost <= p.Budget {
		return "", nil
	}
	reached := runs.BudgetReached{Scope: runs.ScopePlan, Name: "the budget of a plan", Limit: llm.Dollars(p.Budget), Spent: llm.Dollars(cost), TooSmall: true}
	err := tell(ctx, s, claybot.Event{
		V: 1, Run: s.Turn.Run.ID, Type: claybot.EventBudgetReached, At: claybot.Now(), Data: encode(reached),
	})
	if err != nil {
		return "", err
	}
	return hold(s, fmt.Sprintf(texts.PlanBudget, llm.Dollars(cost), llm.Dollars(p.Budget)))
}

// hold leads to the summary without running anything.
func hold(s *state, why string) (string, error) {
	s.Scratch.Held = why
	s.Because(why)
	return nodeSummarize, nil
}
