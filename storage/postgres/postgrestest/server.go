// Package postgrestest runs real PostgreSQL servers for tests: each has a data
// directory of its own in a temporary folder and a port of its own on the loopback
// address, and it ends with the process that started it, also when that is killed.
// Servers can be stopped, killed, frozen, copied to a standby, and reached through a
// proxy that breaks the network. Only tests and commands that measure import it.
//
// A server runs as the user postgres when its starter is root, as PostgreSQL refuses
// to run as root. Nothing is shared with a server that the system may have.
//
// The folder of a server, below Config.Dir:
//
//	claybot-postgres-*/lock  held as long as the process lives that started it
//	                  /data  the data directory, of the user of the server
//	                  /run   the Unix socket, which asks for no password
//	                  /log   what the server says
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ErrNotHere: this machine cannot run a PostgreSQL server for tests; the text says
// what is missing.
var ErrNotHere = errors.New("no PostgreSQL here")

// User is the owner of all servers, a superuser. Password is asked for over TCP
// with Config.Password.
const (
	User     = "claybot"
	Password = "not-a-real-password"
)

// A Config configures a server. The zero value is one with the settings of
// production: what was committed survives a power failure.
type Config struct {
	// Fast leaves out all syncs and compiles no query. Whatever is committed still
	// survives every end of the server's processes, kill -9 included, but not that of
	// the machine.
	Fast bool
	// Password asks for Password over TCP (scram-sha-256); else no password is needed.
	Password bool
	// Locale is that of ICU by which texts are sorted; left out: en-US, because
	// that is what most servers have, and it differs from the order of bytes. "C"
	// is the order of bytes.
	Locale string
	// Settings are more lines of postgresql.conf. max_connections is 200 unless it
	// stands here.
	Settings map[string]string
	// Dir is the folder below which the server has its own; left out: /tmp, as the
	// path of a Unix socket is short and another user must reach it.
	Dir string
}

// A Server is one PostgreSQL server. Its methods may be called at the same time.
type Server struct {
	config   Config
	programs programs
	folder   *folder
	data     string
	port     int
	primary  *Server // of a standby

	mu     sync.Mutex
	proc   *process // nil when it does not run
	count  int      // of databases, roles and standbys, for their names
	copies []*Server
}

// attempts are how many ports are tried until one is free.
const attempts = 20

