package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// An owner is the user that runs a server; nil credentials are ourselves.
type owner struct{ cred *syscall.Credential }

// findOwner is ourselves, or for root the user postgres.
func findOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return owner{}, fmt.Errorf("%w: it does not run as root, and there is no user postgres; run scripts/postgres.sh", ErrNotHere)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return owner{}, fmt.Errorf("user postgres: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return owner{}, fmt.Errorf("user postgres: %w", err)
	}
	return owner{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// own makes a command one of the owner. It ends with the thread that starts it.
func (o owner) own(cmd *exec.Cmd) {
	// A signal from the terminal is for the tests; they end what they began.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.cred, Setpgid: true}
}

// give makes a file the owner's.
func (o owner) give(path string) error {
	if o.cred == nil {
		return nil
	}
	return os.Chown(path, int(o.cred.Uid), int(o.cred.Gid))
}

// A process is the first one of a server.
type process struct {
	pid  int
	done chan struct{} // closed when it has ended
}

// start runs a program that ends when we do. The kernel sends the signal of that
// when the thread ends that started it, so the thread waits for the program.
func (p programs) start(log *os.File, name string, args ...string) (*process, error) {
	cmd := p.command(context.Background(), name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT // an immediate stop of all processes
	proc := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this function
		err := cmd.Start()
		if err == nil {
			proc.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
			close(proc.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return proc, nil
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %d to process %d: %w", s, pid, err)
	}
	return nil
}

func (p *process) stop(m Mode) error {
	if p.ended() {
		return nil
	}
	if m == Immediate {
		return p.signal(p.pid, syscall.SIGQUIT)
	}
	return p.signal(p.pid, syscall.SIGINT)
}

// freeze stops the first process, so that it makes no more, and then the others.
func (p *process) freeze() error {
	if err := p.halt(); err != nil {
		return err
	}
	return p.all(syscall.SIGSTOP)
}

// halt stops the first process and waits until it has: it may be about to make
// another one, which is its child from then on.
func (p *process) halt() error {
	if err := p.signal(p.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if state, _ := status(p.pid); state != "R" && state != "S" && state != "D" {
			return nil // it stands still, or is no more
		}
		<-tick.C
	}
}

func (p *process) thaw() error { return p.all(syscall.SIGCONT) }

func (p *process) all(s syscall.Signal) error {
	err := p.signal(p.pid, s)
	for _, pid := range children(p.pid) {
		err = errors.Join(err, p.signal(pid, s))
	}
	return err
}

// kill ends all processes at once, and waits until none is left: those that live on
// would keep the next start from the data.
func (p *process) kill(ctx context.Context) error {
	if p.ended() {
		return nil
	}
	if err := p.halt(); err != nil {
		return err
	}
	left := children(p.pid)
	err := p.signal(p.pid, syscall.SIGKILL)
	for _, pid := range left {
		err = errors.Join(err, p.signal(pid, syscall.SIGKILL))
	}
	if err != nil {
		return err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		left = alive(left)
		if p.ended() && len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// children are the processes that have a parent.
func children(parent int) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if _, of := status(pid); of == parent {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// alive keeps the processes that have not ended. A zombie process
// has ended.
func alive(pids []int) (left []int) {
	for _, pid := range pids {
		if state, _ := status(pid); state != "" && state != "Z" && state != "X" {
			left = append(left, pid)
		}
	}
	return left
}

// status is the state and the parent of a process; empty when there is none.
func status(pid int) (state string, parent int) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0
	}
	// The name in brackets may hold anything.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, err = strconv.Atoi(fields[1])
	if err != nil {
		return "", 0
	}
	return fields[0], parent
}
