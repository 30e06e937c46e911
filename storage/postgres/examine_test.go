package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// examined is what Examine finds; each problem has a next step, and none a password.
func examined(t *testing.T, cfg Config) []Finding {
	t.Helper()
	if cfg.notifyTime == 0 {
		cfg.notifyTime = time.Minute
	}
	all := Examine(t.Context(), cfg)
	if len(all) == 0 {
		t.Fatal("nothing was found")
	}
	for _, f := range all {
		t.Logf("%-8s %-12s %s → %s", f.Level, f.What, f.Text, f.Next)
		if f.What == "" || f.Text == "" || !slices.Contains([]string{LevelOK, LevelWarning, LevelProblem}, f.Level) || f.Level == LevelProblem && f.Next == "" {
			t.Errorf("a finding that is none: %+v", f)
		}
		if text := f.Text + f.Next; strings.Contains(text, postgrestest.Password) || strings.Contains(text, "hunter2") {
			t.Errorf("a password in %+v", f)
		}
	}
	return all
}

// finds checks that there is a finding of a level with these words.
func finds(t *testing.T, all []Finding, what, level, words string) {
	t.Helper()
	if !slices.ContainsFunc(all, func(f Finding) bool {
		return f.What == what && f.Level == level && strings.Contains(f.Text+" → "+f.Next, words)
	}) {
		t.Errorf("no %s about %s with %q in %+v", level, what, words, all)
	}
}

// bad counts the findings that are not ok, but for how quick server and machine are,
// which is what else they have to do.
func bad(all []Finding) (n int) {
	for _, f := range all {
		if f.Level != LevelOK && f.What != "distance" && f.What != "commits" {
			n++
		}
	}
	return n
}

// with is a URL with one more parameter.
func with(t testing.TB, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// as is a URL with another user.
func as(t *testing.T, address string, user *url.Userinfo) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = user
	return u.String()
}

func query(t *testing.T, s *postgrestest.Server, address, sql string) {
	t.Helper()
	if _, err := s.Query(t.Context(), address, sql); err != nil {
		t.Fatal(err)
	}
}

