package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// resend answers /resend: the last reply here that failed is stored again together with the
// command, so that a command which comes twice, and one whose process dies, sends it once.
func (r repeating) resend(ctx context.Context, sender *delivery.Deliverer, agent claybot.Agent, p *storage.Posting) error {
	to, text := delivery.ReplyTo(agent, p.Message, claybot.OutgoingCommand), texts.Resending
	covers := func(ctx context.Context, o claybot.Outgoing) (bool, error) {
		return r.covers(ctx, agent.ID, agent.Descriptor, o)
	}
	again, err := sender.Replies.Again(ctx, covers, to.Route)
	if err != nil {
		return err
	}
	if len(again) == 0 {
		text = texts.ResendNothing
		waits, err := sender.Replies.Undelivered(ctx, covers, to.Route)
		if err != nil {
			return err
		}
		if waits {
			text = texts.ResendWaits
		}
	}
	p.Replies = append(sender.Compose(to, texts.Of(ctx).In(text)), again...)
	return nil
}

// A repeating knows which replies /resend sends again.
type repeating struct {
	index interface {
		IndexedAgentByID(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error)
		ChannelAgents(ctx context.Context, connector, channel string) ([]storage.IndexEntry, error)
	}
	people *people.Directory
}

// covers reports whether /resend, written to an agent in the conversation that o went to, sends o
// again: what that agent said, and the output of the person's tasks and heartbeat. What has no
// owner is for all who read there, unless it was addressed to another person.
func (r repeating) covers(ctx context.Context, id claybot.AgentID, d claybot.Descriptor, o claybot.Outgoing) (bool, error) {
	if o.Agent == id || o.Agent == "" {
		return o.Agent != "", nil
	}
	of, err := r.index.IndexedAgentByID(ctx, o.Agent)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("find the agent of %s: %w", o.ID, err)
	case !of.Descriptor.Scheduled():
		return false, nil
	}
	ids := r.people.Identities(d.OwnerID())
	if owner := of.Descriptor.Owner; owner != "" {
		return slices.Contains(ids, owner), nil
	}
	to := o.Route
	return to.UserID == "" || to.UserID == d.UserID || slices.Contains(ids, to.Connector+"/"+to.UserID), nil
}

// offered reports whether an agent of the conversation that o went to covers it, or the agent that
// its reader has with their first message there.
func (r repeating) offered(ctx context.Context, o claybot.Outgoing) (bool, error) {
	o.Route = r.people.Moves.Route(o.Route)
	there, err := r.index.ChannelAgents(ctx, o.Route.Connector, o.Route.ChannelID)
	if err != nil {
		return false, fmt.Errorf("find the agents of a channel: %w", err)
	}
	there = append(there, storage.IndexEntry{Descriptor: claybot.User(o.Route.Connector, o.Route.ChannelID, o.Route.UserID)})
	for _, e := range there {
		if ok, err := r.covers(ctx, e.ID, e.Descriptor, o); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
