package schedule_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/schedule"
)

// deaf discards messages that no agent may get.
type deaf struct{}

func (deaf) Post(context.Context, claybot.Descriptor, claybot.AgentMessage) error { return nil }
func (deaf) Hears(_ context.Context, _ claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	return !m.Context.Unaddressed, nil
}

func (deaf) Moved(context.Context, string, string, string, claybot.Time) error { return nil }
func (deaf) Answer(context.Context, connectors.Press) (connectors.PressResult, error) {
	return connectors.PressResult{}, nil
}

// A real is the tools on a cron and a heartbeat that run.
type real struct {
	t          *testing.T
	set        *tools.Set
	cron       *cron.Cron
	heartbeats *heartbeat.Heartbeat
	env        tools.Env
	calls      int
}

func newReal(t *testing.T) *real {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "claybot.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := &real{
		t: t, env: ann(),
		cron:       cron.New(cron.Config{Dir: filepath.Join(dir, "cron"), Tree: storage.MirrorFolder(files.OpenTree(files.TreeConfig{Dir: filepath.Join(dir, "cron"), Layout: cron.Layout, Marks: db})), Claims: db, Node: func() string { return "alone" }, Ledger: db, Index: db}),
		heartbeats: heartbeat.New(heartbeat.Config{Dir: filepath.Join(dir, "heartbeat"), Tree: storage.MirrorFolder(files.OpenTree(files.TreeConfig{Dir: filepath.Join(dir, "heartbeat"), Layout: heartbeat.Layout, Marks: db})), Claims: db, Node: func() string { return "alone" }, Receipts: db}),
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = r.cron.Run(ctx, deaf{}) })
	work.Go(func() { _ = r.heartbeats.Run(ctx, deaf{}) })
	t.Cleanup(func() {
		cancel()
		work.Wait()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	for !running(ctx, r) {
		runtime.Gosched()
	}
	if r.set, err = tools.NewSet(append(schedule.Tools(r.cron, r.heartbeats, nil), schedule.MemoryTools(r.cron)...)...); err != nil {
		t.Fatal(err)
	}
	return r
}

func running(ctx context.Context, r *real) bool {
	return r.cron.Health().LastOK.Unix() > 0 && r.heartbeats.Health().LastOK.Unix() > 0 && ctx.Err() == nil
}

// do makes a call that must go well, and returns its effect.
func (r *real) do(name, args string) *claybot.Undo {
	r.t.Helper()
	r.calls++
	r.env.CallID = fmt.Sprint("c", r.calls)
	o := r.set.Do(r.t.Context(), r.env, claybot.ToolCall{ID: r.env.CallID, Name: name, Args: args})
	if !o.Record.OK {
		r.t.Fatalf("%s %s: %s", name, args, o.Record.Text)
	}
	return o.Record.Undo
}

// undo takes an effect back, twice, as after a crash.
func (r *real) undo(u *claybot.Undo) {
	r.t.Helper()
	if u == nil || u.Call == nil {
		r.t.Fatalf("no undo: %+v", u)
	}
	env := r.env
	env.Undo, env.Run = true, "run2"
	for range 2 {
		o := r.set.Do(r.t.Context(), env, *u.Call)
		if !o.Record.OK {
			r.t.Fatalf("undo %s: %s", u.Call.Args, o.Record.Text)
		}
	}
}

// state is all tasks, without what time changes.
func (r *real) state() string {
	r.t.Helper()
	all, problems, err := r.cron.Tasks(r.t.Context())
	if err != nil || problems != nil {
		r.t.Fatal(err, problems)
	}
	heartbeats, problems, err := r.heartbeats.Heartbeats(r.t.Context())
	if err != nil || problems != nil {
		r.t.Fatal(err, problems)
	}
	var b strings.Builder
	for _, t := range all {
		fmt.Fprintf(&b, "%s %v %+v\n", t.UID, t.Enabled, t.TaskSpec)
	}
	for _, x := range heartbeats {
		fmt.Fprintf(&b, "%s %s %s %s %v %s %s\n", x.ID, x.Title, x.Every, x.ActiveHours, x.Enabled, x.Prompt, x.Gate)
	}
	return b.String()
}

func TestUndo(t *testing.T) {
	r := newReal(t)
	r.do("cron_add", `{"name":"News","prompt":"the news\nof today","schedule":"0 9 * * 1-5","timezone":"Europe/Berlin","description":"d","retries":2}`)
	r.do("heartbeat_add", `{"id":"tidy","title":"Tidy up","prompt":"tidy","every":"30m","active_hours":"08:00-22:00"}`)
	steps := []struct{ tool, args, what string }{
		{"cron_add", `{"name":"More","prompt":"p","every":"2h"}`, "created the task more"},
		{"cron_add", `{"name":"Once","prompt":"p","at":"2099-01-01T00:00:00Z","once":true,"route":"none"}`, "created the task once"},
		{"cron_update", `{"task":"news","name":"Old news","prompt":"q","description":"","timezone":"","retries":0}`, "changed the task news"},
		{"cron_update", `{"task":"news","every":"3h"}`, "changed the task news"},
		{"cron_update", `{"task":"news","at":"2099-01-01T00:00:00Z","once":true}`, "changed the task news"},
		{"cron_update", `{"task":"news","enabled":false,"route":"none","misfire":"skip"}`, "changed the task news"},
		{"heartbeat_add", `{"title":"New one","prompt":"p"}`, "created the task new-one of the heartbeat"},
		{"heartbeat_add", `{"id":"tidy","title":"Other","prompt":"p","enabled":false}`, "replaced the task tidy of the heartbeat"},
		{"heartbeat_remove", `{"id":"tidy"}`, "removed the task tidy of the heartbeat"},
	}
	for _, s := range steps {
		before := r.state()
		u := r.do(s.tool, s.args)
		if after := r.state(); after == before {
			t.Errorf("%s %s changed nothing", s.tool, s.args)
		}
		if u == nil || u.What != s.what {
			t.Errorf("%s %s: %+v, want %q", s.tool, s.args, u, s.what)
		}
		r.undo(u)
		if got := r.state(); got != before {
			t.Errorf("%s %s, undone:\n%s\nwant\n%s", s.tool, s.args, got, before)
		}
	}
	// All of a run, newest first.
	before := r.state()
	var all []*claybot.Undo
	for _, s := range steps {
		all = append(all, r.do(s.tool, s.args))
	}
	for i := range all {
		r.undo(all[len(all)-1-i])
	}
	if got := r.state(); got != before {
		t.Errorf("all undone:\n%s\nwant\n%s", got, before)
	}
}

// What is not taken back says so, and what had no effect says nothing.
func TestNoUndo(t *testing.T) {
	r := newReal(t)
	r.do("cron_add", `{"name":"News","prompt":"p","every":"2h"}`)
	for _, tt := range []struct{ tool, args, what string }{
		{"cron_add", `{"name":"Dry","prompt":"p","every":"2h","dry_run":true}`, ""},
		{"cron_list", `{}`, ""},
		{"heartbeat_run", `{}`, ""},
		{"cron_update", `{"task":"news","name":"News"}`, "changed the task news"}, // a try after a crash
		{"cron_run", `{"task":"news"}`, "ran the task news"},
		{"cron_delete", `{"task":"news"}`, "deleted the task news"},
	} {
		u := r.do(tt.tool, tt.args)
		if (u == nil) != (tt.what == "") || u != nil && (u.What != tt.what || u.Call != nil) {
			t.Errorf("%s %s: %+v, want %q", tt.tool, tt.args, u, tt.what)
		}
	}
	// Outside of an undo, what is not there is a mistake.
	for _, call := range []claybot.ToolCall{{Name: "cron_delete", Args: `{"task":"news"}`}, {Name: "heartbeat_remove", Args: `{"id":"none"}`}} {
		if o := r.set.Do(t.Context(), r.env, call); o.Record.OK {
			t.Errorf("%s: %+v", call.Name, o.Record)
		}
	}
}

// A gate is set by people; undo neither takes it away nor brings it back.
func TestUndoKeepsGates(t *testing.T) {
	w := newWorld()
	w.heartbeats.all = []connectors.HeartbeatTask{{ID: "gated", Title: "T", Prompt: "P", Gate: "./check", Enabled: true}}
	if u := w.set.Do(t.Context(), ann(), claybot.ToolCall{Name: "heartbeat_remove", Args: `{"id":"gated"}`}).Record.Undo; u == nil || u.Call != nil {
		t.Errorf("%+v", u)
	}
}

func TestUndoOfMemory(t *testing.T) {
	r := newReal(t)
	r.do("cron_add", `{"name":"News","prompt":"p","every":"2h"}`)
	all, _, err := r.cron.Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.env = envOf(claybot.Agent{ID: childID, Descriptor: claybot.Descriptor{Type: claybot.AgentCron, UID: all[0].UID}})
	memory := func() string {
		text, err := r.cron.Memory(t.Context(), all[0].UID)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	empty := memory()
	first := r.do("cron_write_memory", `{"text":"one"}`)
	one := memory()
	second := r.do("cron_write_memory", `{"text":"two","mode":"append"}`)
	two := memory()
	// The first one was changed since.
	env := r.env
	env.Undo = true
	if o := r.set.Do(t.Context(), env, *first.Call); o.Record.OK || !strings.Contains(o.Record.Text, "was changed since") || memory() != two {
		t.Errorf("%+v, %q", o.Record, memory())
	}
	r.undo(second)
	if memory() != one {
		t.Errorf("%q, want %q", memory(), one)
	}
	r.undo(first)
	if memory() != empty {
		t.Errorf("%q, want %q", memory(), empty)
	}
	if o := r.set.Do(t.Context(), r.env, *first.Call); o.Record.OK {
		t.Error("a model may take back what was noted")
	}
	w := newWorld() // a memory that a person made longer than a model may
	w.tasks.memory = strings.Repeat("x", 16<<10+1)
	if u := w.set.Do(t.Context(), r.env, claybot.ToolCall{Name: "cron_write_memory", Args: `{"text":"short"}`}).Record.Undo; u == nil || u.Call != nil || u.What != "changed the memory of the task" {
		t.Errorf("%.200v", u)
	}
}
