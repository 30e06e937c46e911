package relational

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.Eraser = (*Store)(nil)

// Unfinished implements storage.Eraser.
func (db upkeep) Unfinished(ctx context.Context, p storage.Person) (u storage.Unfinished, err error) {
	err = db.read(ctx, func(c *Conn) error {
		u = storage.Unfinished{}
		err := c.each("SELECT "+outgoingColumns+" FROM outbox WHERE open = 1", func(r Row) error {
			if o, err := decodeOutgoing(r); err == nil && isFor(p, o) {
				u.Outgoing++
			}
			return nil
		})
		if err != nil {
			return err
		}
		return c.each("SELECT descriptor FROM parked WHERE cause <> ?", func(r Row) error {
			var d claybot.Descriptor
			if unmarshal(r.Str(0), &d) == nil && slices.Contains(p.Owners, d.OwnerID()) {
				u.Parked++
			}
			return nil
		}, storage.ParkedUnapproved)
	})
	return result(u, err, "count unfinished work")
}

// isFor reports whether an outgoing message is of an agent of p, or goes to p.
func isFor(p storage.Person, o claybot.Outgoing) bool {
	_, own := p.Agents[o.Agent]
	to := o.Route
	return own || slices.Contains(p.Owners, to.Connector+"/"+to.UserID) || slices.Contains(p.Owners, to.Connector+"/"+to.ChannelID)
}

// An eraser is one call of Erase.
type eraser struct {
	upkeep
	p    storage.Person
	dry  bool
	done storage.Erased
}

// Erase implements storage.Eraser. Rows that refer to others go first, so that a call that was
// cut short leaves nothing that the next one does not find.
func (db upkeep) Erase(ctx context.Context, p storage.Person, dry bool) (storage.Erased, error) {
	e := &eraser{upkeep: db, p: p, dry: dry}
	var steps []func(c *Conn, after string) (next string, err error)
	for _, id := range slices.Sorted(maps.Keys(p.Agents)) {
		steps = append(steps,
			func(c *Conn, after string) (string, error) { return e.runs(c, id, after) },
			func(c *Conn, after string) (string, error) { return e.messages(c, id, after) },
			func(c *Conn, _ string) (string, error) { return "", e.own(c, id) })
	}
	for _, dest := range e.dests() {
		steps = append(steps, func(c *Conn, after string) (string, error) { return e.outgoing(c, dest, after) })
	}
	for _, owner := range p.Owners {
		steps = append(steps,
			func(c *Conn, after string) (string, error) { return e.said(c, owner, after) },
			func(c *Conn, _ string) (string, error) { return "", e.owned(c, owner) })
	}
	for _, step := range steps {
		for after, more := "", true; more; {
			before, next := e.done, ""
			err := db.update(ctx, func(c *Conn) (err error) {
				e.done = before // this may be a second try
				next, err = step(c, after)
				return err
			})
			if err != nil {
				return e.done, fmt.Errorf("erase what is stored of %s: %w", strings.Join(p.Owners, ", "), err)
			}
			after, more = next, next != ""
		}
	}
	return e.done, nil
}

// drop runs a DELETE from a table, or counts what it would remove.
func (e *eraser) drop(c *Conn, count *int, from string, args ...any) error {
	if e.dry {
		return c.each("SELECT count(*) FROM "+from, func(r Row) error { *count += int(r.Int(0)); return nil }, args...)
	}
	n, err := c.exec("DELETE FROM "+from, args...)
	*count += int(n)
	return err
}

// runs erases some runs of an agent behind one, with all that came of them.
func (e *eraser) runs(c *Conn, agent claybot.AgentID, after string) (next string, err error) {
	var list [][2]string
	err = c.each(`SELECT id, state FROM runs WHERE agent = ? AND id > ? AND ended > 0
		AND NOT EXISTS (SELECT 1 FROM outbox WHERE origin = runs.id AND open = 1) ORDER BY id LIMIT 0+?`, func(r Row) error {
		list = append(list, [2]string{r.Str(0), r.Str(1)})
		return nil
	}, agent, after, pruneChunk)
	if err != nil {
		return "", err
	}
	for _, run := range list {
		id, ignored, had := run[0], 0, e.done.Runs
		if err := e.answers(c, id); err != nil {
			return "", err
		}
		for _, d := range []struct {
			from  string
			count *int
		}{
			{"events WHERE run = ?", &e.done.Events},
			{"relays WHERE run = ?", &ignored},
			{"questions WHERE run = ?", &e.done.Questions},
			{"runs WHERE id = ?", &e.done.Runs},
		} {
			if err := e.drop(c, d.count, d.from, id); err != nil {
				return "", err
			}
		}
		if !e.dry {
			c.tally[countRun+run[1]] -= int64(e.done.Runs - had)
		}
	}
	if len(list) == pruneChunk {
		next = list[len(list)-1][0]
	}
	return next, nil
}

