package plan_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/tools"
)

// Wherever a plan is cut off, a step whose tool finds out what it did acts once and has its result.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := func(h *hand) (*desk, runs.Engine) {
			book := spec("book", tools.Once)
			book.Probe = func(_ context.Context, env tools.Env, _ json.RawMessage) (tools.Probed, tools.Result, error) {
				h.mu.Lock()
				defer h.mu.Unlock()
				if h.ran[env.CallID] > 0 {
					return tools.Done, tools.Result{Text: "booked"}, nil
				}
				return tools.NotDone, tools.Result{}, nil
			}
			set := h.set(t, tools.New(book, h.act("book", tools.Once, nil)))
			return newDesk("go"), plan.New(config(thinks(steps(step("a", "book", "1"), step("b", "book", "2", "a"))), set, plan.Policy{}))
		}
		smooth, g := begin(newHand())
		if _, err := survive(t, smooth, g, yes); err != nil {
			t.Fatal(err)
		}
		for k := 1; k <= smooth.ops; k++ {
			for _, keep := range []bool{true, false} {
				h := newHand()
				d, g := begin(h)
				d.cut, d.keep = k, keep
				if _, err := survive(t, d, g, yes); err != nil {
					t.Fatalf("cut %d: %v", k, err)
				}
				effects(t, k, d, h)
				if len(h.ran) != 2 || inDoubt(d) {
					t.Errorf("cut %d, kept %v: acted %v, in doubt %v", k, keep, h.ran, inDoubt(d))
				}
			}
		}
	})
}
