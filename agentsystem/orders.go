package agentsystem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
)

// An order is what a command does beside its answer. It is stored with the
// command before it is done, so that a command that comes again does the same
// once more, which changes nothing, and never something else.
type order struct {
	questions.Decision
	Undo    claybot.RunID     `json:"undo,omitempty"`    // that is undone
	Message claybot.MessageID `json:"message,omitempty"` // by which
}

// ordered takes a command that does something. It reports whether the message
// was one.
func (s *AgentSystem) ordered(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (done storage.Posted, taken bool, err error) {
	if m.Type != claybot.MessageCommand {
		return done, false, nil
	}
	var o *order
	var text string
	switch m.Command {
	case "approve", "deny":
		var d *questions.Decision
		if d, text, err = s.Questions.Decision(ctx, agent, m); d != nil {
			o = &order{Decision: *d}
		}
	case "undo":
		o, text, err = s.undoing(ctx, agent, m)
	default:
		return done, false, nil
	}
	if err != nil {
		return done, true, err
	}
	if o != nil {
		what, err := json.Marshal(o)
		if err != nil {
			return done, true, err
		}
		m.Answer = &claybot.Answer{OK: true, Output: string(what)}
	}
	done, err = s.boxes.Post(ctx, storage.Posting{
		To: agent.ID, Message: m, Skip: "command", Replies: s.deliverer.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingCommand), text),
	})
	if err != nil {
		return done, true, err
	}
	if done.Added {
		s.accepted(ctx, agent, m, done)
	} else if m, err = s.Questions.StoredAs(ctx, m.ID); err != nil {
		return done, true, inbox.Unfinished(err)
	}
	return done, true, inbox.Unfinished(s.carryOut(ctx, agent, m))
}

// carryOut does what a stored command orders. Doing it again changes nothing.
func (s *AgentSystem) carryOut(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) error {
	if m.Type != claybot.MessageCommand || m.Answer == nil {
		return nil
	}
	var o order
	if err := json.Unmarshal([]byte(m.Answer.Output), &o); err != nil {
		return fmt.Errorf("read what message %s orders: %w", m.ID, err)
	}
	if o.Undo != "" {
		route := m.ReplyRoute(agent.Descriptor)
		_, err := s.undoAs(ctx, o.Undo, o.Message, m.From, &route)
		if errors.As(err, new(NoUndoError)) || errors.Is(err, storage.ErrNotFound) {
			return nil // it is under way, or somebody was faster
		}
		return err
	}
	return s.Questions.Decide(ctx, agent, o.Decision)
}
