package slack

import (
	"context"
	"strconv"
	"strings"

	"github.com/claybot/claybot/connectors"
)

// channelEvents says why nothing can be posted in a channel after an event, by its type;
// empty if the bot can post there again. The group_ events are those of private channels.
//
// Shapes: docs.slack.dev/reference/events/<type>, read 2026-11-28.
var channelEvents = map[string]string{
	"channel_left":      "the bot was removed from the channel",
	"group_left":        "the bot was removed from the channel",
	"channel_archive":   "the channel was archived",
	"group_archive":     "the channel was archived",
	"channel_deleted":   "the channel was deleted",
	"group_deleted":     "the channel was deleted",
	"channel_unarchive": "",
	"group_unarchive":   "",

	"member_joined_channel": "",
}

// membership reads what happened to a channel, or to the bot in it. What other members do, and
// what happens in other workspaces, has no effect.
func (e event) membership(name string, self identity) (incoming, verdict) {
	v := e.Event
	channel, newID := v.Channel, ""
	stamp := v.EventTS
	if stamp == "" && e.Time > 0 {
		stamp = strconv.FormatInt(e.Time, 10)
	}
	why, known := channelEvents[v.Type]
	switch {
	case v.Type == "channel_id_changed":
		channel, newID = v.OldChannel, v.NewChannel
		if newID == "" || strings.ContainsRune(newID, '/') {
			return incoming{}, unknown
		}
	case !known:
		return incoming{}, unknown
	}
	switch {
	case e.elsewhere(self), v.Type == "member_joined_channel" && v.User != self.User:
		return incoming{}, nothing
	case strings.HasSuffix(v.Type, "_left") && (len(e.For) == 0 || e.For[0].User != self.User):
		return incoming{}, nothing // a user left who installed the app
	case channel == "" || strings.ContainsRune(channel, '/') || stamp == "":
		return incoming{}, unknown
	}
	in := incoming{change: connectors.RouteChange{Connector: name, ChannelID: self.Team + "/" + channel, Dead: why, At: at(stamp)}}
	if newID != "" {
		in.newID = self.Team + "/" + newID
	}
	return in, moved
}

// elsewhere reports whether an event is of another workspace than the bot's own: an app that
// is installed in several gets the events of all.
func (e event) elsewhere(self identity) bool { return e.Team != self.Team }

// changed reports a change of a channel.
func (r *receiver) changed(ctx context.Context, in incoming) error {
	if in.newID != "" {
		return r.handler.Moved(ctx, in.change.Connector, in.change.ChannelID, in.newID, in.change.At)
	}
	if r.routes == nil {
		return nil
	}
	return r.routes.RouteChanged(ctx, in.change)
}
