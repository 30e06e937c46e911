package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/storage/storagetest"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }

// bubbleTime is the clock of a test: time in a bubble is not that of the server.
func bubbleTime() int64 { return time.Now().UnixMilli() }

func TestStore(t *testing.T) {
	migrated := newMigrated(t)
	storagetest.TestStore(t, func(t *testing.T, committed func(storage.Commit)) (storagetest.Store, func() storagetest.Store) {
		cfg := Config{URL: migrated.take(t), Committed: committed, Clock: bubbleTime, NoListen: true}
		db := openWith(t, cfg)
		t.Cleanup(func() { checkFigures(t, db) }) // before it is closed
		return db, func() storagetest.Store {
			checkFigures(t, db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = openWith(t, cfg)
			return db
		}
	})
}

// schemaOf makes a schema for a test in a database, which is quicker than a database.
func schemaOf(t testing.TB, databaseURL string) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	name := "t" + strings.ToLower(rand.Text())
	if _, err := conn.Exec(ctx, "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	return with(t, databaseURL, "search_path", name)
}

// migrated are schemas of a database that tests use one after the other, as a
// migration takes the server longer than most tests do.
type migrated struct {
	database, pristine string // pristine is a schema as the migrations leave it

	mu   sync.Mutex
	conn *pgx.Conn
	free []string // schemas that tests have used
}

func newMigrated(t *testing.T) *migrated {
	t.Helper()
	m := &migrated{database: postgrestest.Shared(t).Database(t)}
	m.conn = plainConn(t, m.database)
	m.pristine = m.migrate(t)
	return m
}

// migrate makes a schema.
func (m *migrated) migrate(t *testing.T) string {
	t.Helper()
	address := schemaOf(t, m.database)
	if _, _, err := Migrate(t.Context(), Config{URL: address}); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("search_path")
}

// take returns the URL of a schema that is as the migrations leave it, for a test that
// changes its rows and nothing else about it.
func (m *migrated) take(t *testing.T) string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var name string
	if n := len(m.free); n > 0 {
		name, m.free = m.free[n-1], m.free[:n-1]
		m.restore(t, name)
	} else {
		name = m.migrate(t)
	}
	t.Cleanup(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.free = append(m.free, name)
	})
	return with(t, m.database, "search_path", name)
}

// restore gives each table the rows of the pristine one, and has each sequence begin
// anew. A table whose file is empty was never written.
func (m *migrated) restore(t *testing.T, name string) {
	t.Helper()
	sql := fmt.Sprintf(`DO $$
DECLARE r record;
BEGIN
	FOR r IN SELECT oid::regclass AS used FROM pg_class WHERE relnamespace = '%[1]s'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0 LOOP
		EXECUTE format('DELETE FROM %%s', r.used);
	END LOOP;
	FOR r IN SELECT relname AS name FROM pg_class WHERE relnamespace = '%[2]s'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0 LOOP
		EXECUTE format('INSERT INTO %[1]s.%%I OVERRIDING SYSTEM VALUE SELECT * FROM %[2]s.%%I', r.name, r.name);
	END LOOP;
	PERFORM setval(oid::regclass, 1, false) FROM pg_class WHERE relnamespace = '%[1]s'::regnamespace AND relkind = 'S';
END $$`, name, m.pristine)
	// The connection is not of the test's bubble, and neither may the context be.
	if _, err := m.conn.Exec(context.WithoutCancel(t.Context()), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

func openWith(t testing.TB, cfg Config) *DB {
	t.Helper()
	if !strings.Contains(cfg.URL, "connect_timeout") { // how long a busy machine takes decides nothing
		cfg.URL = with(t, cfg.URL, "connect_timeout", "120")
	}
	db, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// checkFigures compares the counters with what they count.
func checkFigures(t *testing.T, db *DB) {
	t.Helper()
	rows, err := db.pool.Query(context.WithoutCancel(t.Context()), `WITH counted (name, n) AS (
			SELECT 'agents', count(*) FROM agents
			UNION ALL SELECT 'waiting', count(*) FROM messages WHERE run IS NULL AND skipped IS NULL
			UNION ALL SELECT 'run:' || state, count(*) FROM runs GROUP BY state
			UNION ALL SELECT 'send:' || state, count(*) FROM outbox GROUP BY state
		), kept AS MATERIALIZED ( -- once: its estimate for each row would have the server compile the query
			SELECT name, sum(n)::bigint AS n FROM counters_now GROUP BY name
		)
		SELECT name, counted.n, coalesce(kept.n, 0) FROM counted LEFT JOIN kept USING (name)
		UNION ALL SELECT 'agents.waiting', (SELECT coalesce(sum(waiting), 0)::bigint FROM agents), coalesce((SELECT n FROM kept WHERE name = 'waiting'), 0)
		UNION ALL SELECT 'agents.busy', (SELECT count(*) FROM agents WHERE busy = 1), (SELECT count(*) FROM agents WHERE run IS NOT NULL OR first_n > 0)`)
	if err != nil {
		if db.pool.Stat().TotalConns() > 0 {
			t.Error(err)
		}
		return // it is closed
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var counted, kept int64
		if err := rows.Scan(&name, &counted, &kept); err != nil {
			t.Error(err)
		}
		if counted != kept {
			t.Errorf("counter %s is %d, counted %d", name, kept, counted)
		}
	}
}
