package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/texts"
)

// begunFlows finds and stops the flows that messages of a chat have started.
type begunFlows struct {
	index    Index
	runs     storage.RunReader
	receipts storage.Receipts
	people   *people.Directory
	society  *subagents.Supervisor
}

// flowPage is how many agents of flows are read at once.
const flowPage = 200

// startedIn reports whether a message that started a flow was written in a chat.
func startedIn(m claybot.AgentMessage, d claybot.Descriptor) bool {
	return m.Flow != nil && m.Flow.Connector == d.Connector && m.Flow.ChannelID == d.ChannelID
}

// of returns the agents of flows at work that a message of a chat started which the sender of m wrote
// or, where that is an operator, any person or program.
func (b begunFlows) of(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) (all []storage.IndexEntry, err error) {
	if !d.Foreground() {
		return nil, nil
	}
	owners, operator := b.people.Identities(m.Speaker(d)), b.people.IsOperator(m.Speaker(d))
	if operator {
		owners = []string{""}
	}
	for _, owner := range owners {
		for q := (storage.AgentQuery{Type: claybot.AgentFlow, Owner: owner, Busy: true, Limit: flowPage}); ; {
			page, err := b.index.AgentPage(ctx, q)
			if err != nil {
				return nil, fmt.Errorf("list the flows at work: %w", err)
			}
			for _, e := range page {
				began, err := b.began(ctx, e)
				if err != nil {
					return nil, err
				}
				if startedIn(began, d) && (operator || !began.From.Program) {
					all = append(all, e)
				}
			}
			if len(page) < q.Limit {
				break
			}
			q.After = page[len(page)-1].ID
		}
	}
	return all, nil
}

// began returns the message that started the run of a flow's agent or, where it has none, the newest one that
// waits for it. It is zero where the run is stopped already.
func (b begunFlows) began(ctx context.Context, e storage.IndexEntry) (m claybot.AgentMessage, err error) {
	var r storage.Receipt
	if e.Run == "" {
		r, err = b.receipts.LastReceipt(ctx, e.ID)
		return r.Message, unlessGone(err)
	}
	run, err := b.runs.Run(ctx, e.Run)
	if err == nil && run.Cancel != "" && e.Waiting == 0 { // it ends soon
		return m, nil
	}
	if err != nil || len(run.Messages) == 0 {
		return m, unlessGone(err)
	}
	r, err = b.receipts.Receipt(ctx, run.Messages[0])
	return r.Message, unlessGone(err)
}

// stop ends what they work at, with their subagents. It is idempotent.
func (b begunFlows) stop(ctx context.Context, all []storage.IndexEntry) {
	for _, e := range all {
		b.society.Halt(ctx, e, "user")
		b.society.HaltBelow(ctx, e.ID, "user")
	}
}

// prepareStop adds the answer to a /stop, and stops the flows that were started from its chat: before
// the answer commits, so that after a crash in between the /stop is posted again.
func (x *preparer) prepareStop(ctx context.Context, agent claybot.Agent, p *storage.Posting) error {
	m, v := p.Message, texts.Of(ctx)
	say := func(text string) []claybot.Outgoing {
		return x.sender.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingCommand), text)
	}
	p.Replies = say(v.In(texts.Stopped))
	if m.Run != "" { // by a reaction to a message of that run
		return nil
	}
	flows, err := x.stopFlows(ctx, agent, m)
	switch {
	case err != nil:
		return err
	case flows > 0 && stopsAll(m):
		p.Replies = say(v.In(texts.Stopped) + " " + v.StoppedFlows(flows))
		p.IfIdle = p.Replies
	case flows > 0:
		p.Replies = say(v.In(texts.Stopped) + " " + v.StoppedFlows(flows))
		p.IfIdle = say(v.StoppedFlows(flows))
	case !x.subagents.BusyBelow(ctx, agent.ID):
		p.IfIdle = say(v.In(texts.NothingRuns))
	case stopsAll(m):
		p.IfIdle = p.Replies
	default:
		p.IfIdle = say(v.In(texts.OnlyHelpers))
	}
	return nil
}

// stopFlows stops the flows that a /stop concerns, and returns how many. One that is redelivered stops
// none that began since.
func (x *preparer) stopFlows(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (int, error) {
	_, err := x.flows.receipts.Receipt(ctx, m.ID)
	if !errors.Is(err, storage.ErrNotFound) {
		return 0, err
	}
	all, err := x.flows.of(ctx, agent.Descriptor, m)
	if err == nil {
		x.flows.stop(ctx, all)
	}
	return len(all), err
}

// stopsAll reports whether a message asks to stop an agent and all below it.
func stopsAll(m claybot.AgentMessage) bool {
	return m.Type == claybot.MessageCancel && strings.EqualFold(strings.TrimSpace(m.Text), "all")
}
