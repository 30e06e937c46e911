package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// membersLease is the lease of the members of these tests: they renew every two seconds,
// and one whose session is gone is dead after three.
const membersLease = 10 * time.Second

// A presenceBed is a member that looks at the sessions of others, at the times that the
// test chooses, and the way to the database of another member.
type presenceBed struct {
	*testing.T
	url      string
	now      *atomic.Int64
	db       *DB // of the member that looks
	other    *DB
	presence *presence
	looked   time.Duration        // by the clock of the looks
	sessions map[string]*pgx.Conn // of other members
	heard    chan storage.Notification
}

func newPresenceBed(t *testing.T, url string) *presenceBed {
	t.Helper()
	b := &presenceBed{T: t, url: url, now: new(atomic.Int64), sessions: make(map[string]*pgx.Conn), heard: make(chan storage.Notification, 100)}
	b.now.Store(time.Now().UnixMilli())
	b.db = openWith(t, Config{URL: url, Clock: b.now.Load, lookEvery: time.Hour, notifyTime: time.Minute, OnNotification: func(h storage.Notification) { b.heard <- h }})
	b.other = openWith(t, Config{URL: url, Clock: b.now.Load, NoListen: true})
	b.renew("looks")
	b.join()
	return b
}

// join gives the member that looks a new session.
func (b *presenceBed) join() {
	b.Helper()
	b.presence = newPresence(b.db, plainConn(b.T, b.url))
	b.presence.now = func() time.Time { return time.UnixMilli(0).Add(b.looked) }
}

// renew renews a member.
func (b *presenceBed) renew(id string) {
	b.Helper()
	db := b.other
	if id == "looks" {
		db = b.db
	}
	if _, err := db.RenewMember(b.Context(), storage.Member{ID: id, Name: id}, membersLease); err != nil {
		b.Fatal(err)
	}
}

// start adds a member with a session that was seen.
func (b *presenceBed) start(id string) {
	b.Helper()
	b.renew(id)
	b.renew("looks") // it knows now that it is not alone
	b.connect(id)
	b.look(1)
}

