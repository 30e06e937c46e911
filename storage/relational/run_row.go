package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// outcome is the part of a run that its end fills in.
type outcome struct {
	Output string            `json:"output,omitempty"`
	Usage  claybot.Usage     `json:"usage"`
	Error  *claybot.RunError `json:"error,omitempty"`
	Engine string            `json:"engine,omitempty"`
	Result json.RawMessage   `json:"result,omitempty"`
	Undo   []claybot.Undo    `json:"undo,omitempty"`
	UndoOf claybot.RunID     `json:"undoOf,omitempty"`
	// Feedback can come before the end: what replaces an outcome keeps it.
	Feedback []claybot.Feedback `json:"feedback,omitempty"`
	Silence  string             `json:"silence,omitempty"`
}

// runColumns are what decodeRun reads, in its order.
const runColumns = "id, agent, state, last_seq, attempts, cancel, draft, messages, outcome, started, ended, awaiting"

// decodeRun reads a row of runColumns. When a part is damaged the others are
// right all the same.
func decodeRun(r Row) (claybot.Run, error) {
	run := claybot.Run{
		ID: claybot.RunID(r.Str(0)), Agent: claybot.AgentID(r.Str(1)), State: claybot.RunState(r.Str(2)), LastSeq: r.Int(3),
		Attempts: int(r.Int(4)), Cancel: r.Str(5), Started: claybot.Time(r.Int(9)), Ended: claybot.Time(r.Int(10)),
	}
	var o outcome
	err := errors.Join(unmarshal(r.Str(7), &run.Messages), unmarshal(r.Str(8), &o))
	if !r.Null(6) {
		err = errors.Join(err, unmarshal(r.Str(6), &run.Draft))
	}
	if !r.Null(11) {
		err = errors.Join(err, unmarshal(r.Str(11), &run.Awaiting))
	}
	run.Output, run.Usage, run.Error = o.Output, o.Usage, o.Error
	run.Engine, run.Result, run.Undo, run.UndoOf = o.Engine, o.Result, o.Undo, o.UndoOf
	run.Feedback, run.Silence = o.Feedback, o.Silence
	return run, err
}

