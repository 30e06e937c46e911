package postgres

import (
	"testing"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// Renewals and leases are answered while all connections of the pool are taken: a node
// that has much to do is not given up for that.
func TestVitalCallsWaitForNobody(t *testing.T) {
	const conns = 2
	url := postgrestest.Shared(t).Database(t)
	db, other := openWith(t, Config{URL: url, Conns: conns, notifyTime: time.Hour}), openWith(t, Config{URL: url})
	ctx := t.Context() // a wait for a connection ends after writeTime
	renewMember := func(db *DB, node string) []storage.Member {
		t.Helper()
		alive, err := db.RenewMember(ctx, storage.Member{ID: node, Name: node}, time.Hour)
		if err != nil {
			t.Fatalf("renewal of %s: %v", node, err)
		}
		return alive
	}
	renewMember(db, "here")
	renewMember(other, "there")
	if _, err := other.Post(ctx, storage.Posting{To: agentAt(t, other, "C1"), Message: note("m1")}); err != nil {
		t.Fatal(err)
	}
	lease := acquireOne(t, db, "here").Lease
	for range conns {
		conn, err := db.pool.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	for range 10 { // what is done with some renewals only is done with one of them
		if alive := renewMember(db, "here"); len(alive) != 2 {
			t.Fatalf("alive %+v", alive)
		}
		renewed, by, err := db.Renew(ctx, lease, time.Hour)
		if err != nil || by != "" {
			t.Fatalf("renew: %+v, %q, %v", renewed, by, err)
		}
		lease = renewed
	}
	if n := db.pool.Stat().CanceledAcquireCount(); n != 0 {
		t.Errorf("%d calls waited in vain for a connection that was taken", n)
	}
}
