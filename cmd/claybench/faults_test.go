package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// needSaboteur skips a test where the kernel or its settings do not let a process
// trace its child.
func needSaboteur(t *testing.T) {
	t.Helper()
	if !canSabotage {
		t.Skip("needs ptrace and seccomp as on linux/amd64")
	}
	s := sabotage{Data: t.TempDir(), K: 1, Mode: modeBefore, Report: filepath.Join(t.TempDir(), "struck.json")}
	if out, err := struckCommand(t, s, "true").CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("a child cannot be traced here: %v\n%s", err, out)
		}
		t.Skipf("needs a kernel that lets a process trace its child: %v", err)
	}
}

// struckCommand is a command under a saboteur, which is this test binary.
func struckCommand(t *testing.T, s sabotage, args ...string) *exec.Cmd {
	t.Helper()
	role, err := s.env()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), role)
	return cmd
}

// The saboteur strikes exactly the call that it was asked to strike, also in a child
// of the command.
func TestSaboteur(t *testing.T) {
	needSaboteur(t)
	for _, tt := range []struct {
		name string
		s    sabotage
		want string // in the file
		dies bool
	}{
		{"before", sabotage{Class: classHistory, Call: kindWrite, K: 2, Mode: modeBefore}, "one-1\n", true},
		{"half", sabotage{Class: classHistory, Call: kindWrite, K: 2, Mode: modeHalf}, "one-1\ntwo", true},
		{"after", sabotage{Class: classHistory, Call: kindWrite, K: 2, Mode: modeAfter}, "one-1\ntwo-2\n", true},
		{"an error, once", sabotage{Class: classHistory, Call: kindWrite, K: 2, Mode: modeError, Errno: int(syscall.EIO), Times: 1}, "one-1\nthree-3\n", false},
		{"an error from then on", sabotage{Class: classHistory, Call: kindWrite, K: 2, Mode: modeError, Errno: int(syscall.ENOSPC)}, "one-1\n", false},
		{"another class", sabotage{Class: classDatabase, Call: kindWrite, K: 1, Mode: modeBefore}, "one-1\ntwo-2\nthree-3\n", false},
		{"a call that does not come", sabotage{Class: classHistory, Call: kindWrite, K: 4, Mode: modeBefore}, "one-1\ntwo-2\nthree-3\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.Data, tt.s.Report = t.TempDir(), filepath.Join(t.TempDir(), "struck.json")
			file := filepath.Join(tt.s.Data, "agents", "x", "history.jsonl")
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			script := `exec 3>>"$1"; echo one-1 >&3; (echo two-2 >&3); echo three-3 >&3; exit 0`
			out, err := struckCommand(t, tt.s, "sh", "-c", script, "sh", file).CombinedOutput()
			if killedBy := err != nil && killed(err); killedBy != tt.dies {
				t.Errorf("the command ended with %v\n%s", err, out)
			}
			b, err := os.ReadFile(file)
			if err != nil || string(b) != tt.want {
				t.Errorf("the file has %q, %v, want %q", b, err, tt.want)
			}
			r, err := tt.s.readReport()
			if hit := tt.want != "one-1\ntwo-2\nthree-3\n" || tt.name == "after"; err != nil || r.Done != hit {
				t.Errorf("the report is %+v, %v", r, err)
			}
		})
	}
}

// Files are known by what they are for.
func TestSabotageClass(t *testing.T) {
	s := sabotage{Data: "/data"}
	for path, want := range map[string]class{
		"/data/claybot.db": classDatabase, "/data/claybot.db-wal": classDatabase,
		"/data/agents/x/history.jsonl": classHistory, "/data/agents/x/state.json.tmp": classAgent,
		"/data/agents/x/attachments/f/content": classAttachment, "/data/cron/tick/TASK.md": classCron,
		"/data/web.token": classOther,
	} {
		if got, ok := s.classOf(path); got != want || !ok {
			t.Errorf("%s: got %q, %v, want %q", path, got, ok, want)
		}
	}
	for _, path := range []string{"/dat", "/data2/claybot.db", "/etc/passwd", "pipe:[1]"} {
		if c, ok := s.classOf(path); ok {
			t.Errorf("%s: got %q", path, c)
		}
	}
}

// The promise of the project, with a system call that goes wrong in every life of the
// daemon instead of a kill at a random moment.
func TestFaultLab(t *testing.T) {
	needSaboteur(t)
	o := options{faults: 16, seed: time.Now().UnixNano(), bin: binary(t)}
	if testing.Short() {
		o.faults = 4
	}
	t.Logf("seed %d", o.seed)
	v, err := faultLab(t.Context(), o, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if v.answered == 0 {
		t.Error("nothing was answered, so nothing is proved")
	}
}
