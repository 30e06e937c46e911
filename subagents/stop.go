package subagents

import (
	"context"
	"errors"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// Awaits reports whether an agent still waits for the end of the run: its own run has not
// ended, and it has not been deleted.
func (s *Subagents) Awaits(ctx context.Context, a claybot.Awaited) (bool, error) {
	run, err := s.Runs.Run(ctx, a.Run)
	if err != nil {
		return false, storage.Ignore(err, storage.ErrNotFound)
	}
	return !run.State.Ended(), nil
}

// Recipient returns the agent that is notified of the end of an agent's run: the one with id,
// or, where that is deleted, the most recent foreground agent of the owner, if any.
func (s *Subagents) Recipient(ctx context.Context, d claybot.Descriptor, self, id claybot.AgentID) (claybot.Agent, error) {
	e, err := s.Index.IndexedAgentByID(ctx, id)
	if err == nil {
		var archived bool
		if archived, err = s.archived(ctx, e); err == nil && !archived {
			return claybot.Agent{ID: id, Descriptor: e.Descriptor}, nil
		}
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return claybot.Agent{}, err
	}
	e, err = s.People.Recent(ctx, d, self)
	if errors.Is(err, storage.ErrNotFound) {
		s.Log.Warn("no recipient for the end of a subagent's run", "agent", self, "parent", id)
		return claybot.Agent{}, nil
	}
	return claybot.Agent{ID: e.ID, Descriptor: e.Descriptor}, err
}

// StopAwaited stops the subagents that the ended run waited for.
func (s *Subagents) StopAwaited(ctx context.Context, id claybot.AgentID, run claybot.RunID) {
	children, err := s.Index.Children(ctx, id)
	if err != nil {
		s.Log.Error("failed to list the subagents of an ended run", "agent", id, "run", run, "err", err)
		return
	}
	for _, c := range children {
		if !c.Busy {
			continue
		}
		r, err := s.Inbox.Receipt(ctx, taskID(c.Descriptor.UID))
		if err != nil || r.Message.Awaited == nil || r.Message.Awaited.Run != run {
			continue // it was started to run on its own
		}
		s.Halt(ctx, c, "parent")
	}
}

// StopOrphans stops subagents whose waiting run has ended: the process crashed after that
// end and before it could stop them.
func (s *Subagents) StopOrphans(ctx context.Context) {
	for e, err := range s.Index.IndexedAgents(ctx) {
		if err != nil {
			s.Log.Error("failed to list orphaned subagents", "err", err)
			return
		}
		if e.Descriptor.Type != claybot.AgentSubagent || !e.Busy {
			continue
		}
		r, err := s.Inbox.Receipt(ctx, taskID(e.Descriptor.UID))
		if err != nil || r.Message.Awaited == nil {
			continue
		}
		if run, err := s.Runs.Run(ctx, r.Message.Awaited.Run); err == nil && run.State.Ended() {
			s.Halt(ctx, e, "parent")
		}
	}
}

// Halt stops the run of an agent and drops its waiting messages. It reports whether there
// was anything to stop, and logs failures.
func (s *Subagents) Halt(ctx context.Context, e storage.IndexEntry, by string) bool {
	dropped, err := s.Inbox.Drop(ctx, e.ID, "stopped")
	if err != nil {
		s.Log.Error("failed to drop the messages of a stopped agent", "agent", e.ID, "err", err)
	}
	s.Intake.Dropped(e.ID, dropped...)
	done, err := s.Poster.Post(ctx, storage.Posting{To: e.ID, By: by, Message: claybot.AgentMessage{
		ID: claybot.MessageID("stop/" + runs.NewID()), Type: claybot.MessageCancel, At: claybot.Now(),
	}})
	if err != nil {
		s.Log.Error("failed to stop agent", "agent", e.ID, "err", err)
	}
	if by == people.Operator && len(dropped) > 0 && done.Canceled == "" {
		s.TellLost(ctx, e, string(dropped[0]), claybot.RunError{Code: "canceled", Text: "stopped by the operator before it began"})
	}
	return done.Canceled != "" || len(dropped) > 0
}

// HaltBelow stops all descendants of an agent and returns how many were at
// work.
func (s *Subagents) HaltBelow(ctx context.Context, id claybot.AgentID, by string) int {
	children, err := s.Index.Children(ctx, id)
	if err != nil {
		s.Log.Error("failed to list the subagents of an agent", "agent", id, "err", err)
		return 0
	}
	n := 0
	for _, c := range children {
		if c.Busy && s.Halt(ctx, c, by) {
			n++
		}
		n += s.HaltBelow(ctx, c.ID, by)
	}
	return n
}

// BusyBelow reports whether a descendant of an agent is at work.
func (s *Subagents) BusyBelow(ctx context.Context, id claybot.AgentID) bool {
	children, err := s.Index.Children(ctx, id)
	if err != nil {
		return false // it only chooses the wording of a reply
	}
	return slices.ContainsFunc(children, func(c storage.IndexEntry) bool { return c.Busy || s.BusyBelow(ctx, c.ID) })
}
