package relational

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/claybot/claybot"
)

// Run implements storage.RunReader.
func (db runs) Run(ctx context.Context, id claybot.RunID) (claybot.Run, error) {
	var run claybot.Run
	err := db.read(ctx, func(c *Conn) (err error) {
		run, err = runOrReserved(c, id)
		return err
	})
	return run, err
}

// LastRun implements storage.RunReader. Reserved ids that never became a run do not
// count.
func (db runs) LastRun(ctx context.Context, agent claybot.AgentID) (claybot.Run, error) {
	var run claybot.Run
	err := db.read(ctx, func(c *Conn) error {
		var id claybot.RunID
		err := need(c.first("SELECT id FROM runs INDEXED BY runs_agent WHERE agent = ? AND started > 0 ORDER BY rowid DESC LIMIT 1",
			func(r Row) error { id = claybot.RunID(r.Str(0)); return nil }, agent))
		if err != nil {
			return err
		}
		run, err = loadRun(c, id)
		return err
	})
	if err != nil {
		return claybot.Run{}, fmt.Errorf("last run of agent %s: %w", agent, err)
	}
	return run, nil
}

const eventsQuery = "SELECT seq, v, type, at, data FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT 0+?"

// Events implements storage.RunReader. It reads in pages, so that a slow reader
// holds nothing.
func (db runs) Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error] {
	const shortest, longest = 200, 3200
	return func(yield func(claybot.Event, error) bool) {
		events := make([]claybot.Event, 0, 16)
		for page := shortest; ; page = min(2*page, longest) {
			events = events[:0]
			err := db.read(ctx, func(c *Conn) error {
				return c.each(eventsQuery, func(r Row) error {
					e := claybot.Event{Run: id, Seq: r.Int(0), V: int(r.Int(1)), Type: claybot.EventType(r.Str(2)), At: claybot.Time(r.Int(3))}
					if !r.Null(4) {
						e.Data = json.RawMessage(r.Str(4))
					}
					events = append(events, e)
					return nil
				}, id, after, page)
			})
			if err != nil {
				yield(claybot.Event{}, fmt.Errorf("events of run %s: %w", id, err))
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if len(events) < page {
				return
			}
		}
	}
}
