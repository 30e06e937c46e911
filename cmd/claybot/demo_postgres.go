package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// demoPostgres is a temporary PostgreSQL server run by the installed programs. It listens
// on a loopback port only and asks for no password.
type demoPostgres struct {
	bin, data string
	port      string
	as        *syscall.Credential // PostgreSQL refuses to run as root: the user postgres does
}

// startPostgres creates a server and starts it. The error says what is missing if this
// machine has no PostgreSQL.
func startPostgres(ctx context.Context) (_ *demoPostgres, err error) {
	p := &demoPostgres{bin: postgresPrograms()}
	if p.bin == "" {
		return nil, errors.New("the demo of several members needs the PostgreSQL programs initdb, pg_ctl and psql: install them, for example with apt-get install postgresql")
	}
	// Another user must reach the folder, which the temporary directory of this one may not allow.
	if p.data, err = os.MkdirTemp("/tmp", "claybot-demo-postgres-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	if err := p.dropRoot(); err != nil {
		return nil, err
	}
	if _, err := p.run(ctx, "initdb", "-D", p.data, "-U", "claybot", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	// Below the range that systems give to outgoing connections, so that a restart finds it free.
	for range 20 {
		p.port = strconv.Itoa(15000 + rand.IntN(15000))
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", p.port))
		if err == nil {
			_ = l.Close()
			break
		}
	}
	return p, p.control(ctx, "start", "-o", "-p "+p.port+" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200")
}

// postgresPrograms is the folder of the newest installation: Debian's, else the one in PATH.
func postgresPrograms() string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is valid
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // 0 comes last
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range dirs {
		if !slices.ContainsFunc([]string{"initdb", "pg_ctl", "psql"}, func(name string) bool {
			_, err := exec.LookPath(filepath.Join(dir, name))
			return err != nil
		}) {
			return dir
		}
	}
	return ""
}

// dropRoot hands the server to the user postgres if this process is root.
func (p *demoPostgres) dropRoot() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return errors.New("PostgreSQL does not run as root, and there is no user postgres: create it, or run the demo as another user")
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return fmt.Errorf("user postgres: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return fmt.Errorf("user postgres: %w", err)
	}
	p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(p.data, int(uid), int(gid))
}

// run runs one of the programs to its end and returns what it printed.
func (p *demoPostgres) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as, Setpgid: true} // the scene ends it, not a signal from the terminal
	cmd.WaitDelay = time.Second                                             // a process that it leaves behind may hold its output
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(failure.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}

// control starts or stops the server and waits for that.
func (p *demoPostgres) control(ctx context.Context, args ...string) error {
	_, err := p.run(ctx, "pg_ctl", append([]string{"-D", p.data, "-w", "-l", filepath.Join(p.data, "log")}, args...)...)
	return err
}

func (p *demoPostgres) url() string {
	return "postgres://claybot@127.0.0.1:" + p.port + "/postgres?sslmode=disable"
}

// query returns the first column of the rows.
func (p *demoPostgres) query(ctx context.Context, sql string) (string, error) {
	return p.run(ctx, "psql", "-XAtq", "-d", p.url(), "-c", sql)
}

// crash restarts the server as after a crash: nothing is written at its end.
func (p *demoPostgres) crash(ctx context.Context) error {
	return p.control(ctx, "restart", "-m", "immediate")
}

// stop stops the server and removes its data.
func (p *demoPostgres) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	_ = p.control(ctx, "stop", "-m", "immediate") // it may not run
	_ = os.RemoveAll(p.data)
}
