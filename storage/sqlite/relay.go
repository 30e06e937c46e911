package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// errNoName refuses a sink without a name.
var errNoName = errors.New("a sink has no name")

func loadSinks(c *conn) (names []string, err error) {
	err = c.each("SELECT name FROM sinks ORDER BY name", func(r row) error { names = append(names, r.str(0)); return nil })
	return names, err
}

// Sinks implements storage.Relays. The names stay across restarts, so a process
// names those that it has at each start.
func (db *DB) Sinks(ctx context.Context, names ...string) error {
	_, err := write(ctx, db, func(c *conn) (struct{}, error) { return struct{}{}, c.nameSinks(names) })
	if err != nil {
		return fmt.Errorf("sinks: %w", err)
	}
	return nil
}

func (c *conn) nameSinks(names []string) error {
	if slices.Contains(names, "") {
		return errNoName
	}
	known, err := loadSinks(c)
	if err != nil {
		return err
	}
	for _, name := range known {
		if slices.Contains(names, name) {
			continue
		}
		for _, q := range []string{"DELETE FROM sinks WHERE name = ?", "DELETE FROM relays WHERE sink = ?"} {
			if _, err := c.exec(q, name); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		if _, err := c.exec("INSERT INTO sinks (name) VALUES (?) ON CONFLICT (name) DO NOTHING", name); err != nil {
			return err
		}
	}
	now, err := loadSinks(c)
	c.sinks, c.journal.sinks = now, &now
	return err
}

// owe notes that every sink is to be told the events of a run after known, the
// first of which happened at a time.
func (c *conn) owe(run claybot.RunID, known int64, at claybot.Time) error {
	for _, sink := range c.sinks {
		_, err := c.exec(`INSERT INTO relays (run, sink, seq, since) VALUES (?, ?, ?, ?)
			ON CONFLICT (run, sink) DO UPDATE SET since = coalesce(since, excluded.since)`, run, sink, known, at)
		if err != nil {
			return err
		}
	}
	return nil
}

const backlogQuery = `SELECT run, seq, since FROM relays INDEXED BY relays_backlog
	WHERE sink = ? AND since IS NOT NULL ORDER BY since, run LIMIT 0+?`

// Backlog implements storage.Relays.
func (db *DB) Backlog(ctx context.Context, sink string, limit int) ([]storage.Unpublished, error) {
	var list []storage.Unpublished
	err := db.read(ctx, func(c *conn) error {
		return c.each(backlogQuery, func(r row) error {
			list = append(list, storage.Unpublished{Run: claybot.RunID(r.str(0)), After: r.int(1), Since: claybot.Time(r.int(2))})
			return nil
		}, sink, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("backlog of sink %s: %w", sink, err)
	}
	return list, nil
}

// Published implements storage.Relays. A sink or run that is not known changes
// nothing. It survives the end of the process at once, a loss of power only
// with the next commit of anything else: then a sink is told again, which it
// must bear anyway.
func (db *DB) Published(ctx context.Context, sink string, run claybot.RunID, seq int64) error {
	_, err := lightly(ctx, db, func(c *conn) (struct{}, error) { return struct{}{}, c.published(sink, run, seq) })
	if err != nil {
		return fmt.Errorf("published to sink %s, run %s: %w", sink, run, err)
	}
	return nil
}

func (c *conn) published(sink string, id claybot.RunID, seq int64) error {
	var (
		last  int64
		ended bool
		next  claybot.Time
	)
	found, err := c.first(`SELECT runs.last_seq, runs.ended, events.at FROM relays
		JOIN runs ON runs.id = relays.run LEFT JOIN events ON events.run = relays.run AND events.seq = ?3 + 1
		WHERE relays.run = ?1 AND relays.sink = ?2 AND relays.seq < ?3`, func(r row) error {
		last, ended, next = r.int(0), r.int(1) > 0, claybot.Time(r.int(2))
		return nil
	}, id, sink, seq)
	switch {
	case err != nil || !found:
		return err
	case seq < last:
		_, err = c.exec("UPDATE relays SET seq = ?, since = ?, published_at = ? WHERE run = ? AND sink = ?", seq, next, now(), id, sink)
	case ended:
		_, err = c.exec("DELETE FROM relays WHERE run = ? AND sink = ?", id, sink)
	default:
		_, err = c.exec("UPDATE relays SET seq = ?, since = NULL, published_at = ? WHERE run = ? AND sink = ?", last, now(), id, sink)
	}
	return err
}
