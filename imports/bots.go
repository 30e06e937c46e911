package imports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/platforms"
)

// A token is a secret of a platform, with the key of claybot's configuration and its form.
type token struct {
	key   string
	looks func(string) bool
}

// tokens are the secrets of each platform.
var tokens = map[string][]token{
	platforms.Telegram: {{"telegram.token", platforms.TelegramToken.MatchString}},
	platforms.Slack:    {{"slack.bot_token", platforms.SlackBotToken.MatchString}, {"slack.app_token", platforms.SlackAppToken.MatchString}},
	platforms.Discord:  {{"discord.token", platforms.DiscordToken.MatchString}},
}

// Platform reports whether claybot has a connector of this name that has tokens.
func Platform(name string) bool { return tokens[name] != nil }

// AddAccount adds a bot with its secrets, in the order of tokens, unless one is missing or is no token.
func (f *Find) AddAccount(connector string, secrets ...Secret) bool {
	a := Account{Connector: connector}
	for i, t := range tokens[connector] {
		s := secrets[i]
		switch {
		case !s.Given():
			f.Leave(connector, fmt.Sprintf("no %s was found; set it up with: claybot setup %s", t.key, connector))
			return false
		case s.Env == "" && !t.looks(s.Text):
			f.Leave(connector, fmt.Sprintf("the value for %s does not have the form of its tokens; set it up with: claybot setup %s", t.key, connector))
			return false
		}
		a.Secrets = append(a.Secrets, Setting{t.key, s})
	}
	f.Accounts = append(f.Accounts, a)
	return true
}

// AddAllowed adds people of a platform, by their ids. It returns whether all of them could be added, and
// whether everyone is allowed.
func (f *Find) AddAllowed(connector string, ids []string) (everyone bool) {
	p, _ := platforms.Instances(nil).Of(connector)
	for _, id := range ids {
		id = PersonID(connector, id)
		switch {
		case id == "*":
			everyone = true
			f.Leave(connector+": access for everyone", "claybot answers people whom you approve; see docs/access.md")
			continue
		case !p.Person.Looks.MatchString(id):
			f.Leave(connector+" user "+oneWord(id), "it is not "+p.Person.Not)
			continue
		}
		if entry := connector + ":" + platforms.Instances(nil).Canonical(connector, id); !slices.Contains(f.Allow, entry) {
			f.Allow = append(f.Allow, entry)
		}
	}
	return everyone
}

// prefixes are what the other programs write before ids.
var prefixes = map[string][]string{
	platforms.Telegram: {"telegram:", "tg:", "user:"}, platforms.Slack: {"slack:", "user:"}, platforms.Discord: {"discord:", "user:", "pk:"},
}

// PersonID returns an entry of a list of people as an id: without the name of the platform before it and a
// user name behind it.
func PersonID(connector, entry string) string {
	entry = strings.TrimSpace(entry)
	for _, p := range prefixes[connector] {
		if len(entry) > len(p) && strings.EqualFold(entry[:len(p)], p) {
			entry = entry[len(p):]
		}
	}
	if mention, ok := strings.CutPrefix(entry, "<@"); ok {
		entry = strings.TrimSuffix(strings.TrimPrefix(mention, "!"), ">")
	}
	id, _, _ := strings.Cut(entry, "|")
	return id
}

// Owner is the only person of Allow, as connector/id; empty if there are others, or none.
func (f *Find) Owner() string {
	if len(f.Allow) != 1 {
		return ""
	}
	connector, id, _ := strings.Cut(f.Allow[0], ":")
	return connector + "/" + id
}

// Route returns a chat as claybot names it: connector/channel, with the topic of Telegram behind it. It is
// empty for what claybot cannot write to, such as a channel of Slack without its workspace.
func Route(connector, to string) string {
	p, ok := platforms.Instances(nil).Of(connector)
	if !ok || !Platform(connector) {
		return ""
	}
	to = PersonID(connector, strings.TrimPrefix(strings.TrimSpace(to), "channel:"))
	chat, topic := strings.TrimPrefix(to, "group:"), ""
	if connector == platforms.Telegram {
		var found bool
		if chat, topic, found = strings.Cut(chat, ":topic:"); !found {
			chat, topic, _ = strings.Cut(chat, ":")
		}
	}
	if !p.Chat.Looks.MatchString(chat) || strings.Trim(topic, "0123456789") != "" {
		return ""
	}
	if topic != "" {
		topic = "/" + topic
	}
	return connector + "/" + chat + topic
}
