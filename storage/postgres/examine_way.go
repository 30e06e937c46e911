package postgres

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	slowTrip   = 10 * time.Millisecond
	longTrip   = time.Millisecond // from here on, the distance limits the rate of messages
	slowCommit = 20 * time.Millisecond
	measured   = 15 // commits and questions
	notifyTime = 3 * time.Second
	turns      = 6 // attempts to see two connections share a session
	// tripsPerMessage is w·s + q of docs/scaling.md, "Cost of a message".
	tripsPerMessage = 6 + 2
)

// secrecy reports whether the connection to the server is encrypted.
func (x *examination) secrecy() {
	conn := x.conn.PgConn().Conn()
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String()) // a Unix socket has none
	ip := net.ParseIP(host)
	_, encrypted := conn.(*tls.Conn)
	switch {
	case encrypted && x.cc.TLSConfig != nil && x.cc.TLSConfig.InsecureSkipVerify && x.cc.TLSConfig.VerifyPeerCertificate == nil:
		x.say("database-unencrypted", "connection", LevelWarning, "the server answers; the connection is encrypted, but whether it is the right server is not verified", "add sslmode=verify-full to the storage URL, and sslrootcert where its authority is your own")
	case encrypted:
		x.ok("connection", "the server answers; the connection is encrypted")
	case ip != nil && !ip.IsLoopback():
		x.say("database-unencrypted", "connection", LevelWarning, "the server answers; the connection is not encrypted: anyone on the way can read and change everything", "add sslmode=verify-full to the storage URL, unless the network between is your own")
	default:
		x.ok("connection", "the server answers; it is on this machine")
	}
}

// distance describes what a round-trip time costs a member with so many connections.
func distance(trip time.Duration, conns int) string {
	message := tripsPerMessage * trip
	text := fmt.Sprintf("a query takes %v; a short message waits for about %d in a row, %v", rounded(trip), tripsPerMessage, rounded(message))
	if trip < longTrip {
		return text
	}
	each := 1 / message.Seconds()
	return text + fmt.Sprintf(": about %s messages per second in one conversation, and %s on one member with its %d connections", rate(each), rate(each*float64(conns)), conns)
}

// rate returns n with two digits or more.
func rate(n float64) string {
	if n >= 10 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.2g", n)
}

// rounded returns d with two or three digits.
func rounded(d time.Duration) time.Duration {
	unit := 10 * time.Microsecond
	for d > 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}

// trips measures the round-trip time to the server.
func (x *examination) trips(ctx context.Context) {
	took := make([]time.Duration, 0, measured)
	for range measured {
		began := time.Now()
		if _, err := x.conn.Exec(ctx, "SELECT 1"); err != nil {
			x.setup("database-distant", "distance", err)
			return
		}
		took = append(took, time.Since(began))
	}
	x.trip = slices.Min(took)
	text := distance(x.trip, x.cfg.conns())
	if x.trip >= slowTrip {
		x.say("database-distant", "distance", LevelWarning, text, "run claybot in the same data center as its database; more connections (storage.connections) raise only the rate of the member")
		return
	}
	x.ok("distance", text)
}

// commits measures how long the server takes to flush a commit, without the round
// trip. Its transactions write only to the server's log.
func (x *examination) commits(ctx context.Context, s surveyed) {
	if s.standby || s.readOnly || x.trip == 0 {
		return // already reported
	}
	took := make([]time.Duration, 0, measured)
	for range measured {
		d, err := x.commit(ctx)
		if codeOf(err) == codeProtocol && x.conn.IsClosed() {
			x.say("database-pooler", "pooler", LevelProblem, "a pooler stands before the server that allows no transactions (pool_mode = statement)", "set its pool_mode to transaction, and storage.pooler (CLAYBOT_STORAGE_POOLER) to true; or name the server itself in the storage URL")
			return
		}
		if err != nil {
			x.say("database-slow", "commits", LevelWarning, "how long a commit takes could not be measured: "+(redacted{err, x.cfg.URL}).Error(), "")
			return
		}
		took = append(took, max(0, d-x.trip))
	}
	slices.Sort(took)
	each := took[measured/2]
	if each > slowCommit {
		x.say("database-slow", "commits", LevelWarning, fmt.Sprintf("a commit takes %v: the disk of the server, or a replica that it waits for, is slow", each.Round(time.Millisecond)), "put the write-ahead log on a quicker disk, or look at synchronous_standby_names and commit_delay")
		return
	}
	x.ok("commits", fmt.Sprintf("a commit takes %v", each.Round(10*time.Microsecond)))
}

