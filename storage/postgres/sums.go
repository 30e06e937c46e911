package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/storage/relational"
)

// Transactions insert increments of shared sums as rows of the table sums, so that they
// need not wait for each other and need one statement for all sums. A member that has
// inserted some adds up those of all members some seconds later. Queries read both
// through the views whose names end with _now.

const (
	addAfter = 5 * time.Second
	// addAtOnce is how many rows are added up in one transaction.
	addAtOnce = 10_000
)

// leave implements relational.Dialect.Leave.
func (db *DB) leave(s relational.Sums) (q string, arg any, err error) {
	for i := range s.Counters { // JSON would hide what the server rejects
		s.Counters[i].Name = storable(s.Counters[i].Name)
	}
	for i := range s.Latencies {
		s.Latencies[i].What = storable(s.Latencies[i].What)
	}
	for i := range s.Spent {
		r := &s.Spent[i]
		for _, text := range []*string{&r.Agent, &r.Owner, &r.Model, &r.Type, &r.Connector, &r.Channel} {
			*text = storable(*text)
		}
	}
	select {
	case db.left <- struct{}{}:
	default:
	}
	body, err := json.Marshal(s)
	return "INSERT INTO sums (body) VALUES (CAST(? AS JSON))", string(body), err
}

// take deletes some increments. One transaction does so at a time; concurrent ones do
// not wait and find nothing.
const take = `DELETE FROM sums WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM sums WHERE (SELECT pg_try_advisory_xact_lock(hashtextextended('sums', 0))) ORDER BY n LIMIT $1)) RETURNING body::text`

// addUp adds relational.Sums, as JSON, to the tables.
const addUp = `WITH left_spent AS (
	SELECT * FROM json_populate_recordset(NULL::spent, $1::json -> 'spent')
), to_counters AS (
	INSERT INTO counters (name, n) SELECT name, n FROM json_populate_recordset(NULL::counters, $1::json -> 'counters')
	ON CONFLICT (name) DO UPDATE SET n = counters.n + excluded.n
), to_latencies AS (
	INSERT INTO latencies (day, what, bucket, n) SELECT day, what, bucket, n FROM json_populate_recordset(NULL::latencies, $1::json -> 'latencies')
	ON CONFLICT (day, what, bucket) DO UPDATE SET n = latencies.n + excluded.n
), to_spent AS (
	INSERT INTO spent AS t (day, agent, owner, model, type, connector, channel, ` + amounts + `)
	SELECT day, agent, owner, model, type, connector, channel, ` + amounts + ` FROM left_spent
	ON CONFLICT (day, agent, owner, model) ` + addAmounts + `
) INSERT INTO spent_days AS t (day, model, type, ` + amounts + `)
	SELECT day, model, type, ` + summedAmounts + ` FROM left_spent GROUP BY day, model, type
	ON CONFLICT (day, model, type) ` + addAmounts + ``

const (
	amounts       = "input, output, cached, written, reasoning, cost, unpriced, calls, tools, runs, estimated"
	summedAmounts = `sum(input), sum(output), sum(cached), sum(written), sum(reasoning), sum(cost), sum(unpriced), sum(calls), sum(tools), sum(runs), max(estimated)`
	addAmounts    = `DO UPDATE SET input = t.input + excluded.input, output = t.output + excluded.output, cached = t.cached + excluded.cached,
	written = t.written + excluded.written, reasoning = t.reasoning + excluded.reasoning, cost = t.cost + excluded.cost,
	unpriced = t.unpriced + excluded.unpriced, calls = t.calls + excluded.calls, tools = t.tools + excluded.tools, runs = t.runs + excluded.runs,
	estimated = greatest(t.estimated, excluded.estimated)`
)

// addUpNow adds up all increments.
func (db *DB) addUpNow(ctx context.Context) error {
	for {
		n, err := db.addUpSome(ctx)
		if err != nil || n < addAtOnce {
			return err
		}
	}
}

func (db *DB) addUpSome(ctx context.Context) (n int, err error) {
	conn, err := acquire(ctx, db.pool)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	ctx, cancel := ending(ctx)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, conn.Conn(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		// A power loss undoes all of it: nothing is lost or added twice.
		for _, q := range append(slices.Clone(db.settings), "SET LOCAL synchronous_commit = off") {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, take, addAtOnce)
		if err != nil {
			return err
		}
		bodies, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(bodies) == 0 {
			return err
		}
		n = len(bodies)
		all, err := db.total(bodies)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, addUp, all)
		return err
	})
	return n, classify(err)
}

// total returns the sum of Sums, all as JSON. It skips invalid ones, which must not
// block the rest.
func (db *DB) total(bodies []string) (string, error) {
	var t relational.Total
	for _, b := range bodies {
		var s relational.Sums
		if err := json.Unmarshal([]byte(b), &s); err != nil {
			db.log.Error("pending counter updates damaged and lost", "err", err)
			continue
		}
		t.Add(s)
	}
	all, err := json.Marshal(t.Sums())
	return string(all), err
}

// addUpLater adds up after this process has inserted increments, until ctx is done.
func (db *DB) addUpLater(ctx context.Context) {
	pause := time.NewTimer(0) // for the increments of a crashed process
	defer pause.Stop()
	told := false // the failure is logged
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		if err := db.addUpNow(ctx); err != nil {
			if errors.Is(err, context.Canceled) {
				return
			}
			if !told {
				db.log.Warn("failed to apply pending counter updates, retrying", "err", err)
			}
			told = true
		} else {
			told = false
			select {
			case <-db.left:
			case <-ctx.Done():
				return
			}
		}
		pause.Reset(addAfter)
	}
}
