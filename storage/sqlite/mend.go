package sqlite

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
func (db *DB) unfinishedRun(c *conn, a *inboxRow) (*claybot.Run, error) {
	run, err := c.loadRun(a.run)
	switch {
	case errors.Is(err, storage.ErrDamaged):
		db.log.Error("the run of an agent is damaged and ends as failed", "run", a.run, "agent", a.id, "err", err)
		err = c.endDamaged(a)
	case errors.Is(err, storage.ErrNotFound), err == nil && (run.Agent != a.id || run.State.Ended()):
		db.log.Error("the unfinished run of an agent does not exist", "run", a.run, "agent", a.id)
		err = nil
	case err == nil:
		return &run, nil
	}
	a.run = ""
	return nil, err
}

// endDamaged ends the run of a as failed. Nothing but its state is trusted; its
// row is written anew from what is stored elsewhere, so that it can be read
// again. Whoever wrote the newest message of it is told.
func (c *conn) endDamaged(a *inboxRow) error {
	run := claybot.Run{ID: a.run, Agent: a.id}
	err := need(c.first("SELECT state, (SELECT coalesce(max(seq), 0) FROM events WHERE run = runs.id) FROM runs WHERE id = ?",
		func(r row) error { run.State, run.LastSeq = claybot.RunState(r.str(0)), r.int(1); return nil }, run.ID))
	if err != nil {
		return err
	}
	newest, err := c.boundTo(&run)
	if err != nil {
		return err
	}
	bound, err := json.Marshal(run.Messages)
	if err != nil {
		return err
	}
	if _, err := c.exec("UPDATE runs SET agent = ?, messages = ?, draft = NULL WHERE id = ?", a.id, bound, run.ID); err != nil {
		return err
	}
	if !run.State.Ended() {
		why := claybot.RunError{Code: codeDamaged, Text: "what is stored of the run cannot be read"}
		failed := event(claybot.EventRunFailed, map[string]any{"code": why.Code, "error": why.Text, "step": 0})
		if err := c.end(&run, storage.Outcome{State: claybot.RunFailed, Events: []claybot.Event{failed}, Error: &why}); err != nil {
			return err
		}
	}
	if newest == nil {
		return nil
	}
	return c.tellDamaged(run, *newest)
}

// boundTo sets the messages of a run to those that say that they belong to it,
// and returns the newest that can be read, nil for none.
func (c *conn) boundTo(run *claybot.Run) (newest *claybot.Message, err error) {
	run.Messages = []claybot.MessageID{}
	err = c.each("SELECT body, crc, id FROM messages WHERE agent = ? AND run = ? ORDER BY n", func(r row) error {
		run.Messages = append(run.Messages, claybot.MessageID(r.str(2)))
		if m, err := decodeMessage(r, 0); err == nil {
			newest = &m
		}
		return nil
	}, run.Agent, run.ID)
	return newest, err
}

// tellDamaged puts the notice of a damaged run into the outbox. Without a
// readable descriptor nobody knows where to.
func (c *conn) tellDamaged(run claybot.Run, m claybot.Message) error {
	var d claybot.Descriptor
	err := need(c.first("SELECT descriptor FROM agents WHERE id = ?",
		func(r row) error { return unmarshal(r.str(0), &d) }, run.Agent))
	if errors.Is(err, storage.ErrDamaged) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = c.enqueue(now(), string(run.ID), []claybot.Outgoing{{
		ID: "damaged/" + string(run.ID), Kind: claybot.OutgoingNotice,
		Run: run.ID, Agent: run.Agent, Message: m.ID, Route: m.ReplyRoute(d),
		Text: fmt.Sprintf("Something went wrong while I worked on this. (run %s)", run.ID), Part: 1, Parts: 1,
	}})
	return err
}
