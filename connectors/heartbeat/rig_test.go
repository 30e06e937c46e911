package heartbeat_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/texts"
)

// emptyStore is a database as a first start makes it, to be copied: making the
// tables takes longer than most tests.
var emptyStore []byte

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "heartbeat")
	if err == nil {
		path := filepath.Join(dir, "claybot.db")
		var db *sqlite.DB
		if db, err = sqlite.Open(context.Background(), path, sqlite.Config{}); err == nil {
			err = db.Close()
		}
		if err == nil {
			emptyStore, err = os.ReadFile(path)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir) // a rest in the temporary directory does no harm
	os.Exit(code)
}

// A rig is a Heartbeat on a real store, with an agent that does what it says.
type rig struct {
	*testing.T
	dir   string // of the tasks
	db    *sqlite.DB
	agent claybot.AgentID
	heart *heartbeat.Heartbeat
	stop  func() error
	work  sync.WaitGroup // runs
	log   syncedBuffer

	mu       sync.Mutex
	began    time.Time
	posts    []claybot.AgentMessage
	repeats  int // posts of known messages
	takes    time.Duration
	code     string // why runs fail
	hold     bool   // nothing begins to run
	deaf     bool   // ends are not reported
	refuse   error  // of posts
	stored   bool   // refused posts are stored all the same
	onPost   func()
	settings heartbeat.Settings
	route    *claybot.Route
	word     claybot.Time
	placeErr error
	notices  []string
	mute     error // of notices
	shift    time.Duration
	marks    int  // written
	dead     bool // nothing is written any more
	pruned   bool // of runs only their ids are known
	receipts int
	written  int // files, by file
}

// A syncedBuffer is a log that can be read while it is written.
type syncedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// bubble runs a test with virtual time; it begins at midnight UTC, 1 January
// 2000, and nothing runs yet.
func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		data := t.TempDir()
		r := &rig{T: t, dir: filepath.Join(data, "heartbeat"), agent: "atestagent00000000000000", began: time.Now()}
		path := filepath.Join(data, "claybot.db")
		if err := os.WriteFile(path, emptyStore, 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if r.db, err = sqlite.Open(t.Context(), path, sqlite.Config{}); err != nil {
			t.Fatal(err)
		}
		agent := claybot.Agent{ID: r.agent, Descriptor: claybot.Descriptor{Type: claybot.AgentHeartbeat}}
		if err := r.db.IndexAgents(t.Context(), agent); err != nil {
			t.Fatal(err)
		}
		defer func() {
			r.shut()
			r.work.Wait()
			_ = r.db.Close()
		}()
		test(r)
	})
}

func (r *rig) start() {
	r.Helper()
	r.started(func() {})
	synctest.Wait()
}

// started is start for what does not come to rest by itself; then is done at
// once.
func (r *rig) started(then func()) {
	r.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	r.heart = heartbeat.New(heartbeat.Config{
		Dir: r.dir, Tree: r.tree(), Claims: r.db, Node: func() string { return "alone" }, Receipts: (*receipts)(r), Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Settings: func() heartbeat.Settings { r.mu.Lock(); defer r.mu.Unlock(); return r.settings },
		Now:      func() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return time.Now().Add(r.shift) },
		Place:    r.place, Notice: r.notice,
	})
	ended := make(chan error, 1)
	go func() { ended <- r.heart.Run(ctx, r) }()
	r.mu.Lock()
	r.stop = func() error { cancel(errStopped); return <-ended }
	r.mu.Unlock()
	then()
}

// tree is that of a data directory.
func (r *rig) tree() *storage.Mirror {
	r.Helper()
	tree := files.OpenTree(files.TreeConfig{Dir: r.dir, Layout: heartbeat.Layout, Marks: (*marks)(r)})
	return storage.MirrorFolder(tree)
}

var errStopped = errors.New("stopped")

