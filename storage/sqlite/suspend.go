package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Why a run goes on, as its RunResumed event tells.
const (
	resumedCancel  = "cancel"
	resumedAnswers = "answers"
	resumedTimeout = "timeout"
	resumedRestart = "restart"
)

// errNoUntil refuses a pause that could last for ever.
var errNoUntil = errors.New("a pause needs a time at which it ends")

// Suspend implements storage.Runs. A pause without Until is refused, and so is
// one of a run that is paused already.
func (db *DB) Suspend(ctx context.Context, l storage.Lease, id claybot.RunID, p storage.Pause) error {
	_, err := write(ctx, db, func(c *conn) (struct{}, error) {
		a, run, err := c.running(l, id)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, c.suspend(a, &run, p)
	})
	if err != nil {
		return fmt.Errorf("suspend run %s: %w", id, err)
	}
	return nil
}

func (c *conn) suspend(a *inboxRow, run *claybot.Run, p storage.Pause) error {
	if run.State != claybot.RunRunning {
		return fmt.Errorf("run %s is %s already", run.ID, run.State)
	}
	if p.Awaiting.Until <= 0 {
		return errNoUntil
	}
	for _, e := range p.Events {
		if ends(e.Type) {
			return fmt.Errorf("%s ends a run and is for Finish", e.Type)
		}
	}
	awaiting, err := json.Marshal(p.Awaiting)
	if err != nil {
		return err
	}
	all, err := c.answered(a.id, run.ID, p.Awaiting)
	if err != nil {
		return err
	}
	if err := c.append(run, p.Events...); err != nil {
		return err
	}
	_, err = c.exec("UPDATE runs SET state = ?, awaiting = ?, attempts = 0 WHERE id = ?", claybot.RunAwaiting, awaiting, run.ID)
	if err != nil {
		return err
	}
	c.tally.run(run.State, claybot.RunAwaiting)
	a.resumeAt = int64(p.Awaiting.Until)
	if all || run.Cancel != "" {
		a.resumeAt = min(a.resumeAt, now())
	}
	a.free(p.Wait)
	return c.saveInbox(a)
}

// whyResumed is why an unfinished run goes on.
func (c *conn) whyResumed(run claybot.Run) (string, error) {
	if run.Awaiting == nil {
		return resumedRestart, nil
	}
	if run.Cancel != "" {
		return resumedCancel, nil
	}
	all, err := c.answered(run.Agent, run.ID, *run.Awaiting)
	switch {
	case err != nil:
		return "", err
	case all:
		return resumedAnswers, nil
	case now() >= int64(run.Awaiting.Until):
		return resumedTimeout, nil
	}
	return resumedRestart, nil
}
