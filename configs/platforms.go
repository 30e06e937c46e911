package configs

import (
	"fmt"
	"regexp"
	"strings"
)

// The forms of the credentials of chat platforms.
var (
	TelegramToken = regexp.MustCompile(`^[0-9]{5,20}:[A-Za-z0-9_-]{20,}$`)
	SlackBotToken = regexp.MustCompile(`^xoxb-[A-Za-z0-9-]+$`)
	SlackAppToken = regexp.MustCompile(`^xapp-[A-Za-z0-9-]+$`)
)

// An idForm is how ids of one kind look, and what to say of another text.
type idForm struct {
	looks *regexp.Regexp
	not   string // after the text
}

func (f idForm) check(id string) error {
	if !f.looks.MatchString(id) {
		return fmt.Errorf("%s is not %s", quote(id), f.not)
	}
	return nil
}

// A platform is a connector with the forms of its ids. This table is the only place that
// knows them.
type platform struct {
	name   string
	person idForm // who owns agents or operates
	chat   idForm // a channel that a route names
	listed idForm // a person or a channel in a list of access; the zero value: not listed
}

const stableIDs = "; names can change hands, only ids count: let the person write to the bot, then see `claybot pair`"

var platforms = []platform{
	{
		"telegram",
		idForm{regexp.MustCompile(`^[0-9]{1,20}$`), "the Telegram id of a person, such as 123456789"},
		idForm{telegramChat, "the id of a Telegram chat, such as 123456789, or -100123 for a group"},
		idForm{telegramChat, "a Telegram id such as 123456789, or -100123 for a group" + stableIDs},
	},
	{
		"slack",
		idForm{regexp.MustCompile(`^([TE][A-Z0-9]+/)?[UW][A-Z0-9]+$`), "the Slack id of a person, such as U012ABC, or T012ABC/U012ABC for one of another workspace"},
		idForm{regexp.MustCompile(`^[TE][A-Z0-9]+/[A-Z][A-Z0-9]+$`), "the id of a Slack channel with its workspace, such as T012ABC/C012ABC"},
		idForm{regexp.MustCompile(`^([TE][A-Z0-9]+/)?[A-Z][A-Z0-9]+$`), "a Slack id such as U012ABC, or T012ABC/C012ABC for a channel" + stableIDs},
	},
	{name: "web", person: login, chat: conversation},
	{name: "terminal", person: login, chat: conversation},
}

var (
	telegramChat = regexp.MustCompile(`^-?[0-9]{1,20}$`)
	loginName    = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,64}$`)
	login        = idForm{loginName, "the name of a login, such as operator"}
	conversation = idForm{loginName, "the id of a conversation"}
)

// checkListed refuses whatever is not a stable id: names can change hands.
func (p platform) checkListed(id string) error {
	switch {
	case id == "*":
		return fmt.Errorf("%s does not mean everybody; that is access: open", quote(p.name+":*"))
	case p.listed.looks == nil:
		return nil
	}
	return p.listed.check(id)
}

// connectorNames are the names that descriptors can have.
func connectorNames() []string {
	names := make([]string, len(platforms))
	for i, p := range platforms {
		names[i] = p.name
	}
	return names
}

// platformOf is the platform with a name.
func platformOf(name string) (platform, error) {
	for _, p := range platforms {
		if p.name == name {
			return p, nil
		}
	}
	err := fmt.Errorf("%s is not a connector (%s)", quote(name), strings.Join(connectorNames(), ", "))
	return platform{}, &wordError{err, name, connectorNames()}
}
