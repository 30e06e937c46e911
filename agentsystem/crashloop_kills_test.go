package agentsystem_test

import (
	"context"
	"testing"
	"time"

	"github.com/claybot/claybot/llm"
)

// A machine that kills every process after some seconds, for as long as it likes, keeps
// neither people out nor a run from being tried.
func TestKillsWithoutEnd(t *testing.T) {
	for _, pace := range []time.Duration{3 * time.Second, 12 * time.Second, 40 * time.Second} {
		t.Run(pace.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.mind.before = func(ctx context.Context, _ llm.Request) error { return rest(ctx, time.Hour) }
				r.start()
				r.say("long work")
				open := 0
				for range 40 {
					after(pace)
					if !r.holds() {
						open++
					}
					r.crash()
					r.start()
				}
				lives := r.askedAbout("long work")
				if open < 15 {
					t.Errorf("people were let in %d times in 40 lives", open)
				}
				if lives < 5 {
					t.Errorf("the run was tried %d times in 40 lives", lives)
				}
				if state := r.state("long work"); state.Ended() {
					t.Errorf("the run ended as %s", state)
				}
			})
		})
	}
}

// holds reports whether connectors are held back now.
func (r *rig) holds() bool {
	r.Helper()
	for _, c := range r.status().Connectors {
		if c.Held != "" {
			return true
		}
	}
	return false
}
