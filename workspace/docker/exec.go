package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"

	"github.com/claybot/claybot/workspace"
)

// A Workspace is one container, opened.
type Workspace struct {
	p    *Provider
	e    *engine
	slot *slot
	want *want
	box  *box
	// still: what it runs starts no container. So it is for the initial script,
	// whose caller has the slot's token, and for what goes with another command.
	still bool
	// until is when a command that has not begun is tried no longer; zero: endingTime
	// from its first try on.
	until time.Time
}

var _ workspace.Workspace = (*Workspace)(nil)

// Place implements workspace.Workspace.
func (w *Workspace) Place() string {
	place := fmt.Sprintf("docker %s image=%s user=%s network=%s %v", w.want.key, w.want.Image, w.want.User, w.want.Network.Mode, w.want.Network.Allow)
	if w.box.older {
		place += ", with older settings until no command runs in it"
	}
	return place
}

// stilled is w for what must not start its container.
func (w *Workspace) stilled() *Workspace {
	c := *w
	c.still = true
	return &c
}

// marker is the variable by which the processes of one command are known, also
// those that have left its process group. It says nothing that a command could
// use.
const marker = "CLAYBOT_EXEC"

type run struct {
	w      *Workspace
	id     string // of the exec
	mark   string
	began  time.Time
	stream types.HijackedResponse
	broken error         // why the output ended before its end; set before ended is closed
	said   func() string // what came over stream; asked for after its end
}

// start begins a command, which the engine makes the leader of a session and a
// process group of its own. A container that does not run is started first.
func (w *Workspace) start(ctx context.Context, c workspace.Command, stdin bool) (*run, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := checkVars(c.Env); err != nil {
		return nil, err
	}
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	r := &run{w: w, mark: rand.Text()}
	until := w.patience()
	env := make([]string, 0, len(c.Env)+2)
	for _, v := range c.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	args, start := c.Argv(workspace.Home(home, w.want.Env, c.Env))
	env = append(env, "HOME="+start) // the last one counts
	o := container.ExecOptions{
		User: w.want.User, Cmd: args, Env: append(env, marker+"="+r.mark), WorkingDir: cmp.Or(c.Dir, home),
		AttachStdin: stdin, AttachStdout: true, AttachStderr: true,
	}
	var err error
	for try := 0; ; try++ {
		if err = r.begin(ctx, o); err == nil || !stopping(err) || w.still || time.Now().After(until) {
			break
		}
		if try > 0 && !pause(ctx) {
			return nil, context.Cause(ctx)
		}
		if err := w.wake(ctx); err != nil { // it was stopped
			return nil, err
		}
	}
	if err != nil {
		if r.id != "" && !errdefs.IsConflict(err) && !errdefs.IsNotFound(err) {
			w.slot.lose(r.mark) // it may have begun
		}
		return nil, w.startError(ctx, err)
	}
	return r, nil
}

// prepare makes sure that the relay is served, and ends commands
// whose engine was away when they were to be ended.
func (w *Workspace) prepare(ctx context.Context) error {
	if w.still {
		return nil
	}
	if w.want.Network.Proxied() && !w.slot.tunnelled(w.box.id) {
		if err := w.wake(ctx); err != nil {
			return err
		}
	}
	w.endLost(ctx)
	return nil
}

// placed is c with its directory resolved. The engine would make one that is not
// there, and follow a link that leads out.
func (w *Workspace) placed(ctx context.Context, c workspace.Command) (workspace.Command, error) {
	if c.Dir == "" {
		return c, nil
	}
	dir, err := w.file(ctx, inside+`
[ -e "$p" ] || exit 64
[ -d "$p" ] || exit 68
printf %s "$p"`, c.Dir, nil, 8<<10)
	c.Dir = string(dir)
	return c, err
}

// wake starts a container that was stopped, with what belongs beside it.
func (w *Workspace) wake(ctx context.Context) error {
	if err := w.slot.opening.Take(ctx); err != nil {
		return err
	}
	defer w.slot.opening.Give()
	return w.p.up(ctx, w.e, w.slot, w.box)
}

