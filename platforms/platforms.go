// Package platforms says how the ids and tokens of the chat platforms look, and the
// secrets that people paste. It is the only place that knows, so that the settings, the
// connectors and the doctor agree.
//
// It guarantees nothing about an id beyond its form: whether it exists, the platform
// knows. It imports nothing of claybot.
package platforms

import (
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
)

// The forms of the tokens of chat platforms.
var (
	TelegramToken = lazyregexp.New(`^[0-9]{5,20}:[A-Za-z0-9_-]{20,}$`)
	SlackBotToken = lazyregexp.New(`^xoxb-[A-Za-z0-9-]+$`)
	SlackAppToken = lazyregexp.New(`^xapp-[A-Za-z0-9-]+$`)
	// SlackRefreshToken gets the bot tokens of an app with token rotation.
	SlackRefreshToken = lazyregexp.New(`^xoxe-[A-Za-z0-9-]+$`)
	DiscordToken      = lazyregexp.New(`^[A-Za-z0-9_-]{18,}={0,2}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{20,}$`)
)

// The types of connectors that have instances.
const (
	Telegram = "telegram"
	Slack    = "slack"
	Discord  = "discord"
	Webhook  = "webhook"
)

// Connectors that exist once.
const (
	web      = "web"
	terminal = "terminal"
	api      = "api" // of who talks over HTTP
)

// A Form is how ids of one kind look. The zero Form is of ids that are never written.
type Form struct {
	Looks *lazyregexp.Regexp
	Not   string // what another text is not
}

// A Platform is a connector with the forms of its ids.
type Platform struct {
	Name   string
	Person Form // who owns agents or operates
	Chat   Form // a channel that a route names
	Listed Form // a person or a channel in a list of access
}

const stableIDs = "; names can change hands, only ids count: let the person write to the bot, then see `claybot pair`"

// all are the platforms, in the order in which messages name them.
var all = []Platform{
	{
		Telegram,
		Form{lazyregexp.New(`^[0-9]{1,20}$`), "the Telegram id of a person, such as 123456789"},
		Form{telegramChat, "the id of a Telegram chat, such as 123456789, or -100123 for a group"},
		Form{telegramChat, "a Telegram id such as 123456789, or -100123 for a group" + stableIDs},
	},
	{
		Slack,
		Form{lazyregexp.New(`^([TE][A-Z0-9]+/)?[UW][A-Z0-9]+$`), "the Slack id of a person, such as U012ABC, or T012ABC/U012ABC for one of another workspace"},
		Form{lazyregexp.New(`^[TE][A-Z0-9]+/[A-Z][A-Z0-9]+$`), "the id of a Slack channel with its workspace, such as T012ABC/C012ABC"},
		Form{lazyregexp.New(`^([TE][A-Z0-9]+/)?[A-Z][A-Z0-9]+$`), "a Slack id such as U012ABC, or T012ABC/C012ABC for a channel" + stableIDs},
	},
	{
		Discord,
		Form{discordID, "the Discord id of a person, such as 123456789012345678"},
		Form{discordChannel, "the id of a Discord channel with its server, such as 123456789012345678/234567890123456789, or of a direct chat"},
		Form{discordChannel, "a Discord id such as 123456789012345678, or 123456789012345678/234567890123456789 for a channel of a server" + stableIDs},
	},
	{Name: web, Person: login, Chat: conversation},
	{Name: terminal, Person: login, Chat: conversation},
	{Name: Webhook, Chat: conversation}, // of its instances alone; a program is no person
}

// Instances are the configured connectors: by the name of each, that of its platform. It
// need not have the names of platforms themselves, which are those platforms. An
// Instances is never changed.
type Instances map[string]string

// Type returns the name of the platform of a connector; its own name if it is no instance.
func (i Instances) Type(connector string) string {
	if t := i[connector]; t != "" {
		return t
	}
	return connector
}

// Of returns the platform of a connector, with the connector's name.
func (i Instances) Of(connector string) (Platform, bool) {
	t := i.Type(connector)
	for _, p := range all {
		if p.Name == t && (t != Webhook || i[connector] == Webhook) {
			p.Name = connector
			return p, true
		}
	}
	return Platform{}, false
}

// Alike reports whether the ids of people and of channels of a connector have one form, apart from
// those of direct chats.
func (i Instances) Alike(connector string) bool { return i.Type(connector) == Discord }

// Canonical returns an id of a person as the platform writes it: those of Telegram and Discord are
// numbers, which begin with no zero.
func (i Instances) Canonical(connector, id string) string {
	if t := i.Type(connector); t == Telegram || t == Discord {
		return strings.TrimLeft(id, "0")
	}
	return id
}

// Names returns the names of all connectors that ids can have: platforms first, then
// instances in the order of their names.
func (i Instances) Names() (names []string) {
	for _, p := range all {
		if p.Name != Webhook {
			names = append(names, p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Direct reports whether a channel is the conversation of one person with the bot. Only
// chat platforms have others. Of Telegram, a private chat has the id of its person (Bot
// API, "Chat"); of Slack, the id of a direct message begins with D, those of channels and
// of direct messages among several people do not (docs.slack.dev, "Conversations API"). Of
// Discord, the id of a channel of a server stands behind that of the server.
// Of an instance that is no longer configured the ids alone decide.
func (i Instances) Direct(connector, channelID, userID string) bool {
	switch i.Type(connector) {
	case Telegram:
		return channelID == userID
	case Slack:
		return strings.HasPrefix(channelID[strings.LastIndexByte(channelID, '/')+1:], "D")
	case Discord:
		return !strings.Contains(channelID, "/")
	case web, terminal, api:
		return true
	case Webhook: // its answers go to a callback or to a chat
		return false
	}
	if team, channel, found := strings.Cut(channelID, "/"); found && InTwoParts(team, channel) {
		return strings.HasPrefix(channel, "D")
	}
	return channelID == userID || !telegramChat.MatchString(channelID)
}

var (
	discordID      = lazyregexp.New(`^[0-9]{15,20}$`)
	discordChannel = lazyregexp.New(`^([0-9]{15,20}/)?[0-9]{15,20}$`)

	telegramChat = lazyregexp.New(`^-?[0-9]{1,20}$`)
	loginName    = lazyregexp.New(`^[A-Za-z0-9._@-]{1,64}$`)
	login        = Form{loginName, "the name of a login, such as operator"}
	conversation = Form{loginName, "the id of a conversation"}
)

// slackTeam and slackChannel are stricter than the forms of lists: they tell a channel
// in two parts from a channel with a thread behind it.
var (
	slackTeam    = lazyregexp.New(`^[TE][A-Z0-9]*[0-9][A-Z0-9]*$`)
	slackChannel = lazyregexp.New(`^[CDG][A-Z0-9]*[0-9][A-Z0-9]*$`)
)

// InTwoParts reports whether the two parts are the id of one channel: a Slack workspace and a
// channel of it, or a Discord server and a channel of it.
func InTwoParts(group, channel string) bool {
	return slackTeam.MatchString(group) && slackChannel.MatchString(channel) || discordID.MatchString(group) && discordID.MatchString(channel)
}
