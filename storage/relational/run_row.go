package relational

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
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
