package cron_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/storagetest"
	"github.com/claybot/claybot/texts"
)

// A failing tree can be away.
type failing struct {
	storage.Tree
	away atomic.Bool
}

var errAway = errors.New("the store is away")

func (f *failing) Changes(ctx context.Context, since int64) (storage.TreeDelta, error) {
	if f.away.Load() {
		return storage.TreeDelta{}, errAway
	}
	return f.Tree.Changes(ctx, since)
}

func (f *failing) List(ctx context.Context, folder string) ([]storage.TreeFile, error) {
	if f.away.Load() {
		return nil, errAway
	}
	return f.Tree.List(ctx, folder)
}

func (f *failing) Read(ctx context.Context, paths ...string) ([]storage.TreeFile, error) {
	if f.away.Load() {
		return nil, errAway
	}
	return f.Tree.Read(ctx, paths...)
}

// A node is one of several that share the tasks.
type node struct {
	*rig
	mirror *storage.Mirror
}

// team makes n nodes over one tree and one world; they run until the test ends.
func team(r *rig, n int, change func(i int, c *cron.Config)) []*node {
	r.t.Helper()
	dir := files.OpenTree(files.TreeConfig{Dir: filepath.Join(r.dir, "shared")})
	tree, held := &failing{Tree: dir}, new(storagetest.Claims)
	all := make([]*node, n)
	for i := range all {
		x := &node{rig: &rig{world: r.world, handler: r.handler, t: r.t, cfg: r.cfg}}
		x.dir = filepath.Join(r.dir, fmt.Sprint("node", i))
		x.cfg.Dir, x.cfg.TaskDir, x.cfg.Claims, x.cfg.Node = x.dir, "", held, func() string { return fmt.Sprint(i) }
		x.mirror = storage.NewMirror(tree)
		x.cfg.Tree = x.mirror
		if change != nil {
			change(i, &x.cfg)
		}
		x.begin()
		all[i] = x
	}
	stop := r.stop
	r.stop = func() {
		for _, x := range all {
			x.stop()
		}
		stop()
	}
	return all
}

// begin starts a node, with its mirror.
func (x *node) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { _ = x.mirror.Run(ctx) })
	x.start()
	stop := x.stop
	x.stop = func() { stop(); cancel(); work.Wait(); x.stop = func() {} }
	pass(time.Second) // the tasks are read
}

// put writes a file of the shared tasks, as a person with access to the store would.
func (x *node) put(name, text string) {
	x.t.Helper()
	_, err := storage.EditFile(x.t.Context(), x.mirror, "cron/"+name, func(storage.TreeFile) ([]byte, error) { return []byte(text), nil })
	if err != nil {
		x.t.Fatal(err)
	}
}

// listed are the shared files.
func (x *node) listed() string {
	x.t.Helper()
	all, err := x.mirror.List(x.t.Context(), "cron")
	if err != nil {
		x.t.Fatal(err)
	}
	var names []string
	for _, f := range all {
		names = append(names, strings.TrimPrefix(f.Path, "cron/"))
	}
	return strings.Join(names, " ")
}

// All nodes fire, and each instant is one message: also of an every, which all of
// them count from the same moment, and while nodes come and go.
func TestNodesFireOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		nodes := team(r, 3, nil)
		nodes[0].put("wall/TASK.md", taskText("wall", "schedule: '* * * * *'"))
		pass(1300 * time.Millisecond)
		if _, err := nodes[1].cron.Add(r.t.Context(), connectors.TaskSpec{Name: "Every", Every: "1m", Prompt: "Do it."}, false); err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			x, y := nodes[i%3], nodes[(i+1)%3] // the third is alone for a while
			x.stop()
			y.stop()
			pass(47 * time.Second)
			x.begin()
			y.begin()
			pass(20 * time.Second)
		}
		for _, x := range nodes {
			if tasks, problems, err := x.cron.Tasks(r.t.Context()); err != nil || len(tasks) != 2 || len(problems) != 0 {
				t.Errorf("tasks %+v, problems %v, %v", tasks, problems, err)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		minutes := int(time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Minute)
		for task, rows := range r.rows {
			if len(rows) < minutes-1 || len(rows) > minutes {
				t.Errorf("%d firings of %s in %d minutes", len(rows), task, minutes)
			}
			for i, row := range rows {
				if row.State != "SUCCEEDED" || i > 0 && row.Planned.Time().Sub(rows[i-1].Planned.Time()) != time.Minute {
					t.Errorf("row %d of %s: %+v", i, task, row)
				}
			}
		}
		if len(r.rows) != 2 {
			t.Errorf("%d tasks fired", len(r.rows))
		}
	})
}

