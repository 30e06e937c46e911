package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// codeDamaged is the error code of a run whose stored row cannot be read.
const codeDamaged = "internal/run-damaged"

// unfinishedRun loads the unfinished run of an agent that is being acquired. It
// returns nil if there is none to resume: it ends a damaged run and clears a
// dangling reference, so that neither blocks the agent. The caller saves a.
func (db leases) unfinishedRun(c *Conn, a *inboxRow) (*claybot.Run, error) {
	run, err := loadRun(c, a.run)
	switch {
	case errors.Is(err, storage.ErrDamaged):
		db.log.Error("damaged run ended as failed", "run", a.run, "agent", a.id, "err", err)
		err = db.endDamaged(c, a)
	case errors.Is(err, storage.ErrNotFound), err == nil && (run.Agent != a.id || run.State.Ended()):
		db.log.Error("unfinished run of an agent not found", "run", a.run, "agent", a.id)
		err = nil
	case err == nil:
		return &run, nil
	}
	a.run, a.resumeAt = "", never
	return nil, err
}

// endDamaged ends the run of a as failed and notifies the author of its newest
// message, the runs that wait for it, or the parent of the agent.
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
		return nil // its end was reported with it
	}
	notice, err := tellOfFailure(c, a, run, why)
	if err != nil {
		return err
	}
	return postNotice(c, notice)
}

// failRun ends the run of a as failed. It trusts only the state of the row, and
// rewrites the row from other tables. It returns the run with its previous
// state. The caller clears a.run.
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

// tellOfFailure records the answers for runs that wait for a run that the store
// itself ended (SA-32) or, if there are none and the agent is a subagent,
// returns the message for its parent (SA-20). The caller posts both once a is
// written.
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

// postNotice posts p, if any. A deleted recipient is not an error.
func postNotice(c *Conn, p *storage.Posting) error {
	if p == nil {
		return nil
	}
	_, err := postMessage(c, *p)
	return ignoreNotFound(err)
}

// boundTo sets the messages of a run to those that refer to it, and returns the
// newest readable one that is not an answer, nil for none.
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

// tellDamaged adds the notice of a damaged run to the outbox. It adds none if
// the descriptor is unreadable, or the agent has no route.
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
		Text: storage.NoticeDamaged, Part: 1, Parts: 1,
	}})
	return err
}

// reasonRestored is the reason with which work of a restored store ends.
const reasonRestored = "restored"

// noticePrefix begins the ids of the notices of endParked.
const noticePrefix = reasonRestored + "/"

// reminderPrefix begins the ids of the messages that reminders become.
const reminderPrefix = "reminder/"

// EndRestored ends all work that was unfinished when a copy of the store was made: it has
// most likely been completed since, and repeating it would answer and act twice. Waiting
// and parked messages are skipped, as are reminders that are due by now, runs fail, and
// outgoing messages fail, which an operator can retry. Senders that RestoredAgents cannot
// name get a notice. It is idempotent, so an interrupted call can be repeated.
func (db upkeep) EndRestored(ctx context.Context) (e storage.Ended, err error) {
	if e.Reminders, err = db.endReminders(ctx); err != nil {
		return e, fmt.Errorf("end restored reminders: %w", err)
	}
	const passes = 10 // agents get messages about the ends of others
	for range passes {
		var ids []claybot.AgentID
		err := db.read(ctx, func(c *Conn) error {
			return c.each("SELECT id FROM agents WHERE waiting > 0 OR run IS NOT NULL", func(r Row) error {
				ids = append(ids, claybot.AgentID(r.Str(0)))
				return nil
			})
		})
		if err != nil {
			return e, fmt.Errorf("end restored work: %w", err)
		}
		if len(ids) == 0 {
			break
		}
		for _, id := range ids {
			m, r, err := db.endRestored(ctx, id)
			if err != nil {
				return e, fmt.Errorf("end restored work of agent %s: %w", id, err)
			}
			e.Messages, e.Runs = e.Messages+m, e.Runs+r
		}
	}
	open, err := db.openOutgoing(ctx)
	for _, id := range open {
		if err == nil {
			err = outbox(db).Resolve(ctx, storage.Claim{}, id, storage.Resolution{State: claybot.SendFailed, Cause: storage.CauseRestored})
		}
	}
	if err != nil {
		return e, fmt.Errorf("end restored sends: %w", err)
	}
	e.Sends = len(open)
	if e.Parked, err = db.endAllParked(ctx); err != nil {
		return e, fmt.Errorf("end restored parked messages: %w", err)
	}
	return e, nil
}

// RestoredAgents are the agents whose newest message of a person, or one of whose
// reminders, EndRestored has ended.
func (db upkeep) RestoredAgents(ctx context.Context) (ids []claybot.AgentID, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT a.id FROM agents a JOIN messages m ON m.rowid = a.last_user_n WHERE m.skipped = '"+reasonRestored+"'"+
			" UNION SELECT agent FROM messages WHERE id >= '"+reminderPrefix+"' AND id < 'reminder0' AND skipped = '"+reasonRestored+"'",
			func(r Row) error { ids = append(ids, claybot.AgentID(r.Str(0))); return nil })
	})
	return result(ids, err, "list agents with restored messages")
}

