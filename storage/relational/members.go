package relational

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var (
	_ storage.Members = (*Store)(nil)
	_ storage.Claims  = (*Store)(nil)
)

const (
	keepMembers = 24 * time.Hour // after their last renewal
	keepClaims  = 24 * time.Hour // after they were released
)

// A lone is the only member of a store that one process uses alone. It has
// every claim and writes nothing.
type lone struct {
	mu     sync.Mutex
	member storage.Member
}

const memberColumns = "id, name, addr, version, started, seen, until, draining, working, max_runs, skew"

func decodeMember(r Row, now int64) storage.Member {
	n := storage.Member{
		ID: r.Str(0), Name: r.Str(1), Addr: r.Str(2), Version: r.Str(3), Started: claybot.Time(r.Int(4)), Seen: claybot.Time(r.Int(5)),
		Until: claybot.Time(r.Int(6)), Working: int(r.Int(8)), MaxRuns: int(r.Int(9)), Skew: r.Int(10),
	}
	switch {
	case n.Until == 0:
		n.State = storage.MemberGone
	case int64(n.Until) <= now:
		n.State = storage.MemberLost
	case r.Int(7) != 0:
		n.State = storage.MemberDraining
	default:
		n.State = storage.MemberLive
	}
	return n
}

func (db members) RenewMember(ctx context.Context, n storage.Member, ttl time.Duration) ([]storage.Member, error) {
	if db.dialect.Alone {
		return []storage.Member{db.lone.renew(n, db.now(), ttl)}, nil
	}
	alive, err := write(ctx, db, func(c *Conn) ([]storage.Member, error) { return renewLease(c, n, ttl) })
	return result(alive, err, "renew the lease of member %s", n.ID)
}

func (l *lone) renew(n storage.Member, now int64, ttl time.Duration) storage.Member {
	l.mu.Lock()
	defer l.mu.Unlock()
	n.Seen, n.Until = claybot.Time(now), claybot.Time(now+ttl.Milliseconds())
	if n.State != storage.MemberDraining {
		n.State = storage.MemberLive
	}
	l.member = n
	return n
}

