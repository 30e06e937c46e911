package agentsystem

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// amends reports whether a message changes an earlier one.
func amends(m claybot.AgentMessage) bool {
	return m.Type == claybot.MessageEdit || m.Type == claybot.MessageDelete
}

// prepareAmendment adds what an edit or a deletion does besides changing its message.
func (x *preparer) prepareAmendment(ctx context.Context, agent claybot.Agent, p *storage.Posting) {
	m := p.Message
	say := func(text string) []claybot.Outgoing {
		return x.sender.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingNotice), text)
	}
	if m.Type == claybot.MessageDelete && m.Command == claybot.StopCommand {
		p.Replies = x.sender.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingCommand), texts.Of(ctx).In(texts.Stopped))
		p.IfIdle = p.Replies
		return
	}
	if m.Type == claybot.MessageDelete {
		p.Replies = say(texts.Of(ctx).In(texts.StoppedByDeletion))
		return
	}
	switch n := utf8.RuneCountInString(m.Text); {
	case n > inbox.MaxText:
		p.Skip, p.Replies = "too_long", say(texts.Of(ctx).TooLong(n, inbox.MaxText))
		p.Message.Text = string([]rune(m.Text)[:1000])
	case strings.TrimSpace(m.Text) == "":
		p.Skip = "empty"
	case len(m.Masked) > 0 && x.secrets() == RefuseSecrets:
		p.Skip, p.Replies = skippedSecret, say(texts.Of(ctx).SecretRefused(m.Masked))
	case len(m.Masked) > 0:
		p.Replies = say(texts.Of(ctx).SecretMasked(m.Masked))
	}
	if x.noteEdits() && agent.Descriptor.Type != claybot.AgentFlow { // which would begin another run
		p.Late = texts.Edited(m.Text)
	}
}

func checkAmendment(m claybot.AgentMessage) error {
	if amends(m) != (m.Amends != "") {
		return fmt.Errorf("post %s: an edit or a deletion names its message, and no other message does", m.ID)
	}
	return nil
}
