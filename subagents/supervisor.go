package subagents

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// ByParent is who stops a run that the agent stops which waits for it.
const ByParent = "parent"

// A Supervisor stops agents with their parents, and reports work that ended outside a run.
type Supervisor struct {
	index   Index
	inbox   Inbox
	runs    Runs
	poster  Poster
	people  People
	accept  func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posted, error)
	dropped func(agent claybot.AgentID, ids ...claybot.MessageID)
	log     *slog.Logger
}

// Awaits reports whether an agent still waits for the end of the run: its own run has not
// ended, and it has not been deleted.
func (s *Supervisor) Awaits(ctx context.Context, a claybot.Awaited) (bool, error) {
	run, err := s.runs.Run(ctx, a.Run)
	if err != nil {
		return false, storage.Ignore(err, storage.ErrNotFound)
	}
	return !run.State.Ended(), nil
}

// Recipient returns the agent that is notified of the end of an agent's run: the one with id,
// or, where that is deleted, the most recent foreground agent of the owner, if any.
func (s *Supervisor) Recipient(ctx context.Context, d claybot.Descriptor, self, id claybot.AgentID) (claybot.Agent, error) {
	e, err := s.index.IndexedAgentByID(ctx, id)
	if err == nil {
		var archived bool
		if archived, err = s.archived(ctx, e); err == nil && !archived {
			return claybot.Agent{ID: id, Descriptor: e.Descriptor}, nil
		}
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return claybot.Agent{}, err
	}
	e, err = s.people.Recent(ctx, d, self)
	if errors.Is(err, storage.ErrNotFound) {
		s.log.Warn("no recipient for the end of a subagent's run", "agent", self, "parent", id)
		return claybot.Agent{}, nil
	}
	return claybot.Agent{ID: e.ID, Descriptor: e.Descriptor}, err
}

// StopAwaited stops the subagents that the ended run waited for. Of threads, it ends their tasks.
func (s *Supervisor) StopAwaited(ctx context.Context, id claybot.AgentID, run claybot.RunID) {
	children, err := s.index.Children(ctx, id)
	if err != nil {
		s.log.Error("failed to list the subagents of an ended run", "agent", id, "run", run, "err", err)
		return
	}
	for _, c := range children {
		if !c.Busy {
			continue
		}
		r, err := s.inbox.Receipt(ctx, taskID(c.Descriptor.UID))
		if err != nil || r.Message.Awaited == nil || r.Message.Awaited.Run != run {
			continue // it was started to run on its own
		}
		s.Halt(ctx, c, ByParent)
	}
	s.stopTasks(ctx, id, run)
}

// StopOrphans stops subagents whose waiting run has ended: the process crashed after that
// end and before it could stop them.
func (s *Supervisor) StopOrphans(ctx context.Context) {
	for e, err := range s.busy(ctx) {
		if err != nil {
			s.log.Error("failed to list orphaned subagents", "err", err)
			return
		}
		if e.Descriptor.IsThread() {
			s.haltTasks(ctx, e, func(a claybot.Awaited) bool {
				run, err := s.runs.Run(ctx, a.Run)
				return err == nil && run.State.Ended()
			})
			continue
		}
		r, err := s.inbox.Receipt(ctx, taskID(e.Descriptor.UID))
		if err != nil || r.Message.Awaited == nil {
			continue
		}
		if run, err := s.runs.Run(ctx, r.Message.Awaited.Run); err == nil && run.State.Ended() {
			s.Halt(ctx, e, ByParent)
		}
	}
}

// busy yields the agents that others made which have a run, or something that will start one.
func (s *Supervisor) busy(ctx context.Context) iter.Seq2[storage.IndexEntry, error] {
	return func(yield func(storage.IndexEntry, error) bool) {
		for _, kind := range []claybot.AgentType{claybot.AgentSubagent, claybot.AgentFlow} {
			for q := (storage.AgentQuery{Type: kind, Busy: true, Limit: 200}); ; {
				page, err := s.index.AgentPage(ctx, q)
				if err != nil {
					yield(storage.IndexEntry{}, err)
					return
				}
				for _, e := range page {
					if e.Descriptor.Child() && !yield(e, nil) {
						return
					}
				}
				if len(page) < q.Limit {
					break
				}
				q.After = page[len(page)-1].ID
			}
		}
	}
}

