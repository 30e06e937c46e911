package configs

import (
	"strings"

	"github.com/claybot/claybot/platforms"
)

// Discord are the settings of a Discord bot.
type Discord struct {
	Token  Secret `key:"token" env:"DISCORD_BOT_TOKEN"`
	APIURL string `key:"api_url" kind:"url without slash" env:"DISCORD_API_URL"`

	faults // why the connector must not run
}

func plainDiscord() Discord { return Discord{APIURL: DefaultDiscordURL} }

// Type implements ConnectorSettings.
func (Discord) Type() string { return platforms.Discord }

// Wanted implements ConnectorSettings.
func (d Discord) Wanted() bool { return d.Token.Named() || d.Off() != "" }

// Credentials implements ConnectorSettings.
func (d Discord) Credentials() []Credential {
	return []Credential{{"token", "DISCORD_BOT_TOKEN", d.Token, platforms.DiscordToken, "get it from discord.com/developers/applications, Bot, Reset Token"}}
}

// Accounts implements ConnectorSettings. A token begins with the id of its bot.
func (d Discord) Accounts() []string {
	bot, _, _ := strings.Cut(d.Token.Value(), ".")
	return accounts(platforms.Discord, bot)
}