func (r *run) begin(ctx context.Context, o container.ExecOptions) error {
	r.began = time.Now()
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	made, err := r.w.e.api.ContainerExecCreate(call, r.w.box.id, o)
	if err != nil {
		return err
	}
	r.id = made.ID
	r.stream, err = r.w.e.streams.ContainerExecAttach(call, r.id, container.ExecAttachOptions{})
	if err != nil {
		return err
	}
	if err := noDeadline(r.stream.Conn); err != nil {
		r.stream.Close()
		return err
	}
	return nil
}

// stopping reports that a command was not begun as its container has ended, or is
// about to. The engine begins no command whose stream it refuses, with any code.
func stopping(err error) bool {
	return errdefs.IsConflict(err) || strings.Contains(err.Error(), "unable to upgrade to tcp, received ")
}

// pause lets the engine see that a container has ended; false: ctx ended first.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(100 * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *Workspace) startError(ctx context.Context, err error) error {
	if errdefs.IsConflict(err) && ctx.Err() == nil {
		return &workspace.Error{Code: workspace.Gone, Text: "the workspace was stopped meanwhile; try again", Err: err}
	}
	return w.e.goneOr(ctx, "start the command", err)
}

// Exec implements workspace.Workspace.
func (w *Workspace) Exec(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	w = w.patient(c.Wall)
	c, err := w.placed(ctx, c)
	if err != nil {
		return workspace.Result{}, err
	}
	w.slot.using.RLock()
	defer w.slot.using.RUnlock()
	var r workspace.Result
	err = w.again(ctx, func() (err error) {
		r, err = w.exec(ctx, c)
		return err
	})
	if errors.Is(err, errNotBegun) { // for as long as it is tried: the engine says why
		return r, nil
	}
	return r, err
}

// errNotBegun is of a command that the engine could not begin: its container has
// just ended, or the system has no room for it.
var errNotBegun = errors.New("the command has not begun")

// notStarted is the exit code that the engine gives to a command it could not begin.
// Such a one never had a process, which tells it from a command with this code.
const notStarted = 126

// endingTime is how long a command that has not begun is tried again: a busy engine
// takes seconds to see that a container has ended.
const endingTime = 10 * time.Second

// patient is w for a command with a limit of its own; 0: it has none.
func (w *Workspace) patient(limit time.Duration) *Workspace {
	c := *w
	const grace = 2 * time.Second // until the engine has seen the end of a container
	if limit == 0 {
		limit = endingTime
	}
	c.until = time.Now().Add(min(endingTime, limit+grace))
	return &c
}

// patience is when a command that begins now is given up if it has not begun.
func (w *Workspace) patience() time.Time {
	if w.until.IsZero() {
		return time.Now().Add(endingTime)
	}
	return w.until
}

// again calls do until its command has begun. A container that has no process left for it
// is stopped, once: at once where nothing runs in it that claybot waits for, and otherwise
// when the command is given up.
func (w *Workspace) again(ctx context.Context, do func() error) error {
	relieved := false
	for until := w.patience(); ; {
		err := do()
		if !errors.Is(err, errNotBegun) || w.still {
			return err
		}
		late := time.Now().After(until)
		if !relieved && (late || w.slot.alone()) && w.relieve(ctx) {
			relieved, late, until = true, false, time.Now().Add(endingTime)
		}
		if late {
			return err
		}
		if !pause(ctx) {
			return context.Cause(ctx)
		}
	}
}

// exec is Exec, which holds the lock.
func (w *Workspace) exec(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	began := time.Now()
	r, err := w.start(ctx, c, c.Stdin != nil)
	if err != nil {
		return workspace.Result{}, err
	}
	defer r.stream.Close()
	inner, limits, stop := c.Start(ctx)
	defer stop()
	inner, full := context.WithCancelCause(inner)
	defer full(nil)
	whole := w.spill(r)
	defer whole.cancel()
	out := workspace.NewOutput(whole.open)
	r.said = out.String
	ended := make(chan struct{})
	stdout, stderr := lively{out.Stream(), limits}, lively{out.Stream(), limits}
	go func() {
		defer close(ended)
		r.broken = frames(r.stream.Reader, stdout, stderr)
	}()
	go r.feed(c.Stdin)
	// What a shell says about its end is no output of the command.
	defer context.AfterFunc(inner, out.Close)()
	// Nor does a file without a writer hold up the end.
	defer context.AfterFunc(inner, whole.hurry)()
	leave := w.attend(full)
	defer func() { leave(time.Since(began)) }()
	code, err := r.wait(inner, ended, func() { whole.close(out, askTime/2) })
	out.Close()
	res := workspace.Result{ExitCode: code, Output: out.String(), Bytes: out.Bytes(), Took: time.Since(began)}
	res.Whole = whole.close(out, spillTime)
	if errors.Is(err, errNotBegun) {
		return res, err
	}
	if err != nil {
		if workspace.Is(err, workspace.DiskLimit) {
			w.settle(ctx)
		}
		return workspace.Result{}, withOutput(err, res)
	}
	res.Reason = w.reason(ctx, res.ExitCode)
	return res, nil
}

