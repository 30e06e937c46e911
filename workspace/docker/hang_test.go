package docker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

// endsWithin is how long after its limit a command may run at most, on a machine so
// busy that each of the engine's calls takes its whole time, and more. Without their
// limits all would go on for ten minutes. BenchmarkHang has what it is in practice.
const endsWithin = 3 * time.Minute

// hanging are commands that do not end by themselves, or not in time.
var hanging = []struct {
	name, line string
	idle       bool
	escapes    bool // ends by the end of the container alone
}{
	{name: "fork bomb", line: `b() { b | b & }; (b) & while :; do :; done`, escapes: true},
	{name: "ignores TERM", line: `trap '' TERM INT HUP; while :; do sleep 1; done`},
	{name: "waits for input", line: `mkfifo in; cat in`, idle: true},
	{name: "child of its own session", line: `setsid sleep 611 >/dev/null 2>&1 & sleep 600`},
	{name: "child without a mark", line: `env -i /bin/setsid /bin/sh -c 'sleep 612 & sleep 613' >/dev/null 2>&1 & sleep 600`},
	{name: "child that ignores TERM", line: `env -i /bin/setsid /bin/sh -c 'trap "" TERM HUP; while :; do sleep 1; done' & sleep 600`},
}

// TestHang ends commands by a limit, with and without the container, and by their
// context. Nothing of them is left.
func TestHang(t *testing.T) {
	t.Parallel()
	p := provider(t)
	for _, how := range []string{"limit", "limit, workspace kept", "context"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			key := workspace.Key("agent/hang " + how)
			w := opened(t, p, key, workspace.Spec{PIDs: 64, KeepOnTimeout: how != "limit"})
			if got := sh(t, w, "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null; ulimit -n").Output; !strings.HasPrefix(got, "64\n") {
				t.Fatalf("the limit of processes does not hold: %q", got)
			}
			for _, tt := range hanging {
				t.Run(tt.name, func(t *testing.T) { hangs(t, w, tt.line, how, tt.idle, tt.escapes) })
			}
		})
	}
}

func hangs(t *testing.T, w *Workspace, line, how string, idle, escapes bool) {
	const limit = time.Second
	sh(t, w, "rm -f in")
	before := inspect(t, w.box.id).State.StartedAt
	c := workspace.Command{Shell: line, Wall: limit}
	want := workspace.WallLimit
	if idle {
		c.Wall, c.Idle, want = time.Minute, limit, workspace.IdleLimit
	}
	ctx := t.Context()
	if how == "context" {
		var cancel context.CancelFunc
		c.Wall, c.Idle = 0, 0
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	start := time.Now()
	_, err := w.Exec(ctx, c)
	took := time.Since(start)
	if how == "context" {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	} else {
		wantCode(t, "the command", err, want, limit.String())
	}
	if took > limit+endsWithin {
		t.Errorf("ended after %v", took)
	}
	if left := leftOver(t, w.box.id); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	if r := sh(t, w, "echo again"); r.Output != "again\n" {
		t.Errorf("the next command: %+v", r)
	}
	// An engine that does not answer for so long cannot be told from a command that
	// goes on.
	prompt := took < limit+killTime
	if stays := inspect(t, w.box.id).State.StartedAt == before; how != "limit" && !escapes && !stays && prompt {
		t.Error("the container was stopped, which was not needed")
	} else if how == "limit" && stays {
		t.Error("the container was not stopped")
	}
	t.Logf("ended %v after the limit", (took - limit).Round(time.Millisecond))
}

// TestGibibyte takes 1 GiB of output, with little memory.
func TestGibibyte(t *testing.T) {
	w := opened(t, provider(t), "agent/gibibyte", workspace.Spec{})
	sh(t, w, "true")
	var base, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&base)
	done := make(chan struct{})
	var r workspace.Result
	var err error
	start := time.Now()
	go func() {
		defer close(done)
		r, err = w.Exec(t.Context(), workspace.Command{Shell: "head -c 1073741824 /dev/zero | tr '\\000' x; echo end", Wall: 10 * time.Minute})
	}()
	var peak uint64
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-done:
			tick.Stop()
		case <-tick.C:
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse-min(base.HeapInuse, now.HeapInuse))
			continue
		}
		break
	}
	took := time.Since(start)
	if peak > 16<<20 {
		t.Errorf("the memory of this process has grown by %d MiB", peak>>20)
	}
	if err != nil || r.Bytes != 1<<30+4 || !strings.HasSuffix(r.Output, "xend\n") || r.Whole == "" {
		t.Errorf("got %d bytes, whole %q, %v", r.Bytes, r.Whole, err)
	}
	if left := leftOver(t, w.box.id); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	t.Logf("took %v, err %v, memory grew by %d KiB", took.Round(time.Millisecond), err, peak>>10)
}

