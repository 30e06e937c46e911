package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot"
)

// A Finding is the result of one check by Examine.
type Finding struct {
	What string `json:"what"`
	// Level is ok, warning (claybot works, but with limits), or problem (it does not work).
	Level string `json:"level"`
	// Code names the kind of fault. It stays the same when the words change; CodeOK without a fault.
	Code string `json:"code"`
	Text string `json:"text"`
	Next string `json:"next,omitempty"` // what to do about it
}

// The levels of findings.
const (
	LevelOK      = "ok"
	LevelWarning = "warning"
	LevelProblem = "problem"
)

// CodeOK is the code of a finding without a fault.
const CodeOK = "ok"

const (
	mostSkew      = time.Second
	clockLooks    = 3 // a slow answer says little about the clock
	connectTime   = 5 * time.Second
	leastTimeout  = 10 * time.Second // of the server, for statements
	nodesExpected = 3                // the server should have connections for this many
)

// An examination collects findings over one connection.
type examination struct {
	conn *pgx.Conn
	cc   *pgx.ConnConfig
	cfg  Config
	trip time.Duration // round-trip time of a query
	all  []Finding
}

func (x *examination) say(code, what, level, text, next string) {
	x.all = append(x.all, Finding{what, level, code, text, next})
}

func (x *examination) ok(what, text string) { x.say(CodeOK, what, LevelOK, text, "") }

// Examine checks a database as claybot would use it and changes nothing. It reports
// reachability, version, privileges, settings that break durability, clock skew,
// poolers and latency. It takes a minute at most, and no finding contains a secret.
func Examine(ctx context.Context, cfg Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	x := &examination{cfg: cfg}
	cc, err := pgx.ParseConfig(cfg.URL)
	if err == nil {
		// Works with any pooler before the server.
		cc.DefaultQueryExecMode = pgx.QueryExecModeExec
		if cc.ConnectTimeout == 0 {
			cc.ConnectTimeout = connectTime
		}
		x.cc = cc
		x.conn, err = pgx.ConnectConfig(ctx, cc.Copy())
	}
	if err != nil {
		x.setup("database-unreachable", "connection", err)
		return x.all
	}
	defer func() { _ = x.conn.Close(context.WithoutCancel(ctx)) }() // nothing to write
	x.secrecy()
	s, err := survey(ctx, x.conn)
	if err != nil {
		x.setup("database-server", "server", err)
		return x.all
	}
	x.server(s)
	x.schema(ctx)
	x.rights(ctx, s)
	x.clock(ctx)
	x.trips(ctx)
	x.commits(ctx, s)
	if x.conn.IsClosed() {
		return x.all // already reported
	}
	x.timeouts(ctx)
	x.connections(ctx, s)
	x.nodes(ctx)
	x.outbox(ctx)
	x.pooler(ctx, s) // last: a failed wait ends the connection
	return x.all
}

// setup reports an error that keeps claybot from starting.
func (x *examination) setup(code, what string, err error) {
	err = explain(x.cfg.URL, err)
	var setup *SetupError
	if errors.As(err, &setup) {
		x.say(code, what, LevelProblem, setup.Problem, setup.Next)
		return
	}
	x.say(code, what, LevelProblem, err.Error(), "")
}

func (x *examination) server(s surveyed) {
	if err := s.check(); err != nil {
		x.setup("database-server", "server", err)
	} else {
		x.ok("server", "PostgreSQL "+s.name)
	}
	if !s.fsync || !s.fullPageWrites {
		x.say("database-durability", "durability", LevelProblem, "the server does not write through to the disk (fsync or full_page_writes is off): a power cut loses or damages what was confirmed", "set both to on")
		return
	}
	switch s.synchronousCommit {
	case "off", "local":
		x.say("database-durability", "durability", LevelWarning, "synchronous_commit is "+s.synchronousCommit+"; claybot sets it to on for its own transactions", "set it to on for the role of claybot")
	default:
		x.ok("durability", "commits reach the disk before they are confirmed")
	}
}

func (x *examination) schema(ctx context.Context) {
	version, oldest, err := schemaVersion(ctx, x.conn)
	switch {
	case err != nil:
		x.setup("database-schema", "schema", err)
	case checkVersion(version, oldest) != nil:
		x.setup("database-schema", "schema", checkVersion(version, oldest))
	case version == 0:
		x.ok("schema", "does not exist yet; the first start creates it")
	case version < len(migrations):
		x.ok("schema", fmt.Sprintf("version %d; the next start of this claybot makes it %d", version, len(migrations)))
	case version > len(migrations):
		x.say("database-newer", "schema", LevelWarning, fmt.Sprintf("version %d is newer than this claybot, which can work with it", version), "finish the upgrade of all nodes")
	default:
		x.ok("schema", fmt.Sprintf("version %d", version))
	}
}

