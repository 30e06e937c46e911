package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var (
	_ connectors.Reactor = (*Connector)(nil)
	_ connectors.Marker  = (*Connector)(nil)
)

// reactions are the emoji that bots may put on messages; Telegram takes no
// others. They are as Telegram writes them, some without their variation
// selector.
const reactions = "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡"

var knownReactions = func() map[string]bool {
	known := make(map[string]bool)
	for _, emoji := range strings.Fields(reactions) {
		known[emoji] = true
	}
	return known
}()

// React sets the bot's reaction to a message and replaces the previous one.
func (c *Connector) React(ctx context.Context, r claybot.Route, message, emoji string) error {
	emoji = strings.ReplaceAll(emoji, "\ufe0f", "")
	if !knownReactions[emoji] {
		return &connectors.RefusedError{Text: fmt.Sprintf("Telegram does not take %.40q as a reaction; it takes %s", emoji, reactions)}
	}
	return c.setReaction(ctx, r, message, emoji)
}

// Mark implements connectors.Marker: a bot has at most one reaction on a message, so the new
// one replaces any other.
func (c *Connector) Mark(ctx context.Context, r claybot.Route, m claybot.Mark) error {
	if m.Emoji == "" {
		return c.setReaction(ctx, r, m.Message)
	}
	return c.React(ctx, r, m.Message, m.Emoji)
}

// setReaction makes the emoji, at most one, the reactions of the bot to a message.
func (c *Connector) setReaction(ctx context.Context, r claybot.Route, message string, emoji ...string) error {
	if err := c.check(); err != nil {
		return err
	}
	chat, err := strconv.ParseInt(r.ChannelID, 10, 64)
	id, err2 := strconv.ParseInt(message, 10, 64)
	if err != nil || err2 != nil {
		return &connectors.RefusedError{Text: "there is no such message here"}
	}
	if wait, all := c.pace.take(chat); wait > 0 {
		return &connectors.RetryError{After: wait, All: all, Err: errors.New("telegram asked this chat to slow down")}
	}
	type reaction struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	list := []reaction{}
	for _, e := range emoji {
		list = append(list, reaction{"emoji", e})
	}
	var done bool
	err = c.send.call(ctx, "setMessageReaction", map[string]any{"chat_id": chat, "message_id": id, "reaction": list}, &done)
	var refused *refusal
	switch {
	case err == nil || !errors.As(err, &refused):
		return err
	case refused.code == http.StatusTooManyRequests:
		all := c.pace.refused(chat, refused.retryAfter)
		return &connectors.RetryError{After: refused.retryAfter, All: all, Err: err}
	case refused.says("message is not modified"):
		return nil
	case refused.says("reaction_invalid", "reaction_empty", "reactions_too_many"):
		return &connectors.RefusedError{Text: "this chat does not allow that reaction", Err: err}
	case refused.says("message to react not found", "message not found", "message_id_invalid"):
		return &connectors.RefusedError{Text: "the message is not there any more", Err: err}
	case refused.code == http.StatusForbidden || refused.code == http.StatusBadRequest:
		return &connectors.RefusedError{Text: "Telegram does not allow it in this chat", Err: err}
	}
	return err
}
