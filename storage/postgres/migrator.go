package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/claybot/claybot/lazyregexp"
)

const (
	// lockTime is how long a step waits for a table lock. Every later request queues
	// behind a waiting step, so it gives up soon and retries.
	lockTime = 2 * time.Second
	// firstPause and longestPause bound the pause between tries.
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
	// remind is how often a waiting migration logs why.
	remind = 30 * time.Second
)

// A migrator upgrades the schema to the present version, without a time limit; only
// its connections have the open timeout. Of several concurrent ones, one migrates and
// the others wait. It continues where an interrupted one stopped.
//
// The lock belongs to a transaction on a dedicated connection, because a pooler has no
// sessions. The others poll for it instead of blocking in the server, because CREATE
// INDEX CONCURRENTLY would wait for their transactions.
type migrator struct {
	connect  func(ctx context.Context) (*pgx.Conn, error)
	list     []migration
	lockTime time.Duration
	pooler   bool // use no session settings
	log      *slog.Logger
}

// A migrationError names the migration and the step that failed.
type migrationError struct {
	version, step, steps int
	err                  error
}

func (e *migrationError) Error() string {
	if e.steps > 1 {
		return fmt.Sprintf("migration %d, step %d of %d: %v", e.version, e.step, e.steps, e.err)
	}
	return fmt.Sprintf("migration %d: %v", e.version, e.err)
}

func (e *migrationError) Unwrap() error { return e.err }

// run migrates with conn if necessary. It returns the version of the schema before.
func (m *migrator) run(ctx context.Context, conn *pgx.Conn) (before int, err error) {
	before, err = m.version(ctx, conn)
	if err != nil || before >= len(m.list) {
		return before, err
	}
	guard, err := m.connect(ctx)
	if err != nil {
		return before, err
	}
	defer func() { _ = guard.Close(context.WithoutCancel(ctx)) }() // ends its transaction
	tx, err := m.lock(ctx, guard)
	if err != nil {
		return before, err
	}
	version, err := m.version(ctx, conn) // another member may have been first
	if err != nil {
		return before, err
	}
	for n := version + 1; n <= len(m.list); n++ {
		if err := m.migrate(ctx, conn, tx, n); err != nil {
			return before, err
		}
	}
	return before, nil
}

// version returns the version of the schema, or an error if it is too new.
func (m *migrator) version(ctx context.Context, conn *pgx.Conn) (int, error) {
	version, oldest, err := schemaVersion(ctx, conn)
	if err != nil {
		return 0, err
	}
	return version, checkKnown(version, oldest, len(m.list))
}

// lock waits until no other member migrates. The lock is held until the transaction
// or its connection ends.
func (m *migrator) lock(ctx context.Context, guard *pgx.Conn) (pgx.Tx, error) {
	host, _ := os.Hostname() // for display only
	name := fmt.Sprintf("claybot migrates on %.30s, process %d", host, os.Getpid())
	w := waiter{log: m.log, words: "another member migrates the database"}
	for {
		tx, err := guard.Begin(ctx)
		if err != nil {
			return nil, err
		}
		var ours bool
		err = tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(migrationLock)).Scan(&ours)
		if err == nil && ours {
			_, err = tx.Exec(ctx, "SELECT set_config('application_name', $1, true), set_config('idle_in_transaction_session_timeout', '0', true)", name)
		}
		if err != nil {
			return nil, err
		}
		if ours {
			return tx, nil
		}
		if err := tx.Rollback(ctx); err != nil {
			return nil, err
		}
		if err := w.wait(ctx, func() string { return holder(ctx, guard, migrationLock) }); err != nil {
			return nil, err
		}
	}
}

// holder describes the holder of an advisory lock for display.
func holder(ctx context.Context, conn *pgx.Conn, lock int64) string {
	var who string
	err := conn.QueryRow(ctx, `SELECT coalesce(nullif(a.application_name, ''), 'a client') || ' at ' || coalesce(host(a.client_addr), 'the server itself') || ', server process ' || l.pid
		FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.classid::bigint = $1::bigint >> 32 AND l.objid::bigint = $1::bigint & 4294967295
		LIMIT 1`, lock).Scan(&who)
	if err != nil {
		return "not known"
	}
	return who
}

