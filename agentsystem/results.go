package agentsystem

import (
	"context"
	"log/slog"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
)

// storeTime bounds bookkeeping that must be tried although its own context is done.
const storeTime = 30 * time.Second

// The results of messages, for the calls of Invoke that wait for them.
type results struct {
	waiters inbox.Waiters
	store   storage.Inbox
	log     *slog.Logger
}

// reject settles the waiters of messages that will never run.
func (r *results) reject(agent claybot.AgentID, why error, ids ...claybot.MessageID) {
	r.end(agent, inbox.Result{Err: why}, ids...)
}

// end settles the waiters of messages that ended with a result.
func (r *results) end(agent claybot.AgentID, res inbox.Result, ids ...claybot.MessageID) {
	var doomed []claybot.MessageID
	if res.Err != nil {
		doomed = r.dropDoomed(agent, ids)
	}
	r.waiters.EndedWith(res, ids, doomed)
}

// dropDoomed drops the messages that must not run because a message of the same token did
// not succeed, and returns them. The caller settles their waiters after those of the
// message itself.
func (r *results) dropDoomed(agent claybot.AgentID, ids []claybot.MessageID) []claybot.MessageID {
	doomed := r.waiters.Beside(ids)
	if len(doomed) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	dropped, err := r.store.Drop(ctx, agent, "token_rejected", doomed...)
	if err != nil {
		r.log.Error("failed to drop messages of a rejected call", "agent", agent, "err", err)
	}
	return dropped
}

// resultOf returns how a message ended according to the store: the text is that of the
// run, shortened. ended is false while it has not.
func resultOf(r storage.Receipt) (res inbox.Result, ended bool) {
	switch {
	case r.Skipped != "":
		return inbox.Result{Err: errSkipped(r)}, true
	case r.Run == nil || !r.Run.State.Ended():
		return inbox.Result{}, false
	}
	res = inbox.Result{Run: r.Run.ID, State: r.Run.State, Text: r.Run.Output}
	switch {
	case r.Run.State == claybot.RunFailed && r.Run.Error != nil:
		res.Err = &inbox.RunFailedError{Run: r.Run.ID, Code: r.Run.Error.Code}
	case r.Run.State != claybot.RunSucceeded && r.Run.Cancel == "reset":
		res.Err = inbox.ErrReset
	case r.Run.State != claybot.RunSucceeded:
		res.Err = inbox.ErrCanceled
	}
	return res, true
}

// errSkipped returns why a message that no run took failed; nil where it succeeded.
func errSkipped(r storage.Receipt) error {
	switch r.Skipped {
	case "command", questions.SkippedAnswer, questions.SkippedUnfit, storage.SkippedEdit, storage.SkippedDeletion, storage.SkippedLate:
		return nil
	case "reset":
		if r.Message.Type == claybot.MessageReset {
			return nil
		}
		return inbox.ErrReset
	case inbox.SkippedStopped:
		return inbox.ErrCanceled
	}
	return inbox.ErrDropped
}
