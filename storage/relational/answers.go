package relational

import (
	"encoding/json"
	"errors"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// skippedRunEnded is the skip reason of an answer that came too late.
const skippedRunEnded = "run_ended"

// A refusal is an answer that the store owes to a run that waits for a message
// which no run will answer.
type refusal struct {
	to  claybot.Awaited
	run claybot.RunID // that had the message, if one had
	why string        // for the model
}

// refuse notes that a message which somebody awaits was skipped. The answer
// goes out with saveInbox: whoever waits may be a itself.
func (a *inboxRow) refuse(to claybot.Awaited, reason string) {
	why := "the message was dropped"
	switch reason {
	case skippedInboxFull:
		why = "the message was dropped: too many others wait for this agent"
	case skippedDamaged:
		why = "the message was dropped: it cannot be read any more"
	case reasonRemoved:
		why = "the agent was deleted"
	}
	a.refused = append(a.refused, refusal{to: to, why: why})
}

// refuseAll posts the answers that a owes. It is the one place where the store
// answers by itself; an agent that is gone misses nothing.
func refuseAll(c *Conn, a *inboxRow) error {
	owed := a.refused
	a.refused = nil
	for _, r := range owed {
		_, err := postMessage(c, storage.Posting{To: r.to.Agent, Message: claybot.AgentMessage{
			ID: r.to.ID, Type: claybot.MessageAnswer, Run: r.to.Run,
			From:   claybot.Sender{Agent: a.id},
			Answer: &claybot.Answer{Error: r.why, AgentID: a.id, RunID: r.run},
		}})
		if err := ignoreNotFound(err); err != nil && !errors.Is(err, errNoID) {
			return err
		}
	}
	return nil
}

// awaitedBy lists who waits for the messages of a run. It needs none of their
// texts, so damage does not hide it.
func awaitedBy(c *Conn, agent claybot.AgentID, run claybot.RunID) (list []claybot.Awaited, err error) {
	err = c.each("SELECT awaited FROM messages WHERE agent = ? AND run = ? AND awaited IS NOT NULL", func(r Row) error {
		var w claybot.Awaited
		if unmarshal(r.Str(0), &w) == nil { // else nobody knows whom to tell
			list = append(list, w)
		}
		return nil
	}, agent, run)
	return list, err
}

// awaitedColumn is what the awaited column has for m.
func awaitedColumn(m claybot.AgentMessage) (any, error) {
	if m.Awaited == nil {
		return nil, nil
	}
	b, err := json.Marshal(m.Awaited)
	return b, err
}

// joinAnswer gives the answer id to the unfinished run of a, and makes a due
// when its run has all that it waits for. A damaged run is due anyway: it ends
// when its agent is acquired.
func joinAnswer(c *Conn, a *inboxRow, id claybot.MessageID, bound bool, at int64) error {
	if err := closeQuestion(c, id); err != nil {
		return err
	}
	run, err := loadRun(c, a.run)
	if errors.Is(err, storage.ErrDamaged) {
		a.rouse(at)
		return nil
	}
	if err != nil {
		return err
	}
	if bound {
		run.Messages = append(run.Messages, id)
		b, err := json.Marshal(run.Messages)
		if err != nil {
			return err
		}
		if err := c.do("UPDATE runs SET messages = ? WHERE id = ?", b, run.ID); err != nil {
			return err
		}
	}
	if run.Awaiting == nil {
		return nil
	}
	all, err := isAnswered(c, a.id, run.ID, *run.Awaiting)
	if all {
		a.rouse(at)
	}
	return err
}

// isAnswered reports whether every answer that a run waits for is there. One
// that was skipped will never come otherwise, so it counts.
func isAnswered(c *Conn, agent claybot.AgentID, run claybot.RunID, w claybot.Awaiting) (bool, error) {
	for _, id := range w.Answers {
		known, err := c.first("SELECT 1 FROM messages WHERE id = ? AND agent = ? AND type = ? AND (run = ? OR skipped IS NOT NULL)",
			func(Row) error { return nil }, id, agent, claybot.MessageAnswer, run)
		if err != nil || !known {
			return false, err
		}
	}
	return true, nil
}
