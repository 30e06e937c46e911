package subagents

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// maxWaiting bounds the tasks of a thread that are looked at.
const maxWaiting = 1000

// stopTasks ends the tasks of threads that a run of a workflow waited for.
func (s *Supervisor) stopTasks(ctx context.Context, id claybot.AgentID, run claybot.RunID) {
	d, err := s.index.IndexedDescriptor(ctx, id)
	if err != nil || d.Type != claybot.AgentFlow {
		return // no other agent gives them tasks
	}
	for q := (storage.AgentQuery{Type: claybot.AgentSubagent, Owner: d.Owner, Busy: true, Limit: 200}); ; {
		page, err := s.index.AgentPage(ctx, q)
		if err != nil {
			s.log.Error("failed to list the threads of an ended run", "agent", id, "run", run, "err", err)
			return
		}
		for _, e := range page {
			if e.Descriptor.IsThread() {
				s.haltTasks(ctx, e, func(a claybot.Awaited) bool { return a.Run == run })
			}
		}
		if len(page) < q.Limit {
			return
		}
		q.After = page[len(page)-1].ID
	}
}

// haltTasks ends the tasks of a thread that over reports: those that wait are dropped, and the run of
// the one at work is stopped. The other tasks go on.
func (s *Supervisor) haltTasks(ctx context.Context, e storage.IndexEntry, over func(claybot.Awaited) bool) {
	waiting, err := s.inbox.Waiting(ctx, e.ID, maxWaiting)
	if err != nil {
		s.log.Error("failed to list the tasks of a thread", "agent", e.ID, "err", err)
		return
	}
	var ids []claybot.MessageID
	for _, m := range waiting {
		if m.Awaited != nil && over(*m.Awaited) {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) > 0 {
		dropped, err := s.inbox.Drop(ctx, e.ID, "stopped", ids...)
		if err != nil {
			s.log.Error("failed to drop the tasks of a thread", "agent", e.ID, "err", err)
		}
		s.dropped(e.ID, dropped...)
	}
	if e.Run == "" {
		return
	}
	at, err := s.runs.Run(ctx, e.Run)
	if err != nil || at.State.Ended() {
		return
	}
	for _, id := range at.Messages {
		r, err := s.inbox.Receipt(ctx, id)
		if err != nil || r.Message.Awaited == nil || !over(*r.Message.Awaited) {
			continue
		}
		_, err = s.poster.Post(ctx, storage.Posting{To: e.ID, By: ByParent, Message: claybot.AgentMessage{
			ID: claybot.MessageID("stop/" + runs.NewID()), Type: claybot.MessageCancel, Run: at.ID, At: claybot.Now(),
		}})
		if err != nil {
			s.log.Error("failed to stop a thread", "agent", e.ID, "run", at.ID, "err", err)
		}
	}
}
