package discord

import (
	"context"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A guild is the part of a server that claybot reads.
//
// Shapes: docs.discord.com/developers/events/gateway-events (Guild Create, Guild Delete, Channel
// Delete), read 2026-11-28. A server that is only out of order comes with unavailable, also when
// it is deleted.
type guild struct {
	ID          string    `json:"id"`
	Unavailable bool      `json:"unavailable"`
	Channels    []channel `json:"channels"`
	Threads     []channel `json:"threads"`
}

// guildCreated reads that a server was announced to the bot, or added it.
func (r *receiver) guildCreated(g guild) []job {
	if g.Unavailable || !isID(g.ID) {
		return nil
	}
	r.channels.learn(g.ID, g.Channels...)
	r.channels.learn(g.ID, g.Threads...)
	if _, shown := r.guilds.LoadAndDelete(g.ID); shown {
		return nil // again, and the bot was there before
	}
	return r.everywhere(g.ID, "")
}

// guildDeleted reads that the bot was removed from a server, or the server deleted.
func (r *receiver) guildDeleted(g guild) []job {
	if g.Unavailable || !isID(g.ID) {
		r.guilds.Store(g.ID, true) // an outage: it comes back
		return nil
	}
	return r.everywhere(g.ID, "the bot was removed from the server")
}

// everywhere changes all channels of a server in which people wrote to claybot.
func (r *receiver) everywhere(guild, why string) []job {
	if r.routes == nil || r.chats == nil {
		return nil
	}
	when := claybot.Now()
	return []job{{"guild\x00" + guild, "server", guild, func(ctx context.Context) error {
		chats, _, err := r.chats.Recent(ctx, r.cfg.Name, "", time.Now().Add(-activeFor))
		if err != nil {
			return err
		}
		for _, chat := range chats {
			if !strings.HasPrefix(chat.ChannelID, guild+"/") {
				continue
			}
			change := connectors.RouteChange{Connector: r.cfg.Name, ChannelID: chat.ChannelID, Dead: why, At: when, Removed: why != ""}
			if err := r.routes.RouteChanged(ctx, change); err != nil {
				return err
			}
		}
		return nil
	}}}
}

// channelDeleted reads that a channel was deleted. That of a thread leaves its channel as it is:
// what is sent into the thread fails on its own.
func (r *receiver) channelDeleted(c channel) []job {
	if r.routes == nil || !isID(c.Guild) || !isID(c.ID) || c.thread() {
		return nil
	}
	change := connectors.RouteChange{Connector: r.cfg.Name, ChannelID: c.Guild + "/" + c.ID, Dead: "the channel was deleted", At: claybot.Now()}
	return []job{{"guild\x00" + c.Guild, "channel", c.ID, func(ctx context.Context) error { return r.routes.RouteChanged(ctx, change) }}}
}
