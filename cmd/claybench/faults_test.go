package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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

// The plan has a row for each class of files, and each row has a life before a row has
// two.
func TestFaultPlan(t *testing.T) {
	classes, plan := make(map[class]bool), possible()
	for _, b := range plan {
		classes[b.class] = true
	}
	for _, c := range []class{classDatabase, classHistory, classAgent, classAttachment, classCron, classOther} {
		if !classes[c] {
			t.Errorf("no row strikes files of class %q", c)
		}
	}
	for seed := range int64(3) {
		l := &lab{crashRig: &crashRig{options: options{seed: seed}, rng: rand.New(rand.NewPCG(uint64(seed), 4))}, plan: plan, tally: make(map[string]*tally)}
		for n := 1; n <= 4*len(plan); n++ {
			x := l.tallyOf(l.choose(n))
			x.lives++
			if x.lives > 1 {
				x.struck = 1 // a row misses its first life
			}
			if n == len(plan) && len(l.tally) != n {
				t.Errorf("seed %d: %d rows had a life after %d lives", seed, len(l.tally), n)
			}
		}
		if missed := l.missed(); len(missed) > 0 {
			t.Errorf("seed %d: %d rows were not tried again, among them %s", seed, len(missed), missed[0].row())
		}
	}
}

// A call that did not come is looked for earlier in the next life.
func TestFaultMisses(t *testing.T) {
	b := blueprint{class: classAttachment, call: kindRead, mode: modeError, most: 400}
	rng := rand.New(rand.NewPCG(1, 1))
	for misses, most := range []int{400, 200, 100, 50, 25, 12, 6, 3, 1, 1} {
		for range 100 {
			if s := b.sabotage(rng, misses); s.K < 1 || s.K > most {
				t.Fatalf("after %d misses call %d is struck, want at most %d", misses, s.K, most)
			}
		}
	}
}

// The lab fails when lives enough for all rows did not strike one of them.
func TestFaultReport(t *testing.T) {
	plan := possible()
	for _, tt := range []struct {
		name        string
		lives, left int // rows that were never struck
		untried     bool
		bad         bool
		want        string
	}{
		{"all struck", enoughLives * len(plan), 0, false, false, "Cannot be struck: cron, write: EIO"},
		{"few lives", 8, 2, false, false, "Never struck: database, kill, before; database, kill, half."},
		{"few lives, not tried", 8, 2, true, false, "Not tried"},
		{"enough lives", enoughLives * len(plan), 1, false, true, "Never struck: database, kill, before."},
		{"enough lives, not tried", enoughLives * len(plan), 1, true, true, "Not tried"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &lab{crashRig: &crashRig{options: options{faults: tt.lives}}, plan: plan, tally: make(map[string]*tally)}
			for i, b := range plan {
				if i >= tt.left {
					*l.tallyOf(b) = tally{lives: 2, struck: 1}
				} else if !tt.untried {
					*l.tallyOf(b) = tally{lives: 2}
				}
			}
			var text strings.Builder
			if err := l.reportMissed(&text); (err != nil) != tt.bad {
				t.Errorf("got %v", err)
			}
			if !strings.Contains(text.String(), tt.want) {
				t.Errorf("the report lacks %q:\n%s", tt.want, &text)
			}
		})
	}
}

// The promise of the project, with a system call that goes wrong in every life of the
// daemon instead of a kill at a random moment.
func TestFaultLab(t *testing.T) {
	t.Parallel()
	needSaboteur(t)
	o := options{faults: 8, seed: testSeed, bin: binary(t)}
	if testing.Short() {
		o.faults = 3
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
