package main

import (
	"context"
	"log/slog"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/discord"
)

// discord asks Discord whether it takes the token, and what the bot may read.
func (d *doctor) discord(ctx context.Context, i configs.Instance, s *configs.Discord) {
	if s.Token.Value() == "" {
		return // the form says so
	}
	c := discord.New(discord.Config{Name: i.Name, Token: s.Token.Value(), BaseURL: s.APIURL, TokenName: i.Names()[0], Log: slog.New(slog.DiscardHandler)})
	bot, err := c.Examine(ctx)
	switch {
	case err != nil:
		d.refused(err)
	case !bot.Content:
		d.warn("discord-intent-off", "the Message Content intent is off: in servers, the bot reads only messages that mention it",
			"switch it on at discord.com/developers/applications, Bot, Privileged Gateway Intents, and restart claybot")
	default:
		d.ok("Discord takes the token of " + bot.Name + ", and the Message Content intent is on")
	}
}
