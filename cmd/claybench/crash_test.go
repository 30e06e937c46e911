package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot/llm"
)

// built is the daemon that the tests drive, made for the first that asks and
// removed by TestMain.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// binary is the daemon that the tests drive.
func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "claybench"); built.err == nil {
			built.err = build(context.Background(), filepath.Join(built.dir, "claybot"))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "claybot")
}

// testSeed is of the random moments in tests, which are the same in each run. make crash
// and its like take another one each time.
const testSeed = 1

// The promise of the project: killed at any moment under load, the daemon loses
// nothing, keeps the order, and doubles nothing without saying so.
func TestCrash(t *testing.T) {
	t.Parallel()
	o := options{crash: 12, seed: testSeed, bin: binary(t)} // make crash has 50 and more
	if testing.Short() {
		o.crash = 5
	}
	t.Logf("seed %d", o.seed)
	if err := crash(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// The same promise where Slack and Telegram send their updates over HTTP: a request that met a dead
// daemon comes again, after newer ones.
func TestCrashPushed(t *testing.T) {
	t.Parallel()
	o := options{crash: 3, pushed: true, seed: testSeed, bin: binary(t)}
	if err := crash(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// Threads and topics of one person, killed under load and with edits: no reply is in another one, and
// no request to the model has messages of two.
func TestCrashInThreads(t *testing.T) {
	t.Parallel()
	o := options{crash: 3, threads: 5, seed: testSeed, bin: binary(t)}
	if err := crash(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// Many subagents at once all end, and each that failed is heard of once.
func TestBurst(t *testing.T) {
	b := &bencher{options: options{burst: 60, bin: binary(t)}, dir: t.TempDir()}
	if err := b.crowd(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, row := range b.table.rows {
		if strings.HasSuffix(row.what, "notices heard") && row.value != 6 {
			t.Errorf("%s: got %v, want 6", row.what, row.value)
		}
	}
}

// Every figure of the table is measured, however short the run.
func TestBench(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "BENCHMARKS.md")
	o := options{span: 200 * time.Millisecond, idle: 10 * time.Millisecond, agents: 20, burst: 20, out: out, bin: binary(t)}
	if err := bench(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"messages/s, 200 chats, 0 ms model: bare loop |",
		"messages/s, 200 chats, 0 ms model: bare loop, fsync per message |",
		"messages/s, 200 chats, 0 ms model: bare loop, fsync per poll |",
		"messages/s, 200 chats, 0 ms model: claybot |",
		"processor time per message |",
		"added latency, 1 chats, 0 ms model, p50 |",
		"added latency, 1 chats, 500 ms model, p99 |",
		"added latency, 100 chats, 0 ms model, p99 |",
		"added latency, 100 chats, 500 ms model, p50 |",
		"start to first poll, empty directory |",
		"resident memory, idle |",
		"resident memory, idle, without pages of the binary |",
		"resident memory after 20 agents |",
		"start to first poll, 20 agents |",
		"resident memory, started with 20 idle agents |",
		"start to first poll, 200 agents on disk |",
		"resident memory, started with 200 agents on disk |",
		"burst of 20 subagents, until all have ended |",
		"burst of 20 subagents, peak resident memory |",
		"burst of 20 subagents, failure notices heard | 2.00",
		"binary size, stripped |",
	} {
		if !strings.Contains(string(text), "| "+row) {
			t.Errorf("there is no row %q", row)
		}
	}
	for _, bad := range []string{"NaN", "Inf"} {
		if strings.Contains(string(text), bad) {
			t.Errorf("a figure is %s:\n%s", bad, text)
		}
	}
}

// The judge sees a reply in another chat, and a request with messages of two.
func TestStrays(t *testing.T) {
	var v verdict
	v.strays(&chat{said: []spoken{{marker: "m0-1"}}, replies: func() []string { return []string{"re m0-1", "re m1-1"} }})
	if v.strayed != 1 {
		t.Errorf("%d strayed, want 1", v.strayed)
	}
	var n memory
	for _, text := range []string{"re m0-1 m0-2", "re m0-3 m1-1"} {
		n.look([]llm.Message{{Role: llm.RoleUser, Content: "please answer m0-1"}, {Role: llm.RoleAssistant, Content: text}})
	}
	if n.shared.Load() != 1 {
		t.Errorf("%v, want 1 shared", &n)
	}
}

// The judge of the crash rig sees what it is there to see.
func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name                             string
		replies                          []string
		mayDouble                        bool
		disorder, explained, unexplained int
	}{
		{"as it should be", []string{"re m0-1", "re m0-2 m0-3"}, false, 0, 0, 0},
		{"overtaken", []string{"re m0-2", "re m0-1"}, false, 1, 0, 0},
		{"twice", []string{"re m0-1", "re m0-1"}, true, 0, 0, 1},
		{"twice, marked", []string{"re m0-1", "(sent again) re m0-1"}, true, 0, 1, 0},
		{"the lost one comes last", []string{"(sent again) re m0-1", "re m0-1"}, true, 0, 1, 0},
		{"the lost one comes twice", []string{"(sent again) re m0-1", "re m0-1", "re m0-1"}, true, 0, 1, 1},
		{"late, behind others", []string{"(sent again) re m0-1", "re m0-2", "re m0-1"}, true, 0, 1, 0},
		{"marked where it could have been looked up", []string{"re m0-1", "(sent again) re m0-1"}, false, 0, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var v verdict
			v.order(&chat{replies: func() []string { return tt.replies }, mayDouble: tt.mayDouble})
			if v.disorder != tt.disorder || v.explained != tt.explained || v.unexplained != tt.unexplained {
				t.Errorf("got %+v", v)
			}
		})
	}
}