// Halt stops the run of an agent and drops its waiting messages. It reports whether there
// was anything to stop, and logs failures.
func (s *Supervisor) Halt(ctx context.Context, e storage.IndexEntry, by string) bool {
	dropped, err := s.inbox.Drop(ctx, e.ID, "stopped")
	if err != nil {
		s.log.Error("failed to drop the messages of a stopped agent", "agent", e.ID, "err", err)
	}
	s.dropped(e.ID, dropped...)
	done, err := s.poster.Post(ctx, storage.Posting{To: e.ID, By: by, Message: claybot.AgentMessage{
		ID: claybot.MessageID("stop/" + runs.NewID()), Type: claybot.MessageCancel, At: claybot.Now(),
	}})
	if err != nil {
		s.log.Error("failed to stop agent", "agent", e.ID, "err", err)
	}
	if by == people.Operator && len(dropped) > 0 && done.Canceled == "" {
		s.ReportLost(ctx, e, string(dropped[0]), claybot.RunError{Code: "canceled", Text: texts.StoppedBeforeStart})
	}
	return done.Canceled != "" || len(dropped) > 0
}

// HaltBelow stops all descendants of an agent and returns how many were at
// work.
func (s *Supervisor) HaltBelow(ctx context.Context, id claybot.AgentID, by string) int {
	children, err := s.index.Children(ctx, id)
	if err != nil {
		s.log.Error("failed to list subagents", "agent", id, "err", err)
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
func (s *Supervisor) BusyBelow(ctx context.Context, id claybot.AgentID) bool {
	children, err := s.index.Children(ctx, id)
	if err != nil {
		return false // it only chooses the wording of a reply
	}
	return slices.ContainsFunc(children, func(c storage.IndexEntry) bool { return c.Busy || s.BusyBelow(ctx, c.ID) })
}

// ReportLost reports work of a subagent that ended outside a run, once, to its parent or the
// most recent agent of its owner.
func (s *Supervisor) ReportLost(ctx context.Context, e storage.IndexEntry, work string, why claybot.RunError) {
	if e.Descriptor.Type != claybot.AgentSubagent {
		return
	}
	if s.Waited(ctx, e) {
		return // the answer says so
	}
	id := claybot.MessageID("failure/" + work)
	if _, err := s.inbox.Receipt(ctx, id); err == nil {
		return
	}
	to, err := s.Recipient(ctx, e.Descriptor, e.ID, e.Descriptor.Parent)
	if err == nil && to.ID != "" {
		_, err = s.accept(ctx, to, claybot.AgentMessage{
			ID: id, Type: claybot.MessageSystem, Kind: claybot.KindFailure,
			From: claybot.Sender{Agent: e.ID, Name: e.Descriptor.Name},
			Text: texts.SubagentFailed(e.Descriptor, e.ID, claybot.RunID(work), why), Private: true,
		})
	}
	if err != nil {
		s.log.Error("failed to report an ended subagent", "agent", e.ID, "err", err)
	}
}

// Waited reports whether a run waits for the result of a subagent. It returns true when
// that is unknown.
func (s *Supervisor) Waited(ctx context.Context, e storage.IndexEntry) bool {
	if e.Descriptor.IsThread() {
		return true // only runs that wait give it tasks
	}
	r, err := s.inbox.Receipt(ctx, taskID(e.Descriptor.UID))
	if err != nil || r.Message.Awaited == nil {
		return false
	}
	waits, err := s.Awaits(ctx, *r.Message.Awaited)
	return waits || err != nil
}

// archived reports whether a subagent has been idle for so long that it no longer accepts
// messages.
func (s *Supervisor) archived(ctx context.Context, e storage.IndexEntry) (bool, error) {
	if !e.Descriptor.Child() || e.Busy {
		return false, nil
	}
	last := e.CreatedAt
	run, err := s.runs.LastRun(ctx, e.ID)
	switch {
	case err == nil:
		last = max(last, run.Ended)
	case !errors.Is(err, storage.ErrNotFound):
		return false, fmt.Errorf("read the last run of %s: %w", e.ID, err)
	}
	return time.Since(last.Time()) > archivedAfter, nil
}

// descends reports whether an agent is a descendant of ancestor.
func (s *Supervisor) descends(ctx context.Context, d claybot.Descriptor, ancestor claybot.AgentID) (bool, error) {
	for d.Parent != "" {
		if d.Parent == ancestor {
			return true, nil
		}
		var err error
		if d, err = s.index.IndexedDescriptor(ctx, d.Parent); err != nil {
			return false, storage.Ignore(err, storage.ErrNotFound)
		}
	}
	return false, nil
}
