package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// longTime is how long a test waits for what happens at once unless the machine is
// very busy.
const longTime = time.Minute

// A logged is a log whose messages a test waits for.
type logged struct {
	mu   sync.Mutex
	all  []string
	more chan struct{}
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	close(l.more)
	l.more = make(chan struct{})
	return nil
}

func newLogged() *logged { return &logged{more: make(chan struct{})} }

// wait waits for a line that contains all the words.
func (l *logged) wait(t *testing.T, words ...string) {
	t.Helper()
	end := time.After(longTime)
	for {
		l.mu.Lock()
		all, more := strings.Join(l.all, "\n"), l.more
		l.mu.Unlock()
		for line := range strings.SplitSeq(all, "\n") {
			found := true
			for _, w := range words {
				found = found && strings.Contains(line, w)
			}
			if found {
				return
			}
		}
		select {
		case <-more:
		case <-end:
			t.Fatalf("the log never had a line with %q:\n%s", words, all)
		}
	}
}

// next is the present schema with one more migration.
func next(sql string) []migration {
	return append(migrations[:len(migrations):len(migrations)], migration{sql, 1})
}

// plainConn is a connection of the test itself.
func plainConn(t testing.TB, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, conn *pgx.Conn, sql string) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// opened opens and closes a store, in the background.
func opened(ctx context.Context, cfg Config) <-chan error {
	done := make(chan error, 1)
	go func() {
		cfg.NoListen = true
		db, err := Open(ctx, cfg)
		if err == nil {
			err = db.Close()
		}
		done <- err
	}()
	return done
}

func ended(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(longTime):
		t.Fatal("the store is not open after a long time")
		return nil
	}
}

// N1: a migration takes as long as it takes; the open time-out is for connections.
func TestMigrationLongerThanTheOpenTime(t *testing.T) {
	server := postgrestest.Shared(t).Database(t)
	for open := 500 * time.Millisecond; ; open *= 2 {
		sleep := (open + 200*time.Millisecond).Seconds()
		err := ended(t, opened(t.Context(), Config{URL: schemaOf(t, server), openTime: open, migrations: next(fmt.Sprintf("SELECT pg_sleep(%f)", sleep))}))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "does not answer in time") || open > 30*time.Second { // else the machine is slow
			t.Fatal(err)
		}
	}
}

