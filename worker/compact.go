package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// compactTime is the time limit of a compaction that a user requested.
const compactTime = 10 * time.Minute

// compact compacts the conversation of an agent at the request of its user. The
// message ends with the reply; no run starts.
func (s *Worker) compact(ctx context.Context, box *inbox.AgentInbox, agent claybot.Agent, profile profiles.Profile) error {
	m := loud(box.Waiting)
	ctx = s.parts.People.Speaking(ctx, agent.Descriptor, m)
	var took storage.Settlement
	text, err := s.compacted(ctx, box, agent, profile, &took)
	if err != nil {
		return err
	}
	out, err := s.stores.Leases.Settle(ctx, box.Lease, m.ID, storage.Settlement{
		Reason: "command", Wait: profile.Policy.Wait(), Usage: took.Usage, Calls: took.Calls, End: took.End,
		Replies: s.parts.Deliverer.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingCommand), text),
	})
	if err != nil {
		return err
	}
	s.parts.Deliverer.Hand(out)
	s.parts.Waiters.Ended(inbox.Result{Text: text}, m.ID)
	return nil
}

// compactionCosts are the costs of a compaction, which belongs to no run.
type compactionCosts storage.Settlement

// Used implements runs.Costs.
func (c *compactionCosts) Used(u claybot.Usage) { c.Usage = c.Usage.Add(u) }

// Lost implements runs.Costs.
func (c *compactionCosts) Lost(model string, u claybot.Usage) {
	c.Used(u)
	c.Calls = append(c.Calls, storage.ModelCall{Model: model, Usage: u})
}

// compacted lets the engine compact the history, returns the reply, and adds the cost and the end
// of the history to took. It only returns errors of the store.
func (s *Worker) compacted(life context.Context, box *inbox.AgentInbox, agent claybot.Agent, profile profiles.Profile, took *storage.Settlement) (text string, err error) {
	compactor, ok := s.engines.compactor(profile.Engine)
	if !ok {
		return texts.Of(life).In(texts.NotCompacted), nil
	}
	ctx, cancel := context.WithTimeout(life, compactTime)
	defer cancel()
	history, err := s.stores.Histories.OpenHistory(ctx, box.Lease)
	if err != nil {
		return "", err
	}
	defer history.Close() // its writes are synced; closing has nothing to report
	defer func() {        // a panic of an engine must not block the agent
		if x := recover(); x != nil {
			s.meter.Panicked("engine")
			s.log.Error("engine panicked during compaction", "agent", agent.ID, "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
			text, err = texts.Of(ctx).In(texts.CompactFailed), nil
		}
	}()
	out := leftOut(history.Records())
	hidden := func(r *claybot.Record) bool { return r.Aside || out.has(r) }
	turn := &runs.Turn{
		Agent: agent, History: visible(history.Records(), hidden),
		Run:   claybot.Run{ID: claybot.RunID(runs.NewID()), Agent: agent.ID},
		Costs: (*compactionCosts)(took),
	}
	before := len(turn.History)
	kept := -1
	for r, err := range compactor.Compact(ctx, turn) {
		if err != nil {
			s.log.Warn("compaction failed", "agent", agent.ID, "err", err)
			return texts.Of(ctx).In(texts.CompactFailed), context.Cause(life)
		}
		if r.Tokens != nil {
			took.Calls = append(took.Calls, storage.ModelCall{Model: r.Model, Usage: *r.Tokens, MS: r.MS})
		}
		if r.Type == claybot.RecordSummary {
			kept = r.Keep
			r.Keep = keptInFile(history.Records(), hidden, r.Keep)
		}
		if r.At == 0 {
			r.At = claybot.Now()
		}
		if err := history.Append(ctx, r); err != nil {
			return "", err
		}
	}
	if kept < 0 {
		return texts.Of(ctx).In(texts.NotCompacted), nil
	}
	took.End = storage.EndOf(ctx, history)
	return texts.Of(ctx).Compacted(before-kept, kept), nil
}

// ContextSize answers /context.
func (s *Worker) ContextSize(ctx context.Context, agent claybot.Agent) (string, error) {
	compactor, ok := s.engines.compactor(s.parts.Profiles.Of(agent.ID, agent.Descriptor).Engine)
	if !ok {
		return texts.Of(ctx).In(texts.NoContext), nil
	}
	records, err := s.stores.Histories.Records(ctx, agent.ID)
	if err != nil {
		return "", fmt.Errorf("read the history: %w", err)
	}
	size := compactor.Measure(&runs.Turn{
		Agent: agent, Run: claybot.Run{Agent: agent.ID},
		History: visible(records, func(r *claybot.Record) bool { return r.Aside }),
	})
	size.Last = agent.State.Context
	return texts.Of(ctx).Context(size), nil
}

// abandon ends the pending work of an agent whose files cannot be read: its run
// fails, with a notice to the waiting user.
func (s *Worker) abandon(ctx context.Context, box *inbox.AgentInbox, cause, doom error) error {
	d, err := s.stores.Index.IndexedDescriptor(ctx, box.Lease.Agent)
	if err != nil {
		return errors.Join(cause, err)
	}
	agent := claybot.Agent{ID: box.Lease.Agent, Descriptor: d}
	return s.pass(ctx, box, agent, s.parts.Profiles.Of(agent.ID, d), doom)
}
