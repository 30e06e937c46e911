package slack

import (
	"strings"

	"github.com/claybot/claybot"
)

// change reads the edit or the deletion of a message, as an edit or a deletion of the message
// that the original had become. What it says of a message that claybot never got has no effect.
//
// Shapes: docs.slack.dev/reference/events/message/message_changed and …/message_deleted, read
// 2026-11-28. The new text of an edit and its author are in message, those of a deleted message
// in previous_message. A deleted message with replies becomes a tombstone: that is a
// message_changed whose message has this subtype. A link that unfolds, and a reply that is counted, change a message
// without an edit.
func (e event) change(name string, self identity) (incoming, verdict) {
	v, typ := e.Event, claybot.MessageDelete
	was, ts, stamp := v.Previous, v.DeletedTS, "deleted"
	switch {
	case v.Subtype == "message_deleted":
	case v.Message != nil && v.Message.Subtype == "tombstone" && v.Previous != nil:
		ts = v.Previous.TS
	default:
		typ, was = claybot.MessageEdit, v.Message
		if was == nil || was.Edited.TS == "" || was.Edited.User != was.User || v.Previous != nil && v.Previous.Text == was.Text {
			return incoming{}, nothing
		}
		ts, stamp = was.TS, "edit/"+was.Edited.TS
	}
	if was == nil || ts == "" || was.BotID != "" || was.User == "" || was.User == self.User || was.User == slackbot {
		return incoming{}, nothing
	}
	to, outsider, ok := self.principal(name, v.Channel, was.User, was.UserTeam, was.SourceTeam, was.Team, e.Team)
	if !ok {
		return incoming{}, unknown
	}
	of := claybot.MessageID(name + "/" + to.ChannelID + "/" + ts)
	m := claybot.AgentMessage{
		ID: of + claybot.MessageID("/"+stamp), Type: typ, Amends: of,
		From:    claybot.Sender{UserID: to.UserID, Outsider: outsider},
		Context: claybot.MessageContext{MessageID: ts, Group: !strings.HasPrefix(v.Channel, "D")},
		At:      at(v.TS),
	}
	if typ == claybot.MessageEdit {
		text, _ := strip(was.Text, self)
		m.Text, m.FirstHand = plain(text, self), true
	}
	return incoming{to: to, message: m}, message
}