// Start makes a server and starts it; Close ends it. ErrNotHere where that cannot
// be.
func Start(ctx context.Context, c Config) (*Server, error) {
	p, err := findPrograms()
	if err != nil {
		return nil, err
	}
	if c.Dir == "" {
		c.Dir = "/tmp"
	}
	removeStale(ctx, c.Dir)
	f, err := newFolder(c.Dir, p)
	if err != nil {
		return nil, fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	s := &Server{config: c, programs: p, folder: f, data: filepath.Join(f.path, "data")}
	err = s.initialise(ctx)
	if err == nil {
		err = s.startAnywhere(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// initialise makes the data directory.
func (s *Server) initialise(ctx context.Context) error {
	auth := "trust"
	if s.config.Password {
		auth = "scram-sha-256"
	}
	secret := filepath.Join(s.folder.path, "password")
	if err := s.programs.writeFile(secret, Password); err != nil {
		return err
	}
	args := []string{
		"-D", s.data, "-U", User, "--pwfile", secret, "--auth-local=trust", "--auth-host=" + auth,
		"-E", "UTF8", "--locale=C", "--no-sync",
	}
	if s.config.Locale != "C" {
		locale := s.config.Locale
		if locale == "" {
			locale = "en-US"
		}
		args = append(args, "--locale-provider=icu", "--icu-locale="+locale)
	}
	if err := s.programs.run(ctx, "initdb", args...); err != nil {
		return err
	}
	return s.configure()
}

// startAnywhere starts a new server on a port that is free. Ports are taken from
// below those that systems give to outgoing connections, so that a server which
// is stopped for a while finds its own again.
func (s *Server) startAnywhere(ctx context.Context) error {
	var err error
	for range attempts {
		s.port = 15000 + rand.IntN(15000)
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", s.addr()); err != nil {
			continue
		}
		if err = l.Close(); err != nil {
			return err
		}
		if err = s.Start(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (s *Server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Sockets is the folder of the server's socket: the host of a connection on this
// machine that does without TCP.
func (s *Server) Sockets() string { return filepath.Join(s.folder.path, "run") }

// configure writes what the whole life of a server holds; ALTER SYSTEM may change it
// afterwards (Configure).
func (s *Server) configure() error {
	all := map[string]string{"max_connections": "200", "log_line_prefix": "%m [%p] %a "}
	if s.config.Fast {
		all["fsync"], all["full_page_writes"], all["jit"] = "off", "off", "off"
	}
	maps.Copy(all, s.config.Settings)
	f, err := os.OpenFile(filepath.Join(s.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for k, v := range all {
		if _, err := fmt.Fprintf(f, "%s = '%s'\n", k, strings.ReplaceAll(v, "'", "''")); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

// Start starts a server that was stopped or killed, and returns when it answers.
// One that runs already is left alone. Its address stays.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && !s.proc.ended() {
		return nil
	}
	p, err := s.programs.start(s.folder.log, "postgres", "-D", s.data, "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+s.Sockets())
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	s.proc = p
	if err := s.answers(ctx, p); err != nil {
		return fmt.Errorf("start PostgreSQL: %w: %s", err, s.folder.tail())
	}
	return nil
}

// answers waits until the server takes connections, on both doors.
func (s *Server) answers(ctx context.Context, p *process) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := s.Query(ctx, "", "SELECT 1"); err == nil {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr())
			if err == nil {
				return conn.Close()
			}
		}
		select {
		case <-p.done:
			return errors.New("the server exited immediately")
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// A Mode is how a server is stopped.
type Mode int

// Fast ends what is under way with an error and writes all to the disk;
// Immediate ends without writing, so that the next start recovers from the log.
const (
	Fast Mode = iota
	Immediate
)

// Stop stops the server and returns when all of it has ended. One that does not
// run is left alone.
func (s *Server) Stop(ctx context.Context, m Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return nil
	}
	if err := s.proc.stop(m); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	select {
	case <-s.proc.done:
		s.proc = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop PostgreSQL: %w", context.Cause(ctx))
	}
}

// Restart stops the server and starts it again.
func (s *Server) Restart(ctx context.Context, m Mode) error {
	if err := s.Stop(ctx, m); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Kill ends all processes of the server by kill -9, as a power failure does. Start
// recovers it.
func (s *Server) Kill(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return nil
	}
	if err := s.proc.kill(ctx); err != nil {
		return fmt.Errorf("kill PostgreSQL: %w", err)
	}
	s.proc = nil
	return nil
}

// Freeze stops all processes of the server where they are, without closing a
// connection; Thaw lets them go on.
func (s *Server) Freeze() error { return s.each((*process).freeze) }

// Thaw ends Freeze.
func (s *Server) Thaw() error { return s.each((*process).thaw) }

func (s *Server) each(do func(*process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.proc.ended() {
		return errors.New("PostgreSQL does not run")
	}
	return do(s.proc)
}

// PID is that of the server's first process; 0 when it does not run.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.proc.ended() {
		return 0
	}
	return s.proc.pid
}

// Log is the path of the file to which the server writes what it does.
func (s *Server) Log() string { return s.folder.log.Name() }

// Folder is that in which the server has its data, its socket and its log.
func (s *Server) Folder() string { return s.folder.path }

// Bin is the folder of the programs of the installation, psql and pgbench included.
func (s *Server) Bin() string { return s.programs.dir }

// closing is how long a server may take to end by itself, and then by force, on a
// machine that is busy.
const closing = time.Minute

// Close ends the server and its standbys and removes their folders. Twice is once.
func (s *Server) Close() error {
	s.mu.Lock()
	copies := s.copies
	s.copies = nil
	s.mu.Unlock()
	var all []error
	for _, c := range copies {
		all = append(all, c.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = s.Thaw() // a frozen one cannot end
	if s.Stop(ctx, Immediate) != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		all = append(all, s.Kill(ctx))
	}
	return errors.Join(append(all, s.folder.remove())...)
}

// remember ends a standby with its primary.
func (s *Server) remember(c *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copies = append(s.copies, c)
}

// name makes one that no other of this server has.
func (s *Server) name(what string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return what + "_" + strconv.Itoa(s.count)
}