// A node that was asleep sees in the ledger what the others did meanwhile, and
// makes nothing up: no missed row, no late run.
func TestNodeThatSlept(t *testing.T) {
	for _, misfire := range []string{"skip", "run_once"} {
		t.Run(misfire, func(t *testing.T) {
			bubble(t, func(r *rig) {
				var wall sync.Mutex
				var behind time.Duration // of the second node, whose clock stands still
				nodes := team(r, 2, func(i int, c *cron.Config) {
					if i == 1 {
						c.Now = func() time.Time { wall.Lock(); defer wall.Unlock(); return time.Now().Add(-behind) }
					}
				})
				nodes[0].put("a/TASK.md", taskText("a", "schedule: '*/10 * * * *'", "misfire: "+misfire))
				pass(5 * time.Minute)
				for range 60 {
					pass(time.Minute)
					wall.Lock()
					behind += time.Minute
					wall.Unlock()
				}
				wall.Lock()
				behind = 0
				wall.Unlock()
				pass(30 * time.Minute)
				var want []string
				for at := time.Date(2000, 1, 1, 0, 10, 0, 0, time.UTC); at.Before(time.Now()); at = at.Add(10 * time.Minute) {
					want = append(want, at.Format(time.RFC3339)+" SUCCEEDED")
				}
				r.is(r.ledger("a"), want...)
				for _, p := range r.posts {
					if strings.Contains(p.m.Text, "missed") || p.m.Firing.Late != "" {
						t.Errorf("posted %s", p.m.Text)
					}
				}
			})
		})
	}
}

// A task that runs once and is tried again goes on when the node is gone that ran
// it, and is put aside once.
func TestNodesRetryAndPutAside(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ends = nil // runs wait for the test
		nodes := team(r, 3, nil)
		nodes[0].put("a/TASK.md", taskText("a", "at: 2000-01-01T00:10:00Z", "retries: 2", "once: true"))
		pass(11 * time.Minute)
		r.is(r.ledger("a"), "2000-01-01T00:10:00Z waiting")
		// The run fails, and the node that ran it dies before it can tell its cron.
		nodes[0].stop()
		r.settle("a", claybot.RunFailed)
		pass(time.Minute)
		r.is(r.ledger("a"), "2000-01-01T00:10:00Z FAILED", "2000-01-01T00:10:00Z waiting")
		nodes[0].begin()
		pass(time.Minute)
		nodes[1].end("a", claybot.RunSucceeded)
		pass(30 * time.Second)
		r.is(r.ledger("a"), "2000-01-01T00:10:00Z FAILED", "2000-01-01T00:10:00Z SUCCEEDED")
		if got := nodes[2].listed(); strings.Count(got, "TASK.md") != 1 || !strings.HasPrefix(got, ".done/a-2000") || strings.Contains(got, " a/") {
			t.Errorf("the files are %s", got)
		}
		for i, x := range nodes {
			if slugs := x.slugs(); len(slugs) != 0 {
				t.Errorf("node %d still has %v", i, slugs)
			}
		}
		pass(time.Hour)
		if n := len(r.ledger("a")); n != 2 {
			t.Errorf("%d rows after an hour", n)
		}
	})
}

// settle ends the newest run of a task without telling anybody.
func (r *rig) settle(id string, state claybot.RunState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := r.rows[uid(id)]
	row := rows[len(rows)-1]
	row.State, row.Ended = string(state), claybot.Now()
}

// A task whose once is over is not confused with a new one of the same name, and
// one that runs often stays quiet after its only run, on every node.
func TestNodesRunOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ends = nil
		nodes := team(r, 3, nil)
		nodes[0].put("a/TASK.md", taskText("a", "schedule: '* * * * *'", "once: true"))
		pass(5 * time.Minute)
		r.is(r.ledger("a"), "2000-01-01T00:01:00Z waiting")
		nodes[2].end("a", claybot.RunSucceeded)
		nodes[0].put("a/TASK.md", taskText("b", "schedule: '0 * * * *'")) // in this very moment
		pass(time.Minute)
		for i, x := range nodes {
			slugs := x.slugs()
			if len(slugs) > 1 {
				t.Errorf("node %d has %v", i, slugs)
			}
		}
		r.is(r.ledger("a"), "2000-01-01T00:01:00Z SUCCEEDED")
	})
}

