package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Begin implements storage.Runs. It rejects an empty batch without an unfinished run,
// and a batch with a message that is not waiting.
func (db runs) Begin(ctx context.Context, l storage.Lease, id claybot.RunID, batch []claybot.MessageID, with storage.Beginning) (claybot.Run, error) {
	run, err := write(ctx, db, func(c *Conn) (claybot.Run, error) {
		b, asks, err := newBatch(l.Agent, batch)
		if err != nil {
			return claybot.Run{}, err
		}
		taken := false
		a, err := leasedWith(c, l, append(asks, askTaken(id, &taken))...)
		if err != nil {
			return claybot.Run{}, err
		}
		if err := b.check(); err != nil {
			return claybot.Run{}, err
		}
		if a.run != "" {
			return resumeRun(c, a, b)
		}
		switch {
		case b.run != "":
			return startRun(c, a, b.run, b, with)
		case taken && len(batch) > 0:
			return claybot.Run{}, fmt.Errorf("run %s exists already", id)
		}
		return startRun(c, a, id, b, with)
	})
	return result(run, err, "begin run")
}

// askTaken asks whether a run has an id or a message has reserved it.
func askTaken(id claybot.RunID, taken *bool) Ask {
	return Ask{
		Query: "SELECT 1 FROM runs WHERE id = ?1 UNION ALL SELECT 1 FROM messages WHERE reserved = ?1", Args: []any{id},
		Row: func(Row) error { *taken = true; return nil },
	}
}

// startRun starts a run with a new id.
func startRun(c *Conn, a *inboxRow, id claybot.RunID, b *batch, with storage.Beginning) (claybot.Run, error) {
	if len(b.ids) == 0 {
		return claybot.Run{}, fmt.Errorf("agent %s has no unfinished run and the batch is empty: %w", a.id, storage.ErrNotFound)
	}
	run := claybot.Run{ID: id, Agent: a.id, State: claybot.RunRunning, Attempts: 1, Messages: b.ids, Engine: with.Engine, Started: claybot.Time(c.now())}
	begun, err := json.Marshal(outcome{Engine: with.Engine})
	if err != nil {
		return claybot.Run{}, err
	}
	err = c.do("INSERT INTO runs (id, agent, state, attempts, started, outcome, messages, last_seq) VALUES (?, ?, ?, 1, ?, ?, ?, 1)",
		id, a.id, run.State, run.Started, begun, b.list)
	if err != nil {
		return claybot.Run{}, err
	}
	c.tally.run("", run.State)
	a.run = id
	if err := bindMessages(c, a, id, b); err != nil {
		return claybot.Run{}, err
	}
	told := map[string]any{"agent": a.id, "messages": b.ids, "attempt": run.Attempts}
	if with.Engine != "" {
		told["engine"] = with.Engine
	}
	if with.Traceparent != "" {
		told["traceparent"] = with.Traceparent
	}
	if waited := c.now() - b.arrived(); waited > 0 {
		told["waitedMs"] = waited
	}
	err = addEvents(c, &run, event(claybot.EventRunStarted, told))
	return run, err
}

func resumeRun(c *Conn, a *inboxRow, b *batch) (claybot.Run, error) {
	run, err := loadRun(c, a.run)
	if err != nil {
		return claybot.Run{}, err
	}
	reason, err := whyResumed(c, run)
	if err != nil {
		return claybot.Run{}, err
	}
	if run.State != claybot.RunRunning {
		if err := checkMove(run.State, claybot.RunRunning); err != nil {
			return claybot.Run{}, err
		}
		c.tally.run(run.State, claybot.RunRunning)
		run.State = claybot.RunRunning
	}
	if run.Awaiting != nil && len(run.Awaiting.Questions) > 0 {
		if err := closeQuestions(c, run.ID); err != nil {
			return claybot.Run{}, err
		}
	}
	run.Attempts++
	run.Awaiting, a.resumeAt = nil, never
	err = c.do("UPDATE runs SET state = ?, attempts = ?, awaiting = NULL WHERE id = ?", run.State, run.Attempts, run.ID)
	if err != nil {
		return claybot.Run{}, err
	}
	data := map[string]any{"attempt": run.Attempts, "reason": reason}
	if len(b.ids) > 0 {
		data["messages"] = b.ids
	}
	if err := joinRun(c, a, &run, b); err != nil {
		return claybot.Run{}, err
	}
	return run, appendEvents(c, &run, event(claybot.EventRunResumed, data))
}

// joinRun adds waiting messages to an existing run, see bindMessages.
func joinRun(c *Conn, a *inboxRow, run *claybot.Run, b *batch) error {
	run.Messages = append(run.Messages, b.ids...)
	ids, err := json.Marshal(run.Messages)
	if err != nil {
		return err
	}
	if err := c.do("UPDATE runs SET messages = ? WHERE id = ?", ids, run.ID); err != nil {
		return err
	}
	return bindMessages(c, a, run.ID, b)
}