// answers erases what was sent in answer to a run or a message.
func (e *eraser) answers(c *Conn, origin string) error {
	states, err := rowsOf(c, func(r Row) string { return r.Str(0) }, "SELECT state FROM outbox WHERE origin = ? AND open = 0"+c.locked(), origin)
	if err != nil || len(states) == 0 {
		return err
	}
	if !e.dry {
		for _, s := range states {
			c.tally[countSend+s]--
		}
	}
	return e.drop(c, &e.done.Outgoing, "outbox WHERE origin = ? AND open = 0", origin)
}

// messages erases the texts of some messages of an agent behind a row.
func (e *eraser) messages(c *Conn, agent claybot.AgentID, after string) (next string, err error) {
	type message struct {
		id, body string
		crc      int64
	}
	var list []message
	var last int64
	err = c.each(`SELECT id, body, crc, n FROM messages WHERE agent = ? AND n > CAST(? AS BIGINT) AND (run IS NOT NULL OR skipped IS NOT NULL)
		AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = messages.run AND ended = 0) ORDER BY n LIMIT 0+?`, func(r Row) error {
		list = append(list, message{r.Str(0), r.Str(1), r.Int(2)})
		last = r.Int(3)
		return nil
	}, agent, "0"+after, pruneChunk)
	if err != nil {
		return "", err
	}
	for _, m := range list {
		if err := e.answers(c, m.id); err != nil {
			return "", err
		}
		var was claybot.AgentMessage
		_ = decode(m.body, m.crc, &was) // of a damaged one only its id stays
		body, crc, err := encode(claybot.AgentMessage{ID: claybot.MessageID(m.id), Type: was.Type, At: was.At, Keys: was.Keys, Run: was.Run})
		if err != nil {
			return "", err
		}
		if body == m.body {
			continue // an earlier call did it
		}
		e.done.Messages++
		if e.dry {
			continue
		}
		if err := c.do("UPDATE messages SET body = ?, crc = ? WHERE id = ?", body, crc, m.id); err != nil {
			return "", err
		}
		if err := c.do("UPDATE ledger SET error = NULL WHERE message = ? AND error IS NOT NULL", m.id); err != nil {
			return "", err
		}
	}
	if len(list) == pruneChunk {
		next = fmt.Sprint(last)
	}
	return next, nil
}

// own counts, for a dry call, what goes with an agent when it is deleted.
func (e *eraser) own(c *Conn, agent claybot.AgentID) error {
	scope := agentScope(agent)
	for _, d := range []struct {
		from  string
		count *int
		args  []any
	}{
		{"reminders WHERE agent = ?", &e.done.Reminders, []any{agent}},
		{"memory_versions WHERE scope = ?", &e.done.Notes, []any{scope}},
		{"documents WHERE scope IN (?1, ?1 || '/store', ?1 || '/undo', ?1 || '/undo/store')", &e.done.Documents, []any{scope}},
	} {
		if !e.dry {
			continue
		}
		if err := e.drop(c, d.count, d.from, d.args...); err != nil {
			return err
		}
	}
	return nil
}

// dests are the destinations to which the agents of the person may have sent, and those of
// the direct chats with the person.
func (e *eraser) dests() []string {
	all := make(map[string]bool)
	add := func(r claybot.Route) {
		if r.Connector == "" || r.ChannelID == "" {
			return
		}
		for _, aside := range []bool{false, true} {
			r.Aside = aside
			all[r.Dest()] = true
		}
	}
	for _, d := range e.p.Agents {
		add(d.Route())
	}
	for _, owner := range e.p.Owners {
		connector, user, _ := strings.Cut(owner, "/")
		add(claybot.Route{Connector: connector, ChannelID: user})
	}
	return slices.Sorted(maps.Keys(all))
}

