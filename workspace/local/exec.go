package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/claybot/claybot/workspace"
)

// outputs is the folder, in a workspace, of outputs that were too long, and
// keepOutputs how many stay.
const (
	outputs     = kept + "/output"
	keepOutputs = 20
)

// drain is how long output is still read after the command and what it started
// have ended.
const drain = 500 * time.Millisecond

type place struct {
	key  workspace.Key
	base string
	log  *slog.Logger
	turn workspace.Turn // held while the place is made or removed

	mu      sync.Mutex
	running map[*process]bool

	user atomic.Int64 // of the commands, where it is another than claybot's; else 0
}

// A view is a place as one Open wanted it.
type view struct {
	*place
	spec    workspace.Spec
	confine confinement
}

var _ workspace.Workspace = (*view)(nil)

func (v *view) Place() string {
	return "local, " + v.dir() + ", on this machine, with its network, " + string(v.confine)
}

func (w *place) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running) > 0
}

func (w *place) endAll() {
	w.mu.Lock()
	var all []*process
	for p := range w.running {
		all = append(all, p)
	}
	w.mu.Unlock()
	for _, p := range all {
		p.stop(&workspace.Error{Code: workspace.Gone, Text: "the workspace was removed while the command ran"})
	}
	for _, p := range all {
		<-p.done
	}
}

// lifeline is a pipe, the end to read first, of which this process alone keeps the other end: it reads
// to its end when this process has died, whatever it died of.
var lifeline = sync.OnceValues(func() ([2]*os.File, error) {
	r, w, err := os.Pipe()
	return [2]*os.File{r, w}, err
})

// A watchdog waits at the lifeline, its standard input, and then ends what has the mark $1, which
// may have left the group, and then its group, which is that of the command. It has no mark itself,
// and ends with the group. watched starts it beside a command.
const (
	watchdog = `cd /; read -r x
for again in 1 2; do
	for f in /proc/[0-9]*/environ; do
		if grep -qsF -e "$1" "$f"; then f=${f#/proc/}; kill -KILL "${f%/environ}"; fi
	done
done
kill -KILL 0`
	watched = `( env -i PATH="$PATH" /bin/sh -c "$1" sh "$2" <&3 3<&- >/dev/null 2>&1 & ); exec 3<&-; `
)

func (v *view) begin(ctx context.Context, c workspace.Command, stdin, stdout, stderr *os.File) (*process, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	dir, err := v.enter(ctx, c.Dir)
	if err != nil {
		return nil, err
	}
	args, start := c.Argv(workspace.Home(v.dir(), v.spec.Env, c.Env))
	// A shell sets limits, which the program inherits. In a space of processes it
	// stays, as the first there has no way to end by a signal of its own; what it
	// would say about the end of the program has no reader.
	p := &process{done: make(chan struct{}), limit: v.processes()}
	wrap := func(space bool) []string {
		then := watched + `shift 2; exec "$@"`
		if space {
			then = `shift 2; exec 3>&2 2>/dev/null; ( exec "$@" 2>&3 3>&- ); exit $?`
		}
		return append([]string{"/bin/sh", "-c", v.ulimits() + then, "sh", watchdog, p.mark}, args...)
	}
	tmp, err := v.tmp(ctx)
	if err != nil {
		return nil, err
	}
	user, _ := v.own()
	alive, err := lifeline()
	if err != nil {
		return nil, &workspace.Error{Code: workspace.Failed, Text: "the command cannot be started; see the operator's log", Err: err}
	}
	p.cage = cage{v.confine, user, v.dir(), filepath.Dir(v.base)}
	p.attr = os.ProcAttr{Dir: dir, Env: v.env(c, start, tmp), Files: []*os.File{stdin, stdout, stderr, alive[0]}}
	if err := p.start(wrap); err != nil {
		return nil, &workspace.Error{Code: workspace.Failed, Text: "the command cannot be started; see the operator's log", Err: err}
	}
	v.mu.Lock()
	v.running[p] = true
	v.mu.Unlock()
	go func() {
		<-p.done
		v.mu.Lock()
		delete(v.running, p)
		v.mu.Unlock()
	}()
	return p, nil
}

