package relational

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// errReserved refuses a message whose run id is not free.
var errReserved = errors.New("its run id is taken")

// reservedBy is the id that m reserves for the run that will take it, empty for
// none. The Run of an answer names the run that it is for instead.
func reservedBy(m claybot.AgentMessage) claybot.RunID {
	if m.Type == claybot.MessageUser || m.Type == claybot.MessageSystem {
		return m.Run
	}
	return ""
}

// checkReserved refuses an id that another message or a run has.
func checkReserved(c *Conn, id claybot.RunID) error {
	if id == "" {
		return nil
	}
	taken, err := c.first("SELECT 1 FROM messages WHERE reserved = ?1 UNION ALL SELECT 1 FROM runs WHERE id = ?1",
		func(Row) error { return nil }, id)
	if err == nil && taken {
		return fmt.Errorf("run %s: %w", id, errReserved)
	}
	return err
}

// cancelReserved leaves a run behind for a message that reserved its id and
// ended without one, so that whoever watches the id sees the end. It has never
// started.
func cancelReserved(c *Conn, agent claybot.AgentID, id claybot.RunID, m claybot.MessageID, reason string) error {
	run := claybot.Run{ID: id, Agent: agent, Messages: []claybot.MessageID{m}}
	ids, err := json.Marshal(run.Messages)
	if err != nil {
		return err
	}
	n, err := c.exec(`INSERT INTO runs (id, agent, state, messages, started, ended) VALUES (?, ?, ?, ?, 0, ?) ON CONFLICT (id) DO NOTHING`,
		id, agent, claybot.RunCanceled, ids, c.now())
	if err != nil || n == 0 {
		return err
	}
	c.tally.run("", claybot.RunCanceled)
	return appendEvents(c, &run, event(claybot.EventRunCanceled, map[string]any{"by": reason}))
}

// runOrReserved loads a run, or what became of the id that a message reserved.
func runOrReserved(c *Conn, id claybot.RunID) (claybot.Run, error) {
	run, err := loadRun(c, id)
	if !errors.Is(err, storage.ErrNotFound) {
		return run, err
	}
	var joined claybot.RunID
	found, ferr := c.first("SELECT id, agent, run, skipped FROM messages WHERE reserved = ?", func(r Row) error {
		joined = claybot.RunID(r.Str(2))
		if r.Null(2) && r.Null(3) {
			run = pendingRun(id, claybot.AgentID(r.Str(1)), claybot.MessageID(r.Str(0)))
		}
		return nil
	}, id)
	switch {
	case ferr != nil:
		return claybot.Run{}, ferr
	case found && joined != "":
		return loadRun(c, joined)
	case found && run.State == claybot.RunPending:
		return run, nil
	}
	return claybot.Run{}, err
}

// pendingRun is the run that a waiting message has reserved.
func pendingRun(id claybot.RunID, agent claybot.AgentID, m claybot.MessageID) claybot.Run {
	return claybot.Run{ID: id, Agent: agent, State: claybot.RunPending, Messages: []claybot.MessageID{m}}
}
