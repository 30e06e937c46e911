package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/worker"
)

// An intake puts messages into the inboxes of their agents, with what commits together
// with them: the answer to a command, or the reason why a message will not run.
type intake struct {
	agents *storage.Bounded
	// deliver stores a message, see dispatcher.post.
	deliver   func(ctx context.Context, agent claybot.Agent, p storage.Posting) (done storage.Posted, begin func(), err error)
	people    *people.Directory
	questions *questions.Questions
	preparer  *preparer
	orders    *orders
	accepting *accepting
	secrets   secretRule
	floods    floods
	room      flowRoom
	unwell    *worker.Health
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
	m = i.secrets.cleaned(m)
	if m.At == 0 {
		m.At = claybot.Now()
	}
	m, err := i.known(ctx, agent, m)
	if err != nil {
		return storage.Posted{}, err
	}
	if done, taken, err := i.orders.admit(ctx, agent, m); taken || err != nil {
		return done, err
	}
	if done, taken, err := i.orders.order(ctx, agent, m); taken || err != nil {
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
	p, err := i.preparer.complete(ctx, agent, m)
	if err != nil {
		return storage.Posted{}, err
	}
	leave := i.floods.bounded(agent, &p)
	if asked {
		i.questions.Notices.Pending(ctx, agent, &p)
	}
	done, err := i.post(ctx, agent, p)
	if !done.Added {
		leave() // a duplicate counts once, and what was not stored comes again
	}
	return done, err
}

// post stores a message that is complete.
func (i *intake) post(ctx context.Context, agent claybot.Agent, p storage.Posting) (storage.Posted, error) {
	i.preparer.storing(ctx, agent, &p)
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
		i.accepting.accepted(ctx, agent, p.Message, done)
	}
	return done, nil
}
