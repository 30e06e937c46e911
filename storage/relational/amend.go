package relational

import (
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// amend applies an edit or a deletion to the message of a that it names. It returns the
// posting with which the edit or deletion itself is stored, and what it did.
func amend(c *Conn, a *inboxRow, p storage.Posting, at int64) (storage.Posting, storage.Posted, error) {
	var done storage.Posted
	m := &p.Message
	if p.Skip != "" {
		return p, done, nil
	}
	deletion := m.Type == claybot.MessageDelete
	begins := a.node != "" && a.run == "" // its holder has read what waits, and begins a run with that
	of, err := findAmended(c, a.id, m.Amends)
	if err == nil {
		err = dropNotes(c, a, supersededBy(*m), m.Amends)
	}
	switch {
	case err != nil:
	case of.pending && deletion:
		p.Skip = storage.SkippedDeletion
		done, err = dropAmended(c, a, *m, of, at)
	case of.pending && (of.message.Type == claybot.MessageUser || of.message.Flow != nil) && !begins:
		p.Skip = storage.SkippedEdit
		if commandWord(of.message.Text) != commandWord(m.Text) {
			of.message.Skill = ""
		}
		of.message.Text, of.message.Masked = m.Text, m.Masked
		err = rewrite(c, of.message)
	case deletion && a.run != "" && of.run == a.run:
		p.Skip = storage.SkippedDeletion
		done, err = dropAmended(c, a, *m, of, at)
	case !deletion && p.Late != "" && (of.run != "" || begins):
		m.Type, m.Kind, m.Silent, m.Text = claybot.MessageSystem, claybot.KindNotice, true, p.Late
	default:
		p.Skip = storage.SkippedLate
	}
	if done.Canceled == "" && deletion {
		p.Replies = nil
		if len(done.Dropped) > 0 {
			p.Replies = p.IfIdle
		}
	}
	return p, done, err
}

// dropAmended drops the message that a deletion names, or cancels the run that took it. A stop names
// one part of an album; it drops all waiting parts of the same sender, and cancels a run with others.
func dropAmended(c *Conn, a *inboxRow, m claybot.AgentMessage, of amended, at int64) (done storage.Posted, err error) {
	reason, parts, cancel := supersededBy(m), []claybot.MessageID{m.Amends}, !of.pending
	if m.Command == claybot.StopCommand {
		others, err := waitingParts(c, a.id, of.message)
		if err != nil {
			return done, err
		}
		if err := dropNotes(c, a, reason, others...); err != nil {
			return done, err
		}
		parts = append(parts, others...)
		if of.pending {
			if cancel, err = runsPart(c, a, of.message); err != nil {
				return done, err
			}
		}
	}
	done.Dropped, err = dropWaiting(c, a, reason, func(id claybot.MessageID, _ claybot.MessageType) bool { return slices.Contains(parts, id) })
	if a.wake(); err == nil && cancel {
		done.Canceled, err = a.run, askCancel(c, a, "user", at)
	}
	return done, err
}

// supersededBy is the reason for which what m replaces or deletes is skipped.
func supersededBy(m claybot.AgentMessage) string {
	switch {
	case m.Type != claybot.MessageDelete:
		return storage.SkippedEdit
	case m.Command == claybot.StopCommand:
		return storage.SkippedStopped
	}
	return storage.SkippedDeleted
}

// dropNotes ends the waiting notes of earlier edits of messages: a note has the text that a
// later edit or a deletion withdraws.
func dropNotes(c *Conn, a *inboxRow, reason string, of ...claybot.MessageID) error {
	if len(of) == 0 {
		return nil
	}
	var notes []claybot.MessageID
	err := c.each("SELECT id, body, crc FROM messages INDEXED BY messages_waiting WHERE agent = ? AND run IS NULL AND skipped IS NULL AND type = 'system' AND silent = 1", func(r Row) error {
		if m, err := decodeMessage(r, 1); err == nil && slices.Contains(of, m.Amends) { // a damaged message is reported to who takes it
			notes = append(notes, claybot.MessageID(r.Str(0)))
		}
		return nil
	}, a.id)
	if err != nil || len(notes) == 0 {
		return err
	}
	_, err = dropWaiting(c, a, reason, func(id claybot.MessageID, _ claybot.MessageType) bool { return slices.Contains(notes, id) })
	return err
}

// waitingParts returns the waiting messages of the album and the sender of m, if it is part of one.
func waitingParts(c *Conn, agent claybot.AgentID, m claybot.AgentMessage) (parts []claybot.MessageID, err error) {
	if m.Context.GroupID == "" {
		return nil, nil
	}
	err = c.each("SELECT id, body, crc FROM messages INDEXED BY messages_waiting WHERE agent = ? AND run IS NULL AND skipped IS NULL AND album = ?", func(r Row) error {
		if part, err := decodeMessage(r, 1); err == nil && part.From.UserID == m.From.UserID { // a damaged message is reported to who takes it
			parts = append(parts, claybot.MessageID(r.Str(0)))
		}
		return nil
	}, agent, m.Context.GroupID)
	return parts, err
}

// runsPart reports whether the present run took a message of the album and the sender of m.
func runsPart(c *Conn, a *inboxRow, m claybot.AgentMessage) (runs bool, err error) {
	if m.Context.GroupID == "" || a.run == "" {
		return false, nil
	}
	err = c.each("SELECT body, crc FROM messages WHERE agent = ? AND run = ? AND album = ?", func(r Row) error {
		part, err := decodeMessage(r, 0)
		runs = runs || err == nil && part.From.UserID == m.From.UserID // a damaged message is reported to who took it
		return nil
	}, a.id, a.run, m.Context.GroupID)
	return runs, err
}

// commandWord returns the first word of a text, with its mark; names of commands have _ for -, and
// no case.
func commandWord(text string) string {
	word := text
	if words := strings.Fields(text); len(words) > 0 {
		word = words[0]
	}
	return strings.ReplaceAll(strings.ToLower(word), "_", "-")
}

// An amended is the message that an edit or a deletion names; zero if there is none.
type amended struct {
	message claybot.AgentMessage
	pending bool
	run     claybot.RunID // that took it
}

func findAmended(c *Conn, agent claybot.AgentID, id claybot.MessageID) (of amended, err error) {
	_, err = c.first("SELECT body, crc, run, skipped FROM messages WHERE id = ? AND agent = ?", func(r Row) error {
		m, err := decodeMessage(r, 0)
		if err != nil {
			return nil // a damaged message is reported to who takes it
		}
		of = amended{m, r.Null(2) && r.Null(3), claybot.RunID(r.Str(2))}
		return nil
	}, id, agent)
	return of, err
}

// rewrite replaces the content of a pending message.
func rewrite(c *Conn, m claybot.AgentMessage) error {
	body, crc, err := encode(m)
	if err != nil {
		return err
	}
	return c.do("UPDATE messages SET body = ?, crc = ? WHERE id = ?", body, crc, m.ID)
}
