package cron_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file of that name that a person or a task puts beside a TASK.md must not stop all tasks.
func TestReviewStrayFacts(t *testing.T) {
	r := newRig(t)
	r.write("one", taskText(uid("one")[24-3:], "every: 1h"))
	r.write("two", taskText(uid("two")[24-3:], "every: 1h"))
	if err := os.WriteFile(filepath.Join(r.dir, "one", "facts.json"), []byte(`{"notes": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r.start()
	time.Sleep(300 * time.Millisecond)
	tasks, problems, err := r.cron.Tasks(t.Context())
	if len(tasks) != 2 || err != nil || r.cron.Health().Err != "" {
		t.Errorf("%d tasks, want 2; %v %v; health %+v", len(tasks), problems, err, r.cron.Health())
	}
}

// A folder that is renamed while its TASK.md has a mistake leaves old facts behind, and the
// mark has either of the two by chance.
func TestReviewFactsOfRenamedFolder(t *testing.T) {
	r := newRig(t)
	r.cfg.Poll = 20 * time.Millisecond
	wait := func() { time.Sleep(150 * time.Millisecond) }
	r.write("aa", taskText("one", "every: 1h"))
	r.start()
	defer func() { r.stop() }()
	wait()
	r.write("aa", taskText("one", "every: nonsense"))
	wait()
	if err := os.Rename(filepath.Join(r.dir, "aa"), filepath.Join(r.dir, "bb")); err != nil {
		t.Fatal(err)
	}
	wait()
	for i := range 12 {
		off := i%2 == 0
		enabled := "enabled: true"
		if off {
			enabled = "enabled: false"
		}
		r.write("bb", taskText("one", "every: 2h", enabled))
		wait()
		mark, _ := r.Mark(t.Context(), "cron")
		if strings.Contains(mark, `"off":true`) != off {
			t.Errorf("round %d: off %v, but the mark is %s", i, off, mark)
		}
	}
}