// endReminders ends the due reminders and returns their number. Each is stored as a
// skipped message.
func (db upkeep) endReminders(ctx context.Context) (ended int, err error) {
	return write(ctx, db, func(c *Conn) (int, error) {
		var due []storage.Reminder
		now := c.now()
		err := c.each("SELECT "+reminderColumns+" FROM reminders WHERE due <= ? ORDER BY due, made, id", func(r Row) error {
			m, err := decodeReminder(r)
			if err != nil { // its context is damaged, so it has no route
				m.Context, m.Route = claybot.MessageContext{}, nil
			}
			due = append(due, m)
			return nil
		}, now)
		if err != nil {
			return 0, err
		}
		for _, r := range due {
			if err := endReminder(c, r, now); err != nil {
				return 0, err
			}
		}
		return len(due), nil
	})
}

func endReminder(c *Conn, r storage.Reminder, now int64) error {
	if err := c.do("DELETE FROM reminders WHERE agent = ? AND id = ?", r.Agent, r.ID); err != nil {
		return err
	}
	m := claybot.AgentMessage{
		ID: claybot.MessageID(reminderPrefix + r.ID), Type: claybot.MessageSystem, Kind: claybot.KindReminder,
		Text: r.Note, At: claybot.Time(now), Context: r.Context, Route: r.Route,
	}
	a, err := loadInbox(c, r.Agent)
	if err != nil {
		return ignoreNotFound(err)
	}
	if repeat, err := nameMessage(c, &m); err != nil || repeat {
		return err
	}
	if err := receiveMessage(c, a, m, reasonRestored, storage.Wait{}, false, now); err != nil {
		return err
	}
	return saveInbox(c, a)
}

// endAllParked ends the parked messages of all agents, and counts them.
func (db upkeep) endAllParked(ctx context.Context) (ended int, err error) {
	keys, err := selectAll(ctx, db, func(r Row) string { return r.Str(0) }, "SELECT DISTINCT key FROM parked")
	for _, key := range keys {
		if err != nil {
			break
		}
		var n int
		n, err = write(ctx, db, func(c *Conn) (int, error) { return endParked(c, key) })
		ended += n
	}
	return ended, err
}

// endParked ends the parked messages of one agent. Of an agent that is not in the index,
// only the messages name the person, who gets one notice for all of them.
func endParked(c *Conn, key string) (int, error) {
	a := &inboxRow{}
	_, err := c.first("SELECT id FROM agents WHERE key = ?", func(r Row) error { a.id = claybot.AgentID(r.Str(0)); return nil }, key)
	if err == nil && a.id != "" {
		a, err = loadInbox(c, a.id)
	}
	var list []storage.Parked
	if err == nil {
		err = c.each("SELECT "+parkedColumns+" FROM parked WHERE key = ? ORDER BY n", func(r Row) error { list = append(list, decodeParked(r)); return nil }, key)
	}
	for _, p := range list {
		if err == nil {
			err = skipParked(c, a, p)
		}
	}
	if err == nil {
		c.touched.arrivals = true
		err = c.do("DELETE FROM parked WHERE key = ?", key)
	}
	if err != nil || len(list) == 0 {
		return 0, err
	}
	if a.id != "" {
		return len(list), saveInbox(c, a)
	}
	first := list[0]
	route := first.Message.ReplyRoute(first.To)
	if route == (claybot.Route{}) {
		return len(list), nil
	}
	_, err = enqueue(c, c.now(), string(first.Message.ID), []claybot.Outgoing{{
		ID: noticePrefix + string(first.Message.ID), Kind: claybot.OutgoingNotice, Message: first.Message.ID, Route: route,
		Text: storage.NoticeRestored, Part: 1, Parts: 1,
	}})
	return len(list), err
}

// skipParked stores a parked message as one that was skipped, so that its fate is known
// and a redelivery is recognized. One that cannot be read is kept as it is.
func skipParked(c *Conn, a *inboxRow, p storage.Parked) error {
	m := p.Message
	if repeat, err := nameMessage(c, &m); err != nil || repeat {
		return err
	}
	if p.Damaged == nil {
		return receiveMessage(c, a, m, reasonRestored, storage.Wait{}, false, int64(p.At))
	}
	a.n++
	return c.do(`INSERT INTO messages (id, agent, n, type, at, skipped, silent, body, crc)
		SELECT id, ?, ?, ?, at, ?, ?, body, crc FROM parked WHERE id = ?`, a.id, a.n, claybot.MessageUser, reasonRestored, false, p.Message.ID)
}

// endRestored ends the unfinished work of one agent.
func (db upkeep) endRestored(ctx context.Context, id claybot.AgentID) (messages, runs int, err error) {
	err = db.update(ctx, func(c *Conn) error {
		messages, runs = 0, 0
		a, err := loadInbox(c, id)
		if err != nil {
			return ignoreNotFound(err)
		}
		dropped, err := dropWaiting(c, a, reasonRestored, nil)
		if err != nil {
			return err
		}
		messages = len(dropped)
		if a.run != "" {
			why := claybot.RunError{Code: "internal/restored", Text: "the database was restored from a copy that was made during this run"}
			if _, err := failRun(c, a, why); err != nil && !errors.Is(err, storage.ErrNotFound) {
				return err
			}
			a.run, a.resumeAt, runs = "", never, 1
		}
		a.free(storage.Wait{}, c.now())
		return saveInbox(c, a)
	})
	return messages, runs, err
}

// openOutgoing are the ids of outgoing messages that were neither sent nor failed, but for
// the notices of endParked.
func (db upkeep) openOutgoing(ctx context.Context) (ids []string, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT id FROM outbox WHERE open = 1 AND id NOT LIKE '"+noticePrefix+"%' ORDER BY n", func(r Row) error { ids = append(ids, r.Str(0)); return nil })
	})
	return ids, err
}
