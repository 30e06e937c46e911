package postgres

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// A load is writers that post to one agent and retry each message until the store
// acknowledges it.
type load struct {
	*testing.T
	agent   claybot.AgentID
	acks    atomic.Int64
	stopped atomic.Bool
	wg      sync.WaitGroup
	acked   []*[]claybot.MessageID // of each writer, in order
}

func newLoad(t *testing.T, agent claybot.AgentID) *load {
	t.Helper()
	l := &load{T: t, agent: agent}
	t.Cleanup(l.stop)
	return l
}

func (l *load) stop() {
	l.stopped.Store(true)
	l.wg.Wait()
}

// start adds writers that use db.
func (l *load) start(db *DB, writers int) {
	for range writers {
		acked, name := new([]claybot.MessageID), len(l.acked)
		l.acked = append(l.acked, acked)
		l.wg.Go(func() {
			for i := 0; !l.stopped.Load(); i++ {
				m := note(fmt.Sprintf("%d-%d", name, i))
				_, err := db.Post(l.Context(), storage.Posting{To: l.agent, Message: m})
				for errors.Is(err, storage.ErrBusy) {
					_, err = db.Post(l.Context(), storage.Posting{To: l.agent, Message: m})
				}
				if err != nil {
					l.Errorf("%s: %v, want %v", m.ID, err, storage.ErrBusy)
					return
				}
				*acked = append(*acked, m.ID)
				l.acks.Add(1)
			}
		})
	}
}

// goesOn waits for more acknowledged messages.
func (l *load) goesOn() {
	l.Helper()
	want := l.acks.Load() + 20*int64(len(l.acked))
	waitFor(l.T, func() bool { return l.acks.Load() >= want || l.Failed() })
}

// end stops the writers. Every acknowledged message must be in the store, once, and those
// of a writer in its order.
func (l *load) end(db *DB) {
	l.Helper()
	l.stop()
	waiting, err := db.Waiting(l.Context(), l.agent, 1<<30)
	if err != nil {
		l.Fatal(err)
	}
	next := make(map[claybot.MessageID]int)
	for i, m := range waiting {
		if next[m.ID] != 0 {
			l.Errorf("%s is there twice", m.ID)
		}
		next[m.ID] = i + 1
	}
	for _, list := range l.acked {
		place := 0
		for _, m := range *list {
			if next[m] == 0 {
				l.Fatalf("%s was acknowledged and is lost", m)
			}
			if next[m] < place {
				l.Fatalf("%s is out of order", m)
			}
			place = next[m]
		}
	}
	l.Logf("%d messages", len(waiting))
}

// frozenDatabase returns the URL of a database that an older version left: schema 1.
func frozenDatabase(t *testing.T) string {
	t.Helper()
	f, err := os.Open("../../cmd/claybot/testdata/upgrade/f8087b1.sql.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dump, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(dump), "\n"), func(l string) bool { return strings.HasPrefix(l, `\`) }) // for psql
	address := postgrestest.Shared(t).Database(t)
	execute(t, plainConn(t, address), strings.Join(lines, ""))
	return address
}

// rowCounts counts the rows of tables to which a load adds nothing.
func rowCounts(t *testing.T, address string) (all []int) {
	t.Helper()
	conn := plainConn(t, address)
	for _, table := range []string{"records", "runs", "events", "outbox", "questions", "grants", "reminders", "documents", "memories"} {
		all = append(all, number(t, conn, "SELECT count(*) FROM "+table))
	}
	return all
}

// migrateWhileCut migrates and ends all connections to the database again and again, until
// a migration has come through.
func migrateWhileCut(t *testing.T, cfg Config) {
	t.Helper()
	name := databaseName(t, cfg.URL)
	for range 5 {
		done := make(chan error, 1)
		go func() {
			_, _, err := Migrate(t.Context(), cfg)
			done <- err
		}()
		if _, err := postgrestest.Shared(t).Terminate(t.Context(), "datname = '"+name+"'"); err != nil {
			t.Fatal(err)
		}
		if err := ended(t, done); err == nil {
			return
		}
	}
	if _, _, err := Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// An upgrade of a database that is in use: old members write before, during and after the
// migration, whose connections break, and nothing is lost or out of order. A member that
// knows only the old schema joins as long as the new one allows it, and is refused after
// a migration that does not.
func TestUpgradeUnderLoad(t *testing.T) {
	address := frozenDatabase(t)
	old := Config{URL: address, NoListen: true, migrations: migrations[:1]}
	db := openWith(t, old)
	l := newLoad(t, agentAt(t, db, "load"))
	before := rowCounts(t, address)
	l.start(db, 3)
	l.goesOn()

	migrateWhileCut(t, Config{URL: address})
	l.goesOn()
	present := openWith(t, Config{URL: address, NoListen: true})
	l.start(present, 3)
	allowed(t, old, migrations[len(migrations)-1].oldest <= 1)
	l.goesOn()

	list := slices.Concat(migrations, []migration{{"ALTER TABLE agents ADD COLUMN later BIGINT", len(migrations) + 1}})
	migrateWhileCut(t, Config{URL: address, migrations: list})
	allowed(t, old, false)
	allowed(t, Config{URL: address, NoListen: true}, false)
	allowed(t, Config{URL: address, NoListen: true, migrations: list}, true)
	l.goesOn()
	l.end(present)
	if after := rowCounts(t, address); !slices.Equal(after, before) {
		t.Errorf("%v rows, want %v", after, before)
	}
	checkFigures(t, present)
}

// allowed starts another member, which must join or be refused with a sentence.
func allowed(t *testing.T, cfg Config, want bool) {
	t.Helper()
	err := ended(t, opened(t.Context(), cfg))
	if want {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	setup := (*SetupError)(nil)
	if !errors.As(err, &setup) || !strings.Contains(setup.Problem, "the schema is newer than this claybot") || !strings.Contains(setup.Next, "nothing was changed") {
		t.Errorf("got %v, want a refusal", err)
	}
}
