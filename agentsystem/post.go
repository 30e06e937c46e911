package agentsystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

var _ connectors.Handler = (*AgentSystem)(nil)

// Post takes in what a connector received. It returns nil once the message is
// durable, or was turned away for good: a stranger's, or one that is known. A message
// whose agent cannot be used is durable, too: it is parked, and runs when the agent
// can be used again. Any other outcome is an error, and nothing is stored. An error of
// storage.ClassMessage is for good; after any other the source must keep the message.
func (s *AgentSystem) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	began, from := time.Now(), cmp.Or(to.Connector, string(to.Type))
	defer s.intake.begin(from)()
	outcome, err := s.receive(ctx, to, m)
	s.Meter.Received(from, outcome, time.Since(began))
	return err
}

// receive is Post, and says what became of the message.
func (s *AgentSystem) receive(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (outcome string, err error) {
	if err := checkMessage(to, m); err != nil {
		return ReceivedError, &storage.Fault{Class: storage.ClassMessage, Err: err}
	}
	if to.Foreground() && m.Type != claybot.MessageSystem && !s.People.Allowed(to, m.Context.Group) {
		s.Log.Debug("message of a stranger", "connector", to.Connector, "message", m.ID, "user", to.UserID, "channel", to.ChannelID)
		out, err := s.People.Challenge(ctx, to, m, runs.NewID)
		s.deliverer.Hand(out)
		if s.Worker.OfOne(ctx, err) { // they will write again
			s.Log.Error("an unknown user was not answered", "connector", to.Connector, "message", m.ID, "err", err)
			err = nil
		}
		if err != nil {
			return ReceivedError, err
		}
		return ReceivedStranger, nil
	}
	done, err := s.take(ctx, to, m)
	return receivedAs(done, err), err
}

// Moved follows a channel to its new id.
func (s *AgentSystem) Moved(ctx context.Context, connector, from, to string) error {
	defer s.intake.begin(connector)()
	err := s.lookup.MoveChannel(ctx, connector, from, to)
	if s.Worker.OfOne(ctx, err) {
		s.Log.Error("an agent of a moved channel stays where it is", "connector", connector, "from", from, "to", to, "err", err)
	} else if err != nil {
		return fmt.Errorf("move channel: %w", err)
	}
	s.Log.Info("a channel has a new id", "connector", connector, "from", from, "to", to)
	// Only what somebody decided about this channel moves with it. That
	// everybody is let in now is no decision for later.
	if !s.People.Granted(connector, from) && !s.People.Listed(connector, from) {
		return nil
	}
	return s.People.Grant(ctx, storage.Grant{Connector: connector, Subject: to, Name: "was " + from, At: claybot.Now()})
}

func checkMessage(to claybot.Descriptor, m claybot.AgentMessage) error {
	switch {
	case m.ID == "":
		return errors.New("post: the message has no id")
	case to.Foreground() && (to.Connector == "" || to.ChannelID == "" || to.UserID == ""):
		return fmt.Errorf("post %s: connector, channel and user must not be empty", m.ID)
	case !to.Foreground() && m.Type != claybot.MessageSystem:
		return fmt.Errorf("post %s: a person cannot write to an agent of type %q", m.ID, to.Type)
	}
	return nil
}

// accept stores a message of somebody who may speak.
func (s *AgentSystem) accept(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (storage.Posted, error) {
	m.Text = claybot.Clean(m.Text)
	if m.At == 0 {
		m.At = claybot.Now()
	}
	agent, err := s.lookup.AgentFor(ctx, to)
	if err != nil {
		s.Worker.Unwell.Stored(err)
		return storage.Posted{}, fmt.Errorf("agent for %s: %w", m.ID, err)
	}
	return s.acceptFor(ctx, agent, m)
}

// acceptFor stores a message for a known agent.
func (s *AgentSystem) acceptFor(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posted, error) {
	if done, taken, err := s.ordered(ctx, agent, m); taken || err != nil {
		return done, err
	}
	if done, taken, err := s.Questions.Typed(ctx, agent, m); taken || err != nil {
		return done, err
	}
	p, err := s.complete(ctx, agent, m)
	if err != nil {
		return storage.Posted{}, err
	}
	return s.postFor(ctx, agent, p)
}

// postFor stores a message that is complete.
func (s *AgentSystem) postFor(ctx context.Context, agent claybot.Agent, p storage.Posting) (storage.Posted, error) {
	s.Questions.TellPending(ctx, agent, &p)
	if stopsAll(p.Message) { // before the answer commits: a crash in between has it posted again
		s.Subagents.HaltBelow(ctx, agent.ID, "user")
	}
	done, err := s.boxes.Post(ctx, p)
	if err != nil {
		s.Worker.Unwell.Stored(err)
		return done, err
	}
	if done.Added {
		s.Worker.Unwell.Stored(nil)
		s.accepted(ctx, agent, p.Message, done)
	}
	return done, nil
}

// complete makes a message ready for the inbox of an agent: how long it may be
// held back, where its answer goes, and all that commits together with it.
func (s *AgentSystem) complete(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posting, error) {
	if m.At == 0 {
		m.At = claybot.Now()
	}
	p := storage.Posting{
		To: agent.ID, Message: m, MaxWaiting: inbox.MaxWaiting,
		Wait: s.Profiles.Of(agent.ID, agent.Descriptor).Policy.Wait(),
	}
	switch m.Kind {
	case claybot.KindFailure, claybot.KindResult, claybot.KindReminder:
		p.MaxWaiting = 0 // promised to come
	}
	return p, s.prepare(ctx, agent, &p)
}

// prepare decides what commits together with a message: the answer to a
// command, or the reason why it will not run.
func (s *AgentSystem) prepare(ctx context.Context, agent claybot.Agent, p *storage.Posting) error {
	m := p.Message
	if m.Type == claybot.MessageSystem {
		return s.People.Address(ctx, agent, p)
	}
	say := func(kind claybot.OutgoingKind, text string) []claybot.Outgoing {
		return s.deliverer.Compose(delivery.ReplyTo(agent, m, kind), text)
	}
	switch m.Type {
	case claybot.MessageCommand:
		if m.Command == "compact" { // waits for its turn
			p.Message.Type = claybot.MessageCompact
			return nil
		}
		p.Skip = "command"
		text, err := s.lookup.Text(ctx, agent.Descriptor, func() (string, error) { return s.Overview.Answer(ctx, agent, m) })
		if err != nil {
			return err
		}
		p.Replies = say(claybot.OutgoingCommand, text)
	case claybot.MessageCancel:
		p.Replies = say(claybot.OutgoingCommand, texts.Stopped)
		p.IfIdle = say(claybot.OutgoingCommand, texts.NothingRuns)
		switch {
		case !s.Subagents.BusyBelow(ctx, agent.ID):
		case stopsAll(m):
			p.IfIdle = p.Replies
		default:
			p.IfIdle = say(claybot.OutgoingCommand, texts.OnlyHelpers)
		}
	case claybot.MessageUser:
		if n := utf8.RuneCountInString(m.Text); n > inbox.MaxText {
			p.Skip, p.Replies = "too_long", say(claybot.OutgoingNotice, texts.TooLong(n, inbox.MaxText))
			p.Message.Text = string([]rune(m.Text)[:1000])
		} else if strings.TrimSpace(m.Text) == "" && len(m.Files) == 0 {
			p.Skip, p.Replies = "empty", say(claybot.OutgoingNotice, texts.Empty)
		}
	}
	return nil
}

// accepted tells everybody who waits for it that a message is durable.
func (s *AgentSystem) accepted(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage, done storage.Posted) {
	s.Log.Debug("message accepted", "agent", agent.ID, "connector", agent.Descriptor.Connector, "message", m.ID, "type", m.Type)
	s.deliverer.Hand(done.Outbox)
	if len(done.Dropped) > 0 {
		s.reject(agent.ID, inbox.ErrReset, done.Dropped...)
	}
	if c, ok := s.connector(agent.Descriptor.Connector).(connectors.Accepter); ok && m.Type != claybot.MessageSystem {
		c.Accepted(agent.Descriptor, m)
	}
	switch done.Skipped {
	case "":
		return
	case "command", questions.SkippedAnswer, questions.SkippedUnfit:
		s.waiters.Ended(inbox.Result{}, m.ID)
		return
	case "inbox_full":
		s.notifyFull(ctx, agent, m)
	}
	s.Log.Info("message will not run", "agent", agent.ID, "connector", agent.Descriptor.Connector, "message", m.ID, "reason", done.Skipped)
	s.reject(agent.ID, inbox.ErrDropped, m.ID)
}

// stopsAll reports whether a message asks to stop an agent and all below it.
func stopsAll(m claybot.AgentMessage) bool {
	return m.Type == claybot.MessageCancel && strings.EqualFold(strings.TrimSpace(m.Text), "all")
}

// notifyFull says once an hour that an inbox takes no more.
func (s *AgentSystem) notifyFull(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) {
	if m.Type != claybot.MessageUser {
		return // who sent it is told otherwise
	}
	hour := m.At.Time().Unix() / 3600
	out := s.deliverer.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingNotice), texts.InboxFull())
	out[0].ID = fmt.Sprintf("full/%s/%d", agent.ID, hour) // the id makes it one an hour
	if _, err := s.deliverer.Send(ctx, out[0]); err != nil {
		s.Log.Warn("cannot notify the user of a full inbox", "agent", agent.ID, "err", err)
	}
}

// Answer implements connectors.Handler.
func (s *AgentSystem) Answer(ctx context.Context, t connectors.Tap) (connectors.Tapped, error) {
	defer s.intake.begin(t.Connector)()
	done, err := s.Questions.Press(ctx, t)
	if s.Worker.OfOne(ctx, err) { // holding it would hold up everybody else's
		s.Log.Error("an answer was not taken; the person is asked to give it again", "connector", t.Connector, "user", t.UserID, "question", t.Question, "err", err)
		return connectors.Tapped{Again: true, Text: texts.AnswerAgain}, nil
	}
	return done, err
}