// shut ends the Heartbeat; its store stays.
func (r *rig) shut() {
	r.Helper()
	r.mu.Lock()
	stop := r.stop
	r.stop = nil
	r.mu.Unlock()
	if stop == nil {
		return
	}
	if err := stop(); !errors.Is(err, errStopped) {
		r.Errorf("Run returned %v", err)
	}
}

func (r *rig) restart() { r.Helper(); r.shut(); r.start() }

func (r *rig) place(context.Context) (claybot.Route, claybot.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.placeErr != nil {
		return claybot.Route{}, 0, r.placeErr
	}
	if r.route == nil {
		return claybot.Route{}, 0, storage.ErrNotFound
	}
	return *r.route, r.word, nil
}

// write is a person who says something now.
func (r *rig) write() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.route = &claybot.Route{Connector: "telegram", ChannelID: "4711", UserID: "4711", ThreadID: "7"}
	r.word = claybot.At(time.Now().Add(r.shift))
}

func (r *rig) notice(_ context.Context, key string, say func(texts.Voice) string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mute != nil {
		return r.mute
	}
	r.notices = append(r.notices, key+": "+say(texts.Voice{}))
	return nil
}

// addedTask replaces the task a.
var addedTask = connectors.HeartbeatTask{ID: "a", Prompt: "a, changed", Enabled: true}

// Post implements connectors.Handler.
func (r *rig) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if to != (claybot.Descriptor{Type: claybot.AgentHeartbeat}) {
		r.Errorf("post to %+v", to)
	}
	r.mu.Lock()
	refuse, stored, onPost, hold := r.refuse, r.stored, r.onPost, r.hold
	r.mu.Unlock()
	if onPost != nil {
		defer onPost()
	}
	if refuse != nil && !stored {
		return refuse
	}
	done, err := r.db.Post(context.WithoutCancel(ctx), storage.Posting{To: r.agent, Message: m})
	if err != nil {
		return err
	}
	r.mu.Lock()
	if done.Added {
		r.posts = append(r.posts, m)
	} else {
		r.repeats++
	}
	r.mu.Unlock()
	if done.Added && !hold {
		r.work.Go(r.run)
	}
	return refuse
}

// Hears implements connectors.Handler.
func (r *rig) Hears(_ context.Context, _ claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	return !m.Context.Unaddressed, nil
}

// Moved implements connectors.Handler.
func (r *rig) Moved(context.Context, string, string, string, claybot.Time) error { return nil }

// run is one run of the agent with what waits.
func (r *rig) run() {
	ctx := context.Background()
	acquired, _, err := r.db.Acquire(ctx, "node", 1000*time.Hour, 1, 10)
	if err != nil || len(acquired) != 1 {
		r.Errorf("acquired %d agents, %v", len(acquired), err)
		return
	}
	var ids []claybot.MessageID
	for _, m := range acquired[0].Waiting {
		ids = append(ids, m.ID)
	}
	id := claybot.RunID("run/" + string(ids[0]))
	run, err := r.db.Begin(ctx, acquired[0].Lease, id, ids, storage.Beginning{})
	if err != nil {
		r.Errorf("begin: %v", err)
		return
	}
	r.mu.Lock()
	takes, code := r.takes, r.code
	r.mu.Unlock()
	time.Sleep(takes)
	o := storage.Outcome{State: claybot.RunSucceeded, Events: []claybot.Event{{Type: claybot.EventRunFinished}}}
	if code != "" {
		o = storage.Outcome{State: claybot.RunFailed, Events: []claybot.Event{{Type: claybot.EventRunFailed}}, Error: &claybot.RunError{Code: code, Text: "no"}}
	}
	if _, err := r.db.Finish(ctx, acquired[0].Lease, id, o); err != nil {
		r.Errorf("finish: %v", err)
	}
	r.mu.Lock()
	heart, deaf := r.heart, r.deaf
	r.mu.Unlock()
	if !deaf {
		run.State, run.Error, run.Ended = o.State, o.Error, claybot.Now()
		heart.Ended(claybot.Descriptor{Type: claybot.AgentHeartbeat}, run)
	}
}

