package agentsystem

import (
	"testing"

	"github.com/claybot/claybot"
)

// A pass that ends late leaves the turn of the run's newer pass alone: another pass
// of the same run may have begun here after the first one had lost its lease.
func TestTurnOfANewerPass(t *testing.T) {
	newPass := func(run claybot.RunID, agent claybot.AgentID, texts ...string) *pass {
		p := &pass{agent: claybot.Agent{ID: agent}, run: claybot.Run{ID: run}}
		for _, text := range texts {
			p.messages = append(p.messages, claybot.AgentMessage{Type: claybot.MessageUser, Text: text})
		}
		return p
	}
	var all turns
	old, newer, other := newPass("r1", "a1", "one"), newPass("r1", "a1", "one", "two"), newPass("r2", "a2", "three")
	wants := func(when string, run claybot.RunID, p *pass) {
		t.Helper()
		got := all.of(run)
		if p == nil {
			if got.pass != nil || got.agent.ID != "" || len(got.messages) > 0 {
				t.Errorf("%s: there is a turn of %s: %+v", when, run, got)
			}
			return
		}
		if got.pass != p || got.agent.ID != p.agent.ID || len(got.messages) != len(p.messages) {
			t.Errorf("%s: the turn of %s is %+v, want that of %d messages", when, run, got, len(p.messages))
		}
	}
	all.end(old)
	wants("before any", "r1", nil)
	all.begin(old)
	all.begin(other)
	all.begin(newer)
	wants("both at work", "r1", newer)
	all.end(old)
	wants("the old one has ended", "r1", newer)
	wants("the old one has ended", "r2", other)
	all.begin(newer) // it took more messages in
	all.end(old)
	wants("ended twice", "r1", newer)
	all.end(newer)
	wants("both have ended", "r1", nil)
	wants("both have ended", "r2", other)
	all.end(newer)
	all.end(other)
	wants("all have ended", "r2", nil)
}
