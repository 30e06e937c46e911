package local

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/claybot/claybot/workspace"
)

const markName = "CLAYBOT_COMMAND"

type process struct {
	attr  os.ProcAttr
	mark  string // in the environment of all that it starts; never empty, since that is in every environment
	limit int    // processes
	pid   int
	born  uint64 // when it began, in the system's ticks
	space bool   // it has a space of processes of its own, which ends with it
	cage  cage

	done   chan struct{} // closed when it and all that it started have ended
	exit   int           // once done
	reason string

	mu      sync.Mutex
	why     error // the first cause of its end from outside
	reaped  bool  // its pid may be another's
	ended   bool
	killing sync.Mutex
}

// start marks it and starts it, with the arguments for a process that has a space of its own
// or none. The thread that does it gives up rights, which its child then
// does not have, and ends with the child: on Linux the child ends with the
// thread, and so with claybot.
func (p *process) start(args func(space bool) []string) error {
	p.mark = markName + "=" + rand.Text()
	p.attr.Env = append(p.attr.Env, p.mark)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocks
		restrict()
		err := p.cage.enter()
		var child *os.Process
		if err == nil {
			child, err = p.startChild(args)
		}
		if err != nil {
			started <- err
			return
		}
		p.pid = child.Pid
		p.born = bornAt(p.pid)
		started <- nil
		watched := make(chan struct{})
		quit := make(chan struct{})
		go func() {
			defer close(watched)
			p.watch(quit)
		}()
		state, err := child.Wait()
		p.mu.Lock()
		p.reaped = true
		p.mu.Unlock()
		close(quit)
		<-watched
		p.finish(state, err)
	}()
	return <-started
}

func (p *process) finish(state *os.ProcessState, err error) {
	p.kill()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.exit = -1
	if err == nil {
		p.exit = state.ExitCode()
		if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			p.exit = 128 + int(s.Signal())
		}
		p.reason = workspace.ExitReason(p.exit)
	}
	close(p.done)
}

func (p *process) stop(cause error) {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return
	}
	if p.why == nil {
		p.why = cause
	}
	p.mu.Unlock()
	p.kill()
}

func (p *process) cause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

type pipe struct {
	*process
	stdin, stdout *os.File
	errs          *workspace.Output
	read          chan struct{} // closed when stderr is read to its end
	release       func() bool
	closing       sync.Once
}

var _ workspace.Process = (*pipe)(nil)

func (v *view) Pipe(ctx context.Context, c workspace.Command) (workspace.Process, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, &workspace.Error{Code: workspace.Failed, Text: "the command cannot be started; see the operator's log", Err: err}
		}
		files = append(files, r, w)
	}
	inner, limits, stopLimits := c.Start(ctx)
	p, err := v.begin(ctx, c, files[0], files[3], files[5])
	if err != nil {
		stopLimits()
		closeAll()
		return nil, err
	}
	for _, i := range []int{0, 3, 5} { // the ends of the child
		_ = files[i].Close()
	}
	q := &pipe{process: p, stdin: files[1], stdout: files[2], errs: workspace.NewOutput(nil), read: make(chan struct{})}
	q.release = context.AfterFunc(inner, func() { p.stop(context.Cause(inner)) })
	stderr := files[4]
	go func() {
		defer close(q.read)
		defer stderr.Close()
		readAll(stderr, q.errs.Stream(), limits)
	}()
	go func() {
		<-p.done
		q.release()
		stopLimits()
		late(stderr)
		<-q.read
		q.errs.Close()
	}()
	return q, nil
}

func (q *pipe) Read(b []byte) (int, error)  { return q.stdout.Read(b) }
func (q *pipe) Write(b []byte) (int, error) { return q.stdin.Write(b) }
func (q *pipe) CloseWrite() error {
	if err := q.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func (q *pipe) Stderr() string { return q.errs.String() }

func (q *pipe) Wait(ctx context.Context) (int, error) {
	select {
	case <-q.done:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	<-q.read
	if e, ok := errors.AsType[*workspace.Error](q.cause()); ok {
		return q.exit, e
	}
	return q.exit, nil
}

func (q *pipe) Close() error {
	q.closing.Do(func() {
		q.stop(&workspace.Error{Code: workspace.Failed, Text: "the command was closed"})
		<-q.done
		_ = q.stdin.Close()
		_ = q.stdout.Close()
	})
	return nil
}
