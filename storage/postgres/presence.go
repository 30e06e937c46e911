package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	// lookEvery is the time between two looks at the sessions of other members, and
	// lookAgain that while a session is gone.
	lookEvery = time.Second
	lookAgain = 250 * time.Millisecond
	// goneLooks is the number of consecutive looks, lookAgain apart, that must find a session
	// gone. A live member has a new session within relistenFirst, if the server lets it in.
	goneLooks = 5
	// lookTime bounds one look. It is as long as a lease, so a session survives a server that
	// stalls for some seconds.
	lookTime = 10 * time.Second
	// endTime bounds the end of one membership, which the next look retries.
	endTime = time.Second
	// presenceSeed keeps the locks of members apart from other advisory locks.
	presenceSeed = 0x6d656d626572
)

// A presence finds members whose processes have died, by the sessions that the server
// ended. Each member holds an advisory lock, derived from its id, on the connection that
// listens. The server releases it as soon as the process is gone.
//
// A free lock alone proves nothing: a connection breaks for many reasons. A member is ended
// only if all of these hold:
//
//   - Its lock was held while this same session existed: a look has found it held, or the
//     member has notified this session when it took the lock, which it does when it joins.
//     So a member without a lock, because it is older, does not listen, or is behind a
//     pooler, is judged by its lease alone. After a restart or a failover of the server, this session is new as well,
//     and members that are slow to come back have not been seen in it.
//   - goneLooks consecutive looks have found the lock free, and no renewal in between. A look
//     that comes sooner than lookAgain after the last one that counted does not count:
//     notifications of sessions bring looks at any time.
//   - Its last renewal is older than the renewal interval and a half, and than a quarter of
//     its lease.
//   - It has not renewed its lease until the transaction that ends it.
//
// The session of a member that is frozen, or cut off without notice, stays, so its lease
// decides. A live member that is ended nevertheless finds its lease lost at its next
// renewal, and until then the store rejects its writes.
type presence struct {
	db   *DB
	conn *pgx.Conn
	held string               // the id whose lock this session holds
	met  map[string]*sighting // the members whose locks were held in this session
	now  func() time.Time     // time.Now, but in tests
}

// A sighting is what consecutive looks have found of a member whose lock was held once.
type sighting struct {
	gone    int          // consecutive looks that found the lock free
	counted time.Time    // the end of the last of them
	seen    claybot.Time // the last renewal, as of the first of them
}

// A mate is what one look finds of another member.
type mate struct {
	id, name    string
	seen, until claybot.Time
	free        bool // no session holds its lock
}

func newPresence(db *DB, conn *pgx.Conn) *presence {
	return &presence{db: db, conn: conn, met: make(map[string]*sighting), now: time.Now}
}

// meet notes that another member holds its lock in a session that notified this one.
func (p *presence) meet(member, self string, news sessionNews) {
	if news.Holds && member != self && p.met[member] == nil {
		p.met[member] = new(sighting)
	}
}

// look holds the lock of this member and ends the members that have died. It returns when
// to look again. The error means that the session is over.
func (p *presence) look(ctx context.Context) (pause time.Duration, err error) {
	pause = cmp.Or(p.db.cfg.lookEvery, lookEvery)
	self, others := p.db.mates.get()
	began := p.now()
	bounded, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err = p.hold(bounded, self)
	var mates []mate
	if err == nil && (others > 0 || len(p.met) > 0) {
		mates, err = p.mates(bounded, self)
	}
	if err != nil {
		if p.conn.IsClosed() || codeOf(err) == "" {
			return 0, err
		}
		p.db.log.Debug("failed to look at the sessions of other members, retrying", "err", err)
		return pause, nil
	}
	dead, gone := p.judge(p.db.dialect.Clock(), began, mates)
	for _, m := range dead {
		p.end(ctx, m)
	}
	if gone {
		pause = min(pause, lookAgain)
	}
	return pause, nil
}

// hold takes the lock of this member. A lock that another session still holds, such as the
// previous one of this process, is retried at the next look.
func (p *presence) hold(ctx context.Context, self string) error {
	if self == p.held {
		return nil
	}
	if p.held != "" { // of a term that is over
		if _, err := p.conn.Exec(ctx, "SELECT pg_advisory_unlock(hashtextextended($1, $2))", storable(p.held), presenceSeed); err != nil {
			return err
		}
		p.held = ""
	}
	var got bool
	err := p.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1, $2))", storable(self), presenceSeed).Scan(&got)
	if err != nil || !got {
		return err
	}
	p.held = self
	_, err = p.conn.Exec(ctx, "SELECT pg_notify('claybot_' || current_schema(), $1)", sessionPayload(self, sessionNews{Holds: true}))
	return err
}

// mates returns the other live members. The probes of their locks are shared, so looks of
// several members do not meet, and end with the statement.
func (p *presence) mates(ctx context.Context, self string) ([]mate, error) {
	rows, err := p.conn.Query(ctx, `SELECT id, name, seen, until, pg_try_advisory_xact_lock_shared(hashtextextended(id, $3))
		FROM nodes WHERE until > $1 AND id <> $2`, p.db.dialect.Clock(), storable(self), presenceSeed)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (m mate, err error) {
		err = r.Scan(&m.id, &m.name, &m.seen, &m.until, &m.free)
		m.id, m.name = restored(m.id), restored(m.name)
		return m, err
	})
}

// judge returns the members that are dead at a time of the store, by a look that began at a
// time, and whether the session of any is gone.
func (p *presence) judge(now int64, began time.Time, mates []mate) (dead []mate, gone bool) {
	met := make(map[string]*sighting, len(mates))
	apart := min(cmp.Or(p.db.cfg.lookEvery, lookEvery), lookAgain)
	for _, m := range mates {
		s := p.met[m.id]
		switch {
		case !m.free:
			met[m.id] = &sighting{}
			continue
		case s == nil:
			continue // its lock was never held
		}
		if s.gone == 0 || s.seen != m.seen {
			*s = sighting{seen: m.seen}
		}
		if s.gone == 0 || began.Sub(s.counted) >= apart {
			s.gone++
			s.counted = p.now()
		}
		met[m.id], gone = s, true
		lease := time.Duration(m.until-m.seen) * time.Millisecond
		every := storage.RenewalInterval(lease)
		if s.gone >= goneLooks && now-int64(m.seen) > max(every+every/2, lease/4).Milliseconds() {
			dead = append(dead, m)
		}
	}
	p.met = met
	return dead, gone
}

// end ends the membership of a dead member, and notifies this process and the others.
func (p *presence) end(ctx context.Context, m mate) {
	ctx, cancel := context.WithTimeout(ctx, p.db.cfg.patience(endTime))
	defer cancel()
	ended, err := p.db.vital.EndUnrenewed(ctx, m.id, m.seen)
	if err != nil {
		p.db.log.Debug("failed to end the membership of a dead member, retrying", "member", m.id, "err", err)
	}
	if ended {
		p.db.log.Warn("member died; ended its membership", "name", m.name, "member", m.id)
		p.db.notifier.deliver(storage.Notification{Due: true, Ended: []string{m.id}})
	}
}
