package overview

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// RunByID loads a run; see storage.RunReader. Its engine is told from the beginning.
func (o *Listings) RunByID(ctx context.Context, id claybot.RunID) (claybot.Run, error) {
	run, err := o.Runs.Run(ctx, id)
	if err == nil && run.Engine == "" {
		run.Engine, err = o.Worker.EngineOf(ctx, run)
	}
	return run, err
}

// RunPage lists runs, the newest first.
func (o *Listings) RunPage(ctx context.Context, q storage.RunQuery) ([]claybot.Run, error) {
	return o.Runs.RunPage(ctx, q)
}

// Events yields what happened in a run up to now, after a seq.
func (o *Listings) Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error] {
	return o.Runs.Events(ctx, id, after)
}

// Watch yields what happened in a run after a seq, and what happens from then
// on; see runs.Watch.
func (o *Listings) Watch(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[runs.Update, error] {
	return runs.Watch(ctx, o.Runs, o.Hub, id, after)
}

// Changed returns a channel that is closed with the next change of anything
// that is stored.
func (o *Listings) Changed() <-chan struct{} { return o.Hub.Changed() }

// AgentPage lists agents, those that a person wrote to last first.
func (o *Listings) AgentPage(ctx context.Context, q storage.AgentQuery) ([]storage.IndexEntry, error) {
	return o.Index.AgentPage(ctx, q)
}

// Agent is the entry of one agent; storage.ErrNotFound.
func (o *Listings) Agent(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error) {
	return o.Index.IndexedAgentByID(ctx, id)
}

// AgentOf is the id of the agent of a descriptor; storage.ErrNotFound.
func (o *Listings) AgentOf(ctx context.Context, d claybot.Descriptor) (claybot.AgentID, error) {
	return o.Index.IndexedAgent(ctx, d)
}

// Children are the entries of the subagents of an agent, oldest first.
func (o *Listings) Children(ctx context.Context, id claybot.AgentID) ([]storage.IndexEntry, error) {
	return o.Index.Children(ctx, id)
}

// Remembered is what an agent remembers; storage.ErrNotFound.
func (o *Listings) Remembered(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error) {
	if _, err := o.Index.IndexedAgentByID(ctx, id); err != nil {
		return nil, err
	}
	return o.Agents.Records(ctx, id)
}

// Conversations lists the agents of one person at one connector, the one that
// was spoken to last first.
func (o *Listings) Conversations(ctx context.Context, connector, user string) ([]storage.IndexEntry, error) {
	all := []storage.IndexEntry{}
	for e, err := range o.Index.Foreground(ctx, []string{claybot.User(connector, "", user).OwnerID()}) {
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		all = append(all, e)
	}
	return all, nil
}

// OutgoingPage lists outgoing messages, the newest first.
func (o *Listings) OutgoingPage(ctx context.Context, q storage.OutgoingQuery) ([]claybot.Outgoing, error) {
	return o.Outbox.OutgoingPage(ctx, q)
}

// Outgoing loads an outgoing message; storage.ErrNotFound.
func (o *Listings) Outgoing(ctx context.Context, id string) (claybot.Outgoing, error) {
	return o.Outbox.OutgoingByID(ctx, id)
}

// Transcript is what a chat window shows of the conversation of d: its newest
// limit messages and replies, oldest first.
func (o *Listings) Transcript(ctx context.Context, d claybot.Descriptor, limit int) ([]storage.Entry, error) {
	id, err := o.Index.IndexedAgent(ctx, d)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find agent: %w", err)
	}
	return o.Outbox.Transcript(ctx, id, d.Route().Dest(), limit)
}

// SentAfter is what was said to d after position n of the outbox.
func (o *Listings) SentAfter(ctx context.Context, d claybot.Descriptor, n int64, limit int) ([]claybot.Outgoing, error) {
	return o.Outbox.SentAfter(ctx, d.Route().Dest(), n, limit)
}

// LastN is the position of the newest message for d in the outbox, 0 for none.
func (o *Listings) LastN(ctx context.Context, d claybot.Descriptor) (int64, error) {
	return o.Outbox.LastN(ctx, d.Route().Dest())
}
