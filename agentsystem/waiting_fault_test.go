package agentsystem_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
)

// faultyHistory starts r with an agent of Ann whose history cannot be used, and a message
// that was accepted for it.
func (r *rig) faultyHistory() (repair func()) {
	r.setPolicy(oneByOne)
	r.start()
	r.say("a")
	after(time.Minute)
	id := r.agent(ann)
	r.shut()
	repair = r.brokenFile(id, "history.jsonl")
	r.start()
	r.say("b")
	after(10 * time.Second)
	return repair
}

// Tries that meet a fault leave no trace of a restart that was none.
func TestNoEventsOfAFault(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.faultyHistory()
		after(10 * time.Minute)
		run := r.receipt("b").Run
		if all := r.events(run.ID); len(all) != 1 {
			r.Errorf("events during the fault: %+v", all)
		}
	})
}

// A /stop ends a run although the files of its agent cannot be used, and the next message
// runs after the repair.
func TestStopDuringAFault(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		repair := r.faultyHistory()
		after(10 * time.Minute)
		r.post(ann, typed("stop", claybot.MessageCancel, ""))
		after(5 * time.Second)
		if seen := r.chat.seen("dm-ann"); seen[len(seen)-1] != "Stopped." {
			r.Errorf("people see %q", seen)
		}
		if run := r.receipt("b").Run; run.State != claybot.RunCanceled {
			r.Errorf("the run is %s", run.State)
		}
		if st := r.status(); st.Faulty != 0 {
			r.Errorf("%d agents at fault with nothing to do", st.Faulty)
		}
		r.say("c")
		after(10 * time.Second)
		repair()
		after(2 * time.Minute)
		if got := r.answersIn("dm-ann"); !slices.Equal(got, []string{"re: a", "re: c"}) {
			r.Errorf("afterwards: %q", r.chat.seen())
		}
	})
}

// The same where the state of the agent cannot be read.
func TestStopWithoutAState(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		f := &agentFault{call: "Agent", err: errAccess}
		r.decorate = f.stores
		r.setPolicy(oneByOne)
		r.mind.hold("", time.Hour)
		r.start()
		r.post(carol, msg("c", "c"))
		after(time.Second)
		id := r.agent(carol)
		r.crash()
		f.id.Store(&id)
		f.on.Store(true)
		r.start()
		after(10 * time.Minute)
		r.post(carol, typed("stop", claybot.MessageCancel, ""))
		after(10 * time.Second)
		if run := r.receipt("c").Run; run == nil || run.State != claybot.RunCanceled {
			r.Errorf("the run is %+v", run)
		}
	})
}

// What is said of a message that was accepted for an agent that cannot be used is true.
func TestTruthOfAFault(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		repair := r.faultyHistory()
		after(10 * time.Minute)
		if said := r.slashStatus("status"); !strings.HasPrefix(said, "I haven't been able to access the files of our conversation since ") {
			r.Errorf("/status: %q", said)
		}
		r.post(ann, command("why", "why"))
		after(time.Second)
		const waits = "It waits until its agent can be used again, and is retried until then."
		if seen := r.chat.seen("dm-ann"); !strings.Contains(seen[len(seen)-1], waits) {
			r.Errorf("/why: %q", seen[len(seen)-1])
		}
		story := r.why("b")
		if v := story.Verdict(); v.Outcome != overview.OutcomeWaiting || v.Text != waits {
			r.Errorf("verdict %+v", v)
		}
		if !slices.ContainsFunc(story.Steps, func(s overview.Step) bool { return s.What == "waiting" && strings.Contains(s.Text, "history.jsonl") }) {
			r.Errorf("no step says the cause: %+v", story.Steps)
		}
		st := r.status()
		if len(st.Faults) != 1 || st.Faults[0].Agent != "chat:dm-ann:ann" || !strings.Contains(st.Faults[0].Cause, "history.jsonl") || st.Faults[0].Since == 0 {
			r.Errorf("status %+v", st.Faults)
		}
		list, err := r.system.Overview.ParkedAgents(r.Context(), 9)
		if err != nil || len(list) != 1 || list[0].Agent != "chat:dm-ann:ann" || list[0].Messages != 1 || list[0].First != "b" || !strings.Contains(list[0].Cause, "history.jsonl") {
			r.Errorf("parked: %+v, %v", list, err)
		}
		repair()
		after(2 * time.Minute)
		if got := r.answersIn("dm-ann"); !slices.Equal(got, []string{"re: a", "re: b"}) {
			r.Errorf("afterwards: %q", got)
		}
		if r.verdict("b").Outcome != overview.OutcomeAnswered || len(r.status().Faults) != 0 {
			r.Errorf("afterwards: %+v, %+v", r.verdict("b"), r.status().Faults)
		}
	})
}
