package discord

import (
	"context"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A reaction says that an emoji was added to a message, or removed.
//
// Shapes: docs.discord.com/developers/events/gateway-events (Message Reaction Add and Remove),
// read 2026-11-28. Only an added one says who wrote the message. Neither has a time.
type reaction struct {
	User    string `json:"user_id"`
	Channel string `json:"channel_id"`
	Message string `json:"message_id"`
	Guild   string `json:"guild_id"`
	Author  string `json:"message_author_id"`
	Member  struct {
		User user `json:"user"`
	} `json:"member"`
	Emoji struct {
		ID   string `json:"id"` // of one of a server
		Name string `json:"name"`
	} `json:"emoji"`
}

// reacted reads a reaction of a person to a message of the bot or of their own.
func (r *receiver) reacted(x reaction, removed bool) []job {
	author := x.Author
	if author == "" {
		author = r.author(x.Message)
	}
	emoji := plainEmoji(x.Emoji.Name)
	if r.reacts == nil || x.User == r.bot || x.Member.User.Bot || !isID(x.User) || !isID(x.Message) || emoji == "" ||
		author != "" && author != r.bot && author != x.User {
		return nil
	}
	when := claybot.Now()
	return []job{{lane(x.Channel, x.User), "reaction", x.Message, r.in(x.Guild, x.Channel, func(ctx context.Context, in place) error {
		said := connectors.Reaction{
			Connector: r.cfg.Name, ChannelID: in.channel, UserID: x.User, Group: in.group, Message: x.Message,
			Emoji: []string{emoji}, Removed: removed, At: when,
		}
		if author == x.User {
			said.Of = r.messageID(in, x.Message)
		}
		_, err := r.reacts.Reacted(ctx, said)
		return err
	})}}
}

// plainEmoji returns an emoji without its tone of skin and its variation selector.
func plainEmoji(emoji string) string {
	return strings.Map(func(r rune) rune {
		if r == '\ufe0f' || r >= 0x1f3fb && r <= 0x1f3ff {
			return -1
		}
		return r
	}, emoji)
}
