package heartbeat_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestGates(t *testing.T) {
	const silence = "so claybot did not check whether there is anything to do."
	for _, tc := range []struct {
		name, when string
		allowed    bool
		want       string // the text; empty: no message
	}{
		{"yes", "exit 0", true, "look"},
		{"yes, with output", "echo ' two letters '; echo noise >&2", true, "look\n\nThe gate command said:\ntwo letters"},
		{"no", "exit 1", true, ""},
		{"no, with output", "echo x; exit 3", true, ""},
		{"no such command", "/does/not/exist", true, ""},
		{"not allowed to", "./plain.txt", true, "look\n\nThe gate command could not be run, " + silence},
		{"killed", "kill -9 $$", true, ""},
		{"in the folder", "test -e a.md && pwd | sed 's,.*/,,'", true, "look\n\nThe gate command said:\nheartbeat"},
		{"without secrets", "env | sed 's/=.*//' | grep -v -e ^PWD -e ^SHLVL -e ^_ -e ^OLDPWD | sort | tr '\\n' ' '; echo $CLAYBOT_TASK $TZ", true, "look\n\nThe gate command said:\nCLAYBOT_TASK HOME LANG PATH TZ a UTC"},
		{"much output", "yes | head -c 100000", true, "look\n\nThe gate command said:\n" + strings.TrimSpace(strings.Repeat("y\n", 4096))},
		{"forbidden", "touch ran", false, "look\n\nGate commands may not run on this machine, " + silence},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("OPENAI_API_KEY", "secret")
			bubble(t, func(r *rig) {
				r.settings.Gates = tc.allowed
				r.file("plain.txt", "")
				r.file("a.md", "---\nwhen: "+yamlString(tc.when)+"\n---\nlook")
				r.start()
				r.pass(time.Second)
				var want []string
				if tc.want != "" {
					want = []string{tc.want}
				}
				r.wantTexts(want...)
				if _, err := os.Stat(filepath.Join(r.dir, "ran")); err == nil {
					r.Error("a forbidden command ran")
				}
			})
		})
	}
}

func yamlString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// A gate that says no is asked again after `every`, also by another process.
func TestGateSaysNo(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings.Gates = true
		r.file("a.md", "---\nwhen: echo >> asked; test -e open\n---\na")
		r.file("b.md", "b")
		asked := func(want int) {
			r.Helper()
			b, _ := os.ReadFile(filepath.Join(r.dir, "asked"))
			if len(b) != want {
				r.Errorf("asked %d times, want %d", len(b), want)
			}
		}
		r.start()
		r.pass(time.Minute)
		r.wantTexts("b")
		asked(1)
		if all := r.heartbeats(); !all[0].LastRun.IsZero() || !all[0].Next.Equal(r.began.Add(30*time.Minute)) {
			r.Errorf("last %v, next %v", all[0].LastRun, all[0].Next)
		}
		r.restart()
		r.pass(time.Minute)
		asked(1)
		r.file("open", "")
		r.pass(27 * time.Minute)
		r.wantTexts("b")
		r.pass(time.Minute)
		asked(2)
		r.wantTexts("b", "2 tasks are due.\n\n1. a (a)\n\na\n\n2. b (b)\n\nb")
		r.runNow(1, "k", "a") // a manual tick asks no gate
		asked(2)
	})
}

// Many gates are each asked once, and their tasks are one message.
func TestManyGates(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings.Gates = true
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			r.file(id+".md", "---\nwhen: echo $CLAYBOT_TASK\n---\n"+id)
		}
		r.start()
		r.pass(time.Minute)
		if got := r.texts(); len(got) != 1 || strings.Count(got[0], "The gate command said:\n") != 7 || !strings.Contains(got[0], "g\n\nThe gate command said:\ng") {
			r.Errorf("posted %q", got)
		}
	})
}

// While a gate is asked, files are read and tasks are run by hand; what was
// changed meanwhile is not posted as it was.
func TestChangesDuringAGate(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings.Gates = true
		r.file("a.md", "---\nwhen: touch asked; while ! test -e go; do sleep 0.01; done\n---\na")
		r.started(func() {
			r.await("asked")
			r.file("b.md", "---\nenabled: false\n---\nb")
			if n, err := r.heart.RunHeartbeats(r.Context(), "k", "b"); n != 1 || err != nil {
				r.Errorf("beside a gate: %d, %v", n, err)
			}
			if _, err := r.heart.AddHeartbeat(r.Context(), addedTask); err != nil {
				r.Errorf("beside a gate: %v", err)
			}
			r.file("go", "")
		})
		r.pass(10 * time.Minute)
		r.wantTexts("b", "a, changed")
	})
}

// await waits for a file that a gate makes. Virtual time does not pass.
func (r *rig) await(name string) {
	for {
		if _, err := os.Stat(filepath.Join(r.dir, name)); err == nil {
			return
		}
		runtime.Gosched()
	}
}

// A stop of the heartbeat does not wait for gates.
func TestStopDuringAGate(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings.Gates = true
		r.file("a.md", "---\nwhen: touch asked; sleep 1000 & sleep 1000\n---\na")
		r.started(func() {
			r.await("asked")
			r.shut()
		})
		r.wantTexts()
		if got := r.state(); got.marks != 0 {
			r.Errorf("%d marks", got.marks)
		}
	})
}
