package agentsystem

import (
	"github.com/claybot/claybot"
	"github.com/claybot/claybot/platforms"
)

// UserSecrets is what happens to tokens, keys and passwords that people paste into
// messages.
type UserSecrets string

// What happens to secrets. Anything else means MaskSecrets.
const (
	MaskSecrets   UserSecrets = "mask"   // they are taken out before anything is stored
	KeepSecrets   UserSecrets = "keep"   // they stay
	RefuseSecrets UserSecrets = "refuse" // messages with secrets run nothing, and are stored without them
)

// skippedSecret is why a message with a secret did not run.
const skippedSecret = "secret"

// masked is a text of a person as it may be stored.
func (i *intake) masked(text string) string {
	text = claybot.Clean(text)
	if i.secrets() != KeepSecrets {
		text, _ = platforms.MaskSecrets(text)
	}
	return text
}

// cleaned returns a message as it may be stored: readable, and without secrets. It may be
// called again with what it returned.
func (i *intake) cleaned(m claybot.AgentMessage) claybot.AgentMessage {
	m.Text = claybot.Clean(m.Text)
	if m.Type == claybot.MessageSystem || i.secrets() == KeepSecrets {
		return m
	}
	var found, quoted []string
	m.Text, found = platforms.MaskSecrets(m.Text)
	m.Context.Quote, quoted = platforms.MaskSecrets(m.Context.Quote)
	if found = append(found, quoted...); len(found) > 0 {
		m.Masked = found
	}
	return m
}
