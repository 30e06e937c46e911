package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
)

// A kept set has the claims that this process yielded while it was the only member.
// They stay its own, and taking them again costs no query, until another member joins.
type kept struct {
	mu     sync.Mutex
	claims map[string]storage.Claim
}

// mostKept bounds how many claims a member keeps.
const mostKept = 10_000

// take returns a claim that the member kept.
func (k *kept) take(node, name string) (storage.Claim, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.claims[name]
	if !ok || c.Member != node {
		return storage.Claim{}, false
	}
	delete(k.claims, name)
	return c, true
}

// put keeps a claim, if there is room.
func (k *kept) put(c storage.Claim) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.claims) >= mostKept {
		return false
	}
	if k.claims == nil {
		k.claims = make(map[string]storage.Claim)
	}
	k.claims[c.Name] = c
	return true
}

func (k *kept) all() []storage.Claim {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]storage.Claim, 0, len(k.claims))
	for _, c := range k.claims {
		all = append(all, c)
	}
	k.claims = nil
	return all
}

// Claim implements storage.Claims. It returns a kept claim without a query.
func (db *DB) Claim(ctx context.Context, node, name string) (storage.Claim, error) {
	if c, ok := db.kept.take(node, name); ok {
		return c, nil
	}
	return db.Store.Claim(ctx, node, name)
}

// Yield implements storage.Claims. The only member keeps the claim instead of
// releasing it.
func (db *DB) Yield(ctx context.Context, c storage.Claim) error {
	if self, others := db.mates.get(); others == 0 && self == c.Member && db.kept.put(c) {
		return nil
	}
	return db.Store.Yield(ctx, c)
}

// yieldKept releases the kept claims because another member has joined. The next
// renewal retries those that fail. A claim that was acquired again has another token
// and stays.
func (db *DB) yieldKept(ctx context.Context, node string) {
	all := db.kept.all()
	if len(all) == 0 {
		return
	}
	names, tokens := make([]string, len(all)), make([]int64, len(all))
	for i, c := range all {
		names[i], tokens[i] = storable(c.Name), c.Token
	}
	_, err := db.vitalPool.Exec(ctx, `UPDATE claims c SET node = '', at = $1 FROM unnest($2::text[], $3::bigint[]) k (name, token)
		WHERE c.name = k.name AND c.token = k.token AND c.node = $4`, db.dialect.Clock(), names, tokens, node)
	if err != nil {
		db.log.Debug("failed to release kept claims, retrying", "err", err)
		for _, c := range all {
			db.kept.put(c)
		}
	}
}

const (
	// fewDue agents are acquired by the first member that looks.
	fewDue = 4
	// patience is how long a due agent is reserved for the member whose turn it is.
	patience = 250 * time.Millisecond
	// mostCounted bounds the rows that one count reads.
	mostCounted = 2000
)

// Acquire implements storage.Leases. When nothing is due it costs one query. When
// many agents are due, each member takes its share of them, and more only once
// they have been due for longer than patience.
func (db *DB) Acquire(ctx context.Context, node string, ttl time.Duration, limit, batch int) ([]storage.Acquired, time.Time, error) {
	if err := db.HeedClock(ctx, ttl); err != nil { // some agents may be due by the clock
		return nil, time.Time{}, fmt.Errorf("acquire agents: %w", err)
	}
	_, others := db.mates.get()
	if others == 0 {
		if next, idle := db.idle.known(db.dialect.Clock(), ttl); idle {
			return nil, db.local(next), nil
		}
	}
	asked := db.idle.ask()
	if limit <= 0 || others == 0 && db.found.Load() { // there may be more
		acquired, next, err := db.Store.Acquire(ctx, node, ttl, limit, batch)
		db.found.Store(len(acquired) > 0)
		return acquired, db.local(next), err
	}
	w, err := db.waiting(ctx, node)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("acquire agents: %w", err)
	}
	if w.due == 0 {
		db.idle.found(asked, db.dialect.Clock(), w.next)
		return nil, db.local(w.next), nil
	}
	if n := w.share(others + 1); n < limit {
		limit = n
	}
	if limit == 0 {
		return nil, time.Now().Add(patience / 2), nil
	}
	acquired, next, err := db.Store.Acquire(ctx, node, ttl, limit, batch)
	db.found.Store(len(acquired) > 0)
	return acquired, db.local(next), err
}

