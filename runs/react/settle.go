package react

import (
	"context"
	"errors"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// Settle gives the calls of the last answer in the history of a turn their results, as the loop does
// for those of a model: with its limits, its approvals and its doubts, each at most once where its
// tool may act only once. yield receives the results. The error may be a *runs.WaitError.
//
// rules are for these calls, in place of those of the agent; nil: those of the agent.
func (l *Loop) Settle(ctx context.Context, t *runs.Turn, rules *Rules, yield func(claybot.Record) error) error {
	var failed error
	p := l.ready(ctx, t, func(r claybot.Record, _ error) bool {
		failed = yield(r)
		return failed == nil
	})
	if rules != nil {
		p.calls.consent.(*approvals).rules = *rules
	}
	err := p.calls.settle(ctx)
	if errors.Is(err, errConsumed) {
		return failed
	}
	return err
}
