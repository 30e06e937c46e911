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

// compactTime bounds a compaction that a person asked for.
const compactTime = 10 * time.Minute

// compact compacts the conversation of an agent, because its person asked for
// it. The message ends with the answer; no run begins.
func (s *Worker) compact(ctx context.Context, box *inbox.AgentInbox, agent claybot.Agent, profile profiles.Profile) error {
	m := loud(box.Waiting)
	var took storage.Settlement
	text, err := s.shortened(ctx, box, agent, profile, &took)
	if err != nil {
		return err
	}
	out, err := s.Leases.Settle(ctx, box.Lease, m.ID, storage.Settlement{
		Reason: "command", Wait: profile.Policy.Wait(), Usage: took.Usage, Calls: took.Calls, End: took.End,
		Replies: s.Deliverer.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingCommand), text),
	})
	if err != nil {
		return err
	}
	s.Deliverer.Hand(out)
	s.Waiters.Ended(inbox.Result{Text: text}, m.ID)
	return nil
}

// shortened lets the engine fold what the agent remembers, says what came of it,
// and adds to took what that took, and where the history ends. Only a store that fails is an error.
func (s *Worker) shortened(life context.Context, box *inbox.AgentInbox, agent claybot.Agent, profile profiles.Profile, took *storage.Settlement) (text string, err error) {
	keeper, ok := s.keeper(profile)
	if !ok {
		return texts.NotCompacted, nil
	}
	ctx, cancel := context.WithTimeout(life, compactTime)
	defer cancel()
	history, err := s.Histories.OpenHistory(ctx, box.Lease)
	if err != nil {
		return "", err
	}
	defer history.Close() // its writes are synced; closing has nothing to report
	defer func() {        // what breaks an engine must not block the agent for good
		if x := recover(); x != nil {
			s.Meter.Panicked("engine")
			s.Log.Error("engine panicked during compaction", "agent", agent.ID, "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
			text, err = texts.CompactFailed, nil
		}
	}()
	out := leftOut(history.Records())
	hidden := func(r claybot.Record) bool { return r.Aside || isCharge(r) || r.MessageID != "" && out[r.MessageID] }
	turn := &runs.Turn{
		Agent: agent, History: visible(history.Records(), hidden),
		Run:   claybot.Run{ID: claybot.RunID(runs.NewID()), Agent: agent.ID},
		Usage: func(u claybot.Usage) { took.Usage = took.Usage.Add(u) },
		Lost: func(model string, u claybot.Usage) {
			took.Usage = took.Usage.Add(u)
			took.Calls = append(took.Calls, storage.ModelCall{Model: model, Usage: u})
		},
	}
	before := len(turn.History)
	kept := -1
	for r, err := range keeper.Compact(ctx, turn) {
		if err != nil {
			s.Log.Warn("compaction failed", "agent", agent.ID, "err", err)
			return texts.CompactFailed, context.Cause(life)
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
		return texts.NotCompacted, nil
	}
	took.End = storage.EndOf(ctx, history)
	return texts.Compacted(before-kept, kept), nil
}

// ContextSize answers /context.
func (s *Worker) ContextSize(ctx context.Context, agent claybot.Agent) (string, error) {
	keeper, ok := s.keeper(s.Profiles.Of(agent.ID, agent.Descriptor))
	if !ok {
		return texts.NoContext, nil
	}
	records, err := s.Histories.Records(ctx, agent.ID)
	if err != nil {
		return "", fmt.Errorf("read the history: %w", err)
	}
	size := keeper.Measure(&runs.Turn{
		Agent: agent, Run: claybot.Run{Agent: agent.ID},
		History: visible(records, func(r claybot.Record) bool { return r.Aside }),
	})
	size.Last = agent.State.Context
	return texts.Context(size), nil
}

// abandon ends what waits for an agent whose files cannot be read: its run
// fails, as a notice to the waiting person.
func (s *Worker) abandon(ctx context.Context, box *inbox.AgentInbox, cause, doom error) error {
	d, err := s.Index.IndexedDescriptor(ctx, box.Lease.Agent)
	if err != nil {
		return errors.Join(cause, err)
	}
	agent := claybot.Agent{ID: box.Lease.Agent, Descriptor: d}
	return s.passWith(ctx, box, agent, s.Profiles.Of(agent.ID, d), doom)
}
