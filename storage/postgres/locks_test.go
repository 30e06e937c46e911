package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// deadlocks ends the stores of a database and returns how many deadlocks the server
// has found in it: connections tell their figures at their end at the latest. The
// stores make a transaction again that met one, so nothing else shows it.
func deadlocks(t *testing.T, url string, dbs ...*DB) int {
	t.Helper()
	for _, db := range dbs {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	one := func(sql string) int {
		t.Helper()
		rows, err := postgrestest.Shared(t).Query(t.Context(), "", fmt.Sprintf(sql, "'"+databaseName(t, url)+"'"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(rows[0][0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	waitFor(t, func() bool { return one("SELECT count(*) FROM pg_stat_activity WHERE datname = %s") == 0 })
	return one("SELECT deadlocks FROM pg_stat_database WHERE datname = %s")
}

func outgoing(id, channel string) claybot.Outgoing {
	return claybot.Outgoing{ID: id, Kind: claybot.OutgoingNotice, Route: claybot.Route{Connector: "telegram", ChannelID: channel}, Text: "x", Part: 1, Parts: 1}
}

// A claim of a destination and a record of a send to it lock the claim first
// and the message then. Here both wait for the message: the one that has the claim
// must be the one that waits for nothing else.
func TestClaimAndSendLockInOneOrder(t *testing.T) {
	for name, record := range map[string]func(ctx context.Context, db *DB, c storage.Claim, id string) error{
		"attempt": func(ctx context.Context, db *DB, c storage.Claim, id string) error { return db.Attempt(ctx, c, id) },
		"resolve": func(ctx context.Context, db *DB, c storage.Claim, id string) error {
			return db.Resolve(ctx, c, id, storage.Resolution{State: claybot.SendSent, Receipt: "r"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := postgrestest.Shared(t).Database(t)
			here, there := openWith(t, Config{URL: url, NoListen: true}), openWith(t, Config{URL: url, NoListen: true})
			ctx := t.Context()
			for node, db := range map[string]*DB{"here": here, "there": there} {
				if _, err := db.RenewMember(ctx, storage.Member{ID: node, Name: node}, time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			out := outgoing("o1", "C1")
			_, err := here.Enqueue(ctx, out)
			if err != nil {
				t.Fatal(err)
			}
			claim, err := here.Claim(ctx, "here", storage.DestClaim(out.Route.Dest()))
			if err != nil {
				t.Fatal(err)
			}
			if err := here.Attempt(ctx, claim, out.ID); err != nil {
				t.Fatal(err)
			}
			// It is given up, and its claim is not free yet: as when its lease runs out.
			holder, err := pgx.Connect(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Close(context.WithoutCancel(ctx))
			if _, err := holder.Exec(ctx, "UPDATE nodes SET until = 1 WHERE id = 'here'"); err != nil {
				t.Fatal(err)
			}
			tx, err := holder.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(ctx, "SELECT 1 FROM outbox WHERE id = $1 FOR UPDATE", out.ID); err != nil {
				t.Fatal(err)
			}
			var recorded, claimed atomic.Bool
			waiting := func(n int) func() bool {
				return func() bool {
					if recorded.Load() || claimed.Load() {
						t.Fatal("a transaction does not wait for the message")
					}
					rows, err := postgrestest.Shared(t).Query(ctx, url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
					if err != nil {
						t.Fatal(err)
					}
					waiting, err := strconv.Atoi(rows[0][0])
					return err == nil && waiting >= n
				}
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				defer recorded.Store(true)
				if err := record(ctx, here, claim, out.ID); err != nil && !errors.Is(err, storage.ErrLeaseLost) {
					t.Errorf("%s: %v", name, err)
				}
			})
			waitFor(t, waiting(1))
			wg.Go(func() {
				defer claimed.Store(true)
				if _, err := there.Claim(ctx, "there", claim.Name); err != nil {
					t.Errorf("claim: %v", err)
				}
			})
			waitFor(t, waiting(2))
			if err := tx.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			if err := holder.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if n := deadlocks(t, url, here, there); n != 0 {
				t.Errorf("%d deadlocks", n)
			}
		})
	}
}

// Two nodes take the destinations of each other, which leave, join again, renew and
// record their sends meanwhile: no node blocks another for good.
func TestClaimsWithoutDeadlocks(t *testing.T) {
	const rounds, dests = 200, 3
	url := postgrestest.Shared(t).Database(t)
	dbs := []*DB{openWith(t, Config{URL: url, NoListen: true}), openWith(t, Config{URL: url, NoListen: true})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ids := []string{"a-0", "b-0"}
	renewMember := func(i int, id string) {
		if _, err := dbs[i].RenewMember(ctx, storage.Member{ID: id, Name: id}, time.Hour); err != nil {
			t.Errorf("renewal of %s: %v", id, err)
			stop()
		}
	}
	lost := func(what string, err error) {
		if err != nil && !errors.Is(err, storage.ErrLeaseLost) {
			t.Errorf("%s: %v", what, err)
			stop()
		}
	}
	renewMember(0, ids[0])
	renewMember(1, ids[1])
	for round := range rounds {
		// One has all destinations, and is about to record a send to each.
		from, to := round%2, 1-round%2
		var claims [dests]storage.Claim
		var out [dests]claybot.Outgoing
		for k := range dests {
			out[k] = outgoing(fmt.Sprintf("o-%d-%d", round, k), fmt.Sprint("C", k))
			_, err := dbs[from].Enqueue(ctx, out[k])
			if err == nil {
				claims[k], err = dbs[from].Claim(ctx, ids[from], storage.DestClaim(out[k].Route.Dest()))
			}
			if err == nil {
				err = dbs[from].Attempt(ctx, claims[k], out[k].ID)
			}
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		left, next := ids[from], fmt.Sprintf("%c-%d", "ab"[from], round+1)
		var wg sync.WaitGroup
		wg.Go(func() {
			lost("leave", dbs[from].Leave(ctx, left))
			renewMember(from, next)
		})
		wg.Go(func() { renewMember(to, ids[to]) })
		for k := range dests {
			wg.Go(func() {
				lost("resolve", dbs[from].Resolve(ctx, claims[k], out[k].ID, storage.Resolution{State: claybot.SendSent, Receipt: "r"}))
			})
			wg.Go(func() {
				for ctx.Err() == nil {
					c, err := dbs[to].Claim(ctx, ids[to], claims[k].Name)
					if errors.Is(err, storage.ErrHeld) {
						continue // until the other one has left
					}
					if err == nil {
						err = dbs[to].Yield(ctx, c)
					}
					lost("claim", err)
					return
				}
			})
		}
		wg.Wait()
		ids[from] = next
		if ctx.Err() != nil {
			t.Fatalf("given up in round %d: %v", round, context.Cause(ctx))
		}
		renewMember(from, next) // it knows whether the other one is there, and so it yields
		renewMember(to, ids[to])
	}
	if n := deadlocks(t, url, dbs...); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// A send whose record had to wait for others is refused when the lease of its node
// ran out meanwhile.
func TestAttemptWaitsTooLong(t *testing.T) {
	url := postgrestest.Shared(t).Database(t)
	var now atomic.Int64
	now.Store(time.Now().UnixMilli())
	db, ctx := openWith(t, Config{URL: url, NoListen: true, Clock: now.Load}), t.Context()
	if _, err := db.RenewMember(ctx, storage.Member{ID: "here", Name: "here"}, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	out := outgoing("o1", "C1")
	if _, err := db.Enqueue(ctx, out); err != nil {
		t.Fatal(err)
	}
	claim, err := db.Claim(ctx, "here", storage.DestClaim(out.Route.Dest()))
	if err != nil {
		t.Fatal(err)
	}
	holder, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.WithoutCancel(ctx))
	tx, err := holder.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SELECT 1 FROM outbox WHERE id = $1 FOR UPDATE", out.ID); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- db.Attempt(ctx, claim, out.ID) }()
	waitFor(t, func() bool {
		rows, err := postgrestest.Shared(t).Query(ctx, url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		if err != nil {
			t.Fatal(err)
		}
		return rows[0][0] != "0"
	})
	now.Add(11_000)
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, storage.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
}
