package relational

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// SwitchEngine implements storage.RunControl.
func (db runs) SwitchEngine(ctx context.Context, id claybot.RunID, from, to string, ev ...claybot.Event) error {
	err := db.update(ctx, func(c *Conn) error { return switchEngine(c, id, from, to, ev) })
	return failed(err, "switch the engine of run %s", id)
}

func switchEngine(c *Conn, id claybot.RunID, from, to string, ev []claybot.Event) error {
	if err := checkOpen(ev); err != nil {
		return err
	}
	run, err := loadRun(c, id)
	if err != nil {
		return err
	}
	// The agent is locked before the run is read again: it may go on at this moment.
	a, err := loadInbox(c, run.Agent)
	if err != nil {
		return err
	}
	if run, err = loadRun(c, id); err != nil {
		return err
	}
	if run.State != claybot.RunAwaiting || run.Cancel != "" || a.run != id || a.node != "" || run.Engine != from {
		return fmt.Errorf("it is %s: %w", run.State, storage.ErrState)
	}
	o, err := json.Marshal(outcome{Usage: run.Usage, Engine: to, Result: run.Result, Feedback: run.Feedback})
	if err != nil {
		return err
	}
	if err := appendEvents(c, &run, ev...); err != nil {
		return err
	}
	return c.do("UPDATE runs SET outcome = ? WHERE id = ?", o, id)
}
