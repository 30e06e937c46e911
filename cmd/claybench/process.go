package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process is a running daemon.
type process struct {
	cmd   *exec.Cmd
	dir   string
	began time.Time
	ready chan struct{} // closed by the log line that says so
	addr  string        // of the page, once it is ready; empty without one
	ended chan error
	log   *bytes.Buffer // the last lines, for failures
	// fatal is the signal that ends it at once.
	fatal syscall.Signal
}

// start runs the daemon on a data directory with further environment.
func start(ctx context.Context, bin, dir string, env ...string) (*process, error) {
	return startCommand(exec.CommandContext(ctx, bin, "serve"), dir, env...)
}

// startStruck runs the daemon under a saboteur, which ends with it.
func startStruck(ctx context.Context, bin, dir string, s sabotage, env ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	role, err := s.env()
	if err != nil {
		return nil, err
	}
	p, err := startCommand(exec.CommandContext(ctx, self, bin, "serve"), dir, append(env, role)...)
	if err == nil {
		p.fatal = syscall.SIGUSR1 // the saboteur kills the daemon and waits until it is gone
	}
	return p, err
}

func startCommand(cmd *exec.Cmd, dir string, env ...string) (*process, error) {
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CLAYBOT_DATA_DIR=" + filepath.Join(dir, "data"),
		"CLAYBOT_HTTP_ADDR=off", "CLAYBOT_ACCESS=open", "CLAYBOT_LOG=json", "CLAYBOT_LOG_LEVEL=info",
	}, env...)
	cmd.Dir = dir
	if err := unlimited(dir); err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, dir: dir, began: time.Now(), ready: make(chan struct{}), ended: make(chan error, 1), log: new(bytes.Buffer), fatal: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start claybot: %w", err)
	}
	go func() { // ends with the process
		p.read(bufio.NewScanner(stderr))
		p.ended <- cmd.Wait()
	}()
	return p, nil
}

// unlimited lets the daemon of a directory spend without the default budget, which costs
// two writes for each model call, and would end a long load.
func unlimited(dir string) error {
	name := filepath.Join(dir, "claybot.yaml")
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if bytes.Contains(b, []byte("budgets:")) {
		return nil
	}
	return os.WriteFile(name, append(bytes.TrimRight(b, "\n"), "\nbudgets: []\n"...), 0o600)
}

func (p *process) read(lines *bufio.Scanner) {
	told := false
	for lines.Scan() {
		var l struct{ Msg, HTTP string }
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "ready" && !told {
			told, p.addr = true, l.HTTP
			close(p.ready)
		}
		if p.log.Len() > 1<<16 {
			p.log.Reset()
		}
		p.log.Write(lines.Bytes())
		p.log.WriteByte('\n')
	}
}

// waitReady blocks until the daemon said that it is ready.
func (p *process) waitReady(limit time.Duration) error {
	select {
	case <-p.ready:
		return nil
	case err := <-p.ended:
		p.ended <- err
		return fmt.Errorf("the daemon ended before it was ready: %w\n%s", err, p.log)
	case <-time.After(limit):
		return fmt.Errorf("the daemon is not ready after %v", limit)
	}
}

// guard returns a context that ends with the process, too: no caller may wait for
// a process that is gone.
func (p *process) guard(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case err := <-p.ended:
			p.ended <- err
			if err == nil {
				err = errors.New("in order")
			}
			cancel(fmt.Errorf("the daemon ended by itself: %w\n%s", err, p.log))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// kill ends the process with SIGKILL and waits for it.
func (p *process) kill() error { return ignoreKilled(p.end(p.fatal)) }

// term asks the process to end and waits for it; it reports the exit error.
func (p *process) term() error { return p.end(syscall.SIGTERM) }

func (p *process) end(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	err := <-p.ended
	p.ended <- err
	return err
}

// rss is the resident memory of the process in bytes.
func (p *process) rss() (int64, error) { return p.memory("VmRSS") }

// peak is the most resident memory that the process ever had, in bytes.
func (p *process) peak() (int64, error) { return p.memory("VmHWM") }

func (p *process) memory(field string) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc", field)
}

// cpu is the processor time the process has used.
func (p *process) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(b), ") ") // the name may hold blanks
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, errors.New("cannot read /proc/pid/stat")
	}
	var ticks int64 // of 10 ms, in user and in kernel mode
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// ignoreKilled drops the error that says that a process was killed.
func ignoreKilled(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// killed reports whether a process ended by SIGKILL, or its saboteur says so.
func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err == nil
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && (status.Signaled() || status.ExitStatus() == 128+int(syscall.SIGKILL))
}