// outgoing erases the texts of some messages to a destination behind one: notices, which
// answer nothing, and what a run that is gone has sent. Their ids stay, because some are sent
// once.
func (e *eraser) outgoing(c *Conn, dest, after string) (next string, err error) {
	var list []claybot.Outgoing
	var last int64
	rows := 0
	err = c.each("SELECT "+outgoingColumns+" FROM outbox INDEXED BY outbox_dest WHERE dest = ? AND n > CAST(? AS BIGINT) ORDER BY n LIMIT 0+?", func(r Row) error {
		rows++
		last = r.Int(0)
		o, err := decodeOutgoing(r)
		if err == nil && !open(o.State) && isFor(e.p, o) && o.Text+o.Cause != "" {
			list = append(list, o)
		}
		return nil
	}, dest, "0"+after, pruneChunk)
	if err != nil {
		return "", err
	}
	for _, o := range list {
		body, crc, err := encode(claybot.Outgoing{
			ID: o.ID, Kind: o.Kind, Run: o.Run, Agent: o.Agent, Message: o.Message, Route: o.Route, Part: o.Part, Parts: o.Parts, Once: o.Once, At: o.At,
		})
		if err != nil {
			return "", err
		}
		counted := false
		if e.dry {
			if counted, err = e.goesWith(c, o); err != nil {
				return "", err
			}
		}
		if !counted {
			e.done.Outgoing++
		}
		if e.dry {
			continue
		}
		if err := c.do("UPDATE outbox SET body = ?, crc = ?, cause = NULL WHERE id = ? AND open = 0", body, crc, o.ID); err != nil {
			return "", err
		}
	}
	if rows == pruneChunk {
		next = fmt.Sprint(last)
	}
	return next, nil
}

// goesWith reports whether a message goes with the run or the message that it answers, and
// was counted there.
func (e *eraser) goesWith(c *Conn, o claybot.Outgoing) (is bool, err error) {
	_, err = c.first(`SELECT agent FROM outbox JOIN runs ON runs.id = outbox.origin WHERE outbox.id = ?1
		UNION ALL SELECT agent FROM outbox JOIN messages ON messages.id = outbox.origin WHERE outbox.id = ?1`, func(r Row) error {
		_, is = e.p.Agents[claybot.AgentID(r.Str(0))]
		return nil
	}, o.ID)
	return is, err
}

// said erases what a person said in groups of a connector, as far as it is kept, behind a key.
func (e *eraser) said(c *Conn, owner, after string) (next string, err error) {
	connector, user, _ := strings.Cut(owner, "/")
	prefix := storage.CheckpointSaid + url.PathEscape(connector) + "/"
	rows, last := 0, ""
	var keys []string
	err = c.each("SELECT key, value FROM marks WHERE key > ?1 AND key < ?2 ORDER BY key LIMIT 0+?3", func(r Row) error {
		rows++
		last = r.Str(0)
		var m claybot.Said
		if v := r.Str(1); len(v) > 13 && json.Unmarshal([]byte(v[13:]), &m) == nil && m.UserID == user {
			keys = append(keys, last)
		}
		return nil
	}, max(prefix, after), afterAll(prefix), 10*pruneChunk)
	if err != nil {
		return "", err
	}
	for _, key := range keys {
		if err := e.drop(c, &e.done.Overheard, "marks WHERE key = ?", key); err != nil {
			return "", err
		}
	}
	if rows == 10*pruneChunk {
		next = last
	}
	return next, nil
}

// owned erases what is stored of an identity itself.
func (e *eraser) owned(c *Conn, owner string) error {
	connector, user, _ := strings.Cut(owner, "/")
	scope, ignored := "owner/"+owner, 0
	for _, d := range []struct {
		from  string
		count *int
		args  []any
	}{
		{"memories WHERE scope = ?", &ignored, []any{scope}},
		{"memory_versions WHERE scope = ?", &e.done.Notes, []any{scope}},
		{"documents WHERE scope = ?", &e.done.Documents, []any{scope}},
		{"documents WHERE scope >= ? AND scope < ?", &e.done.Documents, []any{scope + "/in/", scope + "/in0"}},
		{"marks WHERE key IN (?, ?)", &e.done.Settings, []any{storage.CheckpointVoices + "/" + owner, storage.CheckpointVoices + "-native/" + owner}},
		{"marks WHERE key = ?", &ignored, []any{storage.CheckpointAsked + owner}},
		{`pairings WHERE connector = ? AND "user" = ?`, &e.done.Settings, []any{connector, user}},
	} {
		if err := e.drop(c, d.count, d.from, d.args...); err != nil {
			return err
		}
	}
	if err := e.roles(c, owner); err != nil {
		return err
	}
	if err := e.unapproved(c, owner); err != nil || e.dry {
		return err
	}
	c.touched.notes = true
	return changedBy(c, versionVoices)
}

// unapproved erases the messages that wait until their sender, who has no access, gets it.
func (e *eraser) unapproved(c *Conn, owner string) error {
	var ids []string
	err := c.each("SELECT id, descriptor FROM parked WHERE cause = ?", func(r Row) error {
		var d claybot.Descriptor
		if unmarshal(r.Str(1), &d) == nil && d.OwnerID() == owner {
			ids = append(ids, r.Str(0))
		}
		return nil
	}, storage.ParkedUnapproved)
	for _, id := range ids {
		if err == nil {
			err = e.drop(c, &e.done.Messages, "parked WHERE id = ?", id)
		}
	}
	c.touched.arrivals = true
	return err
}
