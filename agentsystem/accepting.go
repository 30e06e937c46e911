package agentsystem

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// An accepting notifies those who wait for a message of what became of it when it was stored.
type accepting struct {
	results   *results
	sender    *delivery.Deliverer
	people    *people.Directory
	connector func(name string) connectors.Connector
	most      func() int // see floods
	log       *slog.Logger
}

// accepted notifies all who wait for a message that it is durable.
func (a *accepting) accepted(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage, done storage.Posted) {
	a.log.Debug("message accepted", "agent", agent.ID, "connector", agent.Descriptor.Connector, "message", m.ID, "type", m.Type)
	a.people.Learn(ctx, agent.Descriptor, m)
	a.sender.Hand(done.Outbox)
	if len(done.Dropped) > 0 {
		a.results.reject(agent.ID, inbox.ErrReset, done.Dropped...)
	}
	if c, ok := a.connector(agent.Descriptor.Connector).(connectors.Accepter); ok && m.Type != claybot.MessageSystem {
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
		a.results.waiters.Ended(inbox.Result{}, m.ID)
		return
	case inbox.SkippedFull:
		if !m.From.Bot {
			a.notifyHourly(ctx, agent, m, "full/"+string(agent.ID), texts.Of(ctx).InboxFull())
		}
	case storage.SkippedBusy:
		a.notifyHourly(ctx, agent, m, "busy/"+string(agent.ID), texts.Of(ctx).FlowBusy(m.Flow.Name))
	case storage.SkippedFlowFull:
		a.notifyFull(ctx, agent, m)
	case inbox.SkippedFlood:
		a.notifyHourly(ctx, agent, m, "flood/"+a.people.Identities(m.Speaker(agent.Descriptor))[0], texts.Of(ctx).Flood(a.most()))
	}
	a.log.Info("message will not run", "agent", agent.ID, "connector", agent.Descriptor.Connector, "message", m.ID, "reason", done.Skipped)
	a.results.reject(agent.ID, inbox.ErrDropped, m.ID)
}

// notifyFull tells the person whose message started no run of a workflow, once an hour for each chat.
func (a *accepting) notifyFull(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) {
	if m.Firing != nil || m.From.Program {
		return // the ledger has it; a bot might answer
	}
	to := delivery.ReplyTo(agent, m, claybot.OutgoingNotice).Route
	chat := to.Connector + "/" + to.ChannelID // not Dest, which no command line takes
	key := fmt.Sprintf("flow-full/%s/%s/%s", m.Flow.Name, chat, m.Speaker(agent.Descriptor))
	a.notifyHourly(ctx, agent, m, key, texts.Of(ctx).FlowFull(m.Flow.Name))
}

// notifyHourly notifies the user, once an hour for each key, why a message will not run.
func (a *accepting) notifyHourly(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage, key, text string) {
	if m.Type != claybot.MessageUser && (m.Flow == nil || m.Nested()) {
		return // its sender is notified otherwise
	}
	out := a.sender.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingNotice), text)
	if len(out) == 0 {
		return // nothing is sent there
	}
	out[0].ID = fmt.Sprintf("%s/%d", key, m.At.Time().Unix()/3600) // the id makes it one an hour
	if _, err := a.sender.Send(ctx, out[0]); err != nil {
		a.log.Warn("failed to notify the user of a refused message", "reason", key, "agent", agent.ID, "err", err)
	}
}
