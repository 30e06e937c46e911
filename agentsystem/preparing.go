package agentsystem

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/texts"
)

// A preparer adds to a message what commits together with it.
type preparer struct {
	agents    *storage.Bounded
	sender    *delivery.Deliverer
	people    *people.Directory
	profiles  *profiles.Profiles
	subagents *subagents.Supervisor
	flows     begunFlows
	room      flowRoom
	repeats   repeating
	secrets   secretRule
	// command answers a chat command that changes nothing.
	command func(context.Context, claybot.Agent, claybot.AgentMessage) (string, error)
	// noteEdits says that an agent hears of edits that came too late to replace the text.
	noteEdits func() bool
}

// complete prepares a message for the inbox of an agent: how long it may be held back,
// where its answer goes, and what commits together with it.
func (x *preparer) complete(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posting, error) {
	if m.At == 0 {
		m.At = claybot.Now()
	}
	p := storage.Posting{
		To: agent.ID, Message: m, MaxWaiting: inbox.MaxWaiting, Room: x.room.limits(m), Refuse: refuses(m),
		Wait: x.profiles.Of(agent.ID, agent.Descriptor).Policy.Wait(),
		// An operator or a program waits for the run that it reserves.
		Urgent: m.Run != "" && (m.Type == claybot.MessageUser || m.Type == claybot.MessageSystem),
	}
	switch m.Kind {
	case claybot.KindFailure, claybot.KindResult, claybot.KindReminder:
		p.MaxWaiting = 0 // promised to come
	}
	return p, x.prepare(ctx, agent, &p)
}

// prepare adds the answer to a command, or the reason why a message will not run.
func (x *preparer) prepare(ctx context.Context, agent claybot.Agent, p *storage.Posting) error {
	m := p.Message
	say := func(kind claybot.OutgoingKind, text string) []claybot.Outgoing {
		return x.sender.Compose(delivery.ReplyTo(agent, m, kind), text)
	}
	switch m.Type {
	case claybot.MessageSystem:
		if m.Flow != nil && !m.Nested() {
			x.secrets.note(ctx, p, say)
		}
		return x.people.Address(ctx, agent, p)
	case claybot.MessageCommand:
		if m.Command == "compact" { // waits for its turn
			p.Message.Type = claybot.MessageCompact
			return nil
		}
		p.Skip = "command"
		if m.Command == "resend" {
			return x.repeats.resend(ctx, x.sender, agent, p)
		}
		text, err := x.agents.Text(ctx, agent.Descriptor, func() (string, error) { return x.command(ctx, agent, m) })
		if err != nil {
			return err
		}
		p.Replies = say(claybot.OutgoingCommand, text)
	case claybot.MessageCancel:
		return x.prepareStop(ctx, agent, p)
	case claybot.MessageEdit, claybot.MessageDelete:
		x.prepareAmendment(ctx, agent, p)
	case claybot.MessageUser:
		if n := utf8.RuneCountInString(m.Text); n > inbox.MaxText {
			p.Skip, p.Replies = "too_long", say(claybot.OutgoingNotice, texts.Of(ctx).TooLong(n, inbox.MaxText))
			p.Message.Text = string([]rune(m.Text)[:1000])
		} else if strings.TrimSpace(m.Text) == "" && len(m.Files) == 0 {
			p.Skip, p.Replies = "empty", say(claybot.OutgoingNotice, texts.Of(ctx).In(texts.Empty))
		} else {
			x.secrets.note(ctx, p, say)
		}
	}
	if m.From.Bot && p.Skip != "" {
		p.Replies = nil // it might answer that
	}
	return nil
}

// storing does what precedes the store of a complete message.
func (x *preparer) storing(ctx context.Context, agent claybot.Agent, p *storage.Posting) {
	if stopsAll(p.Message) { // before the answer commits: after a crash in between it is posted again
		x.subagents.HaltBelow(ctx, agent.ID, "user")
	}
	if a := x.profiles.Of(agent.ID, agent.Descriptor).Acknowledge; a.Received != "" && p.Skip == "" {
		p.Replies = append(p.Replies, x.sender.Marks(agent, "", "received", a.Received, nil, p.Message)...)
	}
}
