package delivery

import (
	"context"
	"errors"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// mark puts the emoji of a message there, unless a later one of the same message waits. A
// refusal is final, and no person is notified of it.
func (c *courier) mark(ctx context.Context, to connectors.Sender, o claybot.Outgoing) error {
	m, ok := to.(connectors.Marker)
	if !ok {
		return &connectors.PermanentError{Err: errors.New("the connector marks no messages")}
	}
	if c.outdated(ctx, o) {
		return nil
	}
	err := m.Mark(ctx, o.Route, *o.Mark)
	var refused *connectors.RefusedError
	if errors.As(err, &refused) {
		return &connectors.PermanentError{Err: err}
	}
	return err
}

// outdated reports whether a later mark of the same message, or a later state of the same
// shown text, waits: it would replace this one at once.
func (c *courier) outdated(ctx context.Context, o claybot.Outgoing) bool {
	waiting, err := c.cfg.Reader.Unsent(ctx, o.Route.Dest(), o.N, laneMemory)
	if err != nil {
		about(c.cfg.Log, o).Warn("failed to read the outbox of a chat", "err", err)
	}
	return slices.ContainsFunc(waiting, func(w claybot.Outgoing) bool {
		switch {
		case o.Mark != nil:
			return w.Mark != nil && w.Mark.Message == o.Mark.Message
		default:
			return w.Shown == o.Shown && w.EditOf == o.EditOf && w.Run == o.Run && w.EditOf != ""
		}
	})
}

// markOf stands in the field EditOf of what marks messages. No message has this id, so that a member
// of an earlier version, which knows no marks, gives it up instead of sending the emoji as a message.
const markOf = "mark"

// Marks returns what marks messages of people with an emoji, each once for a key, in place
// of those in was.
func (d *Deliverer) Marks(agent claybot.Agent, run claybot.RunID, key, emoji string, was []string, messages ...claybot.AgentMessage) (out []claybot.Outgoing) {
	was = slices.DeleteFunc(slices.Clone(was), func(old string) bool { return old == emoji || old == "" })
	if emoji == "" && len(was) == 0 {
		return nil
	}
	for _, m := range messages {
		o := ReplyTo(agent, m, claybot.OutgoingNotice)
		if _, ok := d.cfg.Connector(o.Route.Connector).(connectors.Marker); !ok || m.Type != claybot.MessageUser || m.Context.MessageID == "" {
			continue
		}
		o.Route.Aside, o.Route.ReplyTo, o.Message = true, "", "" // it answers nothing
		o.ID, o.Run, o.Text, o.Part, o.Parts, o.At = "mark/"+string(m.ID)+"/"+key, run, emoji, 1, 1, claybot.Now()
		o.EditOnly, o.EditOf = true, markOf
		o.Mark = &claybot.Mark{Message: m.Context.MessageID, Emoji: emoji, Was: was}
		out = append(out, o)
	}
	return out
}
