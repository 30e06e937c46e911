package agentsystem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/worker"
)

// An intake puts messages into the inboxes of their agents, with what commits together
// with them: the answer to a command, or the reason why a message will not run.
type intake struct {
	agents  *storage.Bounded
	inboxes *inbox.Inboxes
	// deliver stores a message, see dispatcher.post.
	deliver   func(ctx context.Context, agent claybot.Agent, p storage.Posting) (done storage.Posted, begin func(), err error)
	results   *results
	sender    *delivery.Deliverer
	people    *people.Directory
	profiles  *profiles.Profiles
	questions *questions.Questions
	subagents *subagents.Supervisor
	flows     begunFlows
	undo      *Undo
	unwell    *worker.Health
	room      flowRoom
	// command answers a chat command that changes nothing.
	command   func(context.Context, claybot.Agent, claybot.AgentMessage) (string, error)
	connector func(name string) connectors.Connector
	secrets   func() UserSecrets
	// subject reads a person or a channel as /allow names it.
	subject func(string) (connector, subject string, err error)
	// most is how many messages a person may write in a minute; 0: any number.
	most        func() int
	flood, bots flood
	repeats     repeating
	// noteEdits says that an agent is told of edits that came too late to replace the text.
	noteEdits func() bool
	// skills lists the commands that the skills of an agent declare.
	skills func(context.Context, claybot.Agent) ([]connectors.Command, error)
	log    *slog.Logger
}

func checkMessage(to claybot.Descriptor, m claybot.AgentMessage) error {
	switch {
	case m.ID == "":
		return errors.New("post: the message has no id")
	case to.Foreground() && (to.Connector == "" || to.ChannelID == "" || to.UserID == ""):
		return fmt.Errorf("post %s: connector, channel and user must not be empty", m.ID)
	case !to.Foreground() && m.Type != claybot.MessageSystem:
		return fmt.Errorf("post %s: a person cannot write to an agent of type %q", m.ID, to.Type)
	case !m.FirstHand && commands(m):
		return fmt.Errorf("post %s: its sender did not type the command", m.ID)
	}
	return checkAmendment(m)
}

// commands reports whether a message does more than speak to its agent.
func commands(m claybot.AgentMessage) bool {
	switch m.Type {
	case claybot.MessageReset, claybot.MessageCancel, claybot.MessageCommand, claybot.MessageCompact:
		return true
	}
	return m.Type == claybot.MessageUser && m.Engine != ""
}