func loadRun(c *Conn, id claybot.RunID) (run claybot.Run, err error) {
	var l loadedRun
	if err := c.ask(l.ask(id)); err != nil {
		return claybot.Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	return l.get(id)
}

// A loadedRun is a run that was asked for.
type loadedRun struct {
	run   claybot.Run
	found bool
	err   error // it is damaged
}

func (l *loadedRun) ask(id claybot.RunID) Ask {
	return Ask{
		Query: "SELECT " + runColumns + " FROM runs WHERE id = ?", Args: []any{id},
		Row: once(&l.found, func(r Row) error { l.run, l.err = decodeRun(r); return nil }),
	}
}

func (l *loadedRun) get(id claybot.RunID) (claybot.Run, error) {
	if err := need(l.found, l.err); err != nil {
		return claybot.Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	return l.run, nil
}

// terminal is the one event that ends a run in each state (EV-03).
var terminal = map[claybot.RunState]claybot.EventType{
	claybot.RunSucceeded: claybot.EventRunFinished,
	claybot.RunFailed:    claybot.EventRunFailed,
	claybot.RunCanceled:  claybot.EventRunCanceled,
}

// transitions are the ways of a run (RN-01). An ended one has none.
var transitions = map[claybot.RunState][]claybot.RunState{
	claybot.RunPending:  {claybot.RunRunning, claybot.RunCanceled},
	claybot.RunRunning:  {claybot.RunAwaiting, claybot.RunSucceeded, claybot.RunFailed, claybot.RunCanceled},
	claybot.RunAwaiting: {claybot.RunRunning, claybot.RunFailed, claybot.RunCanceled},
}

// checkMove refuses a transition that is not in the diagram.
func checkMove(from, to claybot.RunState) error {
	if !slices.Contains(transitions[from], to) {
		return fmt.Errorf("a run that is %s cannot become %q", from, to)
	}
	return nil
}

// checkOutcome refuses what is no way to end a run (RN-01, EV-03).
func checkOutcome(from claybot.RunState, o storage.Outcome) error {
	if err := checkMove(from, o.State); err != nil {
		return err
	}
	last, ok := terminal[o.State]
	if !ok {
		return fmt.Errorf("a run cannot end as %q", o.State)
	}
	for i, e := range o.Events {
		if e.Type.Ends() != (i == len(o.Events)-1) || e.Type.Ends() && e.Type != last {
			return fmt.Errorf("event %s at place %d of %d: want one %s, at the end", e.Type, i+1, len(o.Events), last)
		}
	}
	if len(o.Events) == 0 {
		return fmt.Errorf("no events: want one %s at the end", last)
	}
	return nil
}

// checkOpen refuses events that end a run: only Finish does.
func checkOpen(ev []claybot.Event) error {
	for _, e := range ev {
		if e.Type.Ends() {
			return fmt.Errorf("%s ends a run and is for Finish", e.Type)
		}
	}
	return nil
}

func (db runs) Run(ctx context.Context, id claybot.RunID) (claybot.Run, error) {
	var run claybot.Run
	err := db.read(ctx, func(c *Conn) (err error) {
		run, err = runOrReserved(c, id)
		return err
	})
	return run, err
}

// LastRun implements storage.RunReader. Reserved ids that never became a run do not
// count.
func (db runs) LastRun(ctx context.Context, agent claybot.AgentID) (claybot.Run, error) {
	var run claybot.Run
	err := db.read(ctx, func(c *Conn) error {
		var id claybot.RunID
		err := need(c.first("SELECT id FROM runs INDEXED BY runs_agent WHERE agent = ? AND started > 0 ORDER BY rowid DESC LIMIT 1",
			func(r Row) error { id = claybot.RunID(r.Str(0)); return nil }, agent))
		if err != nil {
			return err
		}
		run, err = loadRun(c, id)
		return err
	})
	return result(run, err, "last run of agent %s", agent)
}

const eventsQuery = "SELECT seq, v, type, at, data FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT 0+?"

// Events implements storage.RunReader. It reads in pages, so that a slow reader
// holds nothing.
func (db runs) Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error] {
	const shortest, longest = 200, 3200
	return func(yield func(claybot.Event, error) bool) {
		events := make([]claybot.Event, 0, 16)
		for page := shortest; ; page = min(2*page, longest) {
			events = events[:0]
			err := db.read(ctx, func(c *Conn) error {
				return c.each(eventsQuery, func(r Row) error {
					e := claybot.Event{Run: id, Seq: r.Int(0), V: int(r.Int(1)), Type: claybot.EventType(r.Str(2)), At: claybot.Time(r.Int(3))}
					if !r.Null(4) {
						e.Data = json.RawMessage(r.Str(4))
					}
					events = append(events, e)
					return nil
				}, id, after, page)
			})
			if err != nil {
				yield(claybot.Event{}, fmt.Errorf("events of run %s: %w", id, err))
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if len(events) < page {
				return
			}
		}
	}
}

// A batch is messages that wait and are to join a run.
type batch struct {
	ids      []claybot.MessageID
	list     []byte // the ids, as JSON
	waits    []waits
	next     front           // of what waits when they have joined
	reserved []claybot.RunID // by them
	run      claybot.RunID   // the first of these that is no run's yet
	bound    bool            // they were stored as the run's and never waited
}

// newBatch returns the messages of an agent that are to join a run, and what is to be
// asked for before check. No message may be in it twice.
func newBatch(agent claybot.AgentID, ids []claybot.MessageID) (b *batch, asks []Ask, err error) {
	b = &batch{ids: ids, waits: make([]waits, len(ids))}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return nil, nil, fmt.Errorf("message %s is twice in the batch", id)
		}
		asks = append(asks, b.waits[i].ask(agent, id))
	}
	if b.list, err = json.Marshal(ids); err != nil {
		return nil, nil, err
	}
	return b, append(asks, b.next.askBut(agent, b.list)), nil
}

// check refuses a batch with a message that does not wait.
func (b *batch) check() error {
	for i, w := range b.waits {
		if !w.found {
			return notWaiting(b.ids[i])
		}
		if w.reserved == "" {
			continue
		}
		b.reserved = append(b.reserved, w.reserved)
		if b.run == "" && !w.taken {
			b.run = w.reserved
		}
	}
	return nil
}

// arrived is when the oldest message was stored.
func (b *batch) arrived() int64 {
	at := b.waits[0].at
	for _, w := range b.waits[1:] {
		at = min(at, w.at)
	}
	return at
}

// loadBatch returns waiting messages of an agent that are to join a run.
func loadBatch(c *Conn, agent claybot.AgentID, ids []claybot.MessageID) (*batch, error) {
	b, asks, err := newBatch(agent, ids)
	if err != nil {
		return nil, err
	}
	if err := c.ask(asks...); err != nil {
		return nil, err
	}
	return b, b.check()
}
