package delivery

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
)

// Compose returns the outgoing messages of one text like o, with ids of their own: as many
// parts as the platform needs, and none where o has no route.
func (d *Deliverer) Compose(o claybot.Outgoing, text string) []claybot.Outgoing {
	return d.addresses.compose(o, text)
}

// ComposeOnce is Compose for a text that is sent once per key: its parts have the ids
// key/1, key/2 and so on, and the outbox takes an id once.
func (d *Deliverer) ComposeOnce(o claybot.Outgoing, key, text string) []claybot.Outgoing {
	return d.addresses.composeOnce(o, key, text)
}

func (a addresses) compose(o claybot.Outgoing, text string) []claybot.Outgoing {
	if o.Route.Connector == "" {
		return nil // it stays in history
	}
	split := unconnected
	if c, ok := a.connector(o.Route.Connector).(connectors.Sender); ok {
		split = c.Split
	}
	parts := split(text)
	out := make([]claybot.Outgoing, len(parts))
	for i, part := range parts {
		o.ID, o.Text, o.Part, o.Parts, o.At = runs.NewID(), part, i+1, len(parts), claybot.Now()
		out[i] = o
	}
	return out
}

func (a addresses) composeOnce(o claybot.Outgoing, key, text string) []claybot.Outgoing {
	out := a.compose(o, text)
	for i := range out {
		out[i].ID = fmt.Sprintf("%s/%d", key, i+1)
	}
	return out
}

// leastLimit is how many characters a message of each platform may have.
const leastLimit = 1800

// unconnected splits a text for a connector that is gone, and may come again.
func unconnected(text string) []string {
	return connectors.Split(text, leastLimit, connectors.UTF16Len)
}

// Send stores messages in the outbox and hands over those that were not in it. It
// returns the number of these.
func (d *Deliverer) Send(ctx context.Context, out ...claybot.Outgoing) (int, error) {
	stored, err := d.cfg.Outbox.Enqueue(ctx, out...)
	if err != nil {
		return 0, err
	}
	d.Hand(stored)
	return len(stored), nil
}

// SendOnce composes a text, as ComposeOnce does, and sends it.
func (d *Deliverer) SendOnce(ctx context.Context, o claybot.Outgoing, key, text string) error {
	_, err := d.Send(ctx, d.ComposeOnce(o, key, text)...)
	return err
}

// ReplyTo is an answer of claybot itself to a message of an agent.
func ReplyTo(agent claybot.Agent, m claybot.AgentMessage, kind claybot.OutgoingKind) claybot.Outgoing {
	return claybot.Outgoing{Kind: kind, Agent: agent.ID, Message: m.ID, Route: m.ReplyRoute(agent.Descriptor)}
}
