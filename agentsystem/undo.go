package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// undoTime is how long effects can be taken back.
const undoTime = 30 * 24 * time.Hour

// A NoUndoError says in a sentence why a run is not undone.
type NoUndoError string

func (e NoUndoError) Error() string { return string(e) }

// UndoRun starts a run that takes back what another one did, newest first. A
// run is undone once: the id of the message that asks for it is made of its own.
// An undo that began nothing, because it was stopped or not approved, may be
// tried again.
func (s *AgentSystem) UndoRun(ctx context.Context, id claybot.RunID, by string) (Accepted, error) {
	run, message, err := s.mayUndo(ctx, id)
	if err != nil {
		return Accepted{}, err
	}
	return s.undoAs(ctx, run.ID, message, claybot.Sender{Name: by}, nil)
}

// undoAs posts the message that undoes a run; route is where the answer goes, nil
// for where the person wrote last.
func (s *AgentSystem) undoAs(ctx context.Context, id claybot.RunID, message claybot.MessageID, from claybot.Sender, route *claybot.Route) (Accepted, error) {
	run, err := s.Runs.Run(ctx, id)
	if err != nil {
		return Accepted{}, err
	}
	agent, err := s.lookup.Agent(ctx, run.Agent)
	if err != nil {
		return Accepted{}, err
	}
	m := claybot.AgentMessage{
		ID: message, Type: claybot.MessageSystem, Kind: claybot.KindNotice, From: from,
		Text: fmt.Sprintf("Take back what run %s did.", run.ID), Run: claybot.RunID(runs.NewID()), Engine: claybot.EngineUndo,
		Undo: &claybot.Undoing{Run: run.ID, Effects: run.Undo}, Route: route,
	}
	done, err := s.acceptFor(ctx, agent, m)
	switch {
	case err != nil:
		return Accepted{}, err
	case done.Skipped != "":
		return Accepted{}, NoUndoError("The undo cannot begin now: " + done.Skipped + ".")
	case !done.Added: // somebody was faster
		_, _, err := s.mayUndo(ctx, run.ID)
		return Accepted{}, err
	}
	return Accepted{Run: m.Run, Agent: agent.ID, Message: m.ID, State: claybot.RunPending}, nil
}

// mayUndo is the run, and the message by which it is undone; a NoUndoError says
// why it is not.
func (s *AgentSystem) mayUndo(ctx context.Context, id claybot.RunID) (claybot.Run, claybot.MessageID, error) {
	run, err := s.Runs.Run(ctx, id)
	if err != nil {
		return run, "", err
	}
	e, err := s.Index.IndexedAgentByID(ctx, run.Agent)
	switch {
	case err != nil:
		return run, "", err
	case !run.State.Ended():
		err = NoUndoError("That run is still at work. Stop it first, or wait for its end.")
	case run.UndoOf != "":
		err = NoUndoError("An undo cannot be undone.")
	case len(run.Undo) == 0:
		err = NoUndoError("That run did nothing that could be taken back.")
	case time.Since(run.Ended.Time()) > undoTime:
		err = NoUndoError("That run ended more than 30 days ago; it cannot be undone any more.")
	case e.Descriptor.Foreground() && !s.People.MayWrite(e.Descriptor):
		err = NoUndoError("The person of that run may not write any more, so nothing is done for him. Let him in again first.")
	}
	if err != nil {
		return run, "", err
	}
	for try := 1; ; try++ {
		message := undoID(run.ID, try)
		r, err := s.Inbox.Receipt(ctx, message)
		if errors.Is(err, storage.ErrNotFound) {
			return run, message, nil
		}
		if err != nil {
			return run, "", err
		}
		used, err := s.undoUsed(ctx, r)
		switch {
		case err != nil:
			return run, "", err
		case used && r.Run != nil && r.Run.State.Ended():
			return run, "", NoUndoError(fmt.Sprintf("That run was undone already, by run %s.", r.Run.ID))
		case used:
			return run, "", NoUndoError("That run is being undone already.")
		}
	}
}

// UndoneBy is the run that took back what another one did, or does so now; empty
// when that may be asked for.
func (s *AgentSystem) UndoneBy(ctx context.Context, id claybot.RunID) (claybot.RunID, error) {
	for try := 1; ; try++ {
		r, err := s.Inbox.Receipt(ctx, undoID(id, try))
		if err != nil {
			return "", storage.Ignore(err, storage.ErrNotFound)
		}
		used, err := s.undoUsed(ctx, r)
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

// undoUsed reports whether the message of a receipt undid its run, or is about to;
// one that came to nothing did not.
func (s *AgentSystem) undoUsed(ctx context.Context, r storage.Receipt) (bool, error) {
	switch {
	case r.Skipped != "":
		return false, nil
	case r.Run == nil || !r.Run.State.Ended():
		return true, nil
	}
	for ev, err := range s.Runs.Events(ctx, r.Run.ID, 0) {
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

// eventTime is how long events are there at least.
const eventTime = 6 * 24 * time.Hour

// undoID is the id of the message that undoes a run, at the nth try.
func undoID(run claybot.RunID, try int) claybot.MessageID {
	if try > 1 {
		return claybot.MessageID(fmt.Sprintf("undo/%s/%d", run, try))
	}
	return claybot.MessageID("undo/" + run)
}

// undoing is what /undo does and says: about the run that is named, or the newest
// one of the agent with effects. The order is nil where there is nothing to do.
func (s *AgentSystem) undoing(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (*order, string, error) {
	id := claybot.RunID(m.Text)
	if id == "" {
		var err error
		if id, err = s.undoable(ctx, agent.ID); err != nil {
			return nil, "", err
		}
		if id == "" {
			return nil, texts.NothingToUndo, nil
		}
	}
	run, message, err := s.mayUndo(ctx, id)
	var no NoUndoError
	switch {
	case errors.Is(err, storage.ErrNotFound), run.ID != "" && run.Agent != agent.ID:
		return nil, texts.NoSuchRun, nil
	case errors.As(err, &no) && m.Text == "":
		return nil, string(no) + " Another run is taken back with /undo and its id.", nil
	case errors.As(err, &no):
		return nil, string(no), nil
	case err != nil:
		return nil, "", err
	}
	return &order{Undo: run.ID, Message: message}, texts.Undoing(run), nil
}

// undoable is the newest run of an agent with effects; empty for none among the
// last thirty.
func (s *AgentSystem) undoable(ctx context.Context, agent claybot.AgentID) (claybot.RunID, error) {
	all, err := s.Runs.RunPage(ctx, storage.RunQuery{Agent: agent, Limit: 30})
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
