package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/claybot/claybot/workspace"
)

// A hostProcess is a server that runs as a process of this machine, with a group
// of its own and no variables but those it was given.
type hostProcess struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr *tail

	once sync.Once
	done chan struct{} // closed when the process has ended
	code int
}

func startHost(s Server) (workspace.Process, error) {
	if err := s.Missing(); err != nil {
		return nil, err
	}
	cmd := exec.Command(s.Command[0], s.Command[1:]...) //nolint:noctx // it outlives the start and is ended by Close
	cmd.Dir = s.Dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Env = []string{} // nil would mean all variables of claybot
	for _, v := range s.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.WaitDelay = time.Second // for children that keep stderr
	group(cmd)
	p := &hostProcess{cmd: cmd, stderr: new(tail), done: make(chan struct{})}
	cmd.Stderr = p.stderr
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	// Not StdoutPipe, which is closed when the process ends: what it wrote last
	// would be lost.
	out, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start: %w", err), p.stdin.Close())
	}
	p.stdout, cmd.Stdout = out, in
	err = start(cmd)
	_ = in.Close() // the process has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start: %w", err), out.Close())
	}
	go p.reap()
	return p, nil
}

func (p *hostProcess) reap() {
	state, err := p.cmd.Process.Wait()
	p.code = -1
	if err == nil {
		p.code = state.ExitCode()
	}
	endGroup(p.cmd, true)
	close(p.done)
	_ = p.cmd.Wait() // frees what copies stderr; the process is gone already
}

func (p *hostProcess) Read(b []byte) (int, error) { return p.stdout.Read(b) }

func (p *hostProcess) Write(b []byte) (int, error) { return p.stdin.Write(b) }

func (p *hostProcess) CloseWrite() error { return p.stdin.Close() }

func (p *hostProcess) Stderr() string { return p.stderr.String() }

func (p *hostProcess) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return p.code, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// Close ends the process with its group: by the end of its input, a request to
// end, and by force, half a second each.
func (p *hostProcess) Close() error {
	p.once.Do(func() {
		_ = p.stdin.Close() // it may be closed already
		for _, force := range []bool{false, true} {
			if p.ended(closeTimeout / 4) {
				break
			}
			endGroup(p.cmd, force)
		}
		p.ended(closeTimeout)
		_ = p.stdout.Close() // unblocks a reader
	})
	if !p.ended(0) {
		return errors.New("the process does not end")
	}
	return nil
}

func (p *hostProcess) ended(within time.Duration) bool {
	select {
	case <-p.done:
		return true
	default:
	}
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}
