package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/storage/relational"
)

// What a member takes over from another one whose membership has ended is counted, and
// what another one has released is not.
func TestTakeoversAreCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		end            func(ctx context.Context, t *testing.T, url string, db *DB)
		agents, claims int64
	}{
		"lost": {func(ctx context.Context, t *testing.T, url string, db *DB) {
			t.Helper()
			query(t, postgrestest.Shared(t), url, "UPDATE nodes SET until = 1 WHERE id = 'node0'")
			query(t, postgrestest.Shared(t), url, "UPDATE agents SET wake_at = 1 WHERE node = 'node0'")
		}, 1, 2},
		"ended by the next process": {func(ctx context.Context, t *testing.T, _ string, db *DB) {
			t.Helper()
			if err := db.EndMember(ctx, "node0", "node0"); err != nil {
				t.Fatal(err)
			}
		}, 1, 0},
		"left in order": {func(ctx context.Context, t *testing.T, url string, db *DB) {
			t.Helper()
			query(t, postgrestest.Shared(t), url, "UPDATE agents SET wake_at = 1, node = NULL WHERE node = 'node0'")
			if err := db.Leave(ctx, "node0"); err != nil {
				t.Fatal(err)
			}
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			url := postgrestest.Shared(t).Database(t)
			c, ctx := newCrew(t, url, 2), t.Context()
			first, second := c.dbs[0], c.dbs[1]
			if _, err := first.Post(ctx, storage.Posting{To: agentAt(t, first, "C1"), Message: note("m1")}); err != nil {
				t.Fatal(err)
			}
			acquireOne(t, first, "node0")
			claims := []string{"bot", storage.DestClaim("telegram/C1")}
			for _, name := range claims {
				if _, err := first.Claim(ctx, "node0", name); err != nil {
					t.Fatal(err)
				}
			}
			tt.end(ctx, t, url, second)
			acquireOne(t, second, "node1")
			for _, name := range claims {
				if _, err := second.Claim(ctx, "node1", name); err != nil {
					t.Fatal(err)
				}
			}
			if got := second.Traffic(); got.AgentsTaken != tt.agents || got.ClaimsTaken != tt.claims {
				t.Errorf("took over %d agents and %d claims, want %d and %d", got.AgentsTaken, got.ClaimsTaken, tt.agents, tt.claims)
			}
			if got := first.Traffic(); got.AgentsTaken != 0 || got.ClaimsTaken != 0 {
				t.Errorf("the other one: %+v", got)
			}
		})
	}
}

// A transaction that is repeated is counted by its conflict, one that fails for another
// reason is not.
func TestConflictsAreCounted(t *testing.T) {
	db := openWith(t, Config{URL: postgrestest.Shared(t).Database(t), NoListen: true})
	for code, want := range map[string]string{
		codeDeadlock: storage.ConflictDeadlock, codeSerialization: storage.ConflictSerialization, codeUnique: storage.ConflictUnique, codeDiskFull: "",
	} {
		before := db.Traffic().Retried
		first := true
		err := db.Write(t.Context(), true, func(*relational.Conn) error {
			if !first {
				return nil
			}
			first = false
			return classify(&pgconn.PgError{Code: code})
		})
		if (err == nil) != (want != "") {
			t.Errorf("%s: %v", code, err)
		}
		for conflict, n := range db.Traffic().Retried {
			if more := n - before[conflict]; (more == 1) != (conflict == want) || more > 1 {
				t.Errorf("%s: %d more of %s", code, more, conflict)
			}
		}
	}
	if db.Traffic().Listener != nil {
		t.Error("a store that does not listen has a listener")
	}
}

// The pools show their use, and the connection for notifications that it was interrupted.
func TestTraffic(t *testing.T) {
	server := postgrestest.New(t, postgrestest.Config{})
	empty := make(chan struct{}, 100)
	db := openWith(t, Config{URL: server.Database(t), Conns: 3, OnNotification: func(h storage.Notification) {
		if h.IsEmpty() {
			empty <- struct{}{}
		}
	}})
	<-empty // it listens
	conn, err := db.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := db.Traffic()
	work, renewals := got.Pools[0], got.Pools[1]
	if work.InUse < 1 || work.Max != 3 || work.Acquired < 1 || renewals.Max != vitalConns || renewals.InUse != 0 {
		t.Errorf("pools %+v", got.Pools)
	}
	conn.Release()
	if !got.Listener.Up || got.Listener.Reconnects != 0 {
		t.Errorf("listener %+v", *got.Listener)
	}
	if err := server.Stop(t.Context(), postgrestest.Fast); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return !db.Traffic().Listener.Up })
	// What cannot be sent is lost.
	db.mates.set("a", []storage.Member{{ID: "a"}, {ID: "b"}})
	db.Notify(storage.Notification{Due: true})
	waitFor(t, func() bool { return db.Traffic().NotificationsLost >= 1 })
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-empty
	if l := db.Traffic().Listener; !l.Up || l.Reconnects != 1 {
		t.Errorf("after a restart: %+v", *l)
	}
	many := make([]string, keptNotifications+1)
	db.Notify(storage.Notification{Dests: many})
	if n := db.Traffic().NotificationsLost; n != 2 {
		t.Errorf("%d notifications lost, want 2", n)
	}
}
