package subagents

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// TellLost reports work of a subagent that ended outside a run, once, to its parent or the
// most recent agent of its owner.
func (s *Subagents) TellLost(ctx context.Context, e storage.IndexEntry, work string, why claybot.RunError) {
	if e.Descriptor.Type != claybot.AgentSubagent {
		return
	}
	if s.Waited(ctx, e) {
		return // the answer says so
	}
	id := claybot.MessageID("failure/" + work)
	if _, err := s.Inbox.Receipt(ctx, id); err == nil {
		return
	}
	to, err := s.Recipient(ctx, e.Descriptor, e.ID, e.Descriptor.Parent)
	if err == nil && to.ID != "" {
		_, err = s.Intake.Accept(ctx, to, claybot.AgentMessage{
			ID: id, Type: claybot.MessageSystem, Kind: claybot.KindFailure,
			From: claybot.Sender{Agent: e.ID, Name: e.Descriptor.Name},
			Text: texts.SubagentFailed(e.Descriptor, e.ID, claybot.RunID(work), why),
		})
	}
	if err != nil {
		s.Log.Error("failed to report an ended subagent", "agent", e.ID, "err", err)
	}
}

// Waited reports whether a run waits for the result of a subagent. It returns true when
// that is unknown.
func (s *Subagents) Waited(ctx context.Context, e storage.IndexEntry) bool {
	r, err := s.Inbox.Receipt(ctx, taskID(e.Descriptor.UID))
	if err != nil || r.Message.Awaited == nil {
		return false
	}
	waits, err := s.Awaits(ctx, *r.Message.Awaited)
	return waits || err != nil
}
