package agentsystem

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// answersAtOnce reports whether a message needs no files of its agent: /stop, /status
// or /why.
func answersAtOnce(m claybot.AgentMessage) bool {
	return m.Type == claybot.MessageCancel || m.Type == claybot.MessageCommand && (m.Command == "status" || m.Command == "why")
}

// answerAtOnce takes a /stop, /status or /why for an agent that cannot be used, and
// answers it from the store alone. ok is false for any other message, and where even
// that fails: the message is to be parked then.
func (s *AgentSystem) answerAtOnce(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (done storage.Posted, ok bool) {
	if !answersAtOnce(m) {
		return done, false
	}
	stopped := 0
	if m.Type == claybot.MessageCancel {
		if _, err := s.Inbox.Receipt(ctx, m.ID); errors.Is(err, storage.ErrNotFound) { // else it came before what is parked now
			stopped = s.stopParked(ctx, to, m)
		}
	}
	id, err := s.Index.IndexedAgent(ctx, to)
	switch {
	case err == nil:
		done, err = s.answerFor(ctx, claybot.Agent{ID: id, Descriptor: to}, m, stopped)
	case errors.Is(err, storage.ErrNotFound):
		done, err = s.answerNobody(ctx, to, m, stopped)
	}
	if err != nil {
		s.Log.Warn("cannot answer at once for an agent that cannot be used", "connector", to.Connector, "message", m.ID, "err", err)
	}
	return done, err == nil
}

// answerFor answers for an agent that is in the index. stopped is how many parked
// messages a /stop has ended.
func (s *AgentSystem) answerFor(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage, stopped int) (storage.Posted, error) {
	p, err := s.complete(ctx, agent, m)
	if err != nil {
		return storage.Posted{}, err
	}
	if stopped > 0 {
		p.IfIdle = p.Replies
	}
	return s.postFor(ctx, agent, p)
}

// answerNobody answers for an agent that does not exist yet.
func (s *AgentSystem) answerNobody(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage, stopped int) (storage.Posted, error) {
	text := texts.NothingRuns
	if m.Type == claybot.MessageCommand {
		var err error
		if text, err = s.Overview.Answer(ctx, claybot.Agent{Descriptor: to}, m); err != nil {
			return storage.Posted{}, err
		}
	} else if stopped > 0 {
		text = texts.Stopped
	}
	if err := s.deliverer.SendOnce(ctx, claybot.Outgoing{Kind: claybot.OutgoingCommand, Message: m.ID, Route: m.ReplyRoute(to)}, fmt.Sprintf("parked/%s/answer", m.ID), text); err != nil {
		return storage.Posted{}, fmt.Errorf("answer %s: %w", m.ID, err)
	}
	added, err := s.Parking.EndParked(ctx, storage.Parked{To: to, Message: m}, "command")
	return storage.Posted{Added: added, Skipped: "command"}, err
}

// Unusable reports whether this member cannot use the agent of d at present. It is for
// connectors that wait for one.
func (s *AgentSystem) Unusable(d claybot.Descriptor) bool {
	_, ok := s.Worker.Faults.At(d.Key())
	return ok
}