// An idle is the result of the last query for due agents, if it found none. A member that
// is alone need not ask again until one of its own commits makes an agent due.
type idle struct {
	mu    sync.Mutex
	dirty int64     // commits that made an agent due
	asked int64     // dirty as of the query
	at    int64     // when it was made; 0: it found some
	next  time.Time // when an agent is due by then, zero for never
}

// trustIdle bounds how long the result counts, in milliseconds, for what other programs do
// to the tables, and for the leases that were granted since.
const trustIdle = 4000

// known returns the result if it still counts.
func (i *idle) known(now int64, ttl time.Duration) (next time.Time, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	age := now - i.at
	ok = i.at != 0 && i.dirty == i.asked && age >= 0 && age < min(trustIdle, ttl.Milliseconds()/2) && (i.next.IsZero() || now < i.next.UnixMilli())
	return i.next, ok
}

// ask begins a query.
func (i *idle) ask() (asked int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.dirty
}

// found keeps the result of a query that found no due agent.
func (i *idle) found(asked, at int64, next time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked, i.at, i.next = asked, at, next
}

// due notes a commit that made an agent due.
func (i *idle) due() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.dirty++
}

// shortest is the minimum time between two queries that find nothing.
const shortest = 10 * time.Millisecond

// local converts a time of the store to the clock of this machine. It returns a time in
// the future: other members are acquiring what is due now.
func (db *DB) local(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	ahead := time.Duration(t.UnixMilli()-db.dialect.Clock()) * time.Millisecond
	if db.cfg.Clock == nil {
		ahead = max(ahead, shortest)
	}
	return time.Now().Add(ahead)
}

// A backlog counts the due agents and the members' shares of the work.
type backlog struct {
	due, late  int       // late: for longer than patience
	mine, held int       // agents that this member holds, and that all members hold
	next       time.Time // when an agent is due, if none is
}

// share returns how many agents a member acquires now if so many members share the work.
func (w backlog) share(nodes int) int {
	if nodes <= 1 || w.due <= fewDue {
		return w.due
	}
	fair := (w.held + w.due + nodes - 1) / nodes
	return max(fair-w.mine, w.late, 0)
}

func (db *DB) waiting(ctx context.Context, node string) (w backlog, err error) {
	conn, err := acquire(ctx, db.pool)
	if err != nil {
		return w, err
	}
	defer conn.Release()
	now := db.dialect.Clock()
	var next *int64
	err = conn.QueryRow(ctx, `WITH due AS (
			SELECT wake_at FROM agents WHERE wake_at IS NOT NULL AND wake_at <= $1 LIMIT $3)
		SELECT (SELECT count(*) FROM due), (SELECT count(*) FROM due WHERE wake_at <= $2),
			(SELECT wake_at FROM agents WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1)`,
		now, now-patience.Milliseconds(), mostCounted).Scan(&w.due, &w.late, &next)
	if err != nil {
		return w, classify(err)
	}
	if next != nil {
		w.next = time.UnixMilli(max(*next, 1)) // 0 would be the zero time, which means never
	}
	if _, others := db.mates.get(); others == 0 || w.due <= fewDue {
		return w, nil
	}
	err = conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM (SELECT 1 FROM agents WHERE node = $1 LIMIT $2) m),
		(SELECT count(*) FROM (SELECT 1 FROM agents WHERE node IS NOT NULL LIMIT $2) h)`, node, mostCounted).Scan(&w.mine, &w.held)
	return w, classify(err)
}
