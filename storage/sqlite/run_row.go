package sqlite

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
func decodeRun(r row) (claybot.Run, error) {
	run := claybot.Run{
		ID: claybot.RunID(r.str(0)), Agent: claybot.AgentID(r.str(1)), State: claybot.RunState(r.str(2)), LastSeq: r.int(3),
		Attempts: int(r.int(4)), Cancel: r.str(5), Started: claybot.Time(r.int(9)), Ended: claybot.Time(r.int(10)),
	}
	var o outcome
	err := errors.Join(unmarshal(r.str(7), &run.Messages), unmarshal(r.str(8), &o))
	if !r.null(6) {
		err = errors.Join(err, unmarshal(r.str(6), &run.Draft))
	}
	if !r.null(11) {
		err = errors.Join(err, unmarshal(r.str(11), &run.Awaiting))
	}
	run.Output, run.Usage, run.Error = o.Output, o.Usage, o.Error
	run.Engine, run.Result, run.Undo, run.UndoOf = o.Engine, o.Result, o.Undo, o.UndoOf
	return run, err
}

func (c *conn) loadRun(id claybot.RunID) (run claybot.Run, err error) {
	err = need(c.first("SELECT "+runColumns+" FROM runs WHERE id = ?",
		func(r row) (err error) { run, err = decodeRun(r); return err }, id))
	if err != nil {
		return claybot.Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	return run, nil
}
