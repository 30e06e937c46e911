package worker

import (
	"context"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/profiles"
)

// heldFor is how long a stopped agent is left alone. It is looked at sooner where a message comes, or
// where Reschedule is called.
const heldFor = 5 * time.Minute

// holds reports whether a pass begins nothing: nothing waits, or the agent is stopped. A reset whose
// turn it is begins no run.
func (s *Worker) holds(box *inbox.AgentInbox, agent claybot.Agent, policy inbox.Policy) bool {
	switch {
	case box.Run != nil:
		return false
	case len(box.Waiting) == 0:
		return true
	}
	return box.Waiting[0].Type != claybot.MessageReset && s.isStopped(box, agent, policy)
}

// isStopped reports whether an agent is stopped as the messages whose turn it is want it to work.
func (s *Worker) isStopped(box *inbox.AgentInbox, agent claybot.Agent, policy inbox.Policy) bool {
	return s.parts.Stopped(Asked(agent, policy.Batch(box.Waiting)...)) != ""
}

// hold frees an agent that begins nothing. What waits for one that is stopped stays where it is.
func (s *Worker) hold(ctx context.Context, box *inbox.AgentInbox, agent claybot.Agent, profile profiles.Profile) error {
	wait := profile.Policy.Wait()
	stopped := s.isStopped(box, agent, profile.Policy)
	if stopped {
		wait.Hold = heldFor
	}
	if err := s.stores.Leases.Release(ctx, box.Lease, wait, true); err != nil {
		return err
	}
	if stopped && !s.isStopped(box, agent, profile.Policy) { // it was started before it was free
		if err := s.parts.Reschedule(ctx, agent.ID); err != nil {
			s.log.Error("failed to start an agent; it starts in a while", "agent", agent.ID, "err", err, "in", heldFor)
		}
	}
	return nil
}
