package telegram

import (
	"context"
	"strconv"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A membership is what my_chat_member says: what the bot is in a chat now. Telegram sends it
// without a right of the bot; of a private chat only when the user blocks or unblocks the bot.
// Shapes: core.telegram.org/bots/api#chatmemberupdated and …#chatmember, read 2026-11-28.
type membership struct {
	Chat chat           `json:"chat"`
	From *tgbotapi.User `json:"from"`
	Date int64          `json:"date"`
	Now  struct {
		Status   string         `json:"status"`
		User     *tgbotapi.User `json:"user"`
		IsMember bool           `json:"is_member"`         // if restricted
		CanSend  bool           `json:"can_send_messages"` // if restricted
	} `json:"new_chat_member"`
}

// lane keeps the changes of a chat in order, in a private chat with the messages of its user.
func (m *membership) lane() person {
	if m.Chat.group() {
		return person{chat: m.Chat.ID, group: true}
	}
	return person{chat: m.Chat.ID, user: m.Chat.ID}
}

// dead says why the bot cannot write in the chat; empty if it can. ok is false for a status
// that Telegram does not document.
func (m *membership) dead() (why string, ok bool) {
	switch m.Now.Status {
	case "creator", "administrator", "member":
		return "", true
	case "restricted":
		switch {
		case !m.Now.IsMember:
			return "the bot is not in the group", true
		case !m.Now.CanSend:
			return "the bot may not write in the group", true
		}
		return "", true
	case "kicked":
		if m.Chat.group() {
			return "the bot was removed from the group", true
		}
		return "the user blocked the bot", true
	case "left":
		return "the bot left the chat", true
	}
	return "", false
}

// gone reports whether the bot is no longer in the chat, as far as the status is one that dead
// knows.
func (m *membership) gone() bool {
	return m.Now.Status == "kicked" || m.Now.Status == "left" || m.Now.Status == "restricted" && !m.Now.IsMember
}

// changed reports a change of the bot's own membership. Those of channels, and of any other
// user, have no effect.
func (c *Connector) changed(ctx context.Context, h connectors.Handler, m *membership) error {
	routes, listens := h.(connectors.RouteHandler)
	dead, known := m.dead()
	private := m.Chat.Type == "private" && m.Chat.ID > 0
	if !listens || !known || m.Now.User == nil || m.Now.User.ID != c.botID || m.Date <= 0 || !private && !(m.Chat.group() && m.Chat.ID != 0) {
		c.figures.ignored.Add(1)
		return nil
	}
	return routes.RouteChanged(ctx, connectors.RouteChange{
		Connector: c.cfg.Name, ChannelID: strconv.FormatInt(m.Chat.ID, 10), Dead: dead,
		Removed: dead != "" && m.gone(),
		At:      claybot.Time(m.Date*1000 + 999), // at the end of its second: Telegram sends them in order
	})
}
