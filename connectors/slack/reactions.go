package slack

import (
	"context"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// reaction reads that a person added an emoji to a message of the bot or of their own, or
// removed it. Slack reports those of every message in the channels of the bot.
//
// Shapes: docs.slack.dev/reference/events/reaction_added and …/reaction_removed, read
// 2026-11-28. Messages of no user have no item_user. Reactions of the bot come as well.
func (e event) reaction(name string, self identity) (incoming, verdict) {
	v := e.Event
	if v.Item.Type != "message" || v.User == self.User || v.User == slackbot || v.ItemUser != "" && v.ItemUser != self.User && v.ItemUser != v.User {
		return incoming{}, nothing
	}
	to, outsider, ok := self.principal(name, v.Item.Channel, v.User, e.Team)
	emoji := reactionNames(v.Reaction)
	if !ok || v.Item.TS == "" || len(emoji) == 0 {
		return incoming{}, unknown
	}
	x := connectors.Reaction{
		Connector: name, ChannelID: to.ChannelID, UserID: to.UserID, Outsider: outsider, Group: !strings.HasPrefix(v.Item.Channel, "D"),
		Message: v.Item.TS, Emoji: emoji, Removed: v.Type == "reaction_removed", At: at(v.EventTS),
	}
	if v.ItemUser == v.User {
		x.Of = claybot.MessageID(name + "/" + to.ChannelID + "/" + x.Message)
	}
	return incoming{to: to, reaction: x}, reacted
}

// emojiAliases are the other names of emoji that Slack has several names for.
var emojiAliases = [][2]string{{"+1", "thumbsup"}, {"-1", "thumbsdown"}}

// reactionNames returns the names of an emoji that Slack reports, such as +1::skin-tone-2: the
// emoji itself, if it is known, and Slack's names. Tones of skin are dropped.
func reactionNames(reported string) (names []string) {
	name, _, _ := strings.Cut(reported, "::")
	if name == "" {
		return nil
	}
	names = []string{name}
	for _, pair := range emojiAliases {
		if slices.Contains(pair[:], name) {
			names = pair[:]
		}
	}
	for emoji, known := range emojiNames {
		if slices.Contains(names, known) {
			return append([]string{emoji}, names...)
		}
	}
	return names
}

// reacted reports a reaction of a person. In channels, guests, users of other workspaces and
// bots are told apart as those who write are.
func (r *receiver) reacted(ctx context.Context, x connectors.Reaction) (rated bool, err error) {
	if r.reacts == nil {
		return false, nil
	}
	if x.Group && !x.Outsider {
		user, _ := r.self.local(x.UserID)
		m, err := r.chat.member(ctx, user, lookupTime)
		if err != nil {
			return false, err
		}
		if m.bot {
			return false, nil
		}
		if x.Outsider = m.outsider; m.team != "" {
			x.UserID = r.self.qualified(m.team, user)
		}
	}
	return r.reacts.Reacted(ctx, x)
}
