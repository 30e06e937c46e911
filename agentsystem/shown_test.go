package agentsystem_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
)

// A list that changes faster than the platform takes edits shows its first and its newest
// state; the states between make no calls, so that the answer does not wait for them.
func TestShownGivesWay(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.more = extras
		r.chat.verdicts = []verdict{{}, {err: &connectors.RetryError{After: 20 * time.Second}}}
		r.mind.plan("begin", use("list"), use("list", "list", "list", "list"), llmtest.Say("done"))
		r.start()
		r.say("begin")
		after(10 * time.Second)
		if got := r.chat.seen(); len(got) != 1 || !strings.HasPrefix(got[0], "todos of ") {
			t.Errorf("people see %q", got)
		}
		first := r.chat.seen()[0]
		after(time.Minute)
		if got := r.chat.seen(); len(got) != 2 || got[0] == first || got[1] != "done" {
			t.Errorf("people see %q, want the newest list and the answer", got)
		}
		if n := len(r.chat.sent()); n > 4 {
			t.Errorf("%d calls for a list and an answer", n)
		}
	})
}