func (x *examination) rights(ctx context.Context, s surveyed) {
	if s.schema == "" {
		return // already reported with the server
	}
	if err := checkRights(ctx, x.conn, s.schema); err != nil {
		x.setup("database-rights", "rights", err)
		return
	}
	var create bool
	if err := x.conn.QueryRow(ctx, "SELECT has_schema_privilege(current_schema(), 'CREATE')").Scan(&create); err != nil {
		x.setup("database-rights", "rights", err)
		return
	}
	if version, _, err := schemaVersion(ctx, x.conn); !create && err == nil && version == 0 {
		x.say("database-rights", "rights", LevelProblem, "the role may not make tables in the schema "+s.schema+", and there are none yet", "GRANT CREATE ON SCHEMA "+pgx.Identifier{s.schema}.Sanitize()+" to it")
		return
	}
	if !create {
		x.say("database-rights", "rights", LevelWarning, "the role may not make tables in the schema "+s.schema+", so an upgrade of claybot may not start", "let the owner of the schema run: GRANT CREATE ON SCHEMA "+pgx.Identifier{s.schema}.Sanitize()+" TO <role>")
		return
	}
	x.ok("rights", "the role may read, write and make tables in the schema "+s.schema)
}

func (x *examination) clock(ctx context.Context) {
	var c clock
	for range clockLooks {
		if err := c.measure(ctx, x.conn); err != nil {
			x.setup("clock-off", "clock", err)
			return
		}
	}
	skew := c.skew()
	if skew.Abs() > mostSkew {
		x.say("clock-off", "clock", LevelWarning, fmt.Sprintf("the clock of this machine is %v off that of the server; leases go by the server's, logs and schedules by this one", skew.Round(time.Millisecond)),
			"synchronise both with NTP")
		return
	}
	x.ok("clock", fmt.Sprintf("%v off that of the server", skew.Round(time.Millisecond)))
}

// timeouts reports server limits that would interrupt claybot's work.
func (x *examination) timeouts(ctx context.Context) {
	rows, err := x.conn.Query(ctx, `SELECT name, CAST(setting AS BIGINT) FROM pg_settings
		WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_session_timeout') AND unit = 'ms' AND setting <> '0' ORDER BY name`)
	if err != nil {
		x.setup("database-timeouts", "timeouts", err)
		return
	}
	defer rows.Close()
	var name string
	var ms int64
	for rows.Next() {
		if err := rows.Scan(&name, &ms); err != nil {
			x.setup("database-timeouts", "timeouts", err)
			return
		}
		limit := time.Duration(ms) * time.Millisecond
		switch {
		case name == "idle_session_timeout":
			x.say("database-timeouts", "timeouts", LevelWarning, fmt.Sprintf("the server ends connections that are idle for %v", limit), "set idle_session_timeout to 0 for the role of claybot")
		case limit < leastTimeout:
			x.say("database-timeouts", "timeouts", LevelWarning, fmt.Sprintf("%s is %v: reports and the first start may be cut short", name, limit), "set it to 0 for the role of claybot")
		}
	}
	if err := rows.Err(); err != nil {
		x.setup("database-timeouts", "timeouts", err)
	}
}

// connections checks that the server has enough connections for claybot and its other clients.
func (x *examination) connections(ctx context.Context, s surveyed) {
	node := x.wanted()
	need := nodesExpected * node
	l, err := x.limit(ctx, s, need)
	if err != nil {
		x.setup("database-connections", "connections", err)
		return
	}
	switch {
	case x.cfg.Pooler:
		x.ok("connections", fmt.Sprintf("%s takes %d; how many of them nodes get, the pooler decides", l.of, l.most))
	case l.most < node:
		x.say("database-connections", "connections", LevelProblem, fmt.Sprintf("%s takes %d connections, and one node wants up to %d", l.of, l.most, node), l.raise+", or lower storage.connections")
	case l.most < need:
		x.say("database-connections", "connections", LevelWarning, fmt.Sprintf("%s takes %d connections, and %d nodes want up to %d", l.of, l.most, nodesExpected, need), l.raise+", or lower storage.connections")
	case l.used > l.most*9/10:
		x.say("database-connections", "connections", LevelWarning, fmt.Sprintf("%d of the %d connections that %s takes are in use", l.used, l.most, l.of), l.raise+", or see who has them in pg_stat_activity")
	default:
		x.ok("connections", fmt.Sprintf("%s takes %d; %d are in use", l.of, l.most, l.used))
	}
}

// wanted returns how many connections one member uses at most.
func (x *examination) wanted() int {
	each := x.cfg.conns()
	if x.cfg.Pooler || x.cfg.NoListen {
		return each + vitalConns
	}
	return each + vitalConns + 1
}

// A limit is a maximum number of connections, its origin, and how to raise it.
type limit struct {
	of         string
	most, used int
	raise      string
}

