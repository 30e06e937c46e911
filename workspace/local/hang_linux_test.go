package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/claybot/claybot/workspace"
)

func openPlace(t testing.TB, spec workspace.Spec) workspace.Workspace {
	t.Helper()
	p := newProvider(t)
	w, err := p.Open(t.Context(), "agent/a", spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Remove(context.WithoutCancel(t.Context()), "agent/a", true); err != nil {
			t.Error(err)
		}
	})
	return w
}

// left are the living processes and the zombies that work in a workspace: those
// whose directory is below it, or that have its mark.
func left(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	for _, pid := range pids() {
		proc := "/proc/" + strconv.Itoa(pid)
		cwd, _ := os.Readlink(proc + "/cwd")
		env, _ := os.ReadFile(proc + "/environ")
		s, ok := readStat(pid)
		if !ok {
			continue
		}
		if strings.HasPrefix(cwd, dir) || bytes.Contains(env, []byte("HOME="+dir)) || s.dead && s.parent == os.Getpid() {
			line, _ := os.ReadFile(proc + "/cmdline")
			found = append(found, strconv.Itoa(pid)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// Whatever a command does, it ends in time, with all that it started.
func TestHang(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    workspace.Command
		spec func(*workspace.Spec)
		want workspace.Code
		text string
	}{
		{"hangs", workspace.Command{Shell: "sleep 600", Wall: time.Second}, nil, workspace.WallLimit, "1s"},
		{"waits on input", workspace.Command{Shell: "mkfifo p; cat p", Idle: time.Second}, nil, workspace.IdleLimit, "1s"},
		{"ignores TERM", workspace.Command{Shell: "trap '' TERM INT HUP QUIT; (trap '' TERM; sleep 600) & while :; do sleep 1; done", Wall: time.Second}, nil, workspace.WallLimit, ""},
		{"1 GiB of output", workspace.Command{Shell: "head -c 1073741824 /dev/zero | tr '\\000' 'x'; sleep 600", Wall: 3 * time.Second}, nil, workspace.WallLimit, ""},
		{"daemon", workspace.Command{Shell: "setsid sh -c 'setsid sleep 600 & sleep 600' >/dev/null 2>&1 </dev/null & sleep 600", Wall: time.Second}, nil, workspace.WallLimit, ""},
		{"daemon without parents", workspace.Command{Shell: "(setsid sh -c '(sleep 600 &) ; sleep 600' >/dev/null 2>&1 </dev/null &) ; sleep 600", Wall: time.Second}, nil, workspace.WallLimit, ""},
		{"daemon that is left", workspace.Command{Shell: "(setsid sleep 600 >/dev/null 2>&1 </dev/null &); (setsid sleep 600 &); echo done"}, nil, "", ""},
		{"daemon without a mark", workspace.Command{Shell: "(env -i HOME=$HOME setsid sleep 600 >/dev/null 2>&1 </dev/null &); sleep 600", Wall: time.Second}, nil, workspace.WallLimit, ""},
		{"job in the background", workspace.Command{Shell: "sleep 600 & echo done"}, nil, "", ""},
		{"stopped", workspace.Command{Shell: "kill -STOP $$", Wall: time.Second}, nil, workspace.WallLimit, ""},
		{
			"too many processes",
			workspace.Command{Shell: "i=0; while [ $i -lt 60 ]; do sleep 600 & i=$((i+1)); done; wait", Wall: time.Minute},
			func(s *workspace.Spec) { s.PIDs = 20 }, workspace.Failed, "more than 20 processes",
		},
		{
			// Bounded, to 255 processes, so that a provider which does not hold it harms no
			// machine. One without an end must not be run outside a limit of the kernel.
			"fork bomb",
			workspace.Command{Shell: "b() { [ $1 -gt 6 ] && exec sleep 600; b $(($1+1)) & b $(($1+1)) & wait; }; b 0", Wall: time.Minute},
			func(s *workspace.Spec) { s.PIDs = 64 }, workspace.Failed, "more than 64 processes",
		},
		{
			"too much memory",
			workspace.Command{Shell: "head -c 300000000 /dev/zero | tail -n 1 | wc -c; echo after", Wall: time.Minute},
			func(s *workspace.Spec) { s.Memory = 64 << 20 }, "", "",
		},
		{
			"too large a file",
			workspace.Command{Shell: "head -c 20000000 /dev/zero > big; ls", Wall: time.Minute},
			func(s *workspace.Spec) { s.Disk = 1 << 20 }, "", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "daemon without a mark" && !namespaces {
				t.Skip("the kernel gives this user no space of processes")
			}
			spec := open
			if tt.spec != nil {
				tt.spec(&spec)
			}
			w := openPlace(t, spec)
			dir := w.(*view).dir()
			begun := time.Now()
			r, err := w.Exec(t.Context(), tt.c)
			took := time.Since(begun)
			var e *workspace.Error
			errors.As(err, &e)
			if tt.want == workspace.Failed && strings.Contains(r.Output, "fork") {
				e, tt.want = nil, "" // the kernel held it before it was counted
			}
			if (e == nil) != (tt.want == "") || e != nil && (e.Code != tt.want || !strings.Contains(e.Text, tt.text)) {
				t.Errorf("got %v, %+v", err, r)
			}
			// Without its limit each would go on for ten minutes. How soon it ends on a
			// machine that is not busy is measured by BenchmarkHang.
			if took > 2*time.Minute {
				t.Errorf("ended after %v", took)
			}
			if l := left(t, dir); len(l) > 0 {
				t.Errorf("left over: %q", l)
			}
			if len(r.Output) > workspace.MaxTail {
				t.Errorf("%d characters of output", len(r.Output))
			}
			if tt.name == "too much memory" && strings.Contains(r.Output, "300000000") {
				t.Errorf("it had the memory: %q", r.Output)
			}
			if tt.name == "too large a file" {
				if f, _, err := w.List(t.Context(), "", 10); err != nil || len(f) != 1 || f[0].Size > 1<<20 {
					t.Errorf("files %+v, %v", f, err)
				}
			}
		})
	}
}

// BenchmarkHang says how long after its limit a command has ended: 2 s is the bar.
func BenchmarkHang(b *testing.B) {
	const limit = time.Second
	for name, line := range map[string]string{
		"hangs":        "sleep 600",
		"ignores TERM": "trap '' TERM INT HUP QUIT; (trap '' TERM; sleep 600) & while :; do sleep 1; done",
		"daemon":       "setsid sh -c 'setsid sleep 600 & sleep 600' >/dev/null 2>&1 </dev/null & sleep 600",
		"stopped":      "kill -STOP $$",
	} {
		b.Run(name, func(b *testing.B) {
			w := openPlace(b, open)
			var late time.Duration
			for b.Loop() {
				start := time.Now()
				if r, err := w.Exec(b.Context(), workspace.Command{Shell: line, Wall: limit}); err == nil {
					b.Fatalf("it has ended by itself: %+v", r)
				}
				late = max(late, time.Since(start)-limit)
			}
			b.ReportMetric(float64(late.Milliseconds()), "ms-late-at-most")
		})
	}
}

// The workspace is not used beyond its bytes.
func TestDisk(t *testing.T) {
	spec := open
	spec.Disk = 1 << 20
	w := openPlace(t, spec)
	if err := w.WriteFile(t.Context(), "a", make([]byte, 900<<10)); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFile(t.Context(), "b", make([]byte, 200<<10)); !workspace.Is(err, workspace.DiskLimit) {
		t.Errorf("write: %v", err)
	}
	if _, err := w.Exec(t.Context(), workspace.Command{Shell: "cp a c"}); err != nil {
		t.Error(err)
	}
	if _, err := w.Exec(t.Context(), workspace.Command{Shell: "true"}); !workspace.Is(err, workspace.DiskLimit) {
		t.Errorf("exec: %v", err)
	}
	for _, name := range []string{"a", "c"} { // the way out
		if err := w.(workspace.Remover).Remove(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.Exec(t.Context(), workspace.Command{Shell: "true"}); err != nil {
		t.Error(err)
	}
}

// A command has no right that makes it more than a user, and cannot get one.
func TestRights(t *testing.T) {
	w := openPlace(t, open)
	r, err := w.Exec(t.Context(), workspace.Command{Shell: "grep -E '^(CapPrm|CapEff|CapBnd|NoNewPrivs)' /proc/self/status; cat /proc/" + strconv.Itoa(os.Getpid()) + "/environ > env 2>/dev/null || echo hidden"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "NoNewPrivs:\t1\n", "hidden\n"}
	if os.Getuid() == 0 {
		want = append(want, "CapBnd:\t0000000000000000\n")
	}
	for _, line := range want {
		if !strings.Contains(r.Output, line) {
			t.Errorf("%q has no %q", r.Output, line)
		}
	}
	// What that thread gave up, this one still has.
	b, err := os.ReadFile("/proc/thread-self/status")
	if err != nil || !strings.Contains(string(b), "NoNewPrivs:\t0\n") {
		t.Errorf("%s, %v", b, err)
	}
}

// Commands end with the process that started them, with all that they started: also without a space
// of processes, and where they left their group.
func TestDiesWithParent(t *testing.T) {
	if dir := os.Getenv("CLAYBOT_TEST_PARENT"); dir != "" {
		namespaces = namespaces && os.Getenv("CLAYBOT_TEST_SPACE") == "true"
		w, err := New(Config{Dir: dir}).Open(t.Context(), "agent/a", open)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Exec(t.Context(), workspace.Command{Shell: os.Getenv("CLAYBOT_TEST_COMMAND")})
		return
	}
	for name, command := range map[string]string{
		"command":    "echo > begun; exec sleep 600",
		"background": "{ /bin/sh -c 'echo > begun; sleep 600' 2>&1; echo $? > code; } | { (exec cat > log); cat > /dev/null; }\necho > exit",
		"session":    "setsid sh -c 'echo > begun; sleep 600; echo' & wait",
	} {
		for _, space := range []bool{true, false} {
			t.Run(name+" "+strconv.FormatBool(space), func(t *testing.T) {
				t.Parallel()
				diesWithParent(t, command, space)
			})
		}
	}
}

func diesWithParent(t *testing.T, command string, space bool) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiesWithParent$")
	cmd.Env = append(os.Environ(), "CLAYBOT_TEST_PARENT="+dir, "CLAYBOT_TEST_COMMAND="+command, "CLAYBOT_TEST_SPACE="+strconv.FormatBool(space))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	began := false
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if names, _ := filepath.Glob(dir + "/*/files/begun"); len(names) == 1 {
			began = true
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !began {
		t.Fatal("it never began")
	}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if len(left(t, dir)) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("left over: %q", left(t, dir))
}

// The end of a process ends nothing that it did not start, the probe of confinements included.
func TestEndsItsOwnAlone(t *testing.T) {
	space := namespaces
	namespaces = false
	t.Cleanup(func() { namespaces = space })
	for _, how := range []confinement{"", byUser, byLandlock} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := probing(how, t.TempDir())
		p.attr.Files[0] = r
		if err := p.start(func(bool) []string { return []string{"/bin/sh", "-c", "read -r x"} }); err != nil {
			t.Logf("%q: %v", how, err)
			continue
		}
		other := exec.CommandContext(t.Context(), "sleep", "600")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		<-p.done
		if s, ok := readStat(other.Process.Pid); !ok || s.dead {
			t.Errorf("%q: another process was ended: %+v", how, s)
		}
		_ = other.Process.Kill()
		_ = other.Wait()
		_ = r.Close()
	}
}

// exchange swaps two names at once.
func exchange(a, b string) error {
	const atCwd, renameExchange, sysRenameat2 = -100, 2, 316
	p, err := syscall.BytePtrFromString(a)
	if err != nil {
		return err
	}
	q, err := syscall.BytePtrFromString(b)
	if err != nil {
		return err
	}
	at := atCwd
	_, _, e := syscall.Syscall6(sysRenameat2, uintptr(at), uintptr(unsafe.Pointer(p)), uintptr(at), uintptr(unsafe.Pointer(q)), renameExchange, 0)
	if e != 0 {
		return e
	}
	return nil
}

// Names that become links while files are used never lead out: 100,000 swaps.
// CLAYBOT_SWAPS sets another number.
func TestRacingLinks(t *testing.T) {
	swaps := 100_000
	if s := os.Getenv("CLAYBOT_SWAPS"); s != "" {
		swaps, _ = strconv.Atoi(s)
	}
	w := openPlace(t, open)
	dir := w.(*view).dir()
	outside := t.TempDir()
	for name, text := range map[string]string{outside + "/secret": "canary", outside + "/file": "canary", dir + "/d/file": "inside", dir + "/f": "inside"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{dir + "/link-d": outside, dir + "/link-f": outside + "/secret"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := exchange(dir+"/d", dir+"/link-d"); err != nil {
		t.Skip("this system cannot exchange two names:", err)
	}
	var done atomic.Bool
	var tries, inside atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				for _, name := range []string{"d/file", "f", "d/secret"} {
					b, err := w.ReadFile(t.Context(), name, 100)
					if strings.Contains(string(b), "canary") {
						t.Errorf("%s was read outside", name)
					}
					if err == nil {
						inside.Add(1)
					}
				}
				_ = w.WriteFile(t.Context(), "d/new", []byte("x"))
				_ = w.(workspace.Remover).Remove(t.Context(), "d/new")
				_ = w.(workspace.Remover).Remove(t.Context(), "d/secret")
				files, _, _ := w.List(t.Context(), "d", 10)
				for _, f := range files {
					if strings.HasSuffix(f.Path, "secret") {
						t.Error("a folder outside was listed")
					}
				}
				tries.Add(1)
			}
		})
	}
	// The others may have had no turn yet, or none while the names were as they began.
	tried := func() bool { return tries.Load() > 0 && inside.Load() > 0 }
	for i, end := 0, time.Now().Add(2*time.Minute); i < swaps || !tried() && time.Now().Before(end); i++ {
		pair := [][2]string{{"/d", "/link-d"}, {"/f", "/link-f"}}[i%2]
		_ = exchange(dir+pair[0], dir+pair[1]) // a file may just be replaced
	}
	done.Store(true)
	wg.Wait()
	names, err := os.ReadDir(outside)
	if err != nil || len(names) != 2 {
		t.Errorf("outside there are %v, %v", names, err)
	}
	for _, name := range []string{"secret", "file"} {
		if b, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(b) != "canary" {
			t.Errorf("%s has %q, %v", name, b, err)
		}
	}
	if tries.Load() == 0 || inside.Load() == 0 {
		t.Errorf("nothing was tried: %d rounds, %d reads inside", tries.Load(), inside.Load())
	}
	t.Logf("%d rounds, %d reads inside", tries.Load(), inside.Load())
}
