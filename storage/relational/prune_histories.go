package relational

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.HistoryPruner = (*Agents)(nil)

// PruneHistories implements storage.HistoryPruner. It leaves out idle agents that a member
// holds.
func (s *Agents) PruneHistories(ctx context.Context, before claybot.Time) error {
	for after, more := "", true; more; {
		var old []claybot.AgentID
		rows := 0
		err := s.read(ctx, func(c *Conn) error {
			return c.each("SELECT id, (SELECT body FROM records WHERE agent = agents.id ORDER BY n LIMIT 1) FROM agents WHERE id > ? ORDER BY id LIMIT 0+?", func(r Row) error {
				rows++
				after = r.Str(0)
				if !r.Null(1) && recordedAt(r.Str(1)) < before {
					old = append(old, claybot.AgentID(after))
				}
				return nil
			}, after, recordPage)
		})
		if err != nil {
			return fmt.Errorf("prune histories: %w", err)
		}
		more = rows == recordPage
		for _, id := range old {
			err := s.pruneHistory(ctx, id, before)
			if class := storage.ClassOf(err); class == storage.ClassAgent || class == storage.ClassMember {
				s.log.Error("failed to prune history", "agent", id, "err", err)
				continue
			}
			if err != nil {
				return fmt.Errorf("prune the history of agent %s: %w", id, err)
			}
		}
	}
	return nil
}

// recordedAt is the time of a record; 0 if it cannot be read, which is then as old as those
// around it.
func recordedAt(body string) claybot.Time {
	var r struct{ At claybot.Time }
	_ = json.Unmarshal([]byte(body), &r)
	return r.At
}

func (s *Agents) pruneHistory(ctx context.Context, id claybot.AgentID, before claybot.Time) error {
	m, err := s.remembered(ctx, id, func(c *Conn, page Ask) error { return c.ask(page) })
	if err != nil {
		return err
	}
	if n := len(m.records); n > 0 && m.records[n-1].At < before {
		ended, err := write(ctx, s.core, func(c *Conn) (bool, error) { return expire(c, id, m.n) })
		if ended || err != nil {
			s.recent.Take(id)
			return err
		}
	}
	// What counts begins there or later from now on, so no lock is needed.
	for more := true; more; {
		more, err = write(ctx, s.core, func(c *Conn) (bool, error) { return pruneRecords(c, id, m.from, before) })
		if err != nil {
			return err
		}
	}
	return nil
}

// expire replaces the history of an agent that has n records, and nothing to do, and reports
// whether it did.
func expire(c *Conn, id claybot.AgentID, n int64) (bool, error) {
	a, err := loadInbox(c, id)
	if err != nil || a.node != "" || a.run != "" || a.shown.busy {
		return false, ignoreNotFound(err)
	}
	var records int64
	if err := c.ask(askRecords(id, &records)); err != nil || records != n {
		return false, err
	}
	if err := addRecords(c, id, n, storage.Expired(claybot.Time(c.now()))); err != nil {
		return false, err
	}
	if err := c.do("DELETE FROM results WHERE agent = ?", id); err != nil {
		return false, err
	}
	return true, c.do("DELETE FROM records WHERE agent = ? AND n <= ?", id, n)
}

// pruneRecords removes some of the records of an agent before n that are from before a time,
// and their results. It reports whether there may be more.
func pruneRecords(c *Conn, id claybot.AgentID, n int64, before claybot.Time) (more bool, err error) {
	rows, last := 0, int64(0)
	var results []string
	young := false
	err = c.each("SELECT n, body FROM records WHERE agent = ? AND n < ? ORDER BY n LIMIT 0+?", func(r Row) error {
		rows++
		var rec claybot.Record
		_ = json.Unmarshal([]byte(r.Str(1)), &rec) // a damaged one is as old as those around it
		if young = young || rec.At >= before; young {
			return nil
		}
		last = r.Int(0)
		if name := storage.SavedResult(id, rec); name != "" {
			results = append(results, name)
		}
		return nil
	}, id, n, recordPage)
	if err != nil || last == 0 {
		return false, err
	}
	names, err := json.Marshal(results)
	if err == nil && len(results) > 0 {
		err = c.do("DELETE FROM results WHERE agent = ? AND name IN (SELECT value FROM json_each(?))", id, names)
	}
	if err == nil {
		err = c.do("DELETE FROM records WHERE agent = ? AND n <= ?", id, last)
	}
	return rows == recordPage && !young, err
}