// accept stores a message whose sender has access.
func (i *intake) accept(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (storage.Posted, error) {
	return i.acceptMeeting(ctx, to, m, unknownArrival)
}

// unknownArrival is what a message may meet of which nothing is known.
var unknownArrival = storage.Arrival{Asked: true, Open: true}

// acceptMeeting is accept for a message of which it is known what it meets.
func (i *intake) acceptMeeting(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage, met storage.Arrival) (storage.Posted, error) {
	if err := i.room.fits(ctx, m); err != nil {
		return storage.Posted{}, err
	}
	if met.Agent != nil {
		return i.acceptAsked(ctx, *met.Agent, m, met)
	}
	if err := i.room.check(ctx, m); err != nil {
		return storage.Posted{}, err
	}
	agent, err := i.agents.AgentFor(ctx, to)
	if err != nil {
		i.unwell.Stored(err)
		return storage.Posted{}, fmt.Errorf("agent for %s: %w", m.ID, err)
	}
	return i.acceptAsked(ctx, agent, m, met)
}

// acceptFor stores a message for a known agent.
func (i *intake) acceptFor(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posted, error) {
	return i.acceptAsked(ctx, agent, m, unknownArrival)
}

// acceptAsked is acceptFor for a message of which it is known what it meets: where no question can be
// open, nothing has to look for one.
func (i *intake) acceptAsked(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage, met storage.Arrival) (storage.Posted, error) {
	ctx = i.people.Speaking(ctx, agent.Descriptor, m)
	m = i.cleaned(m)
	if m.At == 0 {
		m.At = claybot.Now()
	}
	m, err := i.known(ctx, agent, m)
	if err != nil {
		return storage.Posted{}, err
	}
	if done, taken, err := i.admit(ctx, agent, m); taken || err != nil {
		return done, err
	}
	if done, taken, err := i.order(ctx, agent, m); taken || err != nil {
		return done, err
	}
	typed := m.Type == claybot.MessageUser && agent.Descriptor.Foreground()
	asked := typed && met.Asked
	if asked {
		if asked, err = i.questions.Texts.Asked(ctx, agent.ID); err != nil {
			return storage.Posted{}, err
		}
	}
	if (asked || typed && met.Open) && m.Skill == "" {
		if done, taken, err := i.questions.Texts.Take(ctx, agent, m); taken || err != nil {
			return done, err
		}
	}
	p, err := i.complete(ctx, agent, m)
	if err != nil {
		return storage.Posted{}, err
	}
	leave := i.bounded(agent, &p)
	if asked {
		i.questions.Notices.Pending(ctx, agent, &p)
	}
	done, err := i.post(ctx, agent, p)
	if !done.Added {
		leave() // a duplicate counts once, and what was not stored comes again
	}
	return done, err
}

// bounded marks a message as not to be run if its person, or the bot that sent it, has written
// too many. Commands and answers are not counted, nor are operators, and programs, which know
// a token or a secret.
func (i *intake) bounded(agent claybot.Agent, p *storage.Posting) (leave func()) {
	d, m, most, counted, reason := agent.Descriptor, p.Message, i.most(), &i.flood, inbox.SkippedFlood
	if m.From.Bot {
		most, counted, reason = botMessages, &i.bots, inbox.SkippedBot
	}
	written := m.Type == claybot.MessageUser || m.Flow != nil && !m.Nested() && (!m.From.Program || m.From.Bot) && m.Firing == nil
	if most == 0 || p.Skip != "" || !written || m.Silent || i.people.Program(d) || i.people.IsOperator(m.Speaker(d)) {
		return func() {}
	}
	leave, ok := counted.enter(i.people.Identities(m.Speaker(d))[0], m.At, most)
	if !ok {
		p.Skip = reason
	}
	if !ok && m.From.Bot {
		p.Replies = nil // it might answer those
	}
	return leave
}

// post stores a message that is complete.
func (i *intake) post(ctx context.Context, agent claybot.Agent, p storage.Posting) (storage.Posted, error) {
	if stopsAll(p.Message) { // before the answer commits: after a crash in between it is posted again
		i.subagents.HaltBelow(ctx, agent.ID, "user")
	}
	if a := i.profiles.Of(agent.ID, agent.Descriptor).Acknowledge; a.Received != "" && p.Skip == "" {
		p.Replies = append(p.Replies, i.sender.Marks(agent, "", "received", a.Received, nil, p.Message)...)
	}
	done, begin, err := i.deliver(ctx, agent, p)
	if errors.Is(err, storage.ErrFlowFull) {
		return done, fmt.Errorf("start workflow %s: %w", p.Message.Flow.Name, noRoom)
	}
	if err != nil {
		i.unwell.Stored(err)
		return done, err
	}
	defer begin()
	if done.Added {
		i.unwell.Stored(nil)
		i.accepted(ctx, agent, p.Message, done)
	}
	return done, nil
}

// complete prepares a message for the inbox of an agent: how long it may be held back,
// where its answer goes, and what commits together with it.
func (i *intake) complete(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posting, error) {
	if m.At == 0 {
		m.At = claybot.Now()
	}
	p := storage.Posting{
		To: agent.ID, Message: m, MaxWaiting: inbox.MaxWaiting, Room: i.room.limits(m), Refuse: refuses(m),
		Wait: i.profiles.Of(agent.ID, agent.Descriptor).Policy.Wait(),
		// An operator or a program waits for the run that it reserves.
		Urgent: m.Run != "" && (m.Type == claybot.MessageUser || m.Type == claybot.MessageSystem),
	}
	switch m.Kind {
	case claybot.KindFailure, claybot.KindResult, claybot.KindReminder:
		p.MaxWaiting = 0 // promised to come
	}
	return p, i.prepare(ctx, agent, &p)
}

// prepare adds the answer to a command, or the reason why a message will not run.
func (i *intake) prepare(ctx context.Context, agent claybot.Agent, p *storage.Posting) error {
	m := p.Message
	say := func(kind claybot.OutgoingKind, text string) []claybot.Outgoing {
		return i.sender.Compose(delivery.ReplyTo(agent, m, kind), text)
	}
	switch m.Type {
	case claybot.MessageSystem:
		if m.Flow != nil && !m.Nested() {
			i.secretIn(ctx, p, say)
		}
		return i.people.Address(ctx, agent, p)
	case claybot.MessageCommand:
		if m.Command == "compact" { // waits for its turn
			p.Message.Type = claybot.MessageCompact
			return nil
		}
		p.Skip = "command"
		if m.Command == "resend" {
			return i.resend(ctx, agent, p)
		}
		text, err := i.agents.Text(ctx, agent.Descriptor, func() (string, error) { return i.command(ctx, agent, m) })
		if err != nil {
			return err
		}
		p.Replies = say(claybot.OutgoingCommand, text)
	case claybot.MessageCancel:
		return i.prepareStop(ctx, agent, p)
	case claybot.MessageEdit, claybot.MessageDelete:
		i.prepareAmendment(ctx, agent, p)
	case claybot.MessageUser:
		if n := utf8.RuneCountInString(m.Text); n > inbox.MaxText {
			p.Skip, p.Replies = "too_long", say(claybot.OutgoingNotice, texts.Of(ctx).TooLong(n, inbox.MaxText))
			p.Message.Text = string([]rune(m.Text)[:1000])
		} else if strings.TrimSpace(m.Text) == "" && len(m.Files) == 0 {
			p.Skip, p.Replies = "empty", say(claybot.OutgoingNotice, texts.Of(ctx).In(texts.Empty))
		} else {
			i.secretIn(ctx, p, say)
		}
	}
	if m.From.Bot && p.Skip != "" {
		p.Replies = nil // it might answer that
	}
	return nil
}

// accepted notifies all who wait for a message that it is durable.
func (i *intake) accepted(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage, done storage.Posted) {
	i.log.Debug("message accepted", "agent", agent.ID, "connector", agent.Descriptor.Connector, "message", m.ID, "type", m.Type)
	i.people.Learn(ctx, agent.Descriptor, m)
	i.sender.Hand(done.Outbox)
	if len(done.Dropped) > 0 {
		i.results.reject(agent.ID, inbox.ErrReset, done.Dropped...)
	}
	if c, ok := i.connector(agent.Descriptor.Connector).(connectors.Accepter); ok && m.Type != claybot.MessageSystem {
		c.Accepted(agent.Descriptor, m)
	}
	why := done.Skipped
	if strings.HasPrefix(why, storage.SkippedFlow) {
		why = storage.SkippedFlow
	}
	switch why {
	case "":
		return
	case "command", storage.SkippedFlow, questions.SkippedAnswer, questions.SkippedUnfit, storage.SkippedEdit, storage.SkippedDeletion, storage.SkippedLate:
		i.results.waiters.Ended(inbox.Result{}, m.ID)
		return
	case inbox.SkippedFull:
		if !m.From.Bot {
			i.notifyHourly(ctx, agent, m, "full/"+string(agent.ID), texts.Of(ctx).InboxFull())
		}
	case storage.SkippedBusy:
		i.notifyHourly(ctx, agent, m, "busy/"+string(agent.ID), texts.Of(ctx).FlowBusy(m.Flow.Name))
	case storage.SkippedFlowFull:
		i.notifyFull(ctx, agent, m)
	case inbox.SkippedFlood:
		i.notifyHourly(ctx, agent, m, "flood/"+i.people.Identities(m.Speaker(agent.Descriptor))[0], texts.Of(ctx).Flood(i.most()))
	}
	i.log.Info("message will not run", "agent", agent.ID, "connector", agent.Descriptor.Connector, "message", m.ID, "reason", done.Skipped)
	i.results.reject(agent.ID, inbox.ErrDropped, m.ID)
}

// stopsAll reports whether a message asks to stop an agent and all below it.
func stopsAll(m claybot.AgentMessage) bool {
	return m.Type == claybot.MessageCancel && strings.EqualFold(strings.TrimSpace(m.Text), "all")
}

// notifyHourly notifies the user, once an hour for each key, why a message will not run.
func (i *intake) notifyHourly(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage, key, text string) {
	if m.Type != claybot.MessageUser && (m.Flow == nil || m.Nested()) {
		return // its sender is notified otherwise
	}
	out := i.sender.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingNotice), text)
	if len(out) == 0 {
		return // nothing is sent there
	}
	out[0].ID = fmt.Sprintf("%s/%d", key, m.At.Time().Unix()/3600) // the id makes it one an hour
	if _, err := i.sender.Send(ctx, out[0]); err != nil {
		i.log.Warn("failed to notify the user of a refused message", "reason", key, "agent", agent.ID, "err", err)
	}
}

