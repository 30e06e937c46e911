package delivery

import (
	"context"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// ReroutedPrefix starts the ids of messages that go out on another route than their own.
const ReroutedPrefix = "rerouted/"

// reroute returns a message, which its platform refuses for good, as it goes out on
// another route of its reader: once, marked with where it belongs. It returns nothing if
// the reader has no other route, or the message is of no use elsewhere. The result must
// commit with the failure.
func (x *delivery) reroute(ctx context.Context) []claybot.Outgoing {
	o := x.o
	if !reply(o) || x.cfg.Elsewhere == nil || strings.HasPrefix(o.ID, ReroutedPrefix) {
		return nil
	}
	to, ok := x.cfg.Elsewhere(ctx, o)
	if !ok {
		return nil
	}
	about(x.cfg.Log, o).Info("sending on another route of the reader", "to", to.Connector)
	text := x.cfg.Voice(ctx, claybot.Outgoing{Route: to}).Rerouted(o)
	again := claybot.Outgoing{Kind: o.Kind, Run: o.Run, Agent: o.Agent, Message: o.Message, Route: to, Once: o.Once, Resent: o.Copies > 0}
	if o.Question != nil { // its buttons belong to the conversation
		again.Kind = claybot.OutgoingNotice
	}
	if _, takesFiles := x.cfg.Connector(to.Connector).(connectors.FileSender); o.File != nil && takesFiles {
		again.ID, again.Text, again.File = ReroutedPrefix+o.ID+"/1", text, o.File
		again.Part, again.Parts, again.At = 1, 1, claybot.Now()
		return []claybot.Outgoing{again}
	}
	return x.ComposeOnce(again, ReroutedPrefix+o.ID, text)
}
