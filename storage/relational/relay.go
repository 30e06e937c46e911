package relational

import (
	"context"
	"errors"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// errNoName refuses a sink without a name.
var errNoName = errors.New("a relay has no name")

// LoadSinks lists the sinks that get events.
func LoadSinks(c *Conn) (names []string, err error) {
	err = c.each("SELECT name FROM sinks ORDER BY name", func(r Row) error { names = append(names, r.Str(0)); return nil })
	return names, err
}

// Sinks implements storage.Relays. The names stay across restarts, so a process
// names those that it has at each start.
func (db relays) Sinks(ctx context.Context, forget bool, names ...string) error {
	err := db.update(ctx, func(c *Conn) error { return nameSinks(c, forget, names) })
	return failed(err, "relays")
}

func nameSinks(c *Conn, forget bool, names []string) error {
	if slices.Contains(names, "") {
		return errNoName
	}
	known, err := LoadSinks(c)
	if err != nil {
		return err
	}
	others, err := otherNodesLive(c)
	if err != nil {
		return err
	}
	for _, name := range known {
		if others || !forget || slices.Contains(names, name) { // another node may have it still
			continue
		}
		for _, q := range []string{"DELETE FROM sinks WHERE name = ?", "DELETE FROM relays WHERE sink = ?"} {
			if err := c.do(q, name); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		if err := c.do("INSERT INTO sinks (name) VALUES (?) ON CONFLICT (name) DO NOTHING", name); err != nil {
			return err
		}
	}
	now, err := LoadSinks(c)
	c.sinks, c.journal.sinks = now, &now
	return err
}

// otherNodesLive reports whether other nodes are there.
func otherNodesLive(c *Conn) (bool, error) {
	if c.dialect.Alone {
		return false, nil
	}
	n := 0
	err := c.each("SELECT 1 FROM nodes WHERE until > ? LIMIT 0+?", func(Row) error { n++; return nil }, c.now(), 2)
	return n > 1, err
}

// oweSinks notes that every sink is to be told the events of a run after known, the
// first of which happened at a time.
func oweSinks(c *Conn, run claybot.RunID, known int64, at claybot.Time) error {
	for _, sink := range c.sinks {
		err := c.do(`INSERT INTO relays (run, sink, seq, since) VALUES (?, ?, ?, ?)
			ON CONFLICT (run, sink) DO UPDATE SET since = coalesce(relays.since, excluded.since)`, run, sink, known, at)
		if err != nil {
			return err
		}
	}
	return nil
}

const backlogQuery = `SELECT run, seq, since FROM relays INDEXED BY relays_backlog
	WHERE sink = ? AND since IS NOT NULL ORDER BY since, run LIMIT 0+?`

func (db relays) Backlog(ctx context.Context, sink string, limit int) ([]storage.Unpublished, error) {
	list, err := selectAll(ctx, db, func(r Row) storage.Unpublished {
		return storage.Unpublished{Run: claybot.RunID(r.Str(0)), After: r.Int(1), Since: claybot.Time(r.Int(2))}
	}, backlogQuery, sink, limit)
	return result(list, err, "backlog of relay %s", sink)
}

// Published implements storage.Relays. A sink or run that is not known changes
// nothing. It survives the end of the process at once, a loss of power only
// with the next commit of anything else: then a sink is told again, which it
// must bear anyway.
func (db relays) Published(ctx context.Context, sink string, run claybot.RunID, seq int64) error {
	err := db.updateLightly(ctx, func(c *Conn) error { return savePublished(c, sink, run, seq) })
	return failed(err, "published to relay %s, run %s", sink, run)
}

func savePublished(c *Conn, sink string, id claybot.RunID, seq int64) error {
	var (
		last  int64
		ended bool
		next  claybot.Time
	)
	// With this lock, a writer of events sees what is written here, or the other
	// way round.
	found, err := c.first("SELECT 1 FROM relays WHERE run = ? AND sink = ? AND seq < ?"+c.locked(), func(Row) error { return nil }, id, sink, seq)
	if err != nil || !found {
		return err
	}
	found, err = c.first(`SELECT runs.last_seq, runs.ended, events.at FROM runs
		LEFT JOIN events ON events.run = runs.id AND events.seq = ?2 + 1 WHERE runs.id = ?1`, func(r Row) error {
		last, ended, next = r.Int(0), r.Int(1) > 0, claybot.Time(r.Int(2))
		return nil
	}, id, seq)
	switch {
	case err != nil || !found:
		return err
	case seq < last:
		err = c.do("UPDATE relays SET seq = ?, since = ?, published_at = ? WHERE run = ? AND sink = ?", seq, next, c.now(), id, sink)
	case ended:
		err = c.do("DELETE FROM relays WHERE run = ? AND sink = ?", id, sink)
	default:
		err = c.do("UPDATE relays SET seq = ?, since = NULL, published_at = ? WHERE run = ? AND sink = ?", last, c.now(), id, sink)
	}
	return err
}
