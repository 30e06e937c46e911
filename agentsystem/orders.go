package agentsystem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// An order is what a command does beside its answer. It is stored with the
// command before it is done, so that a command that comes again does the same
// once more, which changes nothing, and never something else.
type order struct {
	Question string                `json:"question,omitempty"` // that is answered
	Approve  bool                  `json:"approve,omitempty"`
	Reason   string                `json:"reason,omitempty"`
	Scope    claybot.ApprovalScope `json:"scope,omitempty"`
	Args     string                `json:"args,omitempty"`
	Undo     claybot.RunID         `json:"undo,omitempty"`    // that is undone
	Message  claybot.MessageID     `json:"message,omitempty"` // by which
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
		o, text, err = s.decision(ctx, agent, m)
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
		To: agent.ID, Message: m, Skip: "command", Replies: s.deliverer.Compose(replyTo(agent, m, claybot.OutgoingCommand), text),
	})
	if err != nil {
		return done, true, err
	}
	if done.Added {
		s.accepted(ctx, agent, m, done)
	} else if m, err = s.storedAs(ctx, m.ID); err != nil {
		return done, true, unfinished(err)
	}
	return done, true, unfinished(s.carryOut(ctx, agent, m))
}

// An unfinishedError says that a message was posted, and what follows from it was
// not done. Posting it again does that.
type unfinishedError struct{ err error }

func (e *unfinishedError) Error() string { return e.err.Error() }
func (e *unfinishedError) Unwrap() error { return e.err }

// unfinished is err as an unfinishedError, nil for none.
func unfinished(err error) error {
	if err == nil {
		return nil
	}
	return &unfinishedError{err}
}

// storedAs is a message as it was stored when it came first. One that is known
// under another id is as it is: it was taken care of then.
func (s *AgentSystem) storedAs(ctx context.Context, id claybot.MessageID) (claybot.AgentMessage, error) {
	r, err := s.Inbox.Receipt(ctx, id)
	if err != nil {
		return claybot.AgentMessage{ID: id}, storage.Ignore(err, storage.ErrNotFound)
	}
	return r.Message, nil
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
	said := Said{Value: "deny", By: agent.Descriptor.OwnerID(), Via: claybot.ViaText, Reason: o.Reason, Scope: o.Scope, Args: o.Args}
	if o.Approve {
		said.Value = "approve"
	}
	err := s.AnswerQuestion(ctx, o.Question, said)
	if unfit := new(AnswerError); o.Args != "" && errors.As(err, &unfit) {
		s.Log.Warn("edited arguments do not fit any more", "question", o.Question)
		return nil
	}
	if errors.Is(err, ErrApproved) || errors.Is(err, storage.ErrState) || errors.Is(err, storage.ErrNotFound) {
		return nil // it has an answer: this one, or an earlier one that its place shows
	}
	return err
}