func (v *view) enter(ctx context.Context, name string) (string, error) {
	root, clean, err := v.at(ctx, name)
	if err != nil {
		return "", err
	}
	defer root.Close()
	info, err := root.Stat(clean)
	if err != nil {
		return "", explain(name, err)
	}
	if !info.IsDir() {
		return "", &workspace.Error{Code: workspace.NotFound, Text: fmt.Sprintf("%.200q is a file, not a folder", name)}
	}
	return filepath.Join(v.dir(), filepath.FromSlash(clean)), v.room(ctx, 0)
}

func (v *view) ulimits() string {
	memory := v.spec.Memory
	if memory == 0 {
		memory = defaultMemory
	}
	s := "ulimit -c 0; ulimit -d " + strconv.FormatInt(max(memory>>10, 1), 10) + " 2>/dev/null; ulimit -n 1024 2>/dev/null; "
	if n := userTasks(v.runsAs()); n > 0 { // the limit is one of all that the user runs
		n += v.processes() + 1 // and its watchdog
		s += fmt.Sprintf("ulimit -u %d 2>/dev/null || ulimit -p %d 2>/dev/null; ", n, n)
	}
	if v.spec.Disk > 0 {
		s += "ulimit -f " + strconv.FormatInt(max(v.spec.Disk>>9, 1), 10) + " 2>/dev/null; " // blocks of 512 bytes
	}
	return s
}

func (v *view) runsAs() int {
	if user, other := v.own(); other {
		return user
	}
	return os.Getuid()
}

func (v *view) processes() int {
	if v.spec.PIDs == 0 {
		return defaultPIDs
	}
	return int(min(v.spec.PIDs, 1<<20))
}

func (v *view) env(c workspace.Command, start string, tmp []workspace.Var) []string {
	vars := []workspace.Var{{Name: "PATH", Value: os.Getenv("PATH")}, {Name: "TERM", Value: "dumb"}}
	if vars[0].Value == "" {
		vars[0].Value = "/usr/local/bin:/usr/bin:/bin"
	}
	for _, name := range []string{"LANG", "TZ"} {
		if value := os.Getenv(name); value != "" {
			vars = append(vars, workspace.Var{Name: name, Value: value})
		}
	}
	vars = slices.Concat(vars, tmp, v.spec.Env, c.Env, []workspace.Var{{Name: "HOME", Value: start}})
	var env []string
	seen := make(map[string]bool)
	for _, v := range slices.Backward(vars) { // the last of a name counts
		if !seen[v.Name] {
			seen[v.Name] = true
			env = append(env, v.Name+"="+v.Value)
		}
	}
	slices.Reverse(env)
	return env
}

// Exec implements workspace.Workspace. Nothing that the command started outlives
// it.
func (v *view) Exec(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	if ctx.Err() != nil {
		return workspace.Result{}, context.Cause(ctx)
	}
	began := time.Now()
	r, w, err := os.Pipe()
	if err != nil {
		return workspace.Result{}, &workspace.Error{Code: workspace.Failed, Text: "the command cannot be started; see the operator's log", Err: err}
	}
	defer r.Close()
	in, feed, err := input(c.Stdin)
	if err != nil {
		_ = w.Close()
		return workspace.Result{}, &workspace.Error{Code: workspace.Failed, Text: "the command cannot be started; see the operator's log", Err: err}
	}
	// One pipe for both streams keeps their order.
	p, err := v.begin(ctx, c, in, w, w)
	_ = in.Close()
	_ = w.Close()
	if err != nil {
		if feed != nil {
			_ = feed.Close()
		}
		return workspace.Result{}, err
	}
	whole := &wholeFile{place: v.place}
	out := workspace.NewOutput(whole.begin)
	inner, limits, stop := c.Start(ctx)
	defer stop()
	ended := context.AfterFunc(inner, func() { p.stop(context.Cause(inner)) })
	defer ended()

	fed := make(chan struct{})
	go func() {
		defer close(fed)
		if feed != nil {
			_, _ = feed.Write(c.Stdin) // a program that does not read it does not want it
			_ = feed.Close()
		}
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		readAll(r, out.Stream(), limits)
	}()
	<-p.done
	late(r)
	<-read
	if feed != nil {
		_ = feed.Close()
	}
	<-fed
	out.Close()
	return v.result(p, out, whole, time.Since(began))
}

