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
func (db runs) Suspend(ctx context.Context, l storage.Lease, id claybot.RunID, p storage.Pause) error {
	_, err := write(ctx, db, func(c *Conn) (struct{}, error) {
		a, run, err := runningRun(c, l, id)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, suspendRun(c, a, &run, p)
	})
	if err != nil {
		return fmt.Errorf("suspend run %s: %w", id, err)
	}
	return nil
}

func suspendRun(c *Conn, a *inboxRow, run *claybot.Run, p storage.Pause) error {
	if err := checkMove(run.State, claybot.RunAwaiting); err != nil {
		return err
	}
	if p.Awaiting.Until <= 0 {
		return errNoUntil
	}
	if err := checkOpen(p.Events); err != nil {
		return err
	}
	awaiting, err := json.Marshal(p.Awaiting)
	if err != nil {
		return err
	}
	all, err := isAnswered(c, a.id, run.ID, p.Awaiting)
	if err != nil {
		return err
	}
	if err := errors.Join(appendEvents(c, run, p.Events...), setCheckpoint(c, p.End)); err != nil {
		return err
	}
	so, err := json.Marshal(outcome{Usage: p.Usage, Engine: p.Engine, Result: p.Result})
	if err != nil {
		return err
	}
	err = c.do("UPDATE runs SET state = ?, awaiting = ?, outcome = ?, attempts = 0 WHERE id = ?",
		claybot.RunAwaiting, awaiting, so, run.ID)
	if err != nil {
		return err
	}
	if err := openQuestions(c, *run, p.Awaiting.Questions); err != nil {
		return err
	}
	if err := enqueueEarly(c, run, p.Replies); err != nil {
		return err
	}
	c.tally.run(run.State, claybot.RunAwaiting)
	a.resumeAt = int64(p.Awaiting.Until)
	if all || run.Cancel != "" {
		a.resumeAt = min(a.resumeAt, c.now())
	}
	a.free(p.Wait, c.now())
	return saveInbox(c, a)
}

// enqueueEarly puts what a run says before its end into the outbox. Its draft is none any
// more when it is among that.
func enqueueEarly(c *Conn, run *claybot.Run, replies []claybot.Outgoing) error {
	if len(replies) == 0 {
		return nil
	}
	if _, err := enqueue(c, c.now(), string(run.ID), replies); err != nil {
		return err
	}
	if run.Draft == nil || !slices.ContainsFunc(replies, func(o claybot.Outgoing) bool { return o.ID == run.Draft.Outgoing }) {
		return nil
	}
	err := c.do("UPDATE runs SET draft = NULL WHERE id = ?", run.ID)
	return err
}

// whyResumed is why an unfinished run goes on.
func whyResumed(c *Conn, run claybot.Run) (string, error) {
	if run.Awaiting == nil {
		return resumedRestart, nil
	}
	if run.Cancel != "" {
		return resumedCancel, nil
	}
	all, err := isAnswered(c, run.Agent, run.ID, *run.Awaiting)
	switch {
	case err != nil:
		return "", err
	case all:
		return resumedAnswers, nil
	case c.now() >= int64(run.Awaiting.Until):
		return resumedTimeout, nil
	}
	return resumedRestart, nil
}
