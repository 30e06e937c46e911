package plan_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/tools"
)

// A plan that goes on after a restart waits for the tools of its steps that are about to be there, such as those of an MCP
// server: to approve the steps, and to run them.
func TestResumedPlanWaitsForTools(t *testing.T) {
	for name, cut := range map[string]bool{"at an approval": false, "in the middle of a step": true} {
		h, d := newHand(), newDesk("go")
		all := h.set(t)
		none, err := tools.NewSet()
		if err != nil {
			t.Fatal(err)
		}
		cfg := config(thinks(steps(step("a", "mail", "hello"), step("b", "put", "it", "a"))), all, plan.Policy{})
		there, waited := true, []string(nil)
		cfg.Tools = func(claybot.Agent) *tools.Set {
			if there {
				return all
			}
			return none
		}
		cfg.Ready = func(_ context.Context, names []string) {
			if !there {
				there, waited = true, names
			}
		}
		g := plan.New(cfg)
		wait, err := d.pass(t.Context(), g)
		if err != nil || wait == nil {
			t.Fatalf("%s: no approval was asked for: %v", name, err)
		}
		for _, q := range wait.Questions {
			d.answer(t, wait, q.Key, yes(q))
		}
		if cut {
			d.keep = true
			d.after = func(op string) { d.dead = strings.HasPrefix(op, "start ") } // the call has begun, and has no result
			if _, err := d.pass(t.Context(), g); !errors.Is(err, errCut) {
				t.Fatal("it was not cut")
			}
			d.after = nil
		}
		there = false // a restart
		if wait, err = d.pass(t.Context(), g); err != nil || wait != nil {
			t.Fatalf("%s: %v, %v", name, wait, err)
		}
		if !slices.Equal(h.words, []string{"mail hello", "put it"}) || !slices.Contains(waited, "mail") {
			t.Errorf("%s: did %q, waited for %q", name, h.words, waited)
		}
	}
}
