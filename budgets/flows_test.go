package budgets_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// The parts of one message may have met two versions of the file: the run has one budget, and a call is counted once.
func TestBudgetOfFlowIsOne(t *testing.T) {
	bubble(t, func(r *rig) {
		r.flows = map[claybot.RunID][]claybot.RunBudget{"a": {{Flow: "refund", Run: "a", Tokens: 1000}, {Flow: "refund", Run: "a", Tokens: 2000}}}
		limiter := r.limiter(alone(), r.db)
		held, err := limiter.Reserve(r.Context(), llm.Charge{Run: "a", Tokens: 600})
		if err != nil {
			r.Fatal(err)
		}
		r.stands(600, 0)
		if err := held.Settle(r.Context(), claybot.Usage{Input: 600}); err != nil {
			r.Fatal(err)
		}
		r.stands(0, 600)
	})
}

// All that a run of a workflow starts spends from its budget, and from those of the runs above it. No person is
// asked to extend it, and another run of the same workflow has its own.
func TestBudgetsOfFlows(t *testing.T) {
	bubble(t, func(r *rig) {
		outer := claybot.RunBudget{Flow: "refund", Run: "r1", Tokens: 1000, MicroUSD: 5000}
		inner := claybot.RunBudget{Flow: "pay", Run: "r2", Tokens: 500}
		r.flows = map[claybot.RunID][]claybot.RunBudget{"a": {outer}, "b": {outer, inner}, "c": {{Flow: "refund", Run: "r3", Tokens: 1000}}}
		limiter := r.limiter(alone(), r.db)
		for i, tt := range []struct {
			run          claybot.RunID
			tokens, cost int64
			key          string // of the budget that refuses; empty: none
		}{
			{"b", 400, 1000, ""},
			{"b", 200, 1000, "run/r2/run/tokens/flow:pay"},
			{"a", 700, 1000, "run/r1/run/tokens/flow:refund"},
			{"a", 500, 4500, "run/r1/run/microUSD/flow:refund"},
			{"a", 500, 1000, ""},
			{"b", 101, 0, "run/r1/run/tokens/flow:refund"},
			{"c", 900, 0, ""},
			{"other", 9000, 90_000, ""},
		} {
			held, err := limiter.Reserve(r.Context(), llm.Charge{Run: tt.run, Tokens: tt.tokens, CostMicroUSD: tt.cost, Priced: true})
			limit, refused := errors.AsType[*llm.LimitError](err)
			switch {
			case tt.key == "" && err != nil, tt.key != "" && (!refused || limit.Key != tt.key || !limit.Final):
				r.Errorf("call %d: %+v, want %q", i, err, tt.key)
			case refused && !strings.Contains(limit.Text, "budget of a run of "+tt.key[strings.LastIndex(tt.key, ":")+1:]):
				r.Errorf("call %d: %q", i, limit.Text)
			case err == nil:
				if err := held.Settle(r.Context(), claybot.Usage{Input: tt.tokens, CostMicroUSD: tt.cost}); err != nil {
					r.Error(err)
				}
			}
		}
		if len(r.stops) > 0 {
			r.Errorf("operators are told of %q", r.stops)
		}
		// A dollar budget takes no call of a model without a price.
		if _, err := limiter.Reserve(r.Context(), llm.Charge{Run: "a", Tokens: 1}); err == nil {
			r.Error("a call without a price is made")
		}
	})
}