// connect makes a session of a member.
func (b *presenceBed) connect(id string) {
	b.Helper()
	conn := plainConn(b.T, b.url)
	p := newPresence(b.other, conn)
	waitFor(b.T, func() bool {
		if err := p.hold(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		return p.held == id
	})
	b.sessions[id] = conn
}

// cut ends the session of a member.
func (b *presenceBed) cut(id string) {
	b.Helper()
	if err := b.sessions[id].Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	waitFor(b.T, func() bool {
		mates, err := b.presence.mates(b.Context(), "looks")
		if err != nil {
			b.Fatal(err)
		}
		return slices.ContainsFunc(mates, func(m mate) bool { return m.id == id && m.free })
	})
}

// look looks several times, as far apart as looks that count.
func (b *presenceBed) look(times int) {
	b.Helper()
	for range times {
		b.looked += lookAgain
		b.lookSoon(1)
	}
}

// lookSoon looks several times at the same moment.
func (b *presenceBed) lookSoon(times int) {
	b.Helper()
	for range times {
		if _, err := b.presence.look(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func (b *presenceBed) pass(d time.Duration) { b.now.Add(d.Milliseconds()) }

// live reports whether a member's lease is in force.
func (b *presenceBed) live(id string) bool {
	b.Helper()
	var list []storage.Member
	waitFor(b.T, func() (ok bool) { // connections may be of a server that has restarted
		var err error
		if list, err = b.db.Members(b.Context()); err != nil && !storage.Unavailable(err) {
			b.Fatal(err)
		}
		return err == nil
	})
	return slices.ContainsFunc(list, func(n storage.Member) bool { return n.ID == id && n.There() })
}

func (b *presenceBed) wantLive(id, why string) {
	b.Helper()
	if !b.live(id) {
		b.Errorf("the membership of %s was ended: %s", id, why)
	}
}

// TestDeadMember: the membership of a killed process ends long before its lease, and what
// it held is free.
func TestDeadMember(t *testing.T) {
	b := newPresenceBed(t, postgrestest.Shared(t).Database(t))
	third := make(chan storage.Notification, 100)
	witness := openWith(t, Config{URL: b.url, Clock: b.now.Load, lookEvery: time.Hour, notifyTime: time.Minute, OnNotification: func(h storage.Notification) { third <- h }})
	if _, err := witness.RenewMember(t.Context(), storage.Member{ID: "third", Name: "third"}, membersLease); err != nil {
		t.Fatal(err)
	}
	<-third // it listens
	b.start("dead")
	agent := agentAt(t, b.other, "C1")
	if _, err := b.other.Post(t.Context(), storage.Posting{To: agent, Message: note("m1")}); err != nil {
		t.Fatal(err)
	}
	if got := acquireOne(t, b.other, "dead"); got.Lease.Agent != agent {
		t.Fatalf("it holds %s", got.Lease.Agent)
	}
	if _, err := b.other.Claim(t.Context(), "dead", "poll"); err != nil {
		t.Fatal(err)
	}
	b.cut("dead")
	b.look(2 * goneLooks)
	b.wantLive("dead", "its renewal is not overdue")
	b.pass(3*time.Second + time.Millisecond)
	b.look(1)
	if b.live("dead") {
		t.Fatal("it counts as a member")
	}
	told := func(h storage.Notification) bool { return h.Due && slices.Contains(h.Ended, "dead") }
	for who, heard := range map[string]chan storage.Notification{"the member that ended it": b.heard, "another member": third} {
		for end, ok := time.After(5*longTime), false; !ok; {
			select {
			case h := <-heard:
				ok = told(h)
			case <-end:
				t.Fatalf("%s is not notified", who)
			}
		}
	}
	if got := acquireOne(t, b.db, "looks"); got.Lease.Agent != agent {
		t.Errorf("acquired %s", got.Lease.Agent)
	}
	if _, err := b.db.Claim(t.Context(), "looks", "poll"); err != nil {
		t.Error(err)
	}
	if got := b.db.Traffic(); got.AgentsTaken != 1 || got.ClaimsTaken != 1 {
		t.Errorf("%d agents and %d claims were taken over", got.AgentsTaken, got.ClaimsTaken)
	}
	if _, err := b.other.RenewMember(t.Context(), storage.Member{ID: "dead", Name: "dead"}, membersLease); !errors.Is(err, storage.ErrLeaseLost) {
		t.Errorf("it renewed after its end: %v", err)
	}
}

// TestDeadSoonAfterJoin: a member that died before another one had looked at its session kept
// its lease until the end. It takes its lock when it joins, not at its next look, and the
// others know that then.
func TestDeadSoonAfterJoin(t *testing.T) {
	url := postgrestest.Shared(t).Database(t)
	var now atomic.Int64
	now.Store(time.Now().UnixMilli())
	heard := make(chan storage.Notification, 1000)
	cfg := Config{URL: url, Clock: now.Load, lookEvery: time.Hour, notifyTime: time.Minute}
	victim := openWith(t, cfg)
	cfg.OnNotification, cfg.lookEvery = func(h storage.Notification) { heard <- h }, time.Millisecond
	survivor := openWith(t, cfg) // it does not renew again, so it learns of the other by that alone
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	witness := plainConn(t, url)
	if _, err := witness.Exec(ctx, "LISTEN claybot_public"); err != nil {
		t.Fatal(err)
	}
	for _, m := range []struct {
		db *DB
		id string
	}{{survivor, "s"}, {victim, "v"}} {
		if _, err := m.db.RenewMember(ctx, storage.Member{ID: m.id, Name: m.id}, membersLease); err != nil {
			t.Fatal(err)
		}
		for holds := false; !holds; {
			n, err := witness.WaitForNotification(ctx)
			if err != nil {
				t.Fatalf("%s does not hold its lock: %v", m.id, err)
			}
			holds = n.Payload == sessionPayload(m.id, sessionNews{Holds: true})
		}
	}
	if err := victim.Close(); err != nil { // without leaving
		t.Fatal(err)
	}
	now.Add(4 * time.Second.Milliseconds())
	for {
		select {
		case h := <-heard:
			if slices.Contains(h.Ended, "v") {
				return
			}
		case <-ctx.Done():
			t.Fatal("the dead member was not ended")
		}
	}
}

// TestLiveMembers: no membership ends by its session that may belong to a live process.
func TestLiveMembers(t *testing.T) {
	for _, tt := range []struct {
		name string
		test func(b *presenceBed)
	}{
		{"its session is gone, and it renews", func(b *presenceBed) {
			b.start("m")
			b.cut("m")
			for range 5 {
				b.look(goneLooks)
				b.pass(2 * time.Second)
				b.renew("m")
			}
		}},
		{"its renewals come late", func(b *presenceBed) {
			b.start("m")
			b.cut("m")
			for range 5 {
				b.pass(6 * time.Second)
				b.look(goneLooks - 1)
				b.renew("m")
			}
		}},
		{"it has a new session", func(b *presenceBed) {
			b.start("m")
			b.pass(9 * time.Second)
			for range 5 {
				b.cut("m")
				b.look(goneLooks - 1)
				b.connect("m")
				b.look(1)
			}
		}},
		{"it has no session, and never had one", func(b *presenceBed) {
			b.renew("m")
			b.renew("looks")
			b.pass(9 * time.Second)
			b.look(10 * goneLooks)
		}},
		{"it is frozen: its session stays", func(b *presenceBed) {
			b.start("m")
			b.pass(9 * time.Second)
			b.look(10 * goneLooks)
		}},
		{"other members join, so looks follow each other at once", func(b *presenceBed) {
			b.start("m")
			b.cut("m")
			b.pass(9 * time.Second)
			for range goneLooks - 1 {
				b.look(1)
				b.lookSoon(goneLooks)
			}
		}},
		{"the session of the member that looks is new", func(b *presenceBed) {
			b.start("m")
			b.cut("m")
			b.join()
			b.pass(9 * time.Second)
			b.look(10 * goneLooks)
		}},
		{"it renews between the look and the end", func(b *presenceBed) {
			b.start("m")
			b.cut("m")
			b.pass(5 * time.Second)
			b.look(goneLooks - 1)
			dead, err := b.presence.mates(b.Context(), "looks")
			if err != nil || len(dead) != 1 {
				b.Fatal(dead, err)
			}
			b.pass(time.Second)
			b.renew("m")
			b.presence.end(b.Context(), dead[0])
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newPresenceBed(t, postgrestest.Shared(t).Database(t))
			tt.test(b)
			b.wantLive("m", tt.name)
		})
	}
}

// TestServerRestartEndsNoMember: a restart ends all sessions, and no membership.
func TestServerRestartEndsNoMember(t *testing.T) {
	server := postgrestest.New(t, postgrestest.Config{})
	b := newPresenceBed(t, server.Database(t))
	b.start("m")
	if err := server.Restart(t.Context(), postgrestest.Immediate); err != nil {
		t.Fatal(err)
	}
	if _, err := b.presence.look(t.Context()); err == nil {
		t.Fatal("the session outlived the server")
	}
	b.join()
	b.pass(9 * time.Second)
	b.look(10 * goneLooks)
	b.wantLive("m", "its session was ended by the restart")
}

// TestPresenceOfListeners: members that listen hold their locks, again after an
// interruption and in a new term, and find the dead ones.
func TestPresenceOfListeners(t *testing.T) {
	url := postgrestest.Shared(t).Database(t)
	conn := plainConn(t, url)
	var now atomic.Int64
	now.Store(time.Now().UnixMilli())
	heard := make(chan storage.Notification, 1000)
	cfg := Config{URL: url, Clock: now.Load, lookEvery: time.Millisecond, notifyTime: time.Minute}
	victim := openWith(t, cfg)
	cfg.OnNotification = func(h storage.Notification) { heard <- h }
	survivor := openWith(t, cfg)
	renew := func(db *DB, id string) {
		t.Helper()
		if _, err := db.RenewMember(t.Context(), storage.Member{ID: id, Name: id}, membersLease); err != nil {
			t.Fatal(err)
		}
	}
	holder := func(id string) (pid int) {
		t.Helper()
		err := conn.QueryRow(t.Context(), `SELECT coalesce(max(pid), 0) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'
			AND (classid::bigint << 32 | objid::bigint) = hashtextextended($1, $2)`, id, presenceSeed).Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	renew(victim, "v1")
	waitFor(t, func() bool { return holder("v1") != 0 })
	before := holder("v1")
	if n, err := postgrestest.Shared(t).Terminate(t.Context(), fmt.Sprint("pid = ", before)); err != nil || n != 1 {
		t.Fatalf("ended %d sessions: %v", n, err)
	}
	waitFor(t, func() bool { pid := holder("v1"); return pid != 0 && pid != before })
	renew(victim, "v2")
	waitFor(t, func() bool { return holder("v1") == 0 && holder("v2") != 0 })
	if err := victim.Leave(t.Context(), "v1"); err != nil {
		t.Fatal(err)
	}
	renew(survivor, "s")
	waitFor(t, func() bool { return holder("s") != 0 })
	renew(survivor, "s2")
	waitFor(t, func() bool { return holder("s2") != 0 }) // by a later look: an earlier one has met v2
	if err := survivor.Leave(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if err := victim.Close(); err != nil { // without leaving
		t.Fatal(err)
	}
	now.Add(4 * time.Second.Milliseconds())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		select {
		case h := <-heard:
			if slices.Contains(h.Ended, "v2") {
				return
			}
		case <-ctx.Done():
			t.Fatal("the dead member was not ended")
		}
	}
}