func renewLease(c *Conn, n storage.Member, ttl time.Duration) ([]storage.Member, error) {
	now := c.now()
	done, err := c.exec(`INSERT INTO nodes (`+memberColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET addr = excluded.addr, seen = excluded.seen, until = excluded.until, draining = excluded.draining,
			working = excluded.working, max_runs = excluded.max_runs, skew = excluded.skew WHERE nodes.until > excluded.seen`,
		n.ID, n.Name, n.Addr, n.Version, n.Started, now, now+ttl.Milliseconds(), n.State == storage.MemberDraining, n.Working, n.MaxRuns, n.Skew)
	if err != nil {
		return nil, err
	}
	if done == 0 {
		return nil, fmt.Errorf("it has expired: %w", storage.ErrLeaseLost)
	}
	var alive []storage.Member
	err = c.each("SELECT "+memberColumns+" FROM nodes WHERE until > ? ORDER BY id",
		func(r Row) error { alive = append(alive, decodeMember(r, now)); return nil }, now)
	return alive, err
}

func (db members) Leave(ctx context.Context, id string) error {
	if db.dialect.Alone {
		return nil
	}
	err := db.update(ctx, func(c *Conn) error { return endMember(c, id) })
	return failed(err, "leave as member %s", id)
}

// endMember ends the lease of a member and its claims.
func endMember(c *Conn, id string) error {
	if err := c.do("UPDATE nodes SET until = 0 WHERE id = ? AND until > 0", id); err != nil {
		return err
	}
	return c.do("UPDATE claims SET node = '', at = ? WHERE node = ?", c.now(), id)
}

func (db members) EndMember(ctx context.Context, id, name string) error {
	if db.dialect.Alone {
		return nil
	}
	err := db.update(ctx, func(c *Conn) error {
		known, err := c.first("SELECT 1 FROM nodes WHERE id = ? AND name = ?", func(Row) error { return nil }, id, name)
		if err != nil || !known {
			return err
		}
		if err := freeAgents(c, id); err != nil {
			return err
		}
		return endMember(c, id)
	})
	return failed(err, "end member %s", id)
}

// EndUnrenewed ends a member like EndMember, but only if it has not renewed its lease since
// seen, its last known renewal. The others are notified. It returns false if it changed
// nothing.
func (db members) EndUnrenewed(ctx context.Context, id string, seen claybot.Time) (ended bool, err error) {
	if db.dialect.Alone {
		return false, nil
	}
	err = db.update(ctx, func(c *Conn) error {
		// A renewal that waits for this row finds the lease ended.
		n, err := c.exec("UPDATE nodes SET until = 0 WHERE id = ? AND seen = ? AND until > ?", id, seen, c.now())
		if ended = n > 0; err != nil || !ended {
			return err
		}
		if err := freeAgents(c, id); err != nil {
			return err
		}
		n, err = c.exec("UPDATE claims SET node = '', at = ? WHERE node = ?", c.now(), id)
		c.journal.claimsTaken += int(n)
		c.journal.notification.Due, c.journal.notification.Ended = true, []string{id}
		return err
	})
	return ended && err == nil, failed(err, "end silent member %s", id)
}

// freeAgents ends the leases of a member's agents. Their next holders have larger tokens, so
// nothing is written under the ended leases.
func freeAgents(c *Conn, node string) error {
	n, err := c.exec(`UPDATE agents SET node = NULL, wake_at = CASE WHEN run IS NULL THEN due_at ELSE coalesce(resume_at, 0) END
		WHERE id IN (SELECT id FROM agents WHERE wake_at IS NOT NULL AND node = ? ORDER BY id`+c.locked()+`)`, node)
	c.journal.agentsTaken += int(n)
	return err
}

func (db members) Members(ctx context.Context) ([]storage.Member, error) {
	if db.dialect.Alone {
		db.lone.mu.Lock()
		defer db.lone.mu.Unlock()
		return []storage.Member{db.lone.member}, nil
	}
	var list []storage.Member
	err := db.read(ctx, func(c *Conn) error {
		now := c.now()
		err := c.each("SELECT "+memberColumns+" FROM nodes WHERE seen > ? ORDER BY started DESC, id LIMIT 0+?",
			func(r Row) error { list = append(list, decodeMember(r, now)); return nil }, now-keepMembers.Milliseconds(), 1000)
		if err != nil {
			return err
		}
		return addClaims(c, list)
	})
	return result(list, err, "members")
}

// addClaims adds the claims of members. Claims of destinations are only counted,
// because there are as many as chats.
func addClaims(c *Conn, list []storage.Member) error {
	claims, dests := make(map[string][]string), make(map[string]int)
	out := storage.DestClaim("")
	err := c.each("SELECT name, node FROM claims WHERE node <> '' AND substr(name, 1, ?) <> ? ORDER BY name LIMIT 0+?",
		func(r Row) error { claims[r.Str(1)] = append(claims[r.Str(1)], r.Str(0)); return nil }, len(out), out, 1000)
	if err != nil {
		return err
	}
	err = c.each("SELECT node, count(*) FROM claims WHERE node <> '' AND substr(name, 1, ?) = ? GROUP BY node",
		func(r Row) error { dests[r.Str(0)] = int(r.Int(1)); return nil }, len(out), out)
	for i := range list {
		list[i].Claims, list[i].Dests = claims[list[i].ID], dests[list[i].ID]
	}
	return err
}

// Claim implements storage.Claims. A member without a lease gets storage.ErrLeaseLost.
func (db members) Claim(ctx context.Context, node, name string) (storage.Claim, error) {
	if db.dialect.Alone {
		return storage.Claim{Name: name, Member: node, Token: 1}, nil
	}
	claim, err := lightly(ctx, db, func(c *Conn) (storage.Claim, error) { return takeClaim(c, node, name) })
	return result(claim, err, "claim %s", name)
}

func takeClaim(c *Conn, node, name string) (storage.Claim, error) {
	claim, now := storage.Claim{Name: name, Member: node}, c.now()
	var holder string
	var alive bool
	known, err := c.first("SELECT node, token FROM claims WHERE name = ?"+c.locked(),
		func(r Row) error { holder, claim.Token = r.Str(0), r.Int(1); return nil }, name)
	if err != nil {
		return claim, err
	}
	if node == "" {
		return claim, fmt.Errorf("no member: %w", storage.ErrLeaseLost)
	}
	// The member itself must be live, and the holder must not.
	mine := false
	err = c.each("SELECT id FROM nodes WHERE id IN (?, ?) AND until > ?", func(r Row) error {
		mine, alive = mine || r.Str(0) == node, alive || r.Str(0) == holder
		return nil
	}, node, holder, now)
	switch {
	case err != nil:
		return claim, err
	case !mine:
		return claim, fmt.Errorf("member %s has no lease: %w", node, storage.ErrLeaseLost)
	case alive && holder != node:
		return claim, storage.ErrHeld
	}
	// Also for the member that has it: a yield of its earlier claim must not end
	// this one.
	claim.Token++
	q := "UPDATE claims SET node = ?, token = ?, at = ? WHERE name = ?"
	if !known {
		q = "INSERT INTO claims (node, token, at, name) VALUES (?, ?, ?, ?)"
	}
	if err := c.do(q, node, claim.Token, now, name); err != nil {
		return claim, err
	}
	if holder != "" && holder != node {
		c.journal.claimsTaken++
	}
	if dest, ok := strings.CutPrefix(name, storage.DestClaim("")); ok && holder != node {
		return claim, markInterrupted(c, dest)
	}
	return claim, nil
}

// markInterrupted marks unfinished sends of the previous holder of a destination as
// ambiguous.
func markInterrupted(c *Conn, dest string) error {
	n, err := c.exec("UPDATE outbox SET state = ?, cause = 'interrupted' WHERE open = 1 AND dest = ? AND state = ?",
		claybot.SendAmbiguous, dest, claybot.SendAttempted)
	for range n {
		c.tally.send(claybot.SendAttempted, claybot.SendAmbiguous)
	}
	return err
}

func (db members) Yield(ctx context.Context, claim storage.Claim) error {
	if db.dialect.Alone {
		return nil
	}
	_, err := lightly(ctx, db, func(c *Conn) (int64, error) {
		return c.exec("UPDATE claims SET node = '', at = ? WHERE name = ? AND node = ? AND token = ?", c.now(), claim.Name, claim.Member, claim.Token)
	})
	return failed(err, "yield %s", claim.Name)
}

func (db members) Holder(ctx context.Context, name string) (node string, err error) {
	if db.dialect.Alone {
		db.lone.mu.Lock()
		defer db.lone.mu.Unlock()
		return db.lone.member.ID, nil
	}
	err = db.read(ctx, func(c *Conn) error {
		_, err := c.first("SELECT n.id FROM claims c JOIN nodes n ON n.id = c.node AND n.until > ? WHERE c.name = ?",
			func(r Row) error { node = r.Str(0); return nil }, c.now(), name)
		return err
	})
	return result(node, err, "holder of %s", name)
}

// claimedOutgoing returns the state of an outgoing message, and its destination. A claim
// that is not zero must be that of the destination.
func claimedOutgoing(c *Conn, claim storage.Claim, id string, more ...Ask) (s claybot.SendState, dest string, err error) {
	unclaimed := c.dialect.Alone || claim == (storage.Claim{})
	var there, found bool
	asks := []Ask{{
		Query: "SELECT state, dest FROM outbox WHERE id = ?" + c.locked(), Args: []any{id},
		Row: once(&there, func(r Row) error { s, dest = claybot.SendState(r.Str(0)), r.Str(1); return nil }),
	}}
	if !unclaimed { // first, in the lock order of Claim
		asks = append([]Ask{askClaim(c, claim, &found)}, asks...)
	}
	if err := c.ask(append(asks, more...)...); err != nil {
		return "", "", err
	}
	if err := need(there, nil); err != nil || unclaimed {
		return s, dest, err
	}
	if !found || claim.Name != storage.DestClaim(dest) {
		err = fmt.Errorf("the claim of %s: %w", dest, storage.ErrLeaseLost)
	}
	return s, dest, err
}

// askClaim asks whether a member still has a claim, and locks it.
func askClaim(c *Conn, claim storage.Claim, found *bool) Ask {
	return Ask{
		Query: "SELECT 1 FROM claims WHERE name = ? AND node = ? AND token = ?" + c.locked(), Args: []any{claim.Name, claim.Member, claim.Token},
		Row: once(found, func(Row) error { return nil }),
	}
}

// A claimed is a claim with the lease of its member, as read together.
type claimed struct {
	found bool
	until int64 // the end of the lease
}

// ask locks the claim. If the claim was waited for, the end of the lease may be too early.
func (d *claimed) ask(c *Conn, claim storage.Claim) Ask {
	lock := c.locked()
	if lock != "" {
		lock += " OF c"
	}
	return Ask{
		Query: "SELECT n.until FROM claims c JOIN nodes n ON n.id = c.node WHERE c.name = ? AND c.node = ? AND c.token = ?" + lock,
		Args:  []any{claim.Name, claim.Member, claim.Token},
		Row:   once(&d.found, func(r Row) error { d.until = r.Int(0); return nil }),
	}
}

// live reports whether the claim is held and the lease is valid.
func (d *claimed) live(c *Conn) bool { return d.found && d.until > c.now() }

// askLive returns queries that check whether the lease of a member is valid.
func askLive(c *Conn, node string, alive *bool) []Ask {
	if c.dialect.Alone {
		*alive = true
		return nil
	}
	return []Ask{{
		Query: "SELECT until FROM nodes WHERE id = ?", Args: []any{node},
		Row: func(r Row) error { *alive = r.Int(0) > c.now(); return nil }, // after what is locked was waited for
	}}
}

// pruneMembers removes members that are long gone, and claims that have long been
// free. Tokens may then start again: the ids of members never come back.
func pruneMembers(c *Conn, now claybot.Time) (int, error) {
	if c.dialect.Alone {
		return 0, nil
	}
	n, err := c.exec("DELETE FROM nodes WHERE until < ?2 AND seen < ?1", int64(now)-keepMembers.Milliseconds(), now)
	if err != nil {
		return 0, err
	}
	m, err := c.exec(`DELETE FROM claims WHERE at < ? AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = claims.node AND until > ?)`,
		int64(now)-keepClaims.Milliseconds(), now)
	return int(n + m), err
}
