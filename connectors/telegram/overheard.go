package telegram

import (
	"context"
	"strconv"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// overhear reports the messages of groups among updates, before they are posted, so that a
// message that is for the bot comes with what was said before it. Without privacy mode, or as
// an administrator, the bot gets all messages of a group
// (core.telegram.org/bots/features#privacy-mode, read 2026-11-28).
func (l *loop) overhear(ctx context.Context, updates ...update) error {
	to, listens := l.handler.(connectors.Listener)
	if !listens {
		return nil
	}
	var all []connectors.Overheard
	for i := range updates {
		m := updates[i].Message
		if m == nil {
			m = updates[i].Edited
		}
		if m == nil {
			continue
		}
		if o, ok := l.said(m); ok {
			o.Edit = updates[i].Edited != nil
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		return nil
	}
	err := to.Overheard(ctx, all)
	if storage.ClassOf(err) == storage.ClassMessage { // permanent: other updates must not wait
		l.log.Error("messages of groups cannot be kept, skipped", "count", len(all), "err", err)
		return nil
	}
	return err
}

// said returns a message of a group as an agent may read it; ok is false if it says nothing.
func (c *Connector) said(m *message) (o connectors.Overheard, ok bool) {
	text := m.Text
	if text == "" {
		text = m.Caption
	}
	if text = connectors.JoinLines(connectors.ForwardMark(m.forwarded()), text, m.describe()); text == "" || !m.Chat.group() || m.Chat.ID == 0 || m.Date <= 0 {
		return o, false
	}
	id, channel := strconv.FormatInt(m.MessageID, 10), strconv.FormatInt(m.Chat.ID, 10)
	s := claybot.Said{
		ID: id, At: claybot.Time(m.Date * 1000), Text: text, Ref: "telegram/" + c.bot + "/" + channel + "/" + id,
		Passed: m.forwarded() || m.ViaBot != nil || m.BusinessBot != nil || m.media() != "",
	}
	switch as, from := m.SenderChat, m.From; {
	case as != nil: // a channel, or an administrator who stays anonymous
		s.UserID, s.Name, s.Outsider = strconv.FormatInt(as.ID, 10), connectors.PersonName(as.Title), true
	case from == nil || from.ID <= 0:
		return o, false
	default:
		s.UserID, s.Name, s.Bot = strconv.FormatInt(from.ID, 10), connectors.PersonName(from.FirstName+" "+from.LastName), from.IsBot
	}
	return connectors.Overheard{In: claybot.User(c.cfg.Name, channel, s.UserID), Thread: m.topic(), Said: s}, true
}

// SeesAll reports whether the bot's privacy mode is off, so that it sees all messages of groups
// to which it was added since. Shape: core.telegram.org/bots/api#user,
// can_read_all_group_messages, read 2026-11-28.
func (c *Connector) SeesAll(ctx context.Context) (bool, error) {
	if err := c.check(); err != nil {
		return false, err
	}
	var me struct {
		All bool `json:"can_read_all_group_messages"`
	}
	err := c.send.call(ctx, "getMe", nil, &me)
	return me.All, err
}

// Examine asks Telegram for the name of the bot.
func (c *Connector) Examine(ctx context.Context) (name string, err error) {
	if err := c.check(); err != nil {
		return "", err
	}
	var me struct {
		Username string `json:"username"`
	}
	err = c.send.call(ctx, "getMe", nil, &me)
	if refusesToken(err) {
		return "", c.tokenRefused(err)
	}
	return me.Username, err
}
