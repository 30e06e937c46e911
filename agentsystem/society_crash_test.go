package agentsystem_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// A family is a conversation in which helpers are started, fail, report and are
// waited for, with what must be known in the end however often the process died.
type family struct {
	name string
	plan func(r *rig)
	// What people see, apart from the order; what the agent remembers of
	// failures and results; and how many helpers there are.
	seen              []string
	failures, results int
	children          int
}

var families = []family{
	{
		name: "one reports, one fails",
		plan: func(r *rig) {
			r.mind.plan("begin", startAll(true, "alpha", "bravo"), llmtest.Say("started"))
			r.mind.plan("alpha", use("look"), llmtest.Say("gold"))
			r.mind.plan("bravo", fails)
			r.mind.plan("failed in run", llmtest.Say("one failed"))
			r.mind.plan("gold", llmtest.Say("one found gold"))
		},
		failures: 1, results: 1, children: 2,
	},
	{
		name: "waited for",
		plan: func(r *rig) {
			r.mind.plan("begin", spawn("", "alpha", "bravo", "charlie"), llmtest.Say("all in"))
			r.mind.plan("alpha", use("look"), llmtest.Say("one"))
			r.mind.plan("bravo", fails)
			r.mind.plan("charlie", spawn("", "delta"), llmtest.Say("three"))
		},
		seen: []string{"all in"}, children: 3,
	},
}

// The process dies after every step in turn, or with the race detector after
// every third. Every helper is started once, each
// end is told once, and what waits goes on once.
func TestCrashAmongAgents(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			afterEveryStep(t, 20, 3, f.live)
		})
	}
}

// live plays a family in a process that dies after k steps and in the one after
// it, and returns how many steps there were.
func (f family) live(t *testing.T, k int) (steps int) {
	bubble(t, func(r *rig) {
		r.line, r.blowAfter = platforms[0].line, k // a platform that can be asked
		f.plan(r)
		r.start()
		r.source("begin")
		after(time.Minute) // the helpers must not be late when the next process comes
		steps = len(r.fuse.steps)
		// What happens together, a report and a notice for example, may take a
		// step less when it is played again: then the last kills hit nothing.
		if r.fuse.dead() {
			t.Logf("the process died behind %q", r.fuse.steps[max(0, len(r.fuse.steps)-3):])
			r.crash()
			r.start()
			r.source("begin")
			after(time.Hour)
		}
		id := r.agent(ann)
		if n := len(r.systemTexts(id, claybot.KindFailure)); n != f.failures {
			t.Errorf("%d notices, want %d", n, f.failures)
		}
		if n := len(r.systemTexts(id, claybot.KindResult)); n != f.results {
			t.Errorf("%d results, want %d", n, f.results)
		}
		if c := r.children(ann); len(c) != f.children {
			t.Errorf("%d helpers, want %d", len(c), f.children)
		}
		if f.seen != nil && !slices.Equal(r.chat.seen(), f.seen) {
			t.Errorf("people see %q", r.chat.seen())
		}
		if f.name == "waited for" {
			got := r.answers(ann)
			if len(got) != 3 || got[0].Output != "one" || got[1].OK || got[2].Output != "three" {
				t.Errorf("answers %+v", got)
			}
		}
	})
	return steps
}

// afterEveryStep lets a life end after each of its steps in turn; with the race detector or -short after every
// so many. The life with the number -1 does not end early; all return how many steps there were, which are at least as many
// as given.
func afterEveryStep(t *testing.T, least, raceEvery int, life func(t *testing.T, k int) int) {
	t.Helper()
	steps := life(t, -1)
	if steps < least {
		t.Fatalf("only %d steps: the test does not see them", steps)
	}
	every := 1
	if raced || testing.Short() {
		every = raceEvery
	}
	for k := 0; k < steps; k += every {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			life(t, k)
		})
	}
}