func withOutput(err error, r workspace.Result) error {
	known, ok := errors.AsType[*workspace.Error](err)
	if !ok || r.Output == "" {
		return err
	}
	e := *known
	e.Output = r.Output
	if r.Whole != "" {
		e.Output += "\n[all of it is in " + r.Whole + "]"
	}
	return &e
}

func (r *run) feed(stdin []byte) {
	if stdin == nil {
		return
	}
	_, _ = r.stream.Conn.Write(stdin) // a command that does not read it is its own affair
	_ = r.stream.CloseWrite()
}

// wait waits for the end of a command, and returns its exit code. When inner ends
// first, the command is ended, and the cause is the error. flush is called before
// the container is stopped.
func (r *run) wait(inner context.Context, ended <-chan struct{}, flush func()) (int, error) {
	select {
	case <-ended:
		code, err := r.exit(inner)
		if err == nil || inner.Err() == nil || errors.Is(err, errNotBegun) {
			return code, err
		}
	case <-inner.Done():
	}
	return 0, r.killed(inner, ended, flush)
}

// exit waits until a command whose output has ended has ended too, which is at
// once for most, and returns its exit code; errNotBegun comes with notStarted.
func (r *run) exit(ctx context.Context) (int, error) {
	if r.broken != nil {
		r.w.slot.lose(r.mark)
		return 0, r.w.e.fault(ctx, "read the output of the command", r.broken)
	}
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		got, err := r.w.e.api.ContainerExecInspect(call, r.id)
		cancel()
		switch {
		case errdefs.IsNotFound(err) && strings.Contains(r.said(), "No such exec instance: "+r.id):
			return notStarted, errNotBegun // only the engine knows the id
		case err != nil:
			if !errdefs.IsNotFound(err) {
				r.w.slot.lose(r.mark)
			}
			return 0, r.gone(ctx, err)
		case !got.Running && got.ExitCode == notStarted && got.Pid == 0:
			return notStarted, errNotBegun
		case !got.Running:
			return got.ExitCode, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (r *run) gone(ctx context.Context, err error) error {
	if errdefs.IsNotFound(err) {
		return &workspace.Error{Code: workspace.Gone, Text: "the workspace ended while the command ran; what the command did is unknown", Err: err}
	}
	return r.w.e.fault(ctx, "say how the command ended", err)
}

// oomScript says how often the kernel has ended a process of the container for
// memory, as either version of control groups counts it.
const oomScript = `cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null |
while read -r name n; do [ "$name" = oom_kill ] && echo "$n"; done; exit 0`

func (w *Workspace) reason(ctx context.Context, code int) string {
	if code == 137 && w.starved(ctx) {
		return "killed: the workspace has no more memory than its limit"
	}
	return workspace.ExitReason(code)
}

func (w *Workspace) starved(ctx context.Context) bool {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	if out, _, err := w.stilled().script(call, oomScript, nil, 64); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64); err == nil {
			w.slot.mu.Lock()
			defer w.slot.mu.Unlock()
			more := n > w.slot.ooms
			w.slot.ooms = n
			return more
		}
	}
	got, err := w.e.api.ContainerInspect(call, w.box.id)
	return err == nil && got.State != nil && got.State.OOMKilled
}

// lively tells the limits that the command writes.
type lively struct {
	io.Writer
	limits *workspace.Limits
}

func (l lively) Write(p []byte) (int, error) {
	l.limits.Alive()
	return l.Writer.Write(p)
}
