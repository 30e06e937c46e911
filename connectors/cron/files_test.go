package cron_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
)

// problems lists the problems of files as "file:line: text".
func (r *rig) problems() []string {
	r.t.Helper()
	_, all, err := r.cron.Tasks(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, p := range all {
		out = append(out, fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text))
	}
	return out
}

func (r *rig) slugs() []string {
	r.t.Helper()
	all, _, err := r.cron.Tasks(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, t := range all {
		out = append(out, t.Slug)
	}
	return out
}

// litter puts folders and files into the directory that are no tasks.
func (r *rig) litter() {
	r.t.Helper()
	for _, err := range []error{
		os.Mkdir(filepath.Join(r.dir, "empty"), 0o700),
		os.WriteFile(filepath.Join(r.dir, "README.md"), nil, 0o600),
		os.MkdirAll(filepath.Join(r.dir, "folder", "TASK.md"), 0o700),
		os.MkdirAll(filepath.Join(r.dir, ".new-half", "files"), 0o700),
		os.Mkdir(filepath.Join(r.dir, "long"), 0o700),
		os.WriteFile(filepath.Join(r.dir, "long", "TASK.md"), make([]byte, 300<<10), 0o600),
	} {
		if err != nil {
			r.t.Fatal(err)
		}
	}
	outside := r.t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "TASK.md"), []byte(taskText("evil", "schedule: '* * * * *'")), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(r.dir, "link")); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.dir, "linked"), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "TASK.md"), filepath.Join(r.dir, "linked", "TASK.md")); err != nil {
		r.t.Fatal(err)
	}
}

// Bad files are told with file and line, and the other tasks go on.
func TestBadFiles(t *testing.T) {
	bubble(t, func(r *rig) {
		var log lines
		r.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		r.cfg.Known = func(name string) bool { return name == "telegram" }
		r.write("good", taskText("good", "schedule: '* * * * *'", "route: telegram/1"))
		r.write("broken", taskText("broken", "schedule: '61 * * * *'"))
		r.write("odd", taskText("odd", "every: 1h", "model: x", "route: slack/T1/C1"))
		r.write("Bad Name", taskText("name", "every: 1h"))
		r.write("twin-1", taskText("twin", "schedule: '* * * * *'"))
		r.write("twin-2", taskText("twin", "schedule: '* * * * *'"))
		r.write(".hidden", "nothing")
		r.litter()
		r.start()
		pass(time.Minute)
		r.is(r.slugs(), "good")
		r.is(r.problems(),
			"Bad Name:0: the name of a task's folder has only a-z, 0-9, dots, - and _, and at most 64 of them",
			"broken/TASK.md:3: schedule: \"61 * * * *\": field 1 (minute): 61 is not from 0 to 59",
			"empty/TASK.md:0: there is no such file",
			"folder/TASK.md:0: it is not a regular file",
			"link:0: the folder cannot be used: path escapes from parent",
			"linked/TASK.md:0: path escapes from parent",
			"long/TASK.md:0: the file is longer than 256 KiB",
			"odd/TASK.md:4: the setting model is not known and has no effect",
			"odd/TASK.md:5: route: no connector \"slack\" is configured",
			"twin-1/TASK.md:0: uid: twin-2/TASK.md has the same; neither runs",
			"twin-2/TASK.md:0: uid: twin-1/TASK.md has the same; neither runs",
		)
		if h := r.cron.Health(); h.State != connectors.StateLive || h.Err != "10 task files have problems; claybot cron shows them" {
			t.Errorf("health %+v", h)
		}
		r.is(r.fired(), "2000-01-01T00:01:00Z@00:01:00")
		if n := log.count("a task file has a problem"); n != 11 {
			t.Errorf("%d warnings, want 11: each once", n)
		}
		if r.exists(".new-half") {
			t.Error("a folder half made is still there")
		}
		// Mended files are taken up, and the twins run when they are told apart.
		r.write("broken", taskText("broken", "schedule: '* * * * *'"))
		r.write("twin-2", taskText("triplet", "schedule: '* * * * *'"))
		pass(time.Minute)
		r.is(r.slugs(), "broken", "good", "twin-1", "twin-2")
		if err := os.RemoveAll(filepath.Join(r.dir, "good")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if len(r.posts) != 8 || r.exists("good") {
			t.Errorf("fired %v", r.fired())
		}
	})
}

// A task over a connector that is not configured runs once it is, without a change of its file.
func TestConnectorComes(t *testing.T) {
	bubble(t, func(r *rig) {
		var there atomic.Bool
		r.cfg.Known = func(string) bool { return there.Load() }
		r.write("late", taskText("late", "schedule: '* * * * *'", "route: telegram/1"))
		r.start()
		pass(time.Minute)
		r.is(r.slugs())
		there.Store(true)
		pass(time.Minute)
		r.is(r.slugs(), "late")
		r.is(r.problems())
		r.is(r.fired(), "2000-01-01T00:02:00Z@00:02:00")
	})
}

// A folder that stays bad while it was good before keeps what is known of it.
func TestBrokenForAWhile(t *testing.T) {
	bubble(t, func(r *rig) {
		text := taskText("a", "schedule: '0 * * * *'", "misfire: run_once")
		r.write("a", text)
		r.start()
		pass(30 * time.Minute)
		r.write("a", "---\nuid: [\n---\n")
		pass(time.Hour)
		r.is(r.fired())
		r.write("a", text)
		pass(10 * time.Second)
		if len(r.posts) != 1 || !strings.Contains(r.posts[0].m.Text, "missed 01:00, ran 01:30") {
			t.Errorf("posts %+v", r.posts)
		}
	})
}

// lines is a log in memory.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

// A file of the name of what the mark has, put beside a TASK.md by hand, is ignored.
func TestStrayFacts(t *testing.T) {
	r := newRig(t)
	synctest.Test(t, func(t *testing.T) {
		r.write("one", taskText("one", "every: 1h"))
		r.write("two", taskText("two", "every: 1h"))
		if err := os.WriteFile(filepath.Join(r.dir, "one", "facts.json"), []byte(`{"notes": 1}`), 0o600); err != nil {
			t.Fatal(err)
		}
		r.start()
		defer func() { r.stop() }()
		time.Sleep(10 * time.Second)
		r.is(r.slugs(), "one", "two")
		if h := r.cron.Health(); h.Err != "" || !r.exists("one/facts.json") {
			t.Errorf("health %+v", h)
		}
	})
}

// A folder that is renamed while its TASK.md has a mistake leaves no facts that could win over the newer ones.
func TestFactsOfRenamedFolder(t *testing.T) {
	r := newRig(t)
	synctest.Test(t, func(t *testing.T) {
		r.write("aa", taskText("one", "every: 1h"))
		r.start()
		defer func() { r.stop() }()
		time.Sleep(5 * time.Second)
		r.write("aa", taskText("one", "every: nonsense"))
		time.Sleep(5 * time.Second)
		if err := os.Rename(filepath.Join(r.dir, "aa"), filepath.Join(r.dir, "bb")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		for i := range 12 {
			r.write("bb", taskText("one", "every: 2h", fmt.Sprintf("enabled: %t", i%2 == 1)))
			time.Sleep(5 * time.Second)
			mark, _ := r.Checkpoint(t.Context(), "cron")
			if off := strings.Contains(mark, `"off":true`); off != (i%2 == 0) {
				t.Errorf("round %d: off %v; the mark is %s", i, off, mark)
			}
		}
	})
}
