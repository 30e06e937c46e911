package agentsystem_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// newPurse is a purse with one budget of all agents, in tokens.
func (r *rig) newPurse(limit int64, hard bool) *agentsystem.Purse {
	return agentsystem.NewPurse(r.system, agentsystem.PurseConfig{Store: r.db, Rules: func() []agentsystem.BudgetRule {
		return []agentsystem.BudgetRule{{Per: agentsystem.PerAll, Every: agentsystem.EveryAlways, Unit: storage.UnitTokens, Limit: limit, Hard: hard}}
	}})
}

// A call that waits for room goes on as soon as its budget is extended.
func TestExtensionWakesWhoWaits(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := r.newPurse(1000, true)
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		if _, err := p.Reserve(ctx, llm.Charge{Tokens: 600}); err != nil {
			r.Fatal(err)
		}
		done := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := p.Reserve(ctx, llm.Charge{Tokens: 600})
			done <- err
		}()
		synctest.Wait()
		if len(done) > 0 {
			r.Fatalf("the call does not wait: %v", <-done)
		}
		if err := p.Extend(ctx, "all/-/always/tokens", 600, "operator", "x1"); err != nil {
			r.Fatal(err)
		}
		if err := <-done; err != nil || time.Since(began) > time.Second {
			r.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// A warning that nobody was there to hear is told as soon as somebody is, once.
func TestWarningIsToldLater(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := r.newPurse(1000, false)
		spend := func(tokens int64) {
			h, err := p.Reserve(r.Context(), llm.Charge{Tokens: tokens})
			if err != nil {
				r.Fatal(err)
			}
			if err := h.Settle(r.Context(), claybot.Usage{Input: tokens}); err != nil {
				r.Fatal(err)
			}
			synctest.Wait()
		}
		spend(900)
		r.post(ann, msg("hi", "hi"))
		synctest.Wait()
		for range 3 {
			spend(1)
		}
		if got := strings.Count(strings.Join(r.chat.seen("dm-ann"), "\n"), "The budget of all agents"); got != 1 {
			r.Errorf("told %d times: %q", got, r.chat.seen("dm-ann"))
		}
	})
}
