package telegram

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A reaction is what message_reaction says: the reactions of a user to a message, before and
// after a change. In groups Telegram sends it to administrators alone, and never for reactions
// of bots. A user who reacts anonymously is not named: actor_chat takes their place.
// Shapes: core.telegram.org/bots/api#messagereactionupdated and …#reactiontype, read
// 2026-11-28.
type reaction struct {
	Chat      chat           `json:"chat"`
	MessageID int64          `json:"message_id"`
	User      *tgbotapi.User `json:"user"`
	ActorChat *chat          `json:"actor_chat"`
	Date      int64          `json:"date"`
	Old       []reactionType `json:"old_reaction"`
	New       []reactionType `json:"new_reaction"`
}

// A reactionType is an emoji, or one of the kinds that have no meaning here: custom_emoji, paid.
type reactionType struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji"`
}

// Administers reports whether the bot is an administrator of a group: to others Telegram
// reports no reactions there. Shape: core.telegram.org/bots/api#getchatmember, read 2026-11-28.
func (c *Connector) Administers(ctx context.Context, group string) (bool, error) {
	if err := c.check(); err != nil {
		return false, err
	}
	id, err := strconv.ParseInt(group, 10, 64)
	if err != nil {
		return false, fmt.Errorf("telegram: %q is not the id of a group", group)
	}
	var member struct {
		Status string `json:"status"`
	}
	err = c.send.call(ctx, "getChatMember", map[string]any{"chat_id": id, "user_id": c.botID}, &member)
	return member.Status == "administrator" || member.Status == "creator", err
}

// reacted reports which emoji a user removed, then those that they added.
func (c *Connector) reacted(ctx context.Context, h connectors.Handler, r *reaction) error {
	reacts, listens := h.(connectors.ReactionHandler)
	to, ok := c.principal(r.Chat, r.User, r.ActorChat)
	if !listens || !ok || r.MessageID <= 0 || r.Date <= 0 {
		c.figures.ignored.Add(1)
		return nil
	}
	x := connectors.Reaction{
		Connector: c.cfg.Name, ChannelID: to.ChannelID, UserID: to.UserID, Group: r.Chat.group(), Message: strconv.FormatInt(r.MessageID, 10),
		At: claybot.Time(r.Date * 1000), // those of one second come in their order
	}
	x.Of = claybot.MessageID("telegram/" + c.bot + "/" + to.ChannelID + "/" + x.Message)
	for _, change := range []struct {
		from, to []reactionType
		removed  bool
	}{{r.New, r.Old, true}, {r.Old, r.New, false}} {
		for _, e := range change.to {
			if e.Type != "emoji" || e.Emoji == "" || slices.Contains(change.from, e) {
				continue
			}
			x.Emoji, x.Removed = []string{strings.ReplaceAll(e.Emoji, "\ufe0f", "")}, change.removed
			if _, err := reacts.Reacted(ctx, x); err != nil {
				return err
			}
		}
	}
	return nil
}
