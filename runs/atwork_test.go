package runs_test

import (
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// A pass that ends late leaves the work of the run's newer pass alone: another pass
// of the same run may have begun here after the first one had lost its lease.
func TestWorkOfANewerPass(t *testing.T) {
	newWork := func(pass string, agent claybot.AgentID, texts ...string) runs.Work {
		w := runs.Work{Pass: pass, Agent: claybot.Agent{ID: agent}}
		for _, text := range texts {
			w.Messages = append(w.Messages, claybot.AgentMessage{Type: claybot.MessageUser, Text: text})
		}
		return w
	}
	var all runs.AtWork
	old, newer, other := newWork("old", "a1", "one"), newWork("newer", "a1", "one", "two"), newWork("other", "a2", "three")
	wants := func(when string, run claybot.RunID, want runs.Work) {
		t.Helper()
		got := all.Of(run)
		if got.Pass != want.Pass || got.Agent.ID != want.Agent.ID || len(got.Messages) != len(want.Messages) {
			t.Errorf("%s: the work on %s is %+v, want %+v", when, run, got, want)
		}
		if all.Here(run) != (want.Pass != nil) {
			t.Errorf("%s: Here(%s) is %v", when, run, all.Here(run))
		}
	}
	all.End("r1", old.Pass)
	wants("before any", "r1", runs.Work{})
	all.Begin("r1", old)
	all.Begin("r2", other)
	all.Begin("r1", newer)
	wants("both at work", "r1", newer)
	all.End("r1", old.Pass)
	wants("the old one has ended", "r1", newer)
	wants("the old one has ended", "r2", other)
	all.Begin("r1", newer) // it took more messages in
	all.End("r1", old.Pass)
	wants("ended twice", "r1", newer)
	all.End("r1", newer.Pass)
	wants("both have ended", "r1", runs.Work{})
	wants("both have ended", "r2", other)
	all.End("r1", newer.Pass)
	all.End("r2", other.Pass)
	wants("all have ended", "r2", runs.Work{})
}
