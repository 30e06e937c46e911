package postgres

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// cutSteps is a migration whose step k stops at a lock of table tried_k.
const cutSteps = `
INSERT INTO tried_1 VALUES (1);
-- step
INSERT INTO tried_2 VALUES (1);
-- step concurrently
CREATE INDEX CONCURRENTLY tried_once ON tried_3 (n);
-- step
INSERT INTO tried_4 VALUES (1);
`

// stepRunner and lockHolder match the two connections of a migration: the one that runs
// the steps, and the one that holds the lock of migrations.
const (
	stepRunner = "datname = '%s' AND wait_event_type = 'Lock'"
	lockHolder = "datname = '%s' AND application_name LIKE 'claybot migrates%%'"
)

// A cutBed is a database with a migration that a test stops at each of its steps.
type cutBed struct {
	*testing.T
	server  *postgrestest.Server
	cfg     Config
	name    string // of the database
	version int    // that the migration makes
	conn    *pgx.Conn
	holder  *pgx.Conn
}

func newCutBed(t *testing.T) *cutBed {
	t.Helper()
	b := &cutBed{T: t, server: postgrestest.Shared(t), version: len(migrations) + 1}
	b.cfg = Config{URL: b.server.Database(t), migrations: next(cutSteps), lockTime: time.Hour}
	if err := ended(t, opened(t.Context(), Config{URL: b.cfg.URL})); err != nil {
		t.Fatal(err)
	}
	b.conn, b.holder = plainConn(t, b.cfg.URL), plainConn(t, b.cfg.URL)
	for k := 1; k <= 4; k++ {
		execute(t, b.conn, fmt.Sprintf("CREATE TABLE tried_%d (n INTEGER NOT NULL)", k))
	}
	b.name = databaseName(t, b.cfg.URL)
	return b
}

// stopAt starts the migration and waits until step k waits for a lock.
func (b *cutBed) stopAt(k int) <-chan error {
	b.Helper()
	hold := fmt.Sprintf("BEGIN; LOCK TABLE tried_%d IN SHARE MODE", k)
	if k == 3 { // the index exists, and is not valid
		hold = "BEGIN; INSERT INTO tried_3 VALUES (0)"
	}
	execute(b.T, b.holder, hold)
	done := opened(b.Context(), b.cfg)
	b.waiting(k)
	return done
}

// waiting waits until step k waits for a lock. The step before it may have waited for one as
// well, such as an index for an autovacuum.
func (b *cutBed) waiting(k int) {
	b.Helper()
	waitFor(b.T, func() bool {
		return number(b.T, b.conn, fmt.Sprintf(`SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%%tried\_%d%%'`, k)) > 0
	})
}

// cut ends connections of the migration, as the loss of a machine or a failover does.
func (b *cutBed) cut(which ...string) {
	b.Helper()
	for _, w := range which {
		if n, err := b.server.Terminate(b.Context(), fmt.Sprintf(w, b.name)); err != nil || n != 1 {
			b.Fatalf("ended %d connections: %v", n, err)
		}
	}
}

// check fails unless steps before and including k, and no others, ran once.
func (b *cutBed) check(k int) {
	b.Helper()
	for step := 1; step <= 4; step++ {
		got, want := number(b.T, b.conn, fmt.Sprintf("SELECT count(*) FROM tried_%d WHERE n = 1", step)), 1
		if step == 3 {
			got = number(b.T, b.conn, "SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass('tried_once') AND indisvalid")
		}
		if step > k {
			want = 0
		}
		if got != want {
			b.Errorf("step %d ran %d times, want %d", step, got, want)
		}
	}
}

// A migration that loses its connections in any step resumes at that step; no step
// that is complete runs again.
func TestMigrationCutAtEachStep(t *testing.T) {
	for name, which := range map[string][]string{"steps": {stepRunner}, "both": {lockHolder, stepRunner}} {
		t.Run(name, func(t *testing.T) {
			b := newCutBed(t)
			for k := 1; k <= 4; k++ {
				done := b.stopAt(k)
				b.cut(which...)
				want := fmt.Sprintf("migration %d (step %d of 4) was interrupted: the connection to ", b.version, k)
				if err := ended(t, done); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
				execute(t, b.holder, "COMMIT")
				b.check(k - 1)
				p, err := PlanMigration(t.Context(), b.cfg)
				if want := (PendingMigration{Version: b.version, Done: k - 1, Steps: 4}); err != nil || len(p.Pending) != 1 || p.Pending[0] != want {
					t.Errorf("plan %+v %v, want %+v", p, err, want)
				}
			}
			if err := ended(t, opened(t.Context(), b.cfg)); err != nil {
				t.Fatal(err)
			}
			b.check(4)
		})
	}
}

// A member that has lost only the lock of migrations still runs its step in the
// server. The next member waits for that step, and resumes after it.
func TestMigrationLosesItsLock(t *testing.T) {
	for k := 1; k <= 4; k++ {
		t.Run(fmt.Sprint("step ", k), func(t *testing.T) {
			b := newCutBed(t)
			first := b.stopAt(k)
			b.cut(lockHolder)
			log := newLogged()
			cfg := b.cfg
			cfg.Log = slog.New(log)
			second := opened(t.Context(), cfg)
			log.wait(t, "migration waits", "earlier attempt")
			execute(t, b.holder, "COMMIT")
			err := ended(t, first)
			if k < 4 { // it has no right to the next step
				want := fmt.Sprintf("migration %d (step %d of 4) was interrupted", b.version, k+1)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the first: %v, want %s", err, want)
				}
			} else if err != nil {
				t.Error(err)
			}
			if err := ended(t, second); err != nil {
				t.Errorf("the second: %v", err)
			}
			b.check(4)
		})
	}
}
