package questions

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// PausedRun returns the run of an agent that waits for answers and the first question
// without one; ok is false where there is none.
func (s *Questions) PausedRun(ctx context.Context, id claybot.AgentID) (run claybot.Run, q claybot.Question, ok bool, err error) {
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

// TellPending adds a notice to a message that has to wait behind an open question. It
// commits together with the message, and its id makes it one for each
// question. A message that cannot be looked at is taken in without a notice: the next
// one has it.
func (s *Questions) TellPending(ctx context.Context, agent claybot.Agent, p *storage.Posting) {
	if p.Skip != "" || p.Message.Type != claybot.MessageUser || !agent.Descriptor.Foreground() {
		return
	}
	_, q, ok, err := s.PausedRun(ctx, agent.ID)
	if err != nil {
		s.Log.Warn("failed to look up the pending question", "agent", agent.ID, "message", p.Message.ID, "err", err)
		return
	}
	if !ok {
		return
	}
	out := s.Sender.Compose(delivery.ReplyTo(agent, p.Message, claybot.OutgoingNotice), texts.Pending(q, agent.Descriptor.Connector, s.MayAnswer(q, agent.Descriptor, agent.Descriptor.OwnerID())))
	for i := range out {
		out[i].ID = fmt.Sprintf("pending/%s/%d", q.ID, i+1)
	}
	p.Replies = append(p.Replies, out...)
}
