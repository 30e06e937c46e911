package relational

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// pageLength is the default length of a page.
const pageLength = 50

func limitOf(limit int) int {
	if limit <= 0 {
		return pageLength
	}
	return limit
}

// A listing is a query of one page: rows below a place in the order of the
// list, which an index has. Its last parameter is the limit.
type listing struct {
	query string
	args  []any
}

// lastID sorts after every id.
const lastID = "\U0010FFFF"

// RunPage implements storage.RunReader, by id: run ids sort by the time they were
// made. Runs whose rows are damaged are in it with what is known of them.
func (db runs) RunPage(ctx context.Context, q storage.RunQuery) ([]claybot.Run, error) {
	limit := limitOf(q.Limit)
	var runs, pending []claybot.Run
	err := db.read(ctx, func(c *Conn) error {
		// Pending messages are read first: a message that is taken between the
		// two queries is then in both results, not in neither.
		if q.State == "" || q.State == claybot.RunPending {
			l := pendingListing(q, limit)
			err := c.each(l.query, func(r Row) error {
				pending = append(pending, pendingRun(claybot.RunID(r.Str(0)), claybot.AgentID(r.Str(1)), claybot.MessageID(r.Str(2))))
				return nil
			}, l.args...)
			if err != nil || q.State != "" {
				return err
			}
		}
		l := runListing(q, limit)
		return c.each(l.query, func(r Row) error {
			run, err := decodeRun(r)
			if err != nil {
				db.log.Error("damaged run", "run", run.ID, "agent", run.Agent, "err", err)
			}
			runs = append(runs, run)
			return nil
		}, l.args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	runs = append(runs, pending...)
	slices.SortStableFunc(runs, func(a, b claybot.Run) int { return cmp.Compare(b.ID, a.ID) })
	// For a message that was taken meanwhile, keep its run.
	runs = slices.CompactFunc(runs, func(a, b claybot.Run) bool { return a.ID == b.ID })
	return runs[:min(limit, len(runs))], nil
}

func before(id claybot.RunID) claybot.RunID {
	if id == "" {
		return lastID
	}
	return id
}

func runListing(q storage.RunQuery, limit int) listing {
	where, args := " WHERE id < ?", []any{before(q.Before)}
	switch amiss := q.State == claybot.RunFailed || q.State == claybot.RunCanceled; {
	case q.Agent != "" && amiss:
		where = " INDEXED BY runs_amiss WHERE state IN ('FAILED', 'CANCELED') AND id < ? AND agent = ? AND state = ?"
		args = append(args, q.Agent, q.State)
	case q.Agent != "" && (q.State == claybot.RunRunning || q.State == claybot.RunAwaiting):
		where = " INDEXED BY one_unfinished_run WHERE state IN ('PENDING', 'RUNNING', 'AWAITING') AND id < ? AND agent = ? AND state = ?"
		args = append(args, q.Agent, q.State)
	case q.Agent != "" && q.State != "":
		where = " INDEXED BY runs_by_agent WHERE id < ? AND agent = ? AND state = ?"
		args = append(args, q.Agent, q.State)
	case q.Agent != "":
		where = " INDEXED BY runs_by_agent WHERE id < ? AND agent = ?"
		args = append(args, q.Agent)
	case q.State.Ended():
		where = " INDEXED BY runs_ended WHERE ended > 0 AND id < ? AND state = ?"
		args = append(args, q.State)
	case q.State != "": // few: at most one of each agent, sorted when they are read
		where = " INDEXED BY one_unfinished_run WHERE state IN ('PENDING', 'RUNNING', 'AWAITING') AND id < ? AND state = ?"
		args = append(args, q.State)
	}
	return listing{"SELECT " + runColumns + " FROM runs" + where + " ORDER BY id DESC LIMIT 0+?", append(args, limit)}
}

// pendingListing lists the ids that waiting messages reserved.
func pendingListing(q storage.RunQuery, limit int) listing {
	const waits = "reserved IS NOT NULL AND run IS NULL AND skipped IS NULL AND reserved < ?"
	where, args := " INDEXED BY messages_pending WHERE "+waits, []any{before(q.Before)}
	if q.Agent != "" {
		where = " INDEXED BY messages_pending_agent WHERE " + waits + " AND agent = ?"
		args = append(args, q.Agent)
	}
	return listing{"SELECT reserved, agent, id FROM messages" + where + " ORDER BY reserved DESC LIMIT 0+?", append(args, limit)}
}

// A place is the position of an agent in the list of all.
type place struct {
	userAt  claybot.Time
	userN   int64
	created claybot.Time
	id      claybot.AgentID
}

var firstPlace = place{math.MaxInt64, math.MaxInt64, math.MaxInt64, lastID}

// AgentPage implements storage.AgentReader. An agent that stands at the end of a page
// and is deleted before the next is asked for is storage.ErrNotFound; one that
// is written to meanwhile may come twice or not at all. Agents whose
// descriptors are damaged are in it with what is known of them.
func (db index) AgentPage(ctx context.Context, q storage.AgentQuery) ([]storage.IndexEntry, error) {
	var entries []storage.IndexEntry
	err := db.read(ctx, func(c *Conn) error {
		p := firstPlace
		if q.After != "" {
			p.id = q.After
			err := need(c.first("SELECT last_user_at, last_user_n, created_at FROM agents WHERE id = ?", func(r Row) error {
				p.userAt, p.userN, p.created = claybot.Time(r.Int(0)), r.Int(1), claybot.Time(r.Int(2))
				return nil
			}, q.After))
			if err != nil {
				return fmt.Errorf("agent %s: %w", q.After, err)
			}
		}
		l := agentListing(q, p, limitOf(q.Limit))
		return c.each(l.query, func(r Row) error {
			e, err := decodeEntry(r)
			if err != nil {
				db.log.Error("damaged index row of an agent", "agent", e.ID, "err", err)
			}
			entries = append(entries, e)
			return nil
		}, l.args...)
	})
	return result(entries, err, "list agents")
}

func agentListing(q storage.AgentQuery, p place, limit int) listing {
	// Agents of people stand first in the list of all, so they need no index of
	// their own there.
	index, kind := "agents_listed", ""
	switch {
	case q.Parent != "":
		index = "agents_below"
	case q.Owner != "":
		index = "agents_owned"
	case q.Busy:
		index = "agents_busy"
	case q.Type != "" && q.Type != claybot.AgentUser:
		index, kind = "agents_background", "type <> 'user' AND "
	}
	where := " INDEXED BY " + index + " WHERE " + kind + "(last_user_at, last_user_n, created_at, id) < (?, ?, ?, ?)"
	args := []any{p.userAt, p.userN, p.created, p.id}
	if q.Busy {
		where += " AND busy = 1"
	}
	for _, f := range []struct{ column, value string }{{"parent", string(q.Parent)}, {"owner", q.Owner}, {"type", string(q.Type)}} {
		if f.value != "" {
			where += " AND " + f.column + " = ?"
			args = append(args, f.value)
		}
	}
	return listing{"SELECT " + entryColumns + " FROM agents" + where +
		" ORDER BY last_user_at DESC, last_user_n DESC, created_at DESC, id DESC LIMIT 0+?", append(args, limit)}
}
