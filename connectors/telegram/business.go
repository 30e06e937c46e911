package telegram

import (
	"context"
	"strconv"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A business is what business_connection says: a user made the bot act for their account, or
// changed that. claybot refuses, and does not ask for the messages of such accounts
// (business_message and its like), so that what other people write to the user stays at Telegram.
// Shape: core.telegram.org/bots/api#businessconnection, read 2026-11-28.
type business struct {
	ID      string         `json:"id"`
	User    *tgbotapi.User `json:"user"`
	Chat    int64          `json:"user_chat_id"`
	Date    int64          `json:"date"`
	Enabled bool           `json:"is_enabled"`
}

func (b *business) lane() person {
	p := person{chat: b.Chat}
	if b.User != nil {
		p.user = b.User.ID
	}
	return p
}

// connected refuses a connection to a business account, once: a change of its rights comes with
// the same id. An end of one is no news.
func (c *Connector) connected(ctx context.Context, h connectors.Handler, update int64, b *business) error {
	to, ok := c.principal(chat{ID: b.Chat, Type: "private"}, b.User, nil)
	if !ok || !b.Enabled || b.ID == "" {
		c.figures.ignored.Add(1)
		return nil
	}
	m := claybot.AgentMessage{
		ID: c.messageID(update), Type: claybot.MessageCommand, Command: connectors.Business, At: claybot.Now(),
		From:      claybot.Sender{UserID: strconv.FormatInt(b.User.ID, 10), Name: connectors.PersonName(b.User.FirstName + " " + b.User.LastName)},
		Keys:      []string{"telegram/" + c.bot + "/business/" + b.ID},
		Context:   claybot.MessageContext{Locale: b.User.LanguageCode},
		FirstHand: true, // Telegram asks the user alone
	}
	if err := h.Post(ctx, to, m); err != nil {
		return err
	}
	c.figures.posted.Add(1)
	return nil
}