// TestFileOfOutput has whole outputs in files, of which the newest stay, and is
// not held up by a command that stops the program which writes them.
func TestFileOfOutput(t *testing.T) {
	t.Parallel()
	w := opened(t, provider(t), "agent/whole", workspace.Spec{KeepOnTimeout: true})
	var last workspace.Result
	for range 22 {
		last = sh(t, w, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done")
	}
	if r := sh(t, w, "ls "+outputDir+" | wc -l; tail -n 1 "+last.Whole); r.Output != keepOutputs+"\nline 2999\n" {
		t.Errorf("files: %q", r.Output)
	}
	// It stops all processes but its own shell, again and again.
	stop := `yes | head -c 1000000; i=0; while [ $i -lt 20 ]; do for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = 1 ] || [ $p = $$ ] || grep -q 'output/' /proc/$p/cmdline && kill -STOP $p; done; sleep 0.1; i=$((i+1)); done 2>/dev/null; yes | head -c 10000000`
	start := time.Now()
	_, err := w.Exec(t.Context(), workspace.Command{Shell: stop, Wall: 4 * time.Second})
	if took := time.Since(start); took > 4*time.Second+endsWithin+spillTime {
		t.Errorf("it took %v, %v", took, err)
	}
	sh(t, w, "kill -KILL -1; true")
	if r := sh(t, w, "echo again"); r.Output != "again\n" {
		t.Errorf("the next command: %+v", r)
	}
}

// TestDying ends all that a command may end, which is not the container: its own
// processes have another user. The next command runs.
func TestDying(t *testing.T) {
	t.Parallel()
	w := opened(t, provider(t), "agent/dying", workspace.Spec{})
	before := inspect(t, w.box.id).State.StartedAt
	for i := range 20 {
		sh(t, w, "kill -KILL -1; true")
		if r := sh(t, w, "echo again"); r.Output != "again\n" {
			t.Errorf("round %d: %+v", i, r)
		}
	}
	if after := inspect(t, w.box.id).State.StartedAt; after != before {
		t.Error("the container has ended")
	}
}

// TestEnds has the ends of commands that are named.
func TestEnds(t *testing.T) {
	t.Parallel()
	w := opened(t, provider(t), "agent/ends", workspace.Spec{Memory: 32 << 20})
	for _, tt := range []struct {
		line   string
		code   int
		reason string
	}{
		{"kill -9 $$", 137, "signal 9"},
		{"tail /dev/zero", 137, "no more memory"},
		{"kill -9 $$", 137, "signal 9"}, // no longer for memory
		{"kill -TERM $$", 143, "signal 15"},
		{"kill -INT $$", 130, "interrupted"},
		{"exit 130", 130, "interrupted"},
		{"exit 1", 1, ""},
		{"exec >&- 2>&-; sleep 3; exit 5", 5, ""}, // it goes on without an output
	} {
		r := sh(t, w, tt.line)
		if r.ExitCode != tt.code || !strings.Contains(r.Reason, tt.reason) || (r.Reason == "") != (tt.reason == "") {
			t.Errorf("%s: %+v, want %d, %q", tt.line, r, tt.code, tt.reason)
		}
	}
	start := time.Now()
	_, err := w.Exec(t.Context(), workspace.Command{Shell: "exec >&- 2>&-; sleep 600", Wall: 2 * time.Second})
	wantCode(t, "a command that closed its output", err, workspace.WallLimit)
	if took := time.Since(start); took > 2*time.Second+endsWithin {
		t.Errorf("it took %v", took)
	}
}

// TestDisk bounds one file by its size, and many by their sum.
func TestDisk(t *testing.T) {
	t.Parallel()
	w := opened(t, provider(t), "agent/disk", workspace.Spec{Disk: 8 << 20, KeepOnTimeout: true})
	r := sh(t, w, "dd if=/dev/zero of=big bs=1M count=100 2>/dev/null; echo $?; stat -c %s big; rm big")
	if !strings.HasSuffix(r.Output, "\n8388608\n") || strings.HasPrefix(r.Output, "0\n") {
		t.Errorf("one big file: %q", r.Output)
	}
	fill := `i=0; while [ $i -lt 400 ]; do dd if=/dev/zero of=f$i bs=1M count=1 2>/dev/null; sleep 0.1; i=$((i+1)); done`
	_, err := w.Exec(t.Context(), workspace.Command{Shell: fill, Wall: time.Minute})
	wantCode(t, "many files", err, workspace.DiskLimit, "8 MiB", "remove files")
	// What it wrote up to its end is not the doing of the next one, however long that runs.
	if n := sh(t, w, "ls f* | wc -l; sleep 2"); len(n.Output) > 4 {
		t.Errorf("it has written %q files", n.Output)
	}
	err = w.WriteFile(t.Context(), "more", []byte("x"))
	wantCode(t, "a file", err, workspace.DiskLimit)
	sh(t, w, "rm f*; sleep 1") // runs, and makes room
	if err := w.WriteFile(t.Context(), "more", []byte("x")); err != nil {
		t.Errorf("after files were removed: %v", err)
	}
	// What grows when nothing is known yet is seen as well.
	w.slot.mu.Lock()
	w.slot.disk = disk{busy: w.slot.disk.busy}
	w.slot.mu.Unlock()
	_, err = w.Exec(t.Context(), workspace.Command{Shell: fill, Wall: time.Minute})
	wantCode(t, "many files in a workspace that was not measured", err, workspace.DiskLimit)
}

// TestEntries ends a command that makes many files of no size.
func TestEntries(t *testing.T) {
	t.Parallel()
	p := provider(t)
	p.entries = 200
	w := opened(t, p, "agent/entries", workspace.Spec{KeepOnTimeout: true})
	_, err := w.Exec(t.Context(), workspace.Command{Shell: "i=0; while :; do : > f$i; i=$((i+1)); [ $((i%50)) -ne 0 ] || sleep 0.2; done", Wall: time.Minute})
	wantCode(t, "empty files", err, workspace.DiskLimit, "more than 200 files and folders", "remove files")
	wantCode(t, "a file", w.WriteFile(t.Context(), "more", nil), workspace.DiskLimit, "200 files")
	sh(t, w, "rm -f f*; sleep 1") // runs, and makes room
	if err := w.WriteFile(t.Context(), "more", nil); err != nil {
		t.Errorf("after files were removed: %v", err)
	}
}

// TestEnv has a variable of one command in no other, and none of claybot's.
func TestEnv(t *testing.T) {
	t.Parallel()
	w := opened(t, provider(t), "agent/env", workspace.Spec{Env: []workspace.Var{{Name: "OF_SPEC", Value: "spec"}}})
	p, err := w.Pipe(t.Context(), workspace.Command{Args: []string{"cat"}, Env: []workspace.Var{{Name: "SECRET_OF_PIPE", Value: "fake-token-1"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r, err := w.Exec(t.Context(), workspace.Command{Shell: "env | grep -v " + marker, Env: []workspace.Var{{Name: "MINE", Value: "1"}}, Wall: time.Minute})
	if err != nil || !strings.Contains(r.Output, "MINE=1\n") || strings.Contains(r.Output, "SECRET_OF_PIPE") {
		t.Errorf("got %q, %v", r.Output, err)
	}
	r = sh(t, w, "env")
	for line := range strings.Lines(r.Output) {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "HOME", "LANG", "TERM", "PATH", "PWD", "SHLVL", "HOSTNAME", "OF_SPEC", marker, "USER", "LOGNAME", "OLDPWD", "SHELL":
		default:
			t.Errorf("a command sees %q", line)
		}
	}
	got := inspect(t, w.box.id)
	if text := fmt.Sprint(got.Config.Env, got.Args, got.Config.Labels); strings.Contains(text, "fake-token-1") || strings.Contains(text, "MINE") {
		t.Errorf("a command's variable is in the container: %s", text)
	}
}