// A server as it should be, seen by a role with no more rights than it needs, before
// and after the first start.
func TestExamineWell(t *testing.T) {
	s := postgrestest.New(t, postgrestest.Config{Password: true, Dir: memory()})
	database := s.Database(t)
	role, err := s.Role(t.Context(), database, "CREATE, USAGE ON SCHEMA public")
	if err != nil {
		t.Fatal(err)
	}
	all := examined(t, Config{URL: role})
	for what, words := range map[string]string{
		"connection": "on this machine", "server": "PostgreSQL ", "durability": "reach the disk", "schema": "does not exist yet", "rights": "may read, write and make", "clock": "off that of the server",
		"connections": "takes 197; ", "pooler": "nothing stands before the server; notifications arrive",
	} {
		finds(t, all, what, LevelOK, words)
	}
	if took(t, all, "distance") <= 0 || took(t, all, "commits") < 0 {
		t.Error("nothing was measured")
	}
	if len(all) != 10 {
		t.Errorf("%d findings", len(all))
	}
	log, err := os.ReadFile(s.Log())
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Split(log, []byte("\n")); slices.ContainsFunc(lines, func(l []byte) bool { return bytes.Contains(l, []byte("ERROR:")) }) {
		t.Errorf("the server complains of what it was asked:\n%s", log)
	}
	rows, err := s.Query(t.Context(), database, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace")
	if err != nil || rows[0][0] != "0" {
		t.Errorf("looking made something: %v %v", rows, err)
	}

	db := openWith(t, Config{URL: role})
	for _, n := range []storage.Member{{ID: "a/1", Name: "a", Version: "v1"}, {ID: "a/2", Name: "a", Version: "v2"}} {
		if _, err := db.RenewMember(t.Context(), n, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	query(t, s, database, "UPDATE nodes SET skew = -4000 WHERE id = 'a/2'")
	all = examined(t, Config{URL: role, Pooler: true})
	finds(t, all, "schema", LevelOK, fmt.Sprint("version ", len(migrations)))
	finds(t, all, "nodes", LevelOK, "2 are there: a, a")
	finds(t, all, "nodes", LevelWarning, "2 nodes are called a")
	finds(t, all, "nodes", LevelWarning, "different versions")
	finds(t, all, "nodes", LevelWarning, "a by -4s")
	finds(t, all, "pooler", LevelOK, "were not seen to be given away")
	finds(t, examined(t, Config{URL: role, NoListen: true}), "pooler", LevelOK, "storage.listen is off")
}

// With what cannot be reached there is one finding, which names the cause.
func TestExamineUnreachable(t *testing.T) {
	s := postgrestest.New(t, postgrestest.Config{Fast: true, Password: true})
	database := s.Database(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	// A port from which a client calls is taken, and no server listens there.
	caller, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	closed := caller.LocalAddr().String()
	for _, name := range []string{"PGUSER", "PGSERVICE", "PGPASSWORD", "PGPASSFILE"} {
		t.Setenv(name, "")
	}
	const noUser = "the storage URL names no user, and the server does not let in the one who runs claybot → write it as postgres://user:"
	for name, tt := range map[string]struct{ address, words string }{
		"wrong password":       {as(t, database, url.UserPassword(postgrestest.User, "hunter2")), "the password for " + u.Host + " is wrong → correct it in CLAYBOT_STORAGE_URL"},
		"no password":          {as(t, database, url.User(postgrestest.User)), "the storage URL names no password, and " + u.Host + " asks for one → write it as postgres://user:password@host:5432/database"},
		"no such role":         {as(t, database, url.UserPassword("nobody", "hunter2")), "is wrong → correct it"},
		"no such database":     {strings.Replace(database, u.Path, "/elsewhere", 1), `database "elsewhere" does not exist → create it with`},
		"unknown host":         {"postgres://claybot:hunter2@nowhere.invalid/claybot", "the host nowhere.invalid is not known → correct the host"},
		"a closed port":        {"postgres://claybot:hunter2@" + closed + "/claybot", closed + " cannot be reached → look whether the server is up"},
		"no TLS there":         {with(t, database, "sslmode", "require"), "the encrypted connection to " + u.Host + " cannot be made → set sslmode"},
		"not a URL":            {"postgres://claybot:hunt#er2@db/claybot", "cannot be understood → write it as postgres://"},
		"another port":         {"postgres://claybot:hunter2@db:port/claybot", "cannot be understood"},
		"another scheme":       {"mysql://claybot:hunter2@db/claybot", "cannot be understood"},
		"no user":              {as(t, database, nil), noUser},
		"an empty user":        {as(t, database, url.UserPassword("", "hunter2")), noUser},
		"no user, options":     {with(t, as(t, database, nil), "password", "hunter2"), noUser},
		"no user, settings":    {"host=" + u.Hostname() + " port=" + u.Port() + " password=hunter2 dbname=claybot", noUser},
		"user by option":       {with(t, as(t, database, nil), "user", "nobody"), "the storage URL names no password, and the server asks for one"},
		"an unknown parameter": {with(t, database, "sslmod", "disable"), "the storage URL has the parameter sslmod, which the server does not know → correct it, or leave it out"},
		"a value not for it":   {with(t, database, "statement_timeout", "hunter2"), "the parameter statement_timeout of the storage URL has a value that the server does not take → correct it, or leave it out"},
		"a value not for us":   {with(t, database, "connect_timeout", "hunter2"), "the parameter connect_timeout of the storage URL has a value that cannot be used → correct it, or leave it out"},
		"no such certificate":  {with(t, database, "sslrootcert", "/nowhere/root.pem"), "the parameter sslrootcert of the storage URL has a value that cannot be used"},
		"settings":             {"host=" + u.Hostname() + " port=" + u.Port() + " user=claybot password=hunter2 dbname=claybot", "the password for the server is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			all := examined(t, Config{URL: tt.address})
			finds(t, all, "connection", LevelProblem, tt.words)
			if len(all) != 1 {
				t.Errorf("%d findings", len(all))
			}
			_, err := Open(t.Context(), Config{URL: tt.address})
			if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(tt.words, " → ", "; ")) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("Open says %v", err)
			}
		})
	}
}

// A standby and a database that only reads can be looked at, and nothing is asked of
// them that they cannot do.
// Messages that were not sent for long are named, and those of the last hour are not.
func TestExamineOutbox(t *testing.T) {
	s := postgrestest.New(t, postgrestest.Config{Fast: true})
	database := s.Database(t)
	db, err := Open(t.Context(), Config{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	add := func(id string, open int, at int64) {
		query(t, s, database, fmt.Sprintf("INSERT INTO outbox (id, dest, state, open, at, body, crc) VALUES ('%s', 'd', 'pending', %d, %d, '{}', 0)", id, open, at))
	}
	add("new", 1, time.Now().UnixMilli())
	add("sent", 0, 5)
	finds(t, examined(t, Config{URL: database}), "outbox", LevelOK, "no message waits for more than an hour")
	add("old", 1, 5)
	finds(t, examined(t, Config{URL: database}), "outbox", LevelWarning, "messages that are not sent: 1, the oldest since 1970-01-01 00:00:00 UTC → start claybot")
}

func TestExamineReadOnly(t *testing.T) {
	s := postgrestest.New(t, postgrestest.Config{Fast: true})
	database := s.Database(t)
	query(t, s, database, "ALTER DATABASE "+pgx.Identifier{databaseName(t, database)}.Sanitize()+" SET default_transaction_read_only = on")
	all := examined(t, Config{URL: database})
	finds(t, all, "server", LevelProblem, "the database only reads → set default_transaction_read_only to off")
	finds(t, all, "durability", LevelProblem, "fsync or full_page_writes is off")
	if n := bad(all); n != 2 {
		t.Errorf("%d bad findings", n)
	}
	copied, err := s.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all = examined(t, Config{URL: copied.URL(databaseName(t, database))})
	finds(t, all, "server", LevelProblem, "a standby that only reads → let the URL name the primary")
	if n := bad(all); n != 2 {
		t.Errorf("%d bad findings", n)
	}
}

func databaseName(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

func userName(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.User.Username()
}

// What a server lacks, or is set to, is named with its next step.
func TestExamineSettings(t *testing.T) {
	s := postgrestest.Shared(t)
	for name, tt := range map[string]struct {
		prepare            func(t *testing.T, database string) (address string)
		what, level, words string
	}{
		"no right to make tables": {func(t *testing.T, database string) string { return role(t, s, database, "USAGE ON SCHEMA public") }, "rights", LevelProblem, `there are none yet → GRANT CREATE ON SCHEMA "public"`},
		"no schema": {func(t *testing.T, database string) string {
			query(t, s, database, "REVOKE ALL ON SCHEMA public FROM PUBLIC")
			return role(t, s, database)
		}, "server", LevelProblem, "no schema of the search path exists that the role may use → create one, or GRANT USAGE"},
		"a table that may not be written": {func(t *testing.T, database string) string {
			openWith(t, Config{URL: database})
			return role(t, s, database, "CREATE, USAGE ON SCHEMA public", "SELECT ON ALL TABLES IN SCHEMA public")
		}, "rights", LevelProblem, `may not DELETE in the table agents → let the owner of the tables run: GRANT ALL ON ALL TABLES IN SCHEMA "public" TO`},
		"versions that may not be read": {func(t *testing.T, database string) string {
			openWith(t, Config{URL: database})
			return role(t, s, database, "CREATE, USAGE ON SCHEMA public")
		}, "schema", LevelProblem, "a right is missing"},
		"a newer schema": {func(t *testing.T, database string) string {
			openWith(t, Config{URL: database})
			query(t, s, database, "INSERT INTO schema_versions (version, oldest) VALUES (99, 98)")
			return database
		}, "schema", LevelProblem, "it is version 99 and needs a claybot that knows version 98, this one knows " + fmt.Sprint(len(migrations)) + " → start that version of claybot or a later one"},
		"a newer schema that will do": {func(t *testing.T, database string) string {
			openWith(t, Config{URL: database})
			query(t, s, database, "INSERT INTO schema_versions (version, oldest) VALUES (99, 1)")
			return database
		}, "schema", LevelWarning, "newer than this claybot, which can work with it → finish the upgrade"},
		"another encoding": {func(t *testing.T, _ string) string {
			query(t, s, "", "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
			t.Cleanup(func() { _ = s.Drop(context.WithoutCancel(t.Context()), "latin") })
			return s.URL("latin")
		}, "server", LevelProblem, "encoding is LATIN1, and claybot needs UTF8 → an encoding cannot be changed: make another database with: CREATE DATABASE <name> OWNER <role> ENCODING 'UTF8' LC_COLLATE"},
		"loose commits": {func(t *testing.T, database string) string {
			query(t, s, database, "ALTER DATABASE "+databaseName(t, database)+" SET synchronous_commit = off")
			return database
		}, "durability", LevelProblem, "set both to on"}, // the shared server does not sync at all, which is worse
		"impatient": {func(t *testing.T, database string) string {
			query(t, s, database, "ALTER DATABASE "+databaseName(t, database)+" SET statement_timeout = '9500ms'")
			return database
		}, "timeouts", LevelWarning, "statement_timeout is 9.5s"},
		"hasty with idle ones": {func(t *testing.T, database string) string {
			query(t, s, database, "ALTER DATABASE "+databaseName(t, database)+" SET idle_session_timeout = '5min'")
			return database
		}, "timeouts", LevelWarning, "idle for 5m0s"},
		"few connections for the role": {func(t *testing.T, database string) string {
			address := role(t, s, database, "CREATE, USAGE ON SCHEMA public")
			query(t, s, database, "ALTER ROLE "+userName(t, address)+" CONNECTION LIMIT 20")
			return address
		}, "connections", LevelWarning, "the role takes 20 connections, and 3 nodes want up to 57 → raise that with: ALTER ROLE "},
		"too few for the database": {func(t *testing.T, database string) string {
			query(t, s, "", "ALTER DATABASE "+databaseName(t, database)+" CONNECTION LIMIT 5")
			return role(t, s, database, "CREATE, USAGE ON SCHEMA public")
		}, "connections", LevelProblem, "the database takes 5 connections, and one node wants up to 19 → raise that with: ALTER DATABASE "},
		"none left for the role": {func(t *testing.T, database string) string {
			address := role(t, s, database)
			query(t, s, database, "ALTER ROLE "+userName(t, address)+" CONNECTION LIMIT 0")
			return address
		}, "connection", LevelProblem, "the role of the storage URL has no connection left → raise its limit with: ALTER ROLE <role> CONNECTION LIMIT <number>, or lower"},
		"none left for the database": {func(t *testing.T, database string) string {
			query(t, s, "", "ALTER DATABASE "+databaseName(t, database)+" CONNECTION LIMIT 0")
			return role(t, s, database)
		}, "connection", LevelProblem, "the database has no connection left → raise its limit with: ALTER DATABASE <name> CONNECTION LIMIT <number>, or lower"},
		"a limit that does not hold for a superuser": {func(t *testing.T, database string) string {
			query(t, s, "", "ALTER DATABASE "+databaseName(t, database)+" CONNECTION LIMIT 5")
			return database
		}, "connections", LevelOK, "the server takes 197; "},
	} {
		t.Run(name, func(t *testing.T) {
			database := s.Database(t)
			finds(t, examined(t, Config{URL: tt.prepare(t, database)}), tt.what, tt.level, tt.words)
		})
	}
}

// What the doctor tells to make a database with is understood, and claybot can use it.
func TestExamineMadeDatabase(t *testing.T) {
	s := postgrestest.Shared(t)
	query(t, s, "", strings.NewReplacer("<name>", "made", "<role>", postgrestest.User).Replace(createDatabase))
	t.Cleanup(func() { _ = s.Drop(context.WithoutCancel(t.Context()), "made") })
	openWith(t, Config{URL: s.URL("made")})
	finds(t, examined(t, Config{URL: s.URL("made")}), "server", LevelOK, "PostgreSQL ")
}

func role(t *testing.T, s *postgrestest.Server, database string, grants ...string) string {
	t.Helper()
	address, err := s.Role(t.Context(), database, grants...)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Split(strings.TrimPrefix(address, "postgres://"), ":")[0]
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, _ = s.Query(ctx, database, "DROP OWNED BY "+name) // else the database cannot go before the role
		_, _ = s.Query(ctx, "", "DROP ROLE "+name)
	})
	return address
}

// memory is a folder whose files need no disk, if there is one, so that how busy the
// disk is decides nothing.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

var takes = regexp.MustCompile(`takes (\S+?)[:;,]?(\s|$)`)

// took is what a finding says that something takes.
func took(t *testing.T, all []Finding, what string) time.Duration {
	t.Helper()
	i := slices.IndexFunc(all, func(f Finding) bool { return f.What == what })
	if i < 0 {
		t.Fatalf("nothing about %s", what)
	}
	m := takes.FindStringSubmatch(all[i].Text)
	if m == nil {
		t.Fatalf("%q tells no time", all[i].Text)
	}
	d, err := time.ParseDuration(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What a distance costs follows from the formula in docs/scaling.md.
func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		trip  time.Duration
		conns int
		want  string
	}{
		{110 * time.Microsecond, 16, "a query takes 110µs; a short message waits for about 8 in a row, 880µs"},
		{time.Millisecond, 16, "a query takes 1ms; a short message waits for about 8 in a row, 8ms: about 125 messages per second in one conversation, and 2000 on one member with its 16 connections"},
		{20123 * time.Microsecond, 16, "a query takes 20.1ms; a short message waits for about 8 in a row, 161ms: about 6.2 messages per second in one conversation, and 99 on one member with its 16 connections"},
		{100 * time.Millisecond, 32, "a query takes 100ms; a short message waits for about 8 in a row, 800ms: about 1.2 messages per second in one conversation, and 40 on one member with its 32 connections"},
	} {
		if got := distance(tt.trip, tt.conns); got != tt.want {
			t.Errorf("%v, %d connections:\n%s\nwant\n%s", tt.trip, tt.conns, got, tt.want)
		}
	}
}

// A long way and a slow disk are told apart.
func TestExamineSlow(t *testing.T) {
	s := postgrestest.New(t, postgrestest.Config{Dir: memory()})
	database := s.Database(t)
	p := s.Proxy(t)
	const way = 50 * time.Millisecond
	p.Delay(way)
	all := examined(t, Config{URL: p.URL(database), NoListen: true})
	finds(t, all, "distance", LevelWarning, "messages per second in one conversation, and ")
	finds(t, all, "distance", LevelWarning, "run claybot in the same data center as its database")
	if trip := took(t, all, "distance"); trip < 2*way {
		t.Errorf("a query takes %v over a way of %v", trip, way)
	}
	if commit := took(t, all, "commits"); commit >= 2*way { // there and back
		t.Errorf("a commit takes %v: the way is taken for a slow disk", commit)
	}
	// With commit_delay, every commit waits before it is flushed.
	for setting, value := range map[string]string{"commit_delay": "100000", "commit_siblings": "0"} {
		if err := s.Configure(t.Context(), setting, value); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool {
		rows, err := s.Query(t.Context(), "", "SELECT current_setting('commit_delay'), current_setting('commit_siblings')")
		return err == nil && rows[0][0] == "100000" && rows[0][1] == "0"
	})
	all = examined(t, Config{URL: database})
	finds(t, all, "commits", LevelWarning, "the disk of the server, or a replica that it waits for, is slow")
	if commit := took(t, all, "commits"); commit < 50*time.Millisecond {
		t.Errorf("a commit takes %v", commit)
	}
}

// waitFor waits for what comes about soon unless the machine is very busy. It gives up before
// the other tests have no time left.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	tick, end := time.NewTicker(10*time.Millisecond), time.After(5*longTime)
	defer tick.Stop()
	for !done() {
		select {
		case <-end:
			t.Fatal("it did not come about")
		case <-tick.C:
		}
	}
}

// A door before the server that lets everything through but notifications.
func TestExamineNotificationsLost(t *testing.T) {
	s := postgrestest.Shared(t)
	address := deafDoor(t, s.Addr())
	u, err := url.Parse(s.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Host = address
	all := examined(t, Config{URL: with(t, u.String(), "sslmode", "disable"), notifyTime: time.Millisecond})
	finds(t, all, "pooler", LevelWarning, "notifications do not arrive, so nodes hear of each other late")
	finds(t, all, "pooler", LevelWarning, "CLAYBOT_STORAGE_LISTEN")
}

// deafDoor is the address of a door that drops the server's notifications.
func deafDoor(t *testing.T, server string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	ctx := t.Context()
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			back, err := new(net.Dialer).DialContext(ctx, "tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			end := sync.OnceFunc(func() { _, _ = client.Close(), back.Close() })
			wg.Go(func() { defer end(); _, _ = io.Copy(back, client) })
			wg.Go(func() { defer end(); deafen(client, back) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

// deafen passes the messages of a server on, but for notifications ('A').
func deafen(client io.Writer, server io.Reader) {
	var head [5]byte
	for {
		if _, err := io.ReadFull(server, head[:]); err != nil {
			return
		}
		var body bytes.Buffer
		if _, err := io.CopyN(&body, server, int64(binary.BigEndian.Uint32(head[1:]))-4); err != nil {
			return
		}
		if head[0] == 'A' {
			continue
		}
		if _, err := client.Write(append(head[:len(head):len(head)], body.Bytes()...)); err != nil {
			return
		}
	}
}
