package agentsystem

import (
	"context"
	"fmt"

	"github.com/claybot/claybot/texts"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// pausedRun is the run of an agent that waits for answers, and the first question
// that has none; ok is false where there is no such question.
func (s *AgentSystem) pausedRun(ctx context.Context, id claybot.AgentID) (run claybot.Run, q claybot.Question, ok bool, err error) {
	e, err := s.Index.IndexedAgentByID(ctx, id)
	if err != nil || e.Run == "" {
		return run, q, false, storage.Ignore(err, storage.ErrNotFound)
	}
	if run, err = s.Runs.Run(ctx, e.Run); err != nil {
		return run, q, false, storage.Ignore(err, storage.ErrNotFound)
	}
	if run.State != claybot.RunAwaiting || run.Cancel != "" || run.Awaiting == nil {
		return run, q, false, nil
	}
	for _, q := range run.Awaiting.Questions {
		a, err := s.answerOf(ctx, q)
		if err != nil {
			return run, q, false, err
		}
		if a == nil && claybot.Now() < q.Expires {
			return run, q, true, nil
		}
	}
	return run, q, false, nil
}

// tellPending adds to a message that will wait behind an open question what it waits
// for. The notice commits together with the message, and its id makes it one for each
// question. A message that cannot be looked at is taken in without a notice: the next
// one has it.
func (s *AgentSystem) tellPending(ctx context.Context, agent claybot.Agent, p *storage.Posting) {
	if p.Skip != "" || p.Message.Type != claybot.MessageUser || !agent.Descriptor.Foreground() {
		return
	}
	_, q, ok, err := s.pausedRun(ctx, agent.ID)
	if err != nil {
		s.Log.Warn("cannot look for a pending question", "agent", agent.ID, "message", p.Message.ID, "err", err)
		return
	}
	if !ok {
		return
	}
	out := s.deliverer.Compose(replyTo(agent, p.Message, claybot.OutgoingNotice), textPending(q, agent.Descriptor.Connector, s.mayAnswer(q, agent.Descriptor, agent.Descriptor.OwnerID())))
	for i := range out {
		out[i].ID = fmt.Sprintf("pending/%s/%d", q.ID, i+1)
	}
	p.Replies = append(p.Replies, out...)
}

// doing says what an agent does now, and what its person can do about it.
func (s *AgentSystem) doing(ctx context.Context, agent claybot.Agent) string {
	if since, ok := s.unusableSince(ctx, agent.Descriptor); ok {
		return texts.Unusable(since, s.zone())
	}
	run, q, asks, err := s.pausedRun(ctx, agent.ID)
	switch {
	case s.boxes.Busy(agent.ID), err == nil && run.State == claybot.RunRunning:
		return "I am at work on something; /stop ends it."
	case err != nil:
		return "I cannot look at what I am doing right now."
	case asks && s.mayAnswer(q, agent.Descriptor, agent.Descriptor.OwnerID()) && !q.Explicit:
		return "I am waiting for your answer to: " + texts.Headline(q) + "\n/stop ends it."
	case asks && s.mayAnswer(q, agent.Descriptor, agent.Descriptor.OwnerID()):
		return "I am waiting for your decision: " + texts.Headline(q) + "\n" + texts.HowToAnswer(q, agent.Descriptor.Connector) + " /stop ends it."
	case run.State == claybot.RunAwaiting && run.Awaiting != nil:
		return "I am waiting for " + texts.WaitsFor(run, s.zone()) + ".\n/stop ends it."
	}
	waiting, err := s.Inbox.Waiting(ctx, agent.ID, maxInboxView)
	switch {
	case err != nil || len(waiting) == 0:
		return texts.Idle
	case len(waiting) == 1:
		return "I am about to take up your message."
	}
	return fmt.Sprintf("I am about to take up %d messages.", len(waiting))
}

// textPending tells a person who writes behind an open question what their message
// waits for. own: they can answer it themselves.
func textPending(q claybot.Question, connector string, own bool) string {
	const rest = " /stop ends what I was doing, and I take up your message at once."
	if own {
		return "Your message waits, because I need an answer first: **" + texts.Headline(q) + "**\n\n" + texts.HowToAnswer(q, connector) + rest
	}
	what := texts.WaitsFor(claybot.Run{Awaiting: &claybot.Awaiting{Questions: []claybot.Question{q}}}, nil)
	if _, budget := runs.BudgetAskOf(q); budget {
		return "Your message waits for " + what + ". I take it up as soon as that is decided." + rest
	}
	return "Your message waits, because what you asked for before waits for " + what + "." + rest
}
