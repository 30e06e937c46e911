package cron_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
)

// A world is the store and the agents around a Cron. It survives the Cron, as
// the disk does.
type world struct {
	mu     sync.Mutex
	rows   map[string][]*storage.LedgerRow // by task, oldest first
	marks  map[string]string
	agents map[claybot.AgentID]claybot.Descriptor
	posts  []post
	keep   int // rows kept for each task; 0: all
	// refuse makes posts fail.
	refuse error
	// ends makes a run end as it begins; nil leaves it waiting.
	ends func(claybot.AgentMessage) (claybot.RunState, string)
	// posted is called with each new message, without the lock.
	posted func(claybot.AgentMessage)
	reads  int          // of the ledger
	sweeps atomic.Int64 // those of all tasks
	repeat int          // posts of known messages
	marked int          // writes of marks
}

type post struct {
	to claybot.Descriptor
	m  claybot.AgentMessage
	at time.Time
}

func newWorld() *world {
	return &world{
		rows:  make(map[string][]*storage.LedgerRow),
		marks: make(map[string]string), agents: make(map[claybot.AgentID]claybot.Descriptor),
	}
}

func (w *world) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	w.lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		return w.refuse
	}
	if w.entered(*m.Firing) {
		w.repeat++
		return nil
	}
	row := &storage.LedgerRow{Firing: *m.Firing, Entered: claybot.Now(), State: "waiting"}
	if w.ends != nil {
		state, undelivered := w.ends(m)
		row.State, row.Undelivered, row.Started = string(state), undelivered, row.Entered
		if state.Ended() {
			row.Ended = row.Entered
		}
	}
	w.enter(row)
	if w.posted != nil {
		w.posted(m)
		return nil
	}
	w.posts = append(w.posts, post{to, m, time.Now()})
	return nil
}

// told orders what a test reads between two passes of time before what is
// written in the next one: nothing but the bubble's clock lies between them.
var told sync.Mutex

func (w *world) lock() {
	told.Lock()
	told.Unlock() //nolint:staticcheck // only the order counts
	w.mu.Lock()
}

// entered reports whether the ledger has the instant, at this attempt or a later
// one.
func (w *world) entered(f claybot.Firing) bool {
	for _, r := range w.rows[f.Task] {
		if (r.Planned == f.Planned || strings.HasPrefix(f.Instant, "manual/")) && r.Instant == f.Instant && r.Attempt >= f.Attempt {
			return true
		}
	}
	return false
}

// copied is the store as it is now.
func (w *world) copied() *world {
	w.lock()
	defer w.mu.Unlock()
	to := newWorld()
	for task, rows := range w.rows {
		for _, row := range rows {
			same := *row
			to.rows[task] = append(to.rows[task], &same)
		}
	}
	maps.Copy(to.marks, w.marks)
	return to
}

func (w *world) enter(row *storage.LedgerRow) {
	rows := append(w.rows[row.Task], row)
	if w.keep > 0 && len(rows) > 2*w.keep {
		rows = append(rows[:0], rows[len(rows)-w.keep:]...)
	}
	w.rows[row.Task] = rows
}

func (w *world) Hears(_ context.Context, _ claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	return !m.Context.Unaddressed, nil
}

func (w *world) Moved(context.Context, string, string, string, claybot.Time) error { return nil }

func (w *world) Skip(ctx context.Context, f claybot.Firing, reason string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	w.lock()
	defer w.mu.Unlock()
	if w.entered(f) {
		return nil
	}
	w.enter(&storage.LedgerRow{Firing: f, Entered: claybot.Now(), State: "skipped", Reason: reason})
	return nil
}

func (w *world) Firings(ctx context.Context, task string, limit int) ([]storage.LedgerRow, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	w.lock()
	defer w.mu.Unlock()
	w.reads++
	rows := w.rows[task]
	out := make([]storage.LedgerRow, 0, min(limit, len(rows)))
	for i := len(rows) - 1; i >= 0 && len(out) < limit; i-- {
		out = append(out, *rows[i])
	}
	return out, nil
}

func (w *world) LastFirings(context.Context) (map[string]storage.LedgerRow, error) {
	w.lock()
	defer w.mu.Unlock()
	w.reads++
	w.sweeps.Add(1)
	last := make(map[string]storage.LedgerRow)
	for task, rows := range w.rows {
		for _, r := range rows {
			if !strings.HasPrefix(r.Instant, "manual/") {
				last[task] = *r
			}
		}
	}
	return last, nil
}

