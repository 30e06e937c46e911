package agentsystem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
)

// Orders execute the commands that change something, each once.
type orders struct {
	inboxes   *inbox.Inboxes
	sender    *delivery.Deliverer
	people    *people.Directory
	profiles  *profiles.Profiles
	questions *questions.Questions
	undo      *Undo
	accepting *accepting
	// subject reads a person or a channel as /allow names it.
	subject func(string) (connector, subject string, err error)
	log     *slog.Logger
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
func (o *orders) order(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (done storage.Posted, taken bool, err error) {
	if m.Type != claybot.MessageCommand {
		return done, false, nil
	}
	var x *order
	var text string
	switch m.Command {
	case "approve", "deny":
		var d *questions.Decision
		if d, text, err = o.questions.Commands.Decision(ctx, agent, m); d != nil {
			x = &order{Decision: *d}
		}
	case "undo":
		x, text, err = o.undo.order(ctx, agent, m)
	case "language", "timezone":
		var c *people.Choice
		if c, text = o.people.Chosen(ctx, agent.Descriptor, m); c != nil {
			x = &order{Voice: c}
		}
	case "model":
		x, text = o.modelOrder(ctx, agent, m)
	default:
		return done, false, nil
	}
	if err != nil {
		return done, true, err
	}
	if x != nil {
		stored, err := json.Marshal(x)
		if err != nil {
			return done, true, err
		}
		m.Answer = &claybot.Result{OK: true, Output: string(stored)}
	}
	done, err = o.inboxes.Post(ctx, storage.Posting{
		To: agent.ID, Message: m, Skip: "command", Replies: o.sender.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingCommand), text),
	})
	if err != nil {
		return done, true, err
	}
	if done.Added {
		o.accepting.accepted(ctx, agent, m, done)
	} else if m, err = o.questions.Texts.StoredAs(ctx, m.ID); err != nil {
		return done, true, inbox.Unfinished(err)
	}
	return done, true, inbox.Unfinished(o.carryOut(ctx, agent, m))
}

// carryOut executes a stored command. It is idempotent.
func (o *orders) carryOut(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) error {
	if m.Type != claybot.MessageCommand || m.Answer == nil {
		return nil
	}
	var x order
	if err := json.Unmarshal([]byte(m.Answer.Output), &x); err != nil {
		return fmt.Errorf("read the order of message %s: %w", m.ID, err)
	}
	if x.Voice != nil {
		return o.people.Choose(ctx, agent.Descriptor, *x.Voice)
	}
	if x.Model != nil {
		return o.profiles.ChooseModel(ctx, agent, x.Model.Name, x.Model.Choice)
	}
	if x.Undo == "" {
		return o.questions.Commands.Decide(ctx, m.Speaker(agent.Descriptor), x.Decision)
	}
	route := m.ReplyRoute(agent.Descriptor)
	_, err := o.undo.post(ctx, x.Undo, x.Message, m.From, &route)
	if errors.As(err, new(NoUndoError)) || errors.Is(err, storage.ErrNotFound) {
		return nil // it is under way already
	}
	return err
}
