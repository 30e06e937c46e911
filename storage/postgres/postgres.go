package postgres

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

var (
	_ relational.Driver     = (*DB)(nil)
	_ relational.Driver     = line{}
	_ storage.Notifications = (*DB)(nil)
)

const (
	defaultConns = 16
	vitalConns   = 2 // for renewals of members and leases
	// lookForSinks is the number of renewals between two queries for sinks that another
	// member created. After a change of membership, every renewal queries.
	lookForSinks = 5
	// openTime bounds how long a start waits for the server. Migrations have no limit.
	openTime = time.Minute
	// pingAfter is how long a connection may be idle before it is checked.
	pingAfter = 30 * time.Second
	// idleInTransaction is when the server ends the transaction of an idle process, such
	// as a frozen one. It is less than a lease, so the locks are gone at a failover.
	idleInTransaction = 5 * time.Second
)

// Config of a DB; the zero value works but for URL.
type Config struct {
	URL string // postgres://user:password@host:port/database?sslmode=...; a secret
	Log *slog.Logger
	// Committed receives what each commit of this process changed, after it is durable;
	// commits of one run arrive in order. It must be quick and must not use the store.
	// Optional.
	Committed func(storage.Commit)
	// OnNotification receives the notifications of other members, and an empty one when
	// some may have been lost. It must be quick and must not use the store. Optional.
	OnNotification func(storage.Notification)
	// Pooler is set if a pooler assigns server connections per transaction: no LISTEN, no
	// prepared statements, no session state.
	Pooler bool
	// NoListen disables notifications, and with them the session by which members notice that
	// one of them has died; then its lease decides.
	NoListen bool
	Conns    int // at most, besides three for notifications and leases; 16
	// Blobs stores the bytes of agents' files; nil stores them in the database, at most
	// MaxInline bytes each; 0: no limit of its own.
	Blobs     storage.Blobs
	MaxInline int64
	// Clock replaces the server's clock, in Unix milliseconds, in tests with their own
	// time.
	Clock func() int64
	// notifyTime bounds how long sending a notification may take; 0: the default of the
	// caller. Tests that need every notification raise it.
	notifyTime time.Duration
	// lookEvery replaces the time between two looks at the sessions of other members, in
	// tests that look themselves; 0: lookEvery.
	lookEvery time.Duration
	// tracer observes the statements, in tests that count them.
	tracer pgx.QueryTracer
	// For tests of migrations; zero: openTime, migrations and lockTime.
	openTime   time.Duration
	migrations []migration
	lockTime   time.Duration
}

// patience returns how long a notification may take; usual is the default.
func (c Config) patience(usual time.Duration) time.Duration { return max(c.notifyTime, usual) }

// conns returns the size of the pool.
func (c Config) conns() int {
	if c.Conns > 0 {
		return min(c.Conns, 1000)
	}
	return defaultConns
}

// A DB is claybot's tables in a PostgreSQL database. It is safe for concurrent use.
type DB struct {
	*relational.Store
	Agents *relational.Agents // storage.Agents, storage.Histories and storage.Files
	cfg    Config
	log    *slog.Logger
	pool   *pgxpool.Pool
	// vital has connections of its own: renewals must not wait behind other work.
	vital     *relational.Store
	vitalPool *pgxpool.Pool
	dialect   relational.Dialect
	clock     clock
	// settings are executed at the start of each transaction.
	settings []string
	counters counters

	reports  chan struct{} // one report at a time
	sinks    atomic.Pointer[[]string]
	notifier *notifier // nil without notifications
	mates    mates
	kept     kept
	receipts receipts
	idle     idle
	news     news
	found    atomic.Bool   // the last query for due agents found some
	left     chan struct{} // signals that there are sums to add up

	close func()
	wg    sync.WaitGroup
}

// Open connects, migrates the schema to the present version and starts to listen.
// Problems with the URL, the server or privileges are *SetupErrors with the next step.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	db := newDB(cfg)
	if err := db.open(ctx); err != nil {
		for _, p := range []*pgxpool.Pool{db.pool, db.vitalPool} {
			if p != nil {
				p.Close()
			}
		}
		return nil, explain(cfg.URL, err)
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	if !cfg.NoListen && !cfg.Pooler {
		db.notifier = newNotifier(db)
		db.wg.Go(func() { db.notifier.listen(life) })
		db.wg.Go(func() { db.notifier.send(life) })
	}
	db.wg.Go(func() { db.addUpLater(life) })
	db.close = sync.OnceFunc(func() {
		end()
		db.wg.Wait()
		db.pool.Close()
		db.vitalPool.Close()
	})
	return db, nil
}