func (w *world) Checkpoint(_ context.Context, key string) (string, error) {
	w.lock()
	defer w.mu.Unlock()
	return w.marks[key], nil
}

func (w *world) SetCheckpoint(_ context.Context, key, value string) error {
	w.lock()
	defer w.mu.Unlock()
	w.marks[key] = value
	w.marked++
	return nil
}

// index finds the agents of a world.
type index struct{ w *world }

func (x index) IndexedDescriptor(_ context.Context, id claybot.AgentID) (claybot.Descriptor, error) {
	x.w.lock()
	defer x.w.mu.Unlock()
	d, ok := x.w.agents[id]
	if !ok {
		return d, fmt.Errorf("agent %s: %w", id, storage.ErrNotFound)
	}
	return d, nil
}

// A rig is one Cron after the other in a world.
type rig struct {
	*world
	t    *testing.T
	dir  string
	cfg  cron.Config
	cron *cron.Cron
	stop func()
	// handler takes what is posted; the world unless a test has its own.
	handler connectors.Handler
	written int // files, by write
}

func newRig(t *testing.T) *rig {
	w := newWorld()
	r := &rig{world: w, handler: w, t: t, dir: filepath.Join(t.TempDir(), "cron")}
	r.cfg = cron.Config{Dir: r.dir, TaskDir: r.dir, Claims: new(storagetest.Claims), Node: func() string { return "alone" }, Ledger: w, Index: index{w: w}, Gates: true}
	return r
}

// start runs a Cron until stop is called.
func (r *rig) start() {
	r.t.Helper()
	cfg := r.cfg
	if cfg.Tree == nil {
		cfg.Tree = r.folder()
	}
	c := cron.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, r.handler) }()
	r.cron = c
	r.stop = func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			r.t.Errorf("Run = %v, want that it was canceled", err)
		}
		r.stop = func() {}
	}
}

// folder is the Tree of a data directory.
func (r *rig) folder() *storage.Mirror {
	r.t.Helper()
	tree := files.OpenTree(files.TreeConfig{Dir: r.dir, Layout: cron.Layout, Marks: r.world})
	return storage.MirrorFolder(tree)
}

// write makes or replaces a file of a task. Hours in a bubble may take less than
// one tick of the disk's clock, so each file gets a time of its own.
func (r *rig) write(slug, text string) {
	r.t.Helper()
	name := filepath.Join(r.dir, slug, "TASK.md")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		r.t.Fatal(err)
	}
	r.written++
	if err := os.Chtimes(name, time.Time{}, info.ModTime().Add(time.Duration(r.written)*time.Minute)); err != nil {
		r.t.Fatal(err)
	}
}

// uid is a valid uid that ends in name.
func uid(name string) string { return strings.Repeat("a", 24-len(name)) + name }

// taskText is a TASK.md with further settings.
func taskText(id string, settings ...string) string {
	return "---\nuid: " + uid(id) + "\n" + strings.Join(settings, "\n") + "\n---\nDo " + id + ".\n"
}

// fired lists when messages were posted, with the instants of their firings.
func (r *rig) fired() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, p := range r.posts {
		all = append(all, p.m.Firing.Instant+"@"+p.at.UTC().Format("15:04:05"))
	}
	return all
}

// ledger lists the rows of a task as "instant state reason".
func (r *rig) ledger(id string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, row := range r.rows[uid(id)] {
		all = append(all, strings.TrimSpace(row.Instant+" "+row.State+" "+row.Reason))
	}
	return all
}

// end ends the newest run of a task and tells the Cron so.
func (r *rig) end(id string, state claybot.RunState) {
	r.t.Helper()
	r.mu.Lock()
	rows := r.rows[uid(id)]
	row := rows[len(rows)-1]
	row.State, row.Ended = string(state), claybot.Now()
	run := claybot.Run{State: state, Ended: row.Ended, Messages: []claybot.MessageID{row.MessageID()}}
	r.mu.Unlock()
	r.cron.Ended(claybot.Descriptor{}, run)
}

func (r *rig) is(got []string, want ...string) {
	r.t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		r.t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func (r *rig) exists(name string) bool {
	_, err := os.Stat(filepath.Join(r.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Error(err)
	}
	return err == nil
}

var _ connectors.Handler = (*world)(nil)

// Answer implements connectors.Handler: there are no questions here.
func (w *world) Answer(context.Context, connectors.Press) (connectors.PressResult, error) {
	return connectors.PressResult{}, nil
}