// A migration waits for a lock only briefly, so that nothing waits behind it, and
// tries again until it has it.
func TestMigrationOfALockedTable(t *testing.T) {
	address := schemaOf(t, postgrestest.Shared(t).Database(t))
	if err := ended(t, opened(t.Context(), Config{URL: address})); err != nil {
		t.Fatal(err)
	}
	conn := plainConn(t, address)
	execute(t, conn, "BEGIN; SELECT 1 FROM agents LIMIT 1") // a lock with which others read and write
	log := newLogged()
	done := opened(t.Context(), Config{URL: address, Log: slog.New(log), lockTime: time.Millisecond, migrations: next("ALTER TABLE agents ADD COLUMN later BIGINT")})
	log.wait(t, "migration waits", "a lock", "55P03")
	if n := number(t, plainConn(t, address), "SELECT count(*) FROM agents"); n != 0 { // it is not held up
		t.Errorf("%d agents", n)
	}
	execute(t, conn, "COMMIT")
	if err := ended(t, done); err != nil {
		t.Fatal(err)
	}
	if n := number(t, conn, "SELECT count(later) FROM agents"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// stepped is a migration of three steps, the second of which leaves an index behind
// that is not valid while there are duplicates.
const stepped = `
INSERT INTO tried VALUES (1);
-- step concurrently
CREATE UNIQUE INDEX CONCURRENTLY tried_once ON tried (n);
-- step: what is left
INSERT INTO tried VALUES (3);
`

// A migration goes on where it was interrupted; meanwhile an older claybot works.
func TestMigrationResumes(t *testing.T) {
	for name, pooler := range map[string]bool{"server": false, "pooler": true} {
		t.Run(name, func(t *testing.T) {
			s := postgrestest.Shared(t)
			address := s.Database(t)
			direct := address
			if pooler {
				address = pooled(t, s, address, "transaction", 0)
			}
			cfg := Config{URL: address, Pooler: pooler}
			if err := ended(t, opened(t.Context(), cfg)); err != nil {
				t.Fatal(err)
			}
			conn := plainConn(t, direct)
			execute(t, conn, "CREATE TABLE tried (n INTEGER NOT NULL); INSERT INTO tried VALUES (7), (7)")
			newer := cfg
			newer.migrations = next(stepped)
			version := len(migrations) + 1
			for range 2 {
				err := ended(t, opened(t.Context(), newer))
				want := fmt.Sprintf("migration %d (step 2 of 3) failed: could not create unique index", version)
				if setup := (*SetupError)(nil); !errors.As(err, &setup) || !strings.HasPrefix(setup.Problem, want) || !strings.Contains(setup.Next, "claybot migrate") || strings.Contains(err.Error(), "firewall") {
					t.Fatalf("%v, want %s", err, want)
				}
				if err := ended(t, opened(t.Context(), cfg)); err != nil {
					t.Fatalf("an older claybot meanwhile: %v", err)
				}
			}
			if n := number(t, conn, "SELECT count(*) FROM pg_index WHERE indexrelid = 'tried_once'::regclass AND NOT indisvalid"); n != 1 {
				t.Errorf("%d indexes that are not valid", n)
			}
			execute(t, conn, "DELETE FROM tried WHERE n = 7")
			if err := ended(t, opened(t.Context(), newer)); err != nil {
				t.Fatal(err)
			}
			if n := number(t, conn, "SELECT sum(n) FROM tried"); n != 4 {
				t.Errorf("the sum is %d: steps were done twice, or not", n)
			}
			if n := number(t, conn, "SELECT count(*) FROM pg_index WHERE indexrelid = 'tried_once'::regclass AND indisvalid"); n != 1 {
				t.Errorf("%d indexes", n)
			}
			if n := number(t, conn, "SELECT max(version) FROM schema_versions"); n != version {
				t.Errorf("version %d, want %d", n, version)
			}
			if err := ended(t, opened(t.Context(), cfg)); err != nil {
				t.Errorf("an older claybot after it: %v", err)
			}
		})
	}
}

// A migration that its process leaves behind is done by the next one.
func TestMigrationOfAProcessThatEnds(t *testing.T) {
	address := schemaOf(t, postgrestest.Shared(t).Database(t))
	if err := ended(t, opened(t.Context(), Config{URL: address})); err != nil {
		t.Fatal(err)
	}
	conn := plainConn(t, address)
	execute(t, conn, "CREATE TABLE tried (n INTEGER NOT NULL)")
	execute(t, conn, "BEGIN; LOCK TABLE tried IN SHARE MODE")
	list := next("ALTER TABLE agents ADD COLUMN later BIGINT;\n-- step\nINSERT INTO tried VALUES (1)")
	log := newLogged()
	ctx, end := context.WithCancel(t.Context())
	done := opened(ctx, Config{URL: address, Log: slog.New(log), lockTime: time.Hour, migrations: list})
	log.wait(t, "migration step done", "step=1")
	waitFor(t, func() bool {
		return number(t, conn, "SELECT count(*) FROM pg_locks WHERE relation = 'tried'::regclass AND NOT granted") > 0
	})
	end()
	if err := ended(t, done); err == nil || !strings.Contains(err.Error(), "(step 2 of 2) was interrupted") {
		t.Errorf("it ends with %v", err)
	}
	execute(t, conn, "COMMIT")
	if err := ended(t, opened(t.Context(), Config{URL: address, migrations: list})); err != nil {
		t.Fatal(err)
	}
	if n := number(t, conn, "SELECT count(*) FROM tried"); n != 1 {
		t.Errorf("the second step was done %d times", n)
	}
}

// Of two members that start at once, one migrates, and the other says for whom it
// waits.
func TestOneMemberMigrates(t *testing.T) {
	s := postgrestest.Shared(t)
	for name, pooler := range map[string]bool{"server": false, "pooler": true} {
		t.Run(name, func(t *testing.T) {
			address := s.Database(t)
			conn := plainConn(t, address)
			if pooler {
				address = pooled(t, s, address, "transaction", 1)
			}
			execute(t, conn, "CREATE TABLE tried (n INTEGER NOT NULL)")
			execute(t, conn, "BEGIN; LOCK TABLE tried IN SHARE MODE")
			first, second := newLogged(), newLogged()
			cfg := Config{URL: address, Pooler: pooler, lockTime: time.Millisecond, migrations: next("INSERT INTO tried VALUES (1)")}
			cfg.Log = slog.New(first)
			one := opened(t.Context(), cfg)
			first.wait(t, "migration waits", "a lock")
			cfg.Log = slog.New(second)
			two := opened(t.Context(), cfg)
			second.wait(t, "another member migrates", "claybot migrates on ", "server process")
			execute(t, conn, "COMMIT")
			if err := errors.Join(ended(t, one), ended(t, two)); err != nil {
				t.Fatal(err)
			}
			if n := number(t, conn, "SELECT count(*) FROM tried"); n != 1 {
				t.Errorf("it was done %d times", n)
			}
		})
	}
}

// Migrations of this claybot are divided as they say.
func TestStepsOfAMigration(t *testing.T) {
	for sql, want := range map[string]string{
		"":                        "[{ false}]",
		"A;":                      "[{A; false}]",
		"A;\n-- step\nB;":         "[{A;\n false} {\nB; false}]",
		"-- step concurrently\nA": "[{\nA true}]",
		"-- step concurrently: why\nA\n-- step: B\nB -- step\n-- stepped\n": "[{\nA\n true} {\nB -- step\n-- stepped\n false}]",
	} {
		if got := fmt.Sprint(migration{sql: sql}.steps()); got != want {
			t.Errorf("%q = %q, want %q", sql, got, want)
		}
	}
	for i, m := range migrations {
		for _, s := range m.steps() {
			if s.concurrently && strings.Count(strings.TrimRight(strings.TrimSpace(s.sql), ";"), ";") > 0 {
				t.Errorf("migration %d has several statements in a step without a transaction", i+1)
			}
		}
	}
}