func newDB(cfg Config) *DB {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.migrations == nil {
		cfg.migrations = migrations
	}
	cfg.openTime, cfg.lockTime = cmp.Or(cfg.openTime, openTime), cmp.Or(cfg.lockTime, lockTime)
	return &DB{cfg: cfg, log: cfg.Log, reports: make(chan struct{}, 1), left: make(chan struct{}, 1)}
}

// Migrate migrates the schema to the present version, as Open does, and returns the
// versions before and after. Run it before an upgrade with long migrations, so that no
// daemon waits for them at its start. Its errors are those of Open.
func Migrate(ctx context.Context, cfg Config) (before, after int, err error) {
	db := newDB(cfg)
	pc, err := db.poolConfig()
	if err == nil {
		before, err = db.prepare(ctx, pc.ConnConfig)
	}
	if err != nil {
		return before, before, explain(cfg.URL, err)
	}
	return before, max(before, len(db.cfg.migrations)), nil
}

func (db *DB) open(ctx context.Context) error {
	pc, err := db.poolConfig()
	if err != nil {
		return err
	}
	if _, err := db.prepare(ctx, pc.ConnConfig); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, db.cfg.openTime)
	defer cancel()
	if db.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return err
	}
	db.dialect = relational.Dialect{
		Agents: true, Clock: db.clock.now, Lock: " FOR UPDATE", Skip: " FOR UPDATE SKIP LOCKED",
		LockName: "SELECT 1 FROM pg_advisory_xact_lock(hashtextextended(?, 0))",
		Leave:    db.leave, Summed: "_now", MarkSent: markSent, Words: words,
	}
	if db.cfg.Clock != nil {
		db.dialect.Clock = db.cfg.Clock
	}
	vital := pc.Copy()
	vital.MaxConns = vitalConns
	if db.vitalPool, err = pgxpool.NewWithConfig(ctx, vital); err != nil {
		return err
	}
	db.vital = relational.New(line{db, db.vitalPool}, &db.dialect, db.log)
	db.Store = relational.New(db, &db.dialect, db.log)
	db.Agents = relational.NewAgents(db.Store, db.cfg.Blobs, db.cfg.MaxInline)
	return db.loadSinks(ctx)
}

// bounded calls f with the open timeout.
func (db *DB) bounded(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.cfg.openTime)
	defer cancel()
	return f(ctx)
}