// commit measures one commit.
func (x *examination) commit(ctx context.Context) (time.Duration, error) {
	tx, err := x.conn.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(ctx) }() // no effect after Commit
	for _, q := range []string{
		"SET LOCAL synchronous_commit = on", // as claybot does
		"SELECT pg_current_xact_id()",
		"SELECT pg_logical_emit_message(true, 'claybot', 'doctor')", // gives the commit something to flush
	} {
		if _, err := tx.Exec(ctx, q); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	err = tx.Commit(ctx)
	return time.Since(began), err
}

// pooler detects a pooler and checks whether notifications arrive.
func (x *examination) pooler(ctx context.Context, s surveyed) {
	other, err := pgx.ConnectConfig(ctx, x.cc.Copy())
	if err != nil {
		x.setup("database-pooler", "pooler", fmt.Errorf("a second connection: %w", err))
		return
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }() // nothing to write
	shares, between, err := x.shares(ctx, other)
	if err != nil {
		x.setup("database-pooler", "pooler", err)
		return
	}
	var port string
	_ = x.conn.QueryRow(ctx, "SELECT coalesce(current_setting('port'), '')").Scan(&port) // for display only
	switch {
	case shares && !x.cfg.Pooler:
		x.say("database-pooler", "pooler", LevelProblem, "a pooler gives connections away per transaction", "set storage.pooler (CLAYBOT_STORAGE_POOLER) to true, or name the server itself in the storage URL (its port is "+port+")")
		return
	case x.cfg.Pooler && shares:
		x.ok("pooler", "it gives connections away per transaction, as storage.pooler says: nodes look every second or two")
		return
	case x.cfg.Pooler:
		x.ok("pooler", "storage.pooler is set, and connections were not seen to be given away: without it, nodes hear of each other at once")
		return
	}
	what := "nothing stands before the server"
	if between {
		what = "a pooler or proxy stands before the server, with a session for each connection"
	}
	switch {
	case x.cfg.NoListen:
		x.ok("pooler", what+"; storage.listen is off: nodes look every second or two")
	case s.standby || s.readOnly:
		x.ok("pooler", what)
	case x.notified(ctx, other):
		x.ok("pooler", what+"; notifications arrive")
	default:
		x.say("database-notifications", "pooler", LevelWarning, what+"; notifications do not arrive, so nodes hear of each other late", "name the server itself in the storage URL (its port is "+port+"), or set storage.listen (CLAYBOT_STORAGE_LISTEN) to false, so that nodes look by themselves")
	}
}

// shares reports whether two connections used the same server session, which happens
// only behind a pooler, and whether there is a proxy at all: a proxy reports a wrong
// session number.
func (x *examination) shares(ctx context.Context, other *pgx.Conn) (shares, between bool, err error) {
	seen := [2]map[uint32]bool{make(map[uint32]bool), make(map[uint32]bool)}
	conns := [2]*pgx.Conn{x.conn, other}
	for turn := range turns {
		// Each connection ends its transaction before the other begins, in alternating
		// order, so that a pooler may reuse the session.
		for i := range conns {
			me := (i + turn/2) % 2
			var pid uint32
			if err := conns[me].QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
				return false, false, err
			}
			seen[me][pid] = true
			between = between || pid != conns[me].PgConn().PID()
		}
	}
	for pid := range seen[0] {
		shares = shares || seen[1][pid]
	}
	return shares || len(seen[0]) > 1 || len(seen[1]) > 1, between, nil
}

// notified reports whether conn receives the notifications of other. A failed wait
// ends the first connection.
func (x *examination) notified(ctx context.Context, other *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, x.cfg.patience(notifyTime))
	defer cancel()
	if _, err := x.conn.Exec(ctx, "LISTEN claybot_doctor"); err != nil {
		return false
	}
	if _, err := other.Exec(ctx, "NOTIFY claybot_doctor"); err != nil {
		return false
	}
	if _, err := x.conn.WaitForNotification(ctx); err != nil {
		return false
	}
	_, err := x.conn.Exec(ctx, "UNLISTEN claybot_doctor")
	return err == nil
}
