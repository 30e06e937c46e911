package agentsystem_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/inbox"
)

// slowInbox answers what waits some time after it has read it.
type slowInbox struct{ agentsystem.Inbox }

func (x slowInbox) Waiting(ctx context.Context, id claybot.AgentID, limit int) ([]claybot.AgentMessage, error) {
	defer time.Sleep(10 * time.Second)
	return x.Inbox.Waiting(ctx, id, limit)
}

// A message that is taken up while an operator looks is in the run, and nowhere else.
func TestInboxOfShowsWhatIsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.setPolicy(inbox.Policy{Debounce: 5 * time.Second})
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Inbox = slowInbox{s.Inbox}
			return s
		}
		r.mind.hold("begin", time.Minute)
		r.start()
		r.say("begin")
		synctest.Wait()
		v, err := r.system.Overview.InboxOf(r.Context(), r.agent(ann))
		if err != nil || len(v.Waiting) != 0 || v.Run == nil || len(v.Run.Messages) != 1 {
			t.Errorf("waiting %v, run %+v, %v", v.Waiting, v.Run, err)
		}
	})
}
