package configs

import (
	"strings"

	"github.com/claybot/claybot/platforms"
)

// Telegram are the settings of a Telegram bot.
type Telegram struct {
	Token       Secret `key:"token" env:"TELEGRAM_BOT_TOKEN"`
	APIURL      string `key:"api_url" kind:"url without slash" env:"TELEGRAM_API_URL"`
	LocalFiles  string `key:"local_files" kind:"path"` // of a server that runs with --local
	Receive     string `key:"receive" words:"poll,webhook"`
	Delivery    string `key:"delivery" class:"harmless" words:"stream,draft,placeholder,direct"`
	OnAmbiguous string `key:"on_ambiguous" class:"harmless" words:"auto,resend,notice"`

	Rate TelegramRate `key:"rate" class:"harmless"`

	faults // why the connector must not run
}

// A TelegramRate is how many messages and edits Telegram takes from a bot.
type TelegramRate struct {
	Chat  int `key:"chat" limits:"1..1000"`    // a second, in one private chat
	Group int `key:"group" limits:"1..100000"` // a minute, in one group or channel
	All   int `key:"all" limits:"1..100000"`   // a second, of the bot
}

func plainTelegram() Telegram {
	return Telegram{
		APIURL: DefaultTelegramURL, Receive: "poll", Delivery: "stream", OnAmbiguous: "auto",
		Rate: TelegramRate{Chat: 1, Group: 20, All: 30},
	}
}

// Type implements ConnectorSettings.
func (Telegram) Type() string { return platforms.Telegram }

// Wanted implements ConnectorSettings.
func (t Telegram) Wanted() bool { return t.Token.Named() || t.Off() != "" }

// Credentials implements ConnectorSettings.
func (t Telegram) Credentials() []Credential {
	return []Credential{{"token", "TELEGRAM_BOT_TOKEN", t.Token, platforms.TelegramToken, "get it from @BotFather (/mybots)"}}
}

// Accounts implements ConnectorSettings. A token begins with the id of its bot.
func (t Telegram) Accounts() []string {
	bot, _, _ := strings.Cut(t.Token.Value(), ":")
	return accounts(platforms.Telegram, bot)
}

// Hooked reports whether Telegram sends updates to claybot's HTTP server.
func (t Telegram) Hooked() bool { return t.Receive == "webhook" }

// Receives is the value of the key receive.
func (t Telegram) Receives() string { return t.Receive }

// accounts are the accounts that are known of a type.
func accounts(of string, all ...string) (known []string) {
	for _, a := range all {
		if a != "" {
			known = append(known, of+"/"+a)
		}
	}
	return known
}