// bindMessages assigns waiting messages, and the run ids that they reserved, to a run
// and saves the inbox.
func bindMessages(c *Conn, a *inboxRow, run claybot.RunID, b *batch) error {
	if b.bound {
		return saveInbox(c, a)
	}
	c.journal.joined(run, b.reserved)
	for _, m := range b.ids {
		if err := c.do("UPDATE messages SET run = ? WHERE id = ?", run, m); err != nil {
			return err
		}
	}
	reduceWaitingTo(c, a, len(b.ids), b.next)
	return saveInbox(c, a)
}

// Take implements storage.Leases. accept may be nil; other writes wait while it runs, it
// may be called twice for one message, and it must not use the store.
func (db leases) Take(ctx context.Context, l storage.Lease, id claybot.RunID, limit int, accept func(claybot.AgentMessage) bool) ([]claybot.AgentMessage, error) {
	taken, err := write(ctx, db, func(c *Conn) ([]claybot.AgentMessage, error) {
		a, run, err := runningRun(c, l, id)
		if err != nil {
			return nil, err
		}
		if limit <= 0 || a.dueAt == never || a.dueAt > c.now() {
			return nil, nil
		}
		waiting, err := db.waitingMessages(c, a, limit)
		if err != nil {
			return nil, err
		}
		ids := make([]claybot.MessageID, 0, len(waiting))
		for i, m := range waiting {
			if m.Type == claybot.MessageReset || accept != nil && !accept(m) {
				waiting = waiting[:i]
				break
			}
			ids = append(ids, m.ID)
		}
		if len(ids) == 0 {
			return nil, saveInbox(c, a) // damaged messages may have been ended
		}
		b, err := loadBatch(c, a.id, ids)
		if err != nil {
			return nil, err
		}
		if err := joinRun(c, a, &run, b); err != nil {
			return nil, err
		}
		return waiting, appendEvents(c, &run, event(claybot.EventMessagesInjected, map[string]any{"messages": ids}))
	})
	return result(taken, err, "take messages into run %s", id)
}

// runningRun loads the inbox and the unfinished run of a lease's agent. It rejects any
// other run.
func runningRun(c *Conn, l storage.Lease, id claybot.RunID) (*inboxRow, claybot.Run, error) {
	return runningRunOf(c, &inboxRow{id: l.Agent}, l, id)
}

// runningRunOf is runningRun into a, with additional queries. Their results are valid only
// without an error.
func runningRunOf(c *Conn, a *inboxRow, l storage.Lease, id claybot.RunID, asks ...Ask) (*inboxRow, claybot.Run, error) {
	var loaded loadedRun
	err := leasedInto(c, a, l, append([]Ask{loaded.ask(id)}, asks...)...)
	if err != nil {
		return nil, claybot.Run{}, err
	}
	run, err := loaded.get(id)
	switch {
	case err != nil:
		return nil, claybot.Run{}, err
	case run.Agent != a.id:
		return nil, claybot.Run{}, fmt.Errorf("run %s belongs to another agent: %w", id, storage.ErrNotFound)
	case run.State.Ended():
		return nil, claybot.Run{}, fmt.Errorf("run %s is %s already", id, run.State)
	}
	return a, run, nil
}

// Append implements storage.Runs. It rejects terminal events: only Finish ends a run.
func (db runs) Append(ctx context.Context, l storage.Lease, id claybot.RunID, progress bool, ev ...claybot.Event) error {
	err := db.update(ctx, func(c *Conn) error {
		_, run, err := runningRun(c, l, id)
		if err != nil {
			return err
		}
		if err := checkOpen(ev); err != nil {
			return err
		}
		if progress {
			if err := c.do("UPDATE runs SET attempts = 0 WHERE id = ?", id); err != nil {
				return err
			}
		}
		return appendEvents(c, &run, ev...)
	})
	return failed(err, "append to run %s", id)
}

// event returns an event of the store itself.
func event(t claybot.EventType, data map[string]any) claybot.Event {
	b, err := json.Marshal(data)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return claybot.Event{Type: t, Data: b}
}

// appendEvents adds events after run.LastSeq and advances it, see addEvents.
func appendEvents(c *Conn, run *claybot.Run, ev ...claybot.Event) error {
	if len(ev) == 0 {
		return nil
	}
	if err := addEvents(c, run, ev...); err != nil {
		return err
	}
	return c.do("UPDATE runs SET last_seq = ? WHERE id = ?", run.LastSeq, run.ID)
}

// addEvents adds events after run.LastSeq and advances it, but leaves the run's row to
// the caller. It queues the events for sinks; watchers are notified after the commit.
func addEvents(c *Conn, run *claybot.Run, ev ...claybot.Event) error {
	if len(ev) == 0 {
		return nil
	}
	known := run.LastSeq
	for _, e := range ev {
		run.LastSeq++
		e.Run, e.Seq = run.ID, run.LastSeq
		if e.V == 0 {
			e.V = 1
		}
		if e.At == 0 {
			e.At = claybot.Time(c.now())
		}
		err := c.do("INSERT INTO events (run, seq, v, type, at, data) VALUES (?, ?, ?, ?, ?, ?)",
			run.ID, run.LastSeq, e.V, e.Type, e.At, text(string(e.Data)))
		if err != nil {
			return err
		}
		c.journal.commit.Events = append(c.journal.commit.Events, e)
	}
	first := c.journal.commit.Events[len(c.journal.commit.Events)-len(ev)].At
	return oweSinks(c, run.ID, known, first)
}