// migrate runs the remaining steps of migration n. guard holds the lock.
func (m *migrator) migrate(ctx context.Context, conn *pgx.Conn, guard pgx.Tx, n int) error {
	all := m.list[n-1].steps()
	began := time.Now()
	fail := func(k int, err error) error {
		return &migrationError{version: n, step: k + 1, steps: len(all), err: err}
	}
	done, err := stepsDone(ctx, conn, n)
	if err != nil {
		return fail(done, err)
	}
	if done > 0 {
		m.log.Info("migration resumed", "version", n, "done", done, "steps", len(all))
	}
	for k := done; k < len(all); k++ {
		if _, err := guard.Exec(ctx, "SELECT 1"); err != nil {
			return fail(k, fmt.Errorf("the lock of migrations is lost: %w", err))
		}
		if err := m.step(ctx, conn, n, k, all); err != nil {
			return fail(k, err)
		}
		m.log.Debug("migration step done", "version", n, "step", k+1, "steps", len(all))
	}
	m.log.Info("migration done", "version", n, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// stepsDone returns how many steps of a migration are complete.
func stepsDone(ctx context.Context, conn *pgx.Conn, n int) (done int, err error) {
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('schema_steps') IS NOT NULL").Scan(&there); err != nil || !there {
		return 0, err
	}
	err = conn.QueryRow(ctx, "SELECT coalesce(max(step), 0) FROM schema_steps WHERE version = $1", n).Scan(&done)
	return done, err
}

// errBusyStep: an interrupted attempt at the step still runs in the server.
var errBusyStep = errors.New("an earlier attempt at this step still works in the server")

// step runs step k of migration n and retries while another transaction holds a lock
// that it needs.
func (m *migrator) step(ctx context.Context, conn *pgx.Conn, n, k int, all []step) error {
	w := waiter{log: m.log.With("version", n, "step", k+1), words: "a lock"}
	for {
		err := m.try(ctx, conn, n, k, all)
		var pg *pgconn.PgError
		locked := errors.As(err, &pg) && (pg.Code == codeLockTimeout || pg.Code == codeDeadlock || pg.Code == codeSerialization)
		if !locked && !errors.Is(err, errBusyStep) {
			return err
		}
		if err := w.wait(ctx, err.Error); err != nil {
			return err
		}
	}
}

func (m *migrator) try(ctx context.Context, conn *pgx.Conn, n, k int, all []step) error {
	sql := all[k].sql
	if all[k].concurrently {
		if err := m.concurrently(ctx, conn, sql); err != nil {
			return err
		}
		sql = "" // only the record is left to write
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // no effect after Commit
	var ours bool
	if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(stepLock)).Scan(&ours); err != nil {
		return err
	}
	if !ours {
		return errBusyStep
	}
	if over, err := m.done(ctx, conn, n, k); err != nil || over {
		return err
	}
	begin := fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = 0", m.lockTime.Milliseconds())
	for _, q := range []string{begin, sql, m.noted(n, k, len(all))} {
		if q == "" {
			continue
		}
		if _, err := tx.Exec(ctx, q, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// done reports whether step k of migration n is complete: an earlier attempt that still
// worked in the server may have succeeded.
func (m *migrator) done(ctx context.Context, conn *pgx.Conn, n, k int) (bool, error) {
	version, err := m.version(ctx, conn)
	if err != nil || version >= n {
		return err == nil, err
	}
	done, err := stepsDone(ctx, conn, n)
	return done > k, err
}

// noted returns the statements that record a step as complete or, for the last one,
// the whole migration.
func (m *migrator) noted(n, k, steps int) string {
	version := fmt.Sprintf("INSERT INTO schema_versions (version, oldest) VALUES (%d, %d)", n, m.list[n-1].oldest)
	switch {
	case steps == 1:
		return version
	case k == steps-1:
		return version + "; DROP TABLE IF EXISTS schema_steps"
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS schema_steps (version INTEGER NOT NULL, step INTEGER NOT NULL, PRIMARY KEY (version, step)); INSERT INTO schema_steps VALUES (%d, %d)", n, k+1)
}

// newIndex matches the name of the index that a statement creates.
var newIndex = lazyregexp.New(`(?is)create\s+(?:unique\s+)?index\s+concurrently\s+(?:if\s+not\s+exists\s+)?([a-z0-9_]+)\s+on\b`)

// concurrently executes a statement without a transaction. It first drops an invalid
// index that an interrupted attempt left; PostgreSQL would maintain it and never use it.
func (m *migrator) concurrently(ctx context.Context, conn *pgx.Conn, sql string) error {
	if !m.pooler { // it blocks nothing while it waits
		if _, err := conn.Exec(ctx, "SET lock_timeout = 0; SET statement_timeout = 0", pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	if name := newIndex.FindStringSubmatch(sql); name != nil {
		var valid, busy bool
		err := conn.QueryRow(ctx, `SELECT indisvalid, EXISTS (SELECT 1 FROM pg_stat_progress_create_index WHERE index_relid = indexrelid)
			FROM pg_index WHERE indexrelid = to_regclass($1)`, name[1]).Scan(&valid, &busy)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return err
		case valid:
			return nil
		case busy:
			return errBusyStep
		default:
			if _, err := conn.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+name[1], pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
	}
	_, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}

// A waiter pauses between tries, longer each time, and logs why from time to time.
type waiter struct {
	log   *slog.Logger
	words string
	pause time.Duration
	said  time.Time
}

func (w *waiter) wait(ctx context.Context, why func() string) error {
	if time.Since(w.said) >= remind {
		w.said = time.Now()
		w.log.Warn("migration waits", "for", w.words, "holder", why())
	}
	w.pause = min(max(firstPause, 2*w.pause), longestPause)
	t := time.NewTimer(w.pause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
