package agentsystem_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/runs/flow"
)

// called has a workflow wait for a call.
var called = map[string]string{"order": `
owner: chat/boss
start: paid
nodes:
  paid: {kind: wait, event: callback, for: 1h, next: tell, expired: late}
  tell: {kind: reply, text: "paid {{ paid.total }}", next: END}
  late: {kind: reply, text: late, next: END}
`}

// The process dies after every step in turn: a call that was acknowledged counts once, with what was sent first.
func TestCrashAroundACallback(t *testing.T) {
	afterEveryStep(t, 10, 2, calledLife)
}

// calledLife calls a workflow in a process that dies after k steps, and in the one after it.
func calledLife(t *testing.T, k int) (steps int) {
	bubble(t, func(r *rig) {
		r.line, r.blowAfter = platforms[0].line, k
		r.workflows(called)
		r.start()
		r.source("order")
		after(10 * time.Second)
		took := r.calls(5)
		after(10 * time.Second)
		steps = len(r.fuse.steps)
		if r.fuse.dead() {
			t.Logf("the process died behind %q, the call was %q", r.fuse.steps[max(0, len(r.fuse.steps)-3):], took)
			r.crash()
			r.start()
			if _, err := r.db.Receipt(r.Context(), "order"); err != nil {
				r.source("order")
			}
			after(time.Minute)
		}
		want := "paid 5"
		if again := r.calls(7); again == agentsystem.CallTaken && took != agentsystem.CallTaken {
			want = "paid 7"
		} else if again == agentsystem.CallTaken {
			t.Error("both calls were taken")
		}
		after(time.Minute)
		if got := r.chat.seen(); !slices.Equal(got, []string{want}) {
			t.Errorf("people see %q, want %q", got, want)
		}
		if got := r.calls(9); got == agentsystem.CallTaken {
			t.Error("a call behind the end was taken")
		}
	})
	return steps
}

// calls sends a number to the workflow that waits, and returns what came of it; empty where it could not.
func (r *rig) calls(total int) string {
	r.Helper()
	for _, e := range r.flowAgents() {
		run, err := r.db.LastRun(r.Context(), e.ID)
		if err != nil {
			continue
		}
		took, err := r.system.Control.Call(r.Context(), run, flow.CallbackID(run.ID, "paid.1"), json.RawMessage(fmt.Sprintf(`{"total":%d}`, total)))
		if err == nil {
			return took
		}
	}
	return ""
}

// A call and the end of its time race: what the store has first counts, and the other one is told so.
func TestCallbackInTime(t *testing.T) {
	for _, late := range []bool{false, true} {
		bubble(t, func(r *rig) {
			r.line = platforms[0].line
			r.workflows(called)
			r.start()
			r.source("order")
			after(10 * time.Second)
			want, said := agentsystem.CallTaken, "paid 5"
			if late {
				after(time.Hour)
				want, said = agentsystem.CallLate, "late"
			}
			if got := r.calls(5); got != want {
				t.Errorf("late %v: %q, want %q", late, got, want)
			}
			after(time.Minute)
			if got := r.chat.seen(); !slices.Equal(got, []string{said}) {
				t.Errorf("late %v: people see %q, want %q", late, got, said)
			}
			for _, e := range r.flowAgents() {
				if run := r.lastOf(e.ID); run.State != claybot.RunSucceeded {
					t.Errorf("late %v: the run is %s", late, run.State)
				}
			}
		})
	}
}
