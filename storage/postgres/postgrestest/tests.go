package postgrestest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

// patience is how long a server may take to start or to recover on a machine that
// is busy.
const patience = 2 * time.Minute

// New is a server of its own for a test, which ends with it. Where PostgreSQL
// cannot run the test is skipped; with CI=true that is a failure.
func New(t testing.TB, c Config) *Server {
	t.Helper()
	s := wanted(t, func(ctx context.Context) (*Server, error) { return Start(ctx, c) })
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the log of PostgreSQL:\n%s", s.folder.tail())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shared is the one server of a test binary.
var shared struct {
	sync.Mutex
	server *Server
}

// Shared is the one server of the test binary, started on first use: Fast, and it
// remembers when each row was written.
// It is for tests that need a database of their own (Database) and leave the
// server alone. It ends with the process; Main ends it in order.
func Shared(t testing.TB) *Server {
	t.Helper()
	return wanted(t, func(ctx context.Context) (*Server, error) {
		shared.Lock()
		defer shared.Unlock()
		if shared.server != nil {
			return shared.server, nil
		}
		s, err := Start(ctx, Config{Fast: true, Settings: map[string]string{"track_commit_timestamp": "on"}})
		if err == nil {
			shared.server = s
		}
		return s, err
	})
}

// Main runs the tests of a package, ends the shared server, and returns the exit
// code: func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil && code == 0 {
			println("postgrestest:", err.Error())
			code = 1
		}
		shared.server = nil
	}
	return code
}

func wanted(t testing.TB, start func(context.Context) (*Server, error)) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, PostgreSQL is not tested: -short")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := start(ctx)
	switch {
	case err == nil:
	case !errors.Is(err, ErrNotHere):
		t.Fatal(err)
	case os.Getenv("CI") == "true":
		t.Fatalf("with CI=true all tests run, and this one cannot: %v", err)
	default:
		t.Skipf("SKIPPED, PostgreSQL is not tested: %v", err)
	}
	return s
}

// Database makes an empty database for a test and returns its URL. It goes away with
// the test, also when connections to it are open.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	address, err := s.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.PID() == 0 {
			return // the test has stopped the server, and its data go with it
		}
		ctx, cancel := context.WithTimeout(context.Background(), 4*patience) // it waits for a checkpoint
		defer cancel()
		if err := s.Drop(ctx, address); err != nil {
			t.Error(err)
		}
	})
	return address
}
