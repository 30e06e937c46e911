package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// needServer skips a test where no PostgreSQL can run.
func needServer(t *testing.T) {
	t.Helper()
	postgrestest.Shared(t)
}

// Three nodes that are killed, frozen and cut off, over a database that is
// restarted, lose nothing, run nothing twice, keep the order, and write nothing that
// is not theirs. Times are not judged.
func TestNodes(t *testing.T) {
	t.Parallel()
	needServer(t)
	o := options{seed: testSeed, bin: binary(t), many: quickNodes()}
	o.many.json = filepath.Join(t.TempDir(), "figures.json")
	t.Logf("seed %d", o.seed)
	if err := crashNodes(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(o.many.json)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `"staleWrites": 0`) {
		t.Errorf("the figures are %s", b)
	}
}

// Every figure of many nodes is measured, however short the run.
func TestBenchNodes(t *testing.T) {
	t.Parallel()
	needServer(t)
	out := filepath.Join(t.TempDir(), "BENCHMARKS.md")
	o := options{seed: testSeed, span: 200 * time.Millisecond, idle: 100 * time.Millisecond, agents: 20, out: out, bin: binary(t)}
	o.many = quickNodes()
	o.many.people, o.many.rounds, o.many.kills, o.many.benchLease = 20, 1, 1, 3*time.Second
	if err := benchNodes(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"messages/s, 20 chats, 0 ms model: one node on SQLite |",
		"messages/s, 20 chats, 0 ms model: one node on PostgreSQL |",
		"messages/s, 20 chats, 0 ms model: three nodes on PostgreSQL |",
		"messages/s, 20 chats, 500 ms model, 16 runs at once per node: three nodes on PostgreSQL |",
		"resident memory of a node after that: three nodes on PostgreSQL |",
		"Acquire of one agent of 2, p50 |", "Acquire of one agent of 200, p50 |",
		"idle: queries/s of a node, besides begin and commit |",
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

// A plan has all faults, in an order that the seed decides.
func TestPlan(t *testing.T) {
	size := nodesSize{faultKill: 7, faultFreeze: 5, faultCut: 3, faultRestart: 2}
	plan := func(seed uint64) []fault { return size.plan(rand.New(rand.NewPCG(seed, 3))) }
	var got nodesSize
	for _, f := range plan(1) {
		got[f]++
	}
	if got != size {
		t.Errorf("got %v, want %v", got, size)
	}
	if !slices.Equal(plan(1), plan(1)) || slices.Equal(plan(1), plan(2)) {
		t.Error("the order is not that of the seed")
	}
}

// A takeover counts only when nothing else happened meanwhile.
func TestDisturbed(t *testing.T) {
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }
	for _, tt := range []struct {
		name  string
		other blow
		want  bool
	}{
		{"long before", blow{at: at(-60), over: at(-50)}, false},
		{"over, and still felt", blow{at: at(-60), over: at(-1)}, true},
		{"in between", blow{at: at(2), over: at(3)}, true},
		{"under way the whole time", blow{at: at(-60), over: at(60)}, true},
		{"never over", blow{at: at(-60)}, true},
		{"afterwards", blow{at: at(6), over: at(7)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &blow{at: zero, over: at(1)}
			s := &storm{cluster: &cluster{lease: 3 * time.Second}, blows: []*blow{&tt.other, b}}
			if got := s.disturbed(b, at(5)); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// The questions that a node still had on its way when it was frozen are told from
// those that it had no right to ask.
func TestLate(t *testing.T) {
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	thaw := zero.Add(time.Minute)
	for _, tt := range []struct {
		name   string
		asked  time.Time
		ended  time.Time
		twice  int64
		excuse int
	}{
		{"before its end", zero, zero.Add(time.Second), 0, 0},
		{"in the millisecond of its end", zero.Add(900 * time.Microsecond), zero, 0, 0},
		{"after its end", zero.Add(time.Second), zero, 1, 0},
		{"after its end, by a node that goes on", thaw.Add(time.Millisecond), zero, 0, 1},
		{"long after a node went on", thaw.Add(time.Minute), zero, 1, 0},
		{"while it is frozen", thaw.Add(-10 * time.Second), zero, 1, 0},
		{"not ended", zero, time.Time{}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := claybot.Run{ID: "r"}
			if !tt.ended.IsZero() {
				run.Ended = claybot.At(tt.ended)
			}
			r := &nodesRig{asks: newAsks(nil, 1), storm: &storm{blows: []*blow{{fault: faultFreeze, at: zero, over: thaw}}}}
			r.asks.at["m1-1"] = []time.Time{tt.asked}
			var v nodesVerdict
			r.late(&v, "m1-1", run)
			if v.RunTwice != tt.twice || v.AfterThaw != tt.excuse {
				t.Errorf("got %d and %d, %q", v.RunTwice, v.AfterThaw, v.Stories)
			}
		})
	}
}

// The model notes when it is asked about each message, and what counts of a slow
// answer comes last.
func TestAsks(t *testing.T) {
	a := newAsks(newActor(0, 0, 0).reply, 3)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	slow := 0
	for range 200 {
		reply := a.reply(openaitest.Request{At: at, Messages: []llm.Message{{Role: llm.RoleUser, Content: "please answer m3-7"}}})
		if !strings.HasSuffix(reply.Text, "re m3-7") {
			t.Fatalf("the answer is %q", reply.Text)
		}
		if reply.Gap > 0 {
			slow++
		}
	}
	if got := a.times("m3-7"); len(got) != 200 || !got[0].Equal(at) {
		t.Errorf("asked %d times", len(got))
	}
	if len(a.times("m3-8")) != 0 {
		t.Error("it was asked about a message that was not sent")
	}
	if slow == 0 || slow == 200 {
		t.Errorf("%d of 200 answers grow slowly", slow)
	}
}

// What callers over HTTP read is in the order in which the runs ended, whatever the
// clocks of the nodes say.
func TestOutputs(t *testing.T) {
	end := func(s int64) time.Time { return time.Unix(s, 0) }
	got := outputs(map[claybot.RunID]claybot.Run{
		"b": {ID: "b", Started: 9, Output: "second"}, "a": {ID: "a", Started: 3, Output: "third"}, "c": {ID: "c", Started: 5, Output: "first"},
		"d": {ID: "d", Started: 3, Output: "last"}, "e": {ID: "e", Started: 4, Output: ""},
	}, map[claybot.RunID]time.Time{"c": end(1), "b": end(2), "a": end(3), "d": end(4)})
	if want := []string{"", "first", "second", "third", "last"}; !slices.Equal(got, want) { // what has no end has said nothing
		t.Errorf("got %q, want %q", got, want)
	}
}

// Lines of the server's log that tell of a query of a node are counted.
func TestStatement(t *testing.T) {
	const head = "2026-01-01 00:00:00.000 UTC [7] "
	for line, want := range map[string]bool{
		head + "claybot LOG:  execute stmt_1: SELECT wake_at FROM agents":                  true,
		head + "claybot LOG:  execute <unnamed>: SELECT 1":                                 true,
		head + "claybot LOG:  statement: NOTIFY x":                                         true,
		head + "claybot LOG:  statement: begin; set local idle_in_transaction_session = 1": false,
		head + "claybot LOG:  statement: commit":                                           false,
		head + "postgrestest LOG:  statement: SELECT xact_commit":                          false,
		head + "LOG:  checkpoint starting: time":                                           false,
		head + "claybot DETAIL:  parameters: $1 = '1'":                                     false,
		"\tWHERE wake_at IS NOT NULL":                                                      false,
		"":                                                                                 false,
	} {
		if got := statement(line); got != want {
			t.Errorf("%q: got %v", line, got)
		}
	}
}

// quickNodes is what the test of three nodes takes; make crash-nodes has 410 faults.
func quickNodes() nodesOptions {
	return nodesOptions{size: nodesSize{faultKill: 2, faultFreeze: 2, faultCut: 1, faultRestart: 1, faultTear: tears(1)}, lease: 3 * time.Second, chats: 1, every: time.Second, slowEach: slowEach}
}