// limit returns the limit that is reached first. need is the value that raise suggests.
func (x *examination) limit(ctx context.Context, s surveyed, need int) (limit, error) {
	var root bool
	var reserved int
	var name, base string
	server, role, database := limit{of: "the server", raise: "raise max_connections"}, limit{of: "the role"}, limit{of: "the database"}
	err := x.conn.QueryRow(ctx, `SELECT r.rolname, d.datname, r.rolsuper, r.rolconnlimit, d.datconnlimit,
		CAST(current_setting('superuser_reserved_connections') AS INTEGER) + CAST(coalesce(current_setting('reserved_connections', true), '0') AS INTEGER),
		a.server, a.role, a.base
		FROM pg_roles r, pg_database d, (SELECT count(*) AS server, count(*) FILTER (WHERE usename = session_user) AS role,
			count(*) FILTER (WHERE datname = current_database()) AS base FROM pg_stat_activity WHERE backend_type = 'client backend') a
		WHERE r.rolname = session_user AND d.datname = current_database()`).
		Scan(&name, &base, &root, &role.most, &database.most, &reserved, &server.used, &role.used, &database.used)
	if err != nil {
		return limit{}, err
	}
	server.most = s.maxConnections - reserved
	role.raise = fmt.Sprintf("raise that with: ALTER ROLE %s CONNECTION LIMIT %d", pgx.Identifier{name}.Sanitize(), need)
	database.raise = fmt.Sprintf("raise that with: ALTER DATABASE %s CONNECTION LIMIT %d", pgx.Identifier{base}.Sanitize(), need)
	least := server
	for _, l := range []limit{role, database} {
		if l.most >= 0 && l.most < least.most && !root { // negative: no limit; superusers are exempt
			least = l
		}
	}
	return least, nil
}

// nodes reports the members that share the database.
func (x *examination) nodes(ctx context.Context) {
	var readable bool
	err := x.conn.QueryRow(ctx, "SELECT coalesce(has_table_privilege(to_regclass('nodes'), 'SELECT'), false)").Scan(&readable)
	if err != nil || !readable {
		return // no tables yet, or not readable, which is already reported
	}
	rows, err := x.conn.Query(ctx, `SELECT name, version, skew FROM nodes WHERE until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) ORDER BY name`)
	if err != nil {
		return // of another version, which is already reported
	}
	defer rows.Close()
	names, versions := make(map[string]int), make(map[string]bool)
	var list, skewed []string
	for rows.Next() {
		var name, version string
		var skew int64
		if rows.Scan(&name, &version, &skew) != nil {
			return
		}
		names[name]++
		versions[version] = true
		list = append(list, name)
		if d := time.Duration(skew) * time.Millisecond; d.Abs() > mostSkew {
			skewed = append(skewed, fmt.Sprintf("%s by %v", name, d))
		}
	}
	if rows.Err() != nil || len(list) == 0 {
		return
	}
	x.ok("nodes", fmt.Sprintf("%d are there: %s", len(list), strings.Join(list, ", ")))
	for name, n := range names {
		if n > 1 {
			x.say("members-same-name", "nodes", LevelWarning, fmt.Sprintf("%d nodes are called %s", n, name), "give each a node.name (CLAYBOT_NODE_NAME) of its own")
		}
	}
	if len(versions) > 1 {
		x.say("members-versions", "nodes", LevelWarning, "they run different versions of claybot", "finish the upgrade")
	}
	if len(skewed) > 0 {
		x.say("clock-off", "nodes", LevelWarning, "clocks are off: "+strings.Join(skewed, ", "), "synchronise them with NTP")
	}
}

// stuckAfter is how long a message waits in the outbox until Examine names it.
const stuckAfter = time.Hour

// outbox reports messages that were not sent for long. A database without tables, or one whose
// tables the role cannot read, has another finding.
func (x *examination) outbox(ctx context.Context) {
	var there bool
	if err := x.conn.QueryRow(ctx, "SELECT coalesce(has_table_privilege(to_regclass('outbox'), 'SELECT'), false)").Scan(&there); err != nil || !there {
		return
	}
	var n int
	var oldest *int64
	before := claybot.At(time.Now().Add(-stuckAfter))
	if err := x.conn.QueryRow(ctx, "SELECT count(*), min(at) FROM outbox WHERE open = 1 AND at < $1", int64(before)).Scan(&n, &oldest); err != nil {
		return
	}
	if n == 0 {
		x.ok("outbox", "no message waits for more than an hour")
		return
	}
	since := claybot.Time(*oldest).Time().UTC().Format("2006-01-02 15:04:05")
	x.say("outbox-stuck", "outbox", LevelWarning, fmt.Sprintf("messages that are not sent: %d, the oldest since %s UTC", n, since), "start claybot, which sends them; if it runs, look why with: claybot outbox list --state open")
}