// readAll reads what a command writes to its end, or until late is over.
func readAll(r *os.File, stream io.Writer, limits *workspace.Limits) {
	block := make([]byte, 32<<10)
	for {
		n, err := r.Read(block)
		if n > 0 {
			limits.Alive()
			_, _ = stream.Write(block[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			rest(r, stream, block)
		}
		if err != nil {
			return
		}
	}
}

// pipeMost is the most that a pipe holds.
const pipeMost = 1 << 20

// rest reads what is in a pipe already, and waits for no more. On a busy machine the
// time of late is over before anything was read, and a read that comes too late
// gives nothing.
func rest(r *os.File, stream io.Writer, block []byte) {
	raw, err := r.SyscallConn()
	if err != nil || r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	for left := pipeMost; left > 0; {
		n := 0
		again := raw.Read(func(fd uintptr) bool {
			n, err = syscall.Read(int(fd), block)
			return true // it must not wait
		})
		if again == nil && errors.Is(err, syscall.EINTR) {
			continue
		}
		if again != nil || err != nil || n <= 0 {
			return
		}
		left -= n
		_, _ = stream.Write(block[:n])
	}
}

// late lets reading go on for a moment: a process that got away may hold the
// other end.
func late(r *os.File) { _ = r.SetReadDeadline(time.Now().Add(drain)) }

func (v *view) result(p *process, out *workspace.Output, whole *wholeFile, took time.Duration) (workspace.Result, error) {
	r := workspace.Result{ExitCode: p.exit, Output: out.String(), Bytes: out.Bytes(), Reason: p.reason, Took: took}
	r.Whole = whole.end(out)
	cause := p.cause()
	if cause == nil {
		return r, nil
	}
	if e, ok := errors.AsType[*workspace.Error](cause); ok {
		e := *e
		e.Output = r.Output
		return r, &e
	}
	return r, cause
}

func input(content []byte) (in, feed *os.File, err error) {
	if len(content) > 0 {
		return os.Pipe()
	}
	in, err = os.Open(os.DevNull)
	return in, nil, err
}

type wholeFile struct {
	place *place
	name  string
	file  *os.File
}

func (f *wholeFile) begin() (io.Writer, error) {
	root, err := f.place.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := f.place.mkdirAll(root, outputs); err != nil {
		return nil, err
	}
	f.name = outputs + "/" + time.Now().UTC().Format("20060102-150405.000") + "-" + strings.ToLower(rand.Text()[:6]) + ".txt"
	f.file, err = root.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return f.file, f.place.give(root, f.name)
}

func (f *wholeFile) end(out *workspace.Output) string {
	if f.file == nil {
		return ""
	}
	closed := f.file.Close()
	root, err := f.place.root()
	if err != nil {
		return ""
	}
	defer root.Close()
	_, lost := out.Whole()
	if err := errors.Join(closed, lost); err != nil || !out.Cut() {
		if err != nil {
			f.place.log.Warn("failed to save long output", "key", f.place.key, "err", err)
		}
		_ = root.Remove(f.name)
		return ""
	}
	f.prune(root)
	return f.name
}

// prune removes the oldest outputs; what cannot be removed is only waste.
func (f *wholeFile) prune(root *os.Root) {
	dir, err := root.Open(outputs)
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	slices.Sort(names) // they begin with their time
	for len(names) > keepOutputs {
		_ = root.Remove(outputs + "/" + names[0])
		names = names[1:]
	}
}