// marks counts what is written.
type marks rig

func (r *marks) Checkpoint(ctx context.Context, key string) (string, error) {
	return r.db.Checkpoint(ctx, key)
}

func (r *marks) SetCheckpoint(ctx context.Context, key, value string) error {
	r.mu.Lock()
	r.marks++
	dead := r.dead
	r.mu.Unlock()
	if dead {
		return storage.ErrFull
	}
	return r.db.SetCheckpoint(ctx, key, value)
}

// receipts counts what is asked.
type receipts rig

func (r *receipts) Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error) {
	r.mu.Lock()
	r.receipts++
	pruned := r.pruned
	r.mu.Unlock()
	rec, err := r.db.Receipt(ctx, id)
	if pruned && rec.Run != nil {
		rec.Run = &claybot.Run{ID: rec.Run.ID, Agent: rec.Agent}
	}
	return rec, err
}

// set changes the world.
func (r *rig) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// file writes a file of a task. Hours in a bubble may take less than one tick of the
// disk's clock, so each change gets a time of its own.
func (r *rig) file(name, text string) {
	r.Helper()
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		r.Fatal(err)
	}
	name = filepath.Join(r.dir, name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		r.Fatal(err)
	}
	r.written++
	at := info.ModTime().Add(time.Duration(r.written) * time.Minute)
	if err := errors.Join(os.Chtimes(name, time.Time{}, at), os.Chtimes(r.dir, time.Time{}, at)); err != nil {
		r.Fatal(err)
	}
}

// pass lets time pass.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// state is what was counted so far.
type state struct{ posts, repeats, marks, receipts int }

func (r *rig) state() state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return state{len(r.posts), r.repeats, r.marks, r.receipts}
}

// post is the only message posted so far.
func (r *rig) post() claybot.AgentMessage {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.posts) != 1 {
		r.Fatalf("%d posts, want 1", len(r.posts))
	}
	return r.posts[0]
}

// times are when messages were posted, since the beginning, in minutes.
func (r *rig) times() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, m := range r.posts {
		all = append(all, fmt.Sprint(int(m.At.Time().Sub(r.began).Minutes())))
	}
	return strings.Join(all, " ")
}

func (r *rig) wantTimes(want string) {
	r.Helper()
	if got := r.times(); got != want {
		r.Errorf("ticks at minutes %q, want %q", got, want)
	}
}

func (r *rig) texts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, m := range r.posts {
		all = append(all, m.Text)
	}
	return all
}

func (r *rig) wantTexts(want ...string) {
	r.Helper()
	if got := r.texts(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		r.Errorf("posted %q, want %q", got, want)
	}
}

func (r *rig) wantNotices(n int) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.notices) != n {
		r.Errorf("notices %q, want %d", r.notices, n)
	}
}

func (r *rig) heartbeats() []connectors.HeartbeatTask {
	r.Helper()
	all, _, err := r.heart.Heartbeats(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return all
}

func (r *rig) problems() string {
	r.Helper()
	_, all, err := r.heart.Heartbeats(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	var lines []string
	for _, p := range all {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text))
	}
	return strings.Join(lines, "\n")
}

// runNow is a manual tick.
func (r *rig) runNow(want int, key string, ids ...string) {
	r.Helper()
	if n, err := r.heart.RunHeartbeats(r.Context(), key, ids...); n != want || err != nil {
		r.Errorf("RunHeartbeats(%q, %q) = %d, %v, want %d", key, ids, n, err, want)
	}
	synctest.Wait()
}

// Answer implements connectors.Handler: there are no questions here.
func (r *rig) Answer(context.Context, connectors.Press) (connectors.PressResult, error) {
	return connectors.PressResult{}, nil
}
