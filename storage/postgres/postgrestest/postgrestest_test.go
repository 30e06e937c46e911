package postgrestest_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }

// connect opens a connection that ends with the test.
func connect(t *testing.T, address string) *pgconn.PgConn {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// run runs statements on a connection and returns the first cell of the last one.
func run(ctx context.Context, conn *pgconn.PgConn, sql string) (string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 || len(results[len(results)-1].Rows) == 0 {
		return "", err
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}

func must(t *testing.T, conn *pgconn.PgConn, sql string) string {
	t.Helper()
	cell, err := run(t.Context(), conn, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return cell
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDatabasesAreApart(t *testing.T) {
	s := postgrestest.Shared(t)
	if s != postgrestest.Shared(t) {
		t.Error("two shared servers")
	}
	one, two := s.Database(t), s.Database(t)
	must(t, connect(t, one), "CREATE TABLE only_here (n int)")
	if _, err := run(t.Context(), connect(t, two), "SELECT * FROM only_here"); err == nil || !strings.Contains(err.Error(), "42P01") {
		t.Errorf("a table of another database: %v", err)
	}
	var gone string
	t.Run("one that goes away", func(t *testing.T) {
		gone = s.Database(t)
		conn, err := pgconn.Connect(t.Context(), gone)
		ok(t, err)
		must(t, conn, "CREATE TABLE t (n int)") // the connection stays open
	})
	if _, err := pgconn.Connect(t.Context(), gone); err == nil || !strings.Contains(err.Error(), "3D000") {
		t.Errorf("a database after its test: %v", err)
	}
}

// What the servers of most users do differently from a fresh installation is there.
func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		config postgrestest.Config
		want   map[string]string
		order  string
	}{
		"as in production": {postgrestest.Config{}, map[string]string{
			"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "max_connections": "200", "server_encoding": "UTF8",
		}, "a,B"},
		"fast": {postgrestest.Config{Fast: true, Locale: "C", Settings: map[string]string{
			"max_connections": "7", "application_name": "it's",
		}}, map[string]string{"fsync": "off", "synchronous_commit": "on", "max_connections": "7", "application_name": "it's"}, "B,a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := postgrestest.New(t, c.config)
			conn := connect(t, s.Database(t))
			for setting, want := range c.want {
				if got := must(t, conn, "SHOW "+setting); got != want {
					t.Errorf("%s = %s, want %s", setting, got, want)
				}
			}
			if got := must(t, conn, "SELECT string_agg(x, ',' ORDER BY x) FROM unnest(ARRAY['a','B']) x"); got != c.order {
				t.Errorf("sorted: %s, want %s", got, c.order)
			}
			ok(t, s.Configure(t.Context(), "default_transaction_read_only", "on"))
			if _, err := run(t.Context(), connect(t, s.URL("")), "CREATE TABLE t (n int)"); err == nil || !strings.Contains(err.Error(), "25006") {
				t.Errorf("written in spite of read-only: %v", err)
			}
		})
	}
}

// What was committed survives each end of the server, and its address stays.
func TestEnds(t *testing.T) {
	s := postgrestest.New(t, postgrestest.Config{Fast: true})
	address := s.Database(t)
	must(t, connect(t, address), "CREATE TABLE kept (n int)")
	ends := []struct {
		name string
		end  func() error
	}{
		{"fast", func() error { return s.Stop(t.Context(), postgrestest.Fast) }},
		{"immediate", func() error { return s.Stop(t.Context(), postgrestest.Immediate) }},
		{"kill", func() error { return s.Kill(t.Context()) }},
	}
	for i, e := range ends {
		conn := connect(t, address)
		must(t, conn, fmt.Sprintf("INSERT INTO kept VALUES (%d)", i))
		// A statement that is under way does not keep the server from its end.
		under := make(chan error, 1)
		go func() {
			_, err := run(t.Context(), conn, "SELECT pg_sleep(600)")
			under <- err
		}()
		if _, err := s.Query(t.Context(), "", waitFor("query LIKE 'SELECT pg_sleep(6%' AND state = 'active'")); err != nil {
			t.Fatal(err)
		}
		ok(t, e.end())
		if err := <-under; err == nil {
			t.Errorf("%s: the statement came to its end", e.name)
		}
		if s.PID() != 0 {
			t.Errorf("%s: it runs", e.name)
		}
		if _, err := pgconn.Connect(t.Context(), address); err == nil {
			t.Errorf("%s: it answers", e.name)
		}
		ok(t, e.end()) // twice is once
		ok(t, s.Start(t.Context()))
		ok(t, s.Start(t.Context()))
		if got := must(t, connect(t, address), "SELECT count(*) FROM kept"); got != fmt.Sprint(i+1) {
			t.Errorf("%s: %s rows of %d", e.name, got, i+1)
		}
	}
	before := s.PID()
	ok(t, s.Restart(t.Context(), postgrestest.Immediate))
	if s.PID() == before || s.PID() == 0 {
		t.Errorf("restarted from %d to %d", before, s.PID())
	}
}

// waitFor is a statement that ends when there is a connection of a kind.
func waitFor(where string) string {
	return `DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE ` + where + `) LOOP PERFORM pg_sleep(0.01), pg_stat_clear_snapshot(); END LOOP; END $$`
}

func TestFreeze(t *testing.T) {
	s := postgrestest.New(t, postgrestest.Config{Fast: true})
	conn := connect(t, s.Database(t))
	must(t, conn, "SELECT 1")
	ok(t, s.Freeze())
	answered := make(chan error, 1)
	go func() {
		_, err := run(t.Context(), conn, "SELECT 1")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("a frozen server answers: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	ok(t, s.Thaw())
	ok(t, <-answered)
	ok(t, s.Stop(t.Context(), postgrestest.Fast))
	if s.Freeze() == nil {
		t.Error("a server that does not run was frozen")
	}
}

func TestTerminate(t *testing.T) {
	s := postgrestest.Shared(t)
	one, two := s.Database(t), s.Database(t)
	a, b, c := connect(t, one), connect(t, one), connect(t, two)
	u, err := url.Parse(one)
	ok(t, err)
	n, err := s.Terminate(t.Context(), "datname = '"+strings.TrimPrefix(u.Path, "/")+"'")
	if n != 2 || err != nil {
		t.Errorf("%d ended, %v", n, err)
	}
	for _, conn := range []*pgconn.PgConn{a, b} {
		if _, err := run(t.Context(), conn, "SELECT 1"); err == nil {
			t.Error("a connection that was ended answers")
		}
	}
	must(t, c, "SELECT 1")
	if _, err := s.Terminate(t.Context(), "nonsense("); err == nil {
		t.Error("a condition that is none was taken")
	}
}

func TestRoles(t *testing.T) {
	s := postgrestest.New(t, postgrestest.Config{Fast: true, Password: true})
	address := s.Database(t)
	must(t, connect(t, address), "CREATE TABLE t (n int)")
	reader, err := s.Role(t.Context(), address, "SELECT ON ALL TABLES IN SCHEMA public")
	ok(t, err)
	nobody, err := s.Role(t.Context(), address)
	ok(t, err)
	for _, c := range []struct{ address, sql, code string }{
		{reader, "SELECT * FROM t", ""},
		{reader, "INSERT INTO t VALUES (1)", "42501"},
		{reader, "CREATE TABLE mine (n int)", "42501"},
		{nobody, "SELECT 1", ""},
		{nobody, "SELECT * FROM t", "42501"},
	} {
		_, err := run(t.Context(), connect(t, c.address), c.sql)
		if (err == nil) != (c.code == "") || err != nil && !strings.Contains(err.Error(), c.code) {
			t.Errorf("%s: %v, want %q", c.sql, err, c.code)
		}
	}
	for _, wrong := range []string{
		strings.Replace(address, postgrestest.Password, "wrong", 1),
		strings.Replace(address, ":"+postgrestest.Password, "", 1),
	} {
		if _, err := pgconn.Connect(t.Context(), wrong); err == nil {
			t.Error("the password was not asked for")
		}
	}
	if _, err := s.Role(t.Context(), address, "EVERYTHING"); err == nil {
		t.Error("a right that there is not was granted")
	}
}

func TestStandby(t *testing.T) {
	s := postgrestest.New(t, postgrestest.Config{Fast: true})
	address := s.Database(t)
	must(t, connect(t, address), "CREATE TABLE t AS SELECT 1 AS n")
	standby, err := s.Standby(t.Context())
	ok(t, err)
	must(t, connect(t, address), "INSERT INTO t VALUES (2)")
	ok(t, standby.CatchUp(t.Context()))
	copied := standby.URL("test_1")
	conn := connect(t, copied)
	if got := must(t, conn, "SELECT count(*) FROM t"); got != "2" {
		t.Errorf("%s rows on the standby", got)
	}
	if got := must(t, conn, "SELECT pg_is_in_recovery()"); got != "t" {
		t.Error("the standby is none")
	}
	if _, err := run(t.Context(), conn, "INSERT INTO t VALUES (3)"); err == nil || !strings.Contains(err.Error(), "25006") {
		t.Errorf("written on the standby: %v", err)
	}
	ok(t, standby.Promote(t.Context()))
	must(t, conn, "INSERT INTO t VALUES (3)")
	if s.CatchUp(t.Context()) == nil {
		t.Error("a primary caught up without a source")
	}
}

func TestProxy(t *testing.T) {
	s := postgrestest.Shared(t)
	p := s.Proxy(t)
	address := p.URL(s.Database(t))
	conn := connect(t, address)
	big := must(t, conn, "SELECT repeat('x', 3000000)")
	if len(big) != 3000000 {
		t.Errorf("%d bytes came through", len(big))
	}
	if open, taken := p.Connections(); open != 1 || taken != 1 {
		t.Errorf("%d open of %d", open, taken)
	}

	p.Delay(100 * time.Millisecond)
	start := time.Now()
	must(t, conn, "SELECT 1")
	if took := time.Since(start); took < 200*time.Millisecond {
		t.Errorf("there and back with delay took %v", took)
	}
	p.Delay(0)

	p.Freeze()
	p.Freeze()
	answered := make(chan error, 1)
	go func() {
		_, err := run(t.Context(), conn, "SELECT 1")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("answered through a frozen network: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	p.Thaw()
	p.Thaw()
	ok(t, <-answered)

	if n := p.Drop(); n != 1 {
		t.Errorf("%d dropped", n)
	}
	if _, err := run(t.Context(), conn, "SELECT 1"); err == nil {
		t.Error("a dropped connection answers")
	}
	conn = connect(t, address)
	p.Cut()
	if _, err := run(t.Context(), conn, "SELECT 1"); err == nil {
		t.Error("a cut connection answers")
	}
	if _, err := pgconn.Connect(t.Context(), address); err == nil {
		t.Error("connected through a cut network")
	}
	p.Restore()
	must(t, connect(t, address), "SELECT 1")
	ok(t, p.Close())
	ok(t, p.Close())
	if _, err := pgconn.Connect(t.Context(), address); err == nil {
		t.Error("connected through a closed proxy")
	}
}

// A connection that waits in a frozen network is cut with the others.
func TestCutWhileFrozen(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer echo.Close()
	p := postgrestest.NewProxy(t, echo.Addr().String())
	p.Freeze()
	c, err := net.Dial("tcp", p.Addr())
	ok(t, err)
	defer c.Close()
	for taken := 0; taken == 0; _, taken = p.Connections() {
		if t.Context().Err() != nil {
			return
		}
	}
	p.Cut()
	if _, err := c.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "EOF") {
		t.Errorf("read from a cut connection: %v", err)
	}
}

// A proxy to nowhere refuses, as the network does.
func TestProxyToNowhere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	caller, err := net.Dial("tcp", l.Addr().String())
	ok(t, err)
	defer caller.Close()
	// A port from which a client calls is taken, and no server listens there.
	p := postgrestest.NewProxy(t, caller.LocalAddr().String())
	if _, err := pgconn.Connect(t.Context(), p.URL("postgres://claybot@localhost/postgres?sslmode=disable")); err == nil {
		t.Error("connected without a server")
	}
}
