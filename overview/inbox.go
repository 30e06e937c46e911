package overview

import (
	"context"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// maxInboxView is the maximum number of waiting messages in an InboxView.
const maxInboxView = 1000

// An InboxView has the waiting messages of an agent and its unfinished run.
type InboxView struct {
	Agent      claybot.AgentID
	Descriptor claybot.Descriptor
	Waiting    []claybot.AgentMessage // oldest first
	Run        *claybot.Run           // the unfinished one, or nil
	Stopped    string                 // what holds the messages that wait; see storage.IndexEntry
}

// InboxOf returns the inbox of an agent, or storage.ErrNotFound.
func (o *Listings) InboxOf(ctx context.Context, id claybot.AgentID) (InboxView, error) {
	// Read the waiting messages first: a message that a run takes meanwhile is then in both
	// lists and not missing from both.
	waiting, err := o.Inbox.Waiting(ctx, id, maxInboxView)
	if err != nil {
		return InboxView{}, fmt.Errorf("read the inbox of %s: %w", id, err)
	}
	e, err := o.Index.IndexedAgentByID(ctx, id)
	if err != nil {
		return InboxView{}, err
	}
	v := InboxView{Agent: id, Descriptor: e.Descriptor, Waiting: waiting, Stopped: o.stoppedBy(ctx, e, waiting[:min(len(waiting), 1)]...)}
	if e.Run == "" {
		return v, nil
	}
	run, err := o.Runs.Run(ctx, e.Run)
	if err != nil {
		return v, storage.Ignore(err, storage.ErrNotFound)
	}
	v.Run = &run
	v.Waiting = slices.DeleteFunc(waiting, func(m claybot.AgentMessage) bool { return slices.Contains(run.Messages, m.ID) })
	return v, nil
}
