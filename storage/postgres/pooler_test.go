package postgres

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// A pooler that gives sessions away is told from one that does not, also by a client
// that is alone behind it.
func TestExaminePooler(t *testing.T) {
	s := postgrestest.Shared(t)
	database := s.Database(t)
	for mode, words := range map[string]string{
		"transaction": "gives connections away per transaction → set storage.pooler (CLAYBOT_STORAGE_POOLER) to true",
		"statement":   "allows no transactions (pool_mode = statement) → set its pool_mode",
		"session":     "with a session for each connection; notifications arrive",
	} {
		for robin := range 2 { // which of the server's connections comes next
			t.Run(fmt.Sprint(mode, robin), func(t *testing.T) {
				level := LevelProblem
				if mode == "session" {
					level = LevelOK
				}
				all := examined(t, Config{URL: pooled(t, s, database, mode, robin)})
				finds(t, all, "pooler", level, words)
				for _, f := range all {
					if f.What != "pooler" && f.What != "durability" && bad([]Finding{f}) > 0 {
						t.Errorf("%+v", f)
					}
				}
			})
		}
	}
	t.Run("start", func(t *testing.T) {
		address := pooled(t, s, database, "transaction", 0)
		if _, err := Open(t.Context(), Config{URL: address}); err == nil || !strings.Contains(err.Error(), "a pooler stands before the server") || !strings.Contains(err.Error(), "set storage.pooler") {
			t.Errorf("without the setting: %v", err)
		}
		openWith(t, Config{URL: address, Pooler: true})
	})
	t.Run("as configured", func(t *testing.T) {
		all := examined(t, Config{URL: pooled(t, s, database, "transaction", 0), Pooler: true})
		finds(t, all, "pooler", LevelOK, "as storage.pooler says")
	})
}

// poolerPort is a part of the name of a pooler's socket, and no port that others take.
const poolerPort = "6432"

// pooled is the URL by which a pgbouncer of its own leads to a database.
func pooled(t *testing.T, s *postgrestest.Server, database, mode string, robin int) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("a pooler is not tested, which must not be with CI=true: there is no pgbouncer")
		}
		t.Skip("SKIPPED, a pooler is not tested: there is no pgbouncer (apt install pgbouncer)")
	}
	host, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pgbouncer-") // which another user can reach
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := fmt.Sprintf(`[databases]
pooled = host=%s port=%s user=%s dbname=%s
[pgbouncer]
listen_port = %s
unix_socket_dir = %s
auth_type = any
pool_mode = %s
server_round_robin = %d
ignore_startup_parameters = extra_float_digits
`, host, port, postgrestest.User, databaseName(t, database), poolerPort, dir, mode, robin)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil { //nolint:gosec // nothing in it is secret
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // likewise, and it makes its socket there
		t.Fatal(err)
	}
	args := []string{"-q", file}
	if os.Getuid() == 0 { // as whom it refuses to run
		args = append([]string{"-u", "nobody"}, args...)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	begun := time.Now()
	waitFor(t, func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "unix", filepath.Join(dir, ".s.PGSQL."+poolerPort))
		if err == nil {
			return conn.Close() == nil
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("pgbouncer does not listen: %v", err)
		}
		return false
	})
	at := url.Values{"host": {dir}, "port": {poolerPort}, "sslmode": {"disable"}}
	return (&url.URL{Scheme: "postgres", User: url.User(postgrestest.User), Path: "/pooled", RawQuery: at.Encode()}).String()
}