// An order is what a command does besides its answer. It is stored with the command
// before it is executed, so that a redelivered command does the same again, which changes
// nothing, and never anything else.
type order struct {
	questions.Decision
	Undo    claybot.RunID     `json:"undo,omitempty"`    // that is undone
	Message claybot.MessageID `json:"message,omitempty"` // by which
	Voice   *people.Choice    `json:"voice,omitempty"`   // how claybot speaks from now on
	Model   *modelOrder       `json:"model,omitempty"`   // that the agent has from now on
}

// order executes a command that changes something; taken reports whether m was one.
func (i *intake) order(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (done storage.Posted, taken bool, err error) {
	if m.Type != claybot.MessageCommand {
		return done, false, nil
	}
	var o *order
	var text string
	switch m.Command {
	case "approve", "deny":
		var d *questions.Decision
		if d, text, err = i.questions.Commands.Decision(ctx, agent, m); d != nil {
			o = &order{Decision: *d}
		}
	case "undo":
		o, text, err = i.undo.order(ctx, agent, m)
	case "language", "timezone":
		var c *people.Choice
		if c, text = i.people.Chosen(ctx, agent.Descriptor, m); c != nil {
			o = &order{Voice: c}
		}
	case "model":
		o, text = i.modelOrder(ctx, agent, m)
	default:
		return done, false, nil
	}
	if err != nil {
		return done, true, err
	}
	if o != nil {
		stored, err := json.Marshal(o)
		if err != nil {
			return done, true, err
		}
		m.Answer = &claybot.Result{OK: true, Output: string(stored)}
	}
	done, err = i.inboxes.Post(ctx, storage.Posting{
		To: agent.ID, Message: m, Skip: "command", Replies: i.sender.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingCommand), text),
	})
	if err != nil {
		return done, true, err
	}
	if done.Added {
		i.accepted(ctx, agent, m, done)
	} else if m, err = i.questions.Texts.StoredAs(ctx, m.ID); err != nil {
		return done, true, inbox.Unfinished(err)
	}
	return done, true, inbox.Unfinished(i.carryOut(ctx, agent, m))
}

// carryOut executes a stored command. It is idempotent.
func (i *intake) carryOut(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) error {
	if m.Type != claybot.MessageCommand || m.Answer == nil {
		return nil
	}
	var o order
	if err := json.Unmarshal([]byte(m.Answer.Output), &o); err != nil {
		return fmt.Errorf("read the order of message %s: %w", m.ID, err)
	}
	if o.Voice != nil {
		return i.people.Choose(ctx, agent.Descriptor, *o.Voice)
	}
	if o.Model != nil {
		return i.profiles.ChooseModel(ctx, agent, o.Model.Name, o.Model.Choice)
	}
	if o.Undo == "" {
		return i.questions.Commands.Decide(ctx, m.Speaker(agent.Descriptor), o.Decision)
	}
	route := m.ReplyRoute(agent.Descriptor)
	_, err := i.undo.post(ctx, o.Undo, o.Message, m.From, &route)
	if errors.As(err, new(NoUndoError)) || errors.Is(err, storage.ErrNotFound) {
		return nil // it is under way already
	}
	return err
}