// What an agent noted on one node is in the next message, whichever node posts
// it; and what was changed on one counts on all.
func TestNodesShareMemoryAndChanges(t *testing.T) {
	bubble(t, func(r *rig) {
		nodes := team(r, 3, nil)
		task, err := nodes[0].cron.Add(r.t.Context(), connectors.TaskSpec{Name: "A", Schedule: "* * * * *", Prompt: "Do it."}, false)
		if err != nil {
			t.Fatal(err)
		}
		pass(30 * time.Second)
		var work sync.WaitGroup
		for i, x := range nodes { // at the same moment
			work.Go(func() {
				if err := x.cron.Remember(r.t.Context(), task.UID, fmt.Sprint("note ", i), true); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		for i, x := range nodes {
			text, err := x.cron.Memory(r.t.Context(), task.UID)
			if err != nil || !strings.Contains(text, "note 0") || !strings.Contains(text, "note 1") || !strings.Contains(text, "note 2") {
				t.Errorf("node %d remembers %q, %v", i, text, err)
			}
		}
		pass(time.Minute)
		if got := r.posts[0].m.Text; !strings.Contains(got, "note 2") || strings.Contains(got, "folder") {
			t.Errorf("posted %s", got)
		}
		off, posts := false, len(r.posts)
		if _, err := nodes[2].cron.Change(r.t.Context(), task.UID, connectors.TaskChange{Enabled: &off}); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		if len(r.posts) != posts {
			t.Errorf("a disabled task fired: %v", r.fired())
		}
		if err := nodes[1].cron.Remove(r.t.Context(), task.UID); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		for _, x := range nodes {
			if slugs := x.slugs(); len(slugs) != 0 {
				t.Errorf("there is still %v", slugs)
			}
		}
		if err := nodes[0].cron.Remember(r.t.Context(), task.UID, "late", true); err == nil {
			t.Error("a task that is gone remembers")
		}
	})
}

// A task whose output does not arrive rests on all nodes, which tell its owner
// with one key, and goes on on all when it is enabled.
func TestNodesRest(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ends = func(claybot.AgentMessage) (claybot.RunState, string) { return claybot.RunSucceeded, "gone" }
		var mu sync.Mutex
		keys := make(map[string]int)
		nodes := team(r, 3, func(_ int, c *cron.Config) {
			c.Notice = func(_ context.Context, _, key string, _ func(texts.Voice) string) error {
				mu.Lock()
				defer mu.Unlock()
				keys[key]++
				return nil
			}
		})
		nodes[0].put("a/TASK.md", taskText("a", "schedule: '* * * * *'"))
		pass(6 * time.Minute)
		if len(r.posts) != 2 || len(keys) != 1 {
			t.Errorf("posts %v, notices %v", r.fired(), keys)
		}
		on := true
		if _, err := nodes[1].cron.Change(r.t.Context(), "a", connectors.TaskChange{Enabled: &on}); err != nil {
			t.Fatal(err)
		}
		r.ends = succeed
		pass(3 * time.Minute)
		if len(r.posts) < 4 {
			t.Errorf("after it was enabled: %v", r.fired())
		}
		for i, x := range nodes {
			if tasks, _, err := x.cron.Tasks(r.t.Context()); err != nil || len(tasks) != 1 || tasks[0].Paused != "" {
				t.Errorf("node %d: %+v, %v", i, tasks, err)
			}
		}
	})
}

// One node asks a gate; that it takes long makes the others neither ask nor give
// the instant up.
func TestNodesAskAGateOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		asked := filepath.Join(t.TempDir(), "asked")
		nodes := team(r, 3, nil)
		nodes[0].put("a/TASK.md", taskText("a", "schedule: '* * * * *'", "gate: echo x >> "+asked))
		pass(3*time.Minute + 10*time.Second)
		r.is(r.ledger("a"), "2000-01-01T00:01:00Z SUCCEEDED", "2000-01-01T00:02:00Z SUCCEEDED", "2000-01-01T00:03:00Z SUCCEEDED")
		if b, err := os.ReadFile(asked); err != nil || string(b) != "x\nx\nx\n" {
			t.Errorf("the gate was asked %q, %v", b, err)
		}
		// A node that holds the gate and is gone at last: another asks.
		if _, err := nodes[0].cfg.Claims.Claim(r.t.Context(), "other", "cron/gate/"+uid("a")); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		if n := len(r.ledger("a")); n != 3 {
			t.Errorf("%d rows while another node is at it", n)
		}
		if err := nodes[0].cfg.Claims.Yield(r.t.Context(), storage.Claim{Name: "cron/gate/" + uid("a")}); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if rows := r.ledger("a"); len(rows) < 4 || rows[3] != "2000-01-01T00:04:00Z SUCCEEDED" {
			t.Errorf("the instant that waited: %v", rows)
		}
	})
}

// While the store of the tasks is away those that are known go on.
func TestNodesWithoutTheTree(t *testing.T) {
	bubble(t, func(r *rig) {
		nodes := team(r, 1, nil)
		nodes[0].put("a/TASK.md", taskText("a", "schedule: '* * * * *'"))
		pass(70 * time.Second)
		nodes[0].mirror.Tree.(*failing).away.Store(true)
		pass(3 * time.Minute)
		if len(r.posts) != 4 {
			t.Errorf("fired %v", r.fired())
		}
		if _, err := nodes[0].cron.Add(r.t.Context(), connectors.TaskSpec{Name: "B", Schedule: "* * * * *", Prompt: "x"}, false); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("a task was added: %v", err)
		}
	})
}
