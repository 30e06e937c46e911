package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// undoTime is how long side effects can be undone.
const undoTime = 30 * 24 * time.Hour

// An Undo undoes the side effects of runs.
type Undo struct {
	agents   *storage.Bounded
	index    storage.Index
	runs     Runs
	receipts storage.Receipts
	people   *people.Directory
	accept   func(context.Context, claybot.Agent, claybot.AgentMessage) (storage.Posted, error)
}

// A NoUndoError says in a sentence why a run is not undone.
type NoUndoError string

func (e NoUndoError) Error() string { return string(e) }

// UndoRun starts a run that undoes the side effects of another one, newest first. A run
// is undone once: the id of the message that asks for it derives from its own. An undo
// that began nothing, because it was stopped or not approved, may be tried again.
func (u *Undo) UndoRun(ctx context.Context, id claybot.RunID, by string) (Accepted, error) {
	run, message, err := u.mayUndo(ctx, id)
	if err != nil {
		return Accepted{}, err
	}
	return u.post(ctx, run.ID, message, claybot.Sender{Name: by}, nil)
}

// post posts the message that undoes a run; route is where the answer goes, nil for
// where the person wrote last.
func (u *Undo) post(ctx context.Context, id claybot.RunID, message claybot.MessageID, from claybot.Sender, route *claybot.Route) (Accepted, error) {
	run, err := u.runs.Run(ctx, id)
	if err != nil {
		return Accepted{}, err
	}
	agent, err := u.agents.Agent(ctx, run.Agent)
	if err != nil {
		return Accepted{}, err
	}
	m := claybot.AgentMessage{
		ID: message, Type: claybot.MessageSystem, Kind: claybot.KindNotice, From: from,
		Text: fmt.Sprintf("Take back what run %s did.", run.ID), Run: claybot.RunID(runs.NewID()), Engine: claybot.EngineUndo,
		Undo: &claybot.Undoing{Run: run.ID, Effects: run.Undo}, Route: route,
	}
	done, err := u.accept(ctx, agent, m)
	switch {
	case err != nil:
		return Accepted{}, err
	case done.Skipped != "":
		return Accepted{}, NoUndoError("The undo cannot begin now: " + done.Skipped + ".")
	case !done.Added: // another request was faster
		_, _, err := u.mayUndo(ctx, run.ID)
		return Accepted{}, err
	}
	return Accepted{Run: m.Run, Agent: agent.ID, Message: m.ID, State: claybot.RunPending}, nil
}

// mayUndo returns a run and the id of the message that undoes it; a NoUndoError says why
// it cannot be undone.
func (u *Undo) mayUndo(ctx context.Context, id claybot.RunID) (claybot.Run, claybot.MessageID, error) {
	run, err := u.runs.Run(ctx, id)
	if err != nil {
		return run, "", err
	}
	e, err := u.index.IndexedAgentByID(ctx, run.Agent)
	switch {
	case err != nil:
		return run, "", err
	case !run.State.Ended():
		err = NoUndoError(texts.UndoAtWork)
	case run.UndoOf != "":
		err = NoUndoError(texts.UndoOfUndo)
	case len(run.Undo) == 0:
		err = NoUndoError(texts.UndoNoEffect)
	case time.Since(run.Ended.Time()) > undoTime:
		err = NoUndoError(texts.UndoTooOld)
	case e.Descriptor.Foreground() && !u.people.MayWrite(e.Descriptor):
		err = NoUndoError(texts.UndoRevoked)
	}
	if err != nil {
		return run, "", err
	}
	for try := 1; ; try++ {
		message := undoID(run.ID, try)
		r, err := u.receipts.Receipt(ctx, message)
		if errors.Is(err, storage.ErrNotFound) {
			return run, message, nil
		}
		if err != nil {
			return run, "", err
		}
		used, err := u.isUsed(ctx, r)
		switch {
		case err != nil:
			return run, "", err
		case used && r.Run != nil && r.Run.State.Ended():
			return run, "", NoUndoError(fmt.Sprintf(texts.UndoneByRun, r.Run.ID))
		case used:
			return run, "", NoUndoError(texts.UndoBegun)
		}
	}
}

// UndoneBy returns the run that undid another one or is undoing it; empty when UndoRun may
// be called.
func (u *Undo) UndoneBy(ctx context.Context, id claybot.RunID) (claybot.RunID, error) {
	for try := 1; ; try++ {
		r, err := u.receipts.Receipt(ctx, undoID(id, try))
		if err != nil {
			return "", storage.Ignore(err, storage.ErrNotFound)
		}
		used, err := u.isUsed(ctx, r)
		switch {
		case err != nil:
			return "", err
		case used && r.Run != nil:
			return r.Run.ID, nil
		case used:
			return r.Message.Run, nil
		}
	}
}

// isUsed reports whether the message of a receipt undid its run, or is about to; one that
// began nothing did not.
func (u *Undo) isUsed(ctx context.Context, r storage.Receipt) (bool, error) {
	switch {
	case r.Skipped != "":
		return false, nil
	case r.Run == nil || !r.Run.State.Ended():
		return true, nil
	}
	for ev, err := range u.runs.Events(ctx, r.Run.ID, 0) {
		if err != nil {
			return false, err
		}
		if ev.Type == claybot.EventToolCalled {
			return true, nil
		}
	}
	old := time.Since(r.Run.Ended.Time()) > eventTime // its events may be gone
	return r.Run.State == claybot.RunSucceeded && old, nil
}

// eventTime is how long events are kept at least.
const eventTime = 6 * 24 * time.Hour

// undoID is the id of the message of the nth try to undo a run.
func undoID(run claybot.RunID, try int) claybot.MessageID {
	if try > 1 {
		return claybot.MessageID(fmt.Sprintf("undo/%s/%d", run, try))
	}
	return claybot.MessageID("undo/" + run)
}

// order returns what /undo does and answers: about the named run, or the newest one of the
// agent with side effects. The order is nil where there is nothing to do.
func (u *Undo) order(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (*order, string, error) {
	v, id := texts.Of(ctx), claybot.RunID(m.Text)
	if id == "" {
		var err error
		if id, err = u.newest(ctx, agent.ID); err != nil {
			return nil, "", err
		}
		if id == "" {
			return nil, v.In(texts.NothingToUndo), nil
		}
	}
	run, message, err := u.mayUndo(ctx, id)
	var no NoUndoError
	switch {
	case errors.Is(err, storage.ErrNotFound), run.ID != "" && run.Agent != agent.ID:
		return nil, v.In(texts.NoSuchRun), nil
	case errors.As(err, &no) && m.Text == "":
		return nil, v.NoUndo(string(no)) + " " + v.In(texts.UndoEarlier), nil
	case errors.As(err, &no):
		return nil, v.NoUndo(string(no)), nil
	case err != nil:
		return nil, "", err
	}
	return &order{Undo: run.ID, Message: message}, v.Undoing(run), nil
}

// newest returns the newest run of an agent with side effects; empty for none among the
// last thirty.
func (u *Undo) newest(ctx context.Context, agent claybot.AgentID) (claybot.RunID, error) {
	all, err := u.runs.RunPage(ctx, storage.RunQuery{Agent: agent, Limit: 30})
	if err != nil {
		return "", err
	}
	for _, run := range all {
		if len(run.Undo) > 0 && run.UndoOf == "" {
			return run.ID, nil
		}
	}
	return "", nil
}
