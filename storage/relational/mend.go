package relational

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// codeDamaged is the error code of a run whose stored row cannot be read.
const codeDamaged = "internal/run-damaged"

// unfinishedRun loads the unfinished run of an agent that is being acquired.
// It is nil when there is none to go on with: a damaged one has been ended and
// a reference to none cleared, so that neither holds up the agent or anybody
// else. The caller saves a.
func (db leases) unfinishedRun(c *Conn, a *inboxRow) (*claybot.Run, error) {
	run, err := loadRun(c, a.run)
	switch {
	case errors.Is(err, storage.ErrDamaged):
		db.log.Error("the run of an agent is damaged and ends as failed", "run", a.run, "agent", a.id, "err", err)
		err = db.endDamaged(c, a)
	case errors.Is(err, storage.ErrNotFound), err == nil && (run.Agent != a.id || run.State.Ended()):
		db.log.Error("the unfinished run of an agent does not exist", "run", a.run, "agent", a.id)
		err = nil
	case err == nil:
		return &run, nil
	}
	a.run, a.resumeAt = "", never
	return nil, err
}

// endDamaged ends the run of a as failed and tells of it: whoever wrote the
// newest message of it, or those who wait for it or started the agent.
func (db leases) endDamaged(c *Conn, a *inboxRow) error {
	why := claybot.RunError{Code: codeDamaged, Text: "what is stored of the run cannot be read"}
	run, err := failRun(c, a, why)
	if err != nil {
		return err
	}
	newest, err := boundTo(c, &run)
	if err != nil {
		return err
	}
	if newest != nil {
		if err := tellDamaged(c, run, *newest); err != nil {
			return err
		}
	}
	if run.State.Ended() {
		return nil // its end was told with it
	}
	notice, err := tellOfFailure(c, a, run, why)
	if err != nil {
		return err
	}
	return postNotice(c, notice)
}

// failRun ends the run of a as failed. Nothing but its state is trusted; its
// row is written anew from what is stored elsewhere, so that it can be read
// again. The run is returned with the state it had. The caller clears a.run.
func failRun(c *Conn, a *inboxRow, why claybot.RunError) (claybot.Run, error) {
	run := claybot.Run{ID: a.run, Agent: a.id}
	err := need(c.first("SELECT state, started, (SELECT coalesce(max(seq), 0) FROM events WHERE run = runs.id) FROM runs WHERE id = ?",
		func(r Row) error {
			run.State, run.Started, run.LastSeq = claybot.RunState(r.Str(0)), claybot.Time(r.Int(1)), r.Int(2)
			return nil
		}, run.ID))
	if err != nil {
		return claybot.Run{}, err
	}
	if _, err := boundTo(c, &run); err != nil {
		return run, err
	}
	bound, err := json.Marshal(run.Messages)
	if err != nil {
		return run, err
	}
	err = c.do("UPDATE runs SET agent = ?, messages = ?, draft = NULL, awaiting = NULL WHERE id = ?", a.id, bound, run.ID)
	if err != nil || run.State.Ended() {
		return run, err
	}
	failed := event(claybot.EventRunFailed, map[string]any{"code": why.Code, "error": why.Text, "step": 0})
	at := c.now()
	if err := endRun(c, &run, storage.Outcome{State: claybot.RunFailed, Events: []claybot.Event{failed}, Error: &why}, at); err != nil {
		return run, err
	}
	return run, chargeAgent(c, a.id, claybot.Usage{}, nil, 1, at) // it is counted as a run
}

// tellOfFailure notes the answers for those who wait for a run that the store
// itself ended (SA-32), or, when nobody does and the agent is a subagent, makes
// the message for its parent (SA-20). The caller posts both once a is written.
func tellOfFailure(c *Conn, a *inboxRow, run claybot.Run, why claybot.RunError) (*storage.Posting, error) {
	waiters, err := awaitedBy(c, a.id, run.ID)
	if err != nil {
		return nil, err
	}
	for _, w := range waiters {
		a.refused = append(a.refused, refusal{to: w, run: run.ID, why: why.Text})
	}
	if len(waiters) > 0 {
		return nil, nil
	}
	var (
		parent claybot.AgentID
		name   string
	)
	found, err := c.first("SELECT parent, descriptor FROM agents WHERE id = ? AND type = ? AND parent IS NOT NULL", func(r Row) error {
		parent = claybot.AgentID(r.Str(0))
		var d claybot.Descriptor
		if unmarshal(r.Str(1), &d) == nil { // else it has no name
			name = d.Name
		}
		return nil
	}, a.id, claybot.AgentSubagent)
	if err != nil || !found {
		return nil, err
	}
	who := "The subagent " + string(a.id)
	if name != "" {
		who = fmt.Sprintf("The subagent %q (%s)", name, a.id)
	}
	return &storage.Posting{To: parent, Message: claybot.AgentMessage{
		ID: claybot.MessageID("failure/" + string(run.ID)), Type: claybot.MessageSystem, Kind: claybot.KindFailure,
		From: claybot.Sender{Agent: a.id, Name: name},
		Text: fmt.Sprintf("%s failed in run %s: %s.", who, run.ID, why.Text),
	}}, nil
}

// postNotice posts p, if there is one. A receiver that is gone misses nothing.
func postNotice(c *Conn, p *storage.Posting) error {
	if p == nil {
		return nil
	}
	_, err := postMessage(c, *p)
	return ignoreNotFound(err)
}

// boundTo sets the messages of a run to those that say that they belong to it,
// and returns the newest that can be read and is no answer, nil for none.
func boundTo(c *Conn, run *claybot.Run) (newest *claybot.AgentMessage, err error) {
	run.Messages = []claybot.MessageID{}
	err = c.each("SELECT body, crc, id FROM messages WHERE agent = ? AND run = ? ORDER BY n", func(r Row) error {
		run.Messages = append(run.Messages, claybot.MessageID(r.Str(2)))
		if m, err := decodeMessage(r, 0); err == nil && m.Type != claybot.MessageAnswer {
			newest = &m
		}
		return nil
	}, run.Agent, run.ID)
	return newest, err
}

// tellDamaged puts the notice of a damaged run into the outbox. Without a
// readable descriptor nobody knows where to, and most background agents answer
// nowhere.
func tellDamaged(c *Conn, run claybot.Run, m claybot.AgentMessage) error {
	var d claybot.Descriptor
	err := need(c.first("SELECT descriptor FROM agents WHERE id = ?",
		func(r Row) error { return unmarshal(r.Str(0), &d) }, run.Agent))
	if errors.Is(err, storage.ErrDamaged) {
		return nil
	}
	route := m.ReplyRoute(d)
	if err != nil || route == (claybot.Route{}) {
		return err
	}
	_, err = enqueue(c, c.now(), string(run.ID), []claybot.Outgoing{{
		ID: "damaged/" + string(run.ID), Kind: claybot.OutgoingNotice,
		Run: run.ID, Agent: run.Agent, Message: m.ID, Route: route,
		Text: fmt.Sprintf("Something went wrong while I worked on this. (run %s)", run.ID), Part: 1, Parts: 1,
	}})
	return err
}