func (db runs) SaveDraft(ctx context.Context, l storage.Lease, id claybot.RunID, d claybot.Draft) error {
	err := db.update(ctx, func(c *Conn) error {
		if _, _, err := runningRun(c, l, id); err != nil {
			return err
		}
		b, err := json.Marshal(d)
		if err != nil {
			return err
		}
		return c.do("UPDATE runs SET draft = ? WHERE id = ?", b, id)
	})
	return failed(err, "save draft of run %s", id)
}

// Finish implements storage.Runs. The state must be terminal and the last event the one
// of that state. A run with a cancel request may fail or be canceled, but not succeed.
// Finish ignores posts with known ids; it returns the replies of the others after those
// of the run.
func (db runs) Finish(ctx context.Context, l storage.Lease, id claybot.RunID, o storage.Outcome) ([]claybot.Outgoing, error) {
	out, err := write(ctx, db, func(c *Conn) ([][]claybot.Outgoing, error) {
		p := &payer{recorded: len(o.Records.Records) > 0}
		q := queueing{out: o.Replies, claim: o.Sending}
		asks := q.asks(c, len(o.Posts) == 0)
		a, run, err := runningRunOf(c, &inboxRow{id: l.Agent, payer: p}, l, id, asks...)
		if err != nil {
			return nil, err
		}
		if err := addDeferred(c, a, o.Records); err != nil {
			return nil, err
		}
		if err := checkOutcome(run.State, o); err != nil {
			return nil, err
		}
		if o.State == claybot.RunSucceeded && run.Cancel != "" {
			return nil, fmt.Errorf("asked by %s: %w", run.Cancel, storage.ErrCanceled)
		}
		posts, err := reachablePosts(c, o.Posts)
		if err != nil {
			return nil, err
		}
		return finishRun(c, a, &run, o, posts, &q)
	})
	return result(slices.Concat(out...), err, "finish run %s", id)
}

// finishRun ends a run and returns what it and each of its posts added to the outbox, see
// enqueue.
func finishRun(c *Conn, a *inboxRow, run *claybot.Run, o storage.Outcome, posts []storage.Posting, q *queueing) (out [][]claybot.Outgoing, err error) {
	at := c.now()
	if err := errors.Join(endRun(c, run, o, at), setCheckpoint(c, o.End)); err != nil {
		return nil, err
	}
	if a.usage, err = chargeAgentTo(c, *a.payer, a.id, o.Usage, o.Calls, 1, at); err != nil {
		return nil, err
	}
	c.meter.took(at, storage.LatencyRun, at-int64(run.Started))
	a.run, a.resumeAt = "", never
	a.free(o.Wait, at)
	if err := saveInbox(c, a); err != nil {
		return nil, err
	}
	added, err := q.enqueue(c, at, string(run.ID))
	if err != nil {
		return nil, err
	}
	out = append(out, added)
	for _, p := range posts {
		posted, err := postMessage(c, p)
		if err != nil {
			return nil, fmt.Errorf("post %s: %w", p.Message.ID, err)
		}
		out = append(out, posted.Outbox)
	}
	return out, nil
}

// reachablePosts drops the answers to deleted agents and rejects all other posts to them.
func reachablePosts(c *Conn, posts []storage.Posting) ([]storage.Posting, error) {
	kept := make([]storage.Posting, 0, len(posts))
	for _, p := range posts {
		_, err := loadInbox(c, p.To)
		switch {
		case errors.Is(err, storage.ErrNotFound) && p.Message.Type == claybot.MessageAnswer:
		case err != nil:
			return nil, fmt.Errorf("post %s: %w", p.Message.ID, err)
		default:
			kept = append(kept, p)
		}
	}
	return kept, nil
}

// endRun records the end of a run.
func endRun(c *Conn, run *claybot.Run, o storage.Outcome, at int64) error {
	if err := addEvents(c, run, o.Events...); err != nil {
		return err
	}
	b, err := json.Marshal(outcome{Output: o.Output, Usage: o.Usage, Error: o.Error, Engine: o.Engine, Result: o.Result, Undo: o.Undo, UndoOf: o.UndoOf, Feedback: run.Feedback, Silence: o.Silence})
	if err != nil {
		return err
	}
	err = c.do("UPDATE runs SET state = ?, outcome = ?, awaiting = NULL, ended = ?, last_seq = ? WHERE id = ?", o.State, b, at, run.LastSeq, run.ID)
	if err != nil {
		return err
	}
	if run.State == claybot.RunAwaiting {
		if err := closeQuestions(c, run.ID); err != nil {
			return err
		}
	}
	c.tally.run(run.State, o.State)
	return settleLedger(c, run, o, at)
}