// prepare checks the server and migrates on a dedicated connection. before is the
// version of the schema until then.
func (db *DB) prepare(ctx context.Context, cc *pgx.ConnConfig) (before int, err error) {
	connect := func(ctx context.Context) (conn *pgx.Conn, err error) {
		err = db.bounded(ctx, func(ctx context.Context) (err error) {
			conn, err = pgx.ConnectConfig(ctx, cc.Copy())
			return err
		})
		return conn, err
	}
	conn, err := connect(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing to write
	var s surveyed
	err = db.bounded(ctx, func(ctx context.Context) (err error) {
		if s, err = survey(ctx, conn); err == nil {
			err = s.check()
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	m := migrator{connect: connect, list: db.cfg.migrations, lockTime: db.cfg.lockTime, pooler: db.cfg.Pooler, log: db.log}
	if before, err = m.run(ctx, conn); err != nil {
		return before, err
	}
	return before, db.bounded(ctx, func(ctx context.Context) error { return db.adapt(ctx, conn, s) })
}

// adapt adopts the server's clock, version and settings.
func (db *DB) adapt(ctx context.Context, conn *pgx.Conn, s surveyed) error {
	if err := checkRights(ctx, conn, s.schema); err != nil {
		return err
	}
	if db.cfg.Pooler { // otherwise it is set for the connection
		db.settings = append(db.settings, fmt.Sprintf("set local idle_in_transaction_session_timeout = %d", idleInTransaction.Milliseconds()))
	}
	if s.synchronousCommit == "off" || s.synchronousCommit == "local" {
		db.settings = append(db.settings, "set local synchronous_commit = on") // acknowledged writes must be durable
	}
	return db.clock.measure(ctx, conn)
}

func (db *DB) poolConfig() (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(db.cfg.URL)
	if err != nil {
		return nil, err
	}
	if db.cfg.Pooler {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	} else {
		pc.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = fmt.Sprint(idleInTransaction.Milliseconds())
	}
	pc.ConnConfig.Tracer = db.cfg.tracer
	pc.MaxConns = int32(db.cfg.conns()) //nolint:gosec // bounded
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	if _, named := pc.ConnConfig.RuntimeParams["application_name"]; !named && !db.cfg.Pooler {
		pc.ConnConfig.RuntimeParams["application_name"] = "claybot"
	}
	pc.MaxConnIdleTime = 5 * time.Minute
	pc.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > pingAfter }
	return pc, nil
}

// Close stops the notifications and closes all connections. Later calls fail.
// Repeating it has no effect.
func (db *DB) Close() error {
	db.close()
	return nil
}

// news is RenewMember's record of sinks that other members may create.
type news struct {
	mu              sync.Mutex
	ids             string // of the members at the last renewal
	fresh, renewals int    // renewals since membership changed; since the last query
}

// sinksDue reports whether a renewal that found these members queries for sinks.
func (db *DB) sinksDue(alive []storage.Member) bool {
	ids := make([]string, len(alive))
	for i, n := range alive {
		ids[i] = n.ID
	}
	slices.Sort(ids)
	db.news.mu.Lock()
	defer db.news.mu.Unlock()
	n := &db.news
	if all := strings.Join(ids, " "); all != n.ids {
		n.ids, n.fresh = all, 0
	}
	n.fresh, n.renewals = n.fresh+1, n.renewals+1
	if n.fresh > lookForSinks && n.renewals < lookForSinks {
		return false
	}
	n.renewals = 0
	return true
}

func (db *DB) loadSinks(ctx context.Context) error {
	var names []string
	err := line{db, db.vitalPool}.Read(ctx, func(c *relational.Conn) (err error) {
		names, err = relational.LoadSinks(c)
		return err
	})
	if err == nil {
		db.sinks.Store(&names)
	}
	return err
}

// Skew returns how far the clock of this machine is ahead of the server's.
func (db *DB) Skew() time.Duration { return db.clock.skew() }

// RenewMember implements storage.Members. Each renewal measures the clock.
func (db *DB) RenewMember(ctx context.Context, n storage.Member, ttl time.Duration) ([]storage.Member, error) {
	if db.cfg.Clock == nil {
		if err := db.compareClocks(ctx); err != nil {
			return nil, fmt.Errorf("renew the lease of member %s: %w", n.ID, err)
		}
	}
	n.Skew = db.clock.skew().Milliseconds()
	alive, err := db.vital.RenewMember(ctx, n, ttl)
	if err == nil {
		_, before := db.mates.get()
		if joined := db.mates.set(n.ID, alive); joined && db.notifier != nil {
			db.notifier.join()
		}
		if before != max(0, len(alive)-1) {
			db.idle.due() // a member that has left may have released agents
		}
		if db.sinksDue(alive) {
			if lerr := db.loadSinks(ctx); lerr != nil {
				db.log.Debug("failed to look for relays, retrying", "err", lerr)
			}
		}
		if len(alive) > 1 {
			db.yieldKept(ctx, n.ID)
		}
	}
	return alive, err
}

// Renew implements storage.Leases.
func (db *DB) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, string, error) {
	return db.vital.Renew(ctx, l, ttl)
}

func (db *DB) compareClocks(ctx context.Context) error {
	conn, err := acquire(ctx, db.vitalPool)
	if err != nil {
		return err
	}
	defer conn.Release()
	return classify(db.clock.measure(ctx, conn.Conn()))
}

// mates are the members that share the store, as of the last renewal.
type mates struct {
	mu     sync.Mutex
	self   string
	others int
}

// set takes the result of a renewal, and reports whether it is the first one of the term.
func (m *mates) set(self string, alive []storage.Member) (joined bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	joined = m.self != self
	m.self, m.others = self, max(0, len(alive)-1)
	return joined
}

func (m *mates) get() (self string, others int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self, m.others
}
