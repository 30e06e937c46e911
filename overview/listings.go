package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/worker"
)

// RunByID loads a run; see storage.RunReader. If the run has no engine yet, it sets the
// one that the run will use.
func (o *Listings) RunByID(ctx context.Context, id claybot.RunID) (claybot.Run, error) {
	run, err := o.Runs.Run(ctx, id)
	if err == nil && run.Engine == "" {
		run.Engine, err = o.Worker.EngineOf(ctx, run)
	}
	return run, err
}

// RunPage lists runs, newest first.
func (o *Listings) RunPage(ctx context.Context, q storage.RunQuery) ([]claybot.Run, error) {
	return o.Runs.RunPage(ctx, q)
}

// Events yields the events of a run after a seq.
func (o *Listings) Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error] {
	return o.Runs.Events(ctx, id, after)
}

// Watch yields the events of a run after a seq and then those to come; see runs.Watch.
func (o *Listings) Watch(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[runs.Update, error] {
	return runs.Watch(ctx, o.Runs, o.Hub, id, after)
}

// Changed returns a channel that is closed at the next change of stored data.
func (o *Listings) Changed() <-chan struct{} { return o.Hub.Changed() }

// AgentPage lists agents by their last message from a user, newest first.
func (o *Listings) AgentPage(ctx context.Context, q storage.AgentQuery) ([]storage.IndexEntry, error) {
	all, err := o.Index.AgentPage(ctx, q)
	for i := range all {
		all[i] = o.named(ctx, all[i])
	}
	return all, err
}

// Agent returns the entry of an agent, or storage.ErrNotFound.
func (o *Listings) Agent(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error) {
	e, err := o.Index.IndexedAgentByID(ctx, id)
	return o.named(ctx, e), err
}

// named returns the entry of an agent with the names of its group and its person, and what stops it or switches it off.
func (o *Listings) named(ctx context.Context, e storage.IndexEntry) storage.IndexEntry {
	d := e.Descriptor
	e.Stopped, e.Off = o.stoppedBy(ctx, e), o.offBecause(ctx, e)
	if !d.Foreground() {
		return e
	}
	if d.ChannelID != d.UserID {
		e.PlaceName = o.People.NameOf(ctx, d.Connector+"/"+d.ChannelID)
	}
	if !d.Shared() {
		e.PersonName = o.People.NameOf(ctx, d.OwnerID())
	}
	return e
}

// stoppedBy returns what stops an agent, as messages want it to work.
func (o *Listings) stoppedBy(ctx context.Context, e storage.IndexEntry, messages ...claybot.AgentMessage) string {
	agent := claybot.Agent{ID: e.ID, Descriptor: e.Descriptor}
	why := o.Stopped(worker.Asked(agent, messages...))
	if !e.Descriptor.Foreground() && (why != "" || e.Waiting > 0) { // its model may be one of its own
		if agent, err := o.Agents.Agent(ctx, e.ID); err == nil {
			why = o.Stopped(worker.Asked(agent, messages...))
		}
	}
	return why
}

// offBecause returns why each run of an agent fails, with the next step; empty if no setting makes it.
func (o *Listings) offBecause(ctx context.Context, e storage.IndexEntry) string {
	off := o.SwitchedOff(ctx, claybot.Agent{ID: e.ID, Descriptor: e.Descriptor})
	if off == nil {
		return ""
	}
	return cmp.Or(off.Text, off.Say)
}

// AgentOf returns the id of the agent of a descriptor, or storage.ErrNotFound.
func (o *Listings) AgentOf(ctx context.Context, d claybot.Descriptor) (claybot.AgentID, error) {
	return o.Index.IndexedAgent(ctx, d)
}

// Children returns the entries of the subagents of an agent, oldest first.
func (o *Listings) Children(ctx context.Context, id claybot.AgentID) ([]storage.IndexEntry, error) {
	return o.Index.Children(ctx, id)
}

// Remembered returns the history of an agent, or storage.ErrNotFound.
func (o *Listings) Remembered(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error) {
	if _, err := o.Index.IndexedAgentByID(ctx, id); err != nil {
		return nil, err
	}
	all, err := o.Agents.Records(ctx, id)
	all = slices.Clone(all)
	for i := range all {
		all[i].State = nil // for the model alone
	}
	return all, err
}

// RunRecords returns the records of a run, oldest first, also those before a reset or a summary.
// Of a run whose agent was deleted there are none.
func (o *Listings) RunRecords(ctx context.Context, run claybot.Run) (records []claybot.Record, err error) {
	if _, err := o.Index.IndexedAgentByID(ctx, run.Agent); err != nil {
		return nil, storage.Ignore(err, storage.ErrNotFound)
	}
	err = o.Agents.Past(ctx, run.Agent, func(r claybot.Record) bool {
		if r.State = nil; r.Run == run.ID { // the state is for the model alone
			records = append(records, r)
		}
		// An agent has one run at a time, so that all records of a run are together.
		return r.Run == "" || r.Run == run.ID || len(records) == 0
	})
	slices.Reverse(records)
	return records, err
}

// Conversations lists the agents of a user at a connector, the most recently used first.
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

// OutgoingPage lists outgoing messages, newest first.
func (o *Listings) OutgoingPage(ctx context.Context, q storage.OutgoingQuery) ([]claybot.Outgoing, error) {
	return o.Outbox.OutgoingPage(ctx, q)
}

// Outgoing loads an outgoing message, or returns storage.ErrNotFound.
func (o *Listings) Outgoing(ctx context.Context, id string) (claybot.Outgoing, error) {
	return o.Outbox.OutgoingByID(ctx, id)
}

// Transcript returns the newest limit messages and replies of the conversation of d,
// oldest first.
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

// Receipt returns the receipt of a message, or storage.ErrNotFound.
func (o *Listings) Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error) {
	return o.Inbox.Receipt(ctx, id)
}

// SentAfter returns the messages to d after position n of the outbox.
func (o *Listings) SentAfter(ctx context.Context, d claybot.Descriptor, n int64, limit int) ([]claybot.Outgoing, error) {
	return o.Outbox.SentAfter(ctx, d.Route().Dest(), n, limit)
}

// LastN returns the outbox position of the newest message to d, or 0.
func (o *Listings) LastN(ctx context.Context, d claybot.Descriptor) (int64, error) {
	return o.Outbox.LastN(ctx, d.Route().Dest())
}
