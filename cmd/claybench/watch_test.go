package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

// Readers of all kinds and sinks miss nothing and get nothing twice that they
// should not, with a daemon that lives and with one that is killed. Every figure
// of the table is measured, however short the run.
func TestWatch(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "BENCHMARKS.md")
	if err := os.WriteFile(out, []byte("# Benchmarks\n\nThe other figures.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{seed: testSeed, out: out, bin: binary(t)}
	size := watchSize{
		agents: 20, runs: 60, events: 2000, steady: 8, hopping: 4, asleep: 4, rounds: 1, span: 500 * time.Millisecond, every: 50 * time.Millisecond,
		steps: 3, thought: 20 * time.Millisecond, passes: 2, gets: 2, kills: 3, writers: 4, // make bench-watch has 50 kills
	}
	if testing.Short() {
		size.kills = 2
	}
	t.Logf("seed %d", o.seed)
	if err := watch(t.Context(), o, t.TempDir(), size); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"accept and run, p99: no reader |",
		"accept and run, p99: 16 open streams |",
		"the same without the time of the model, p99: 16 open streams |",
		"accept alone, p99: 16 open streams |",
		"live heap: 16 open streams, second half |",
		"2000 events of one run over SSE, slowest of 2 |",
		"page /, p99 |", "page /ui/agents/{id}, p99 |", "page /ui/runs/{id} of the long run, p99 |", "page /ui/why?q={message}, p99 |",
		"gaps | 0.00", "duplicates | 0.00", "out of order | 0.00", "other than in the store | 0.00",
		"kills, readers: gaps | 0.00", "kills, relays: lost | 0.00", "events told again to the webhook |",
	} {
		if !strings.Contains(string(text), "| "+row) {
			t.Errorf("there is no row %q", row)
		}
	}
	if !strings.HasPrefix(string(text), "# Benchmarks\n\nThe other figures.\n") {
		t.Errorf("the other figures are gone:\n%s", text)
	}
	for _, bad := range []string{"NaN", "Inf"} {
		if strings.Contains(string(text), bad) {
			t.Errorf("a figure is %s:\n%s", bad, text)
		}
	}
}

// Each report leaves the other one alone.
func TestReports(t *testing.T) {
	path := filepath.Join(t.TempDir(), "BENCHMARKS.md")
	o := options{out: path}
	for _, step := range []func() error{
		func() error { return writeReport(o, "first table\n") },
		func() error { return writeWatchReport(o, watchSize{}, "watch table\n") },
		func() error { return writeNodesReport(o, "nodes table\n") },
		func() error { return writeReport(o, "second table\n") },
		func() error { return writeWatchReport(o, watchSize{}, "later watch table\n") },
		func() error { return writeNodesReport(o, "later nodes table\n") },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for part, want := range map[string]int{
		"first table": 0, "second table": 1, "\nwatch table": 0, "later watch table": 1, watchHeading: 1, "# Benchmarks\n": 1,
		"\nnodes table": 0, "later nodes table": 1, nodesHeading: 1,
	} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%q stands %d times in the file, want %d:\n%s", part, got, want, text)
		}
	}
}

// The judge sees what it is there to see.
func TestCompare(t *testing.T) {
	want := make([]note, 5)
	for i := range want {
		want[i] = note{int64(i + 1), uint32(100 + i)}
	}
	told := func(seqs ...int64) []note {
		var all []note
		for _, n := range seqs {
			all = append(all, note{n, uint32(99 + n)})
		}
		return all
	}
	other := told(1, 2, 3, 4, 5)
	other[2].sum++
	for _, tt := range []struct {
		name                                      string
		got                                       []note
		whole, again                              bool
		gaps, doubled, disorder, altered, repeats int
	}{
		{"as it should be", told(1, 2, 3, 4, 5), true, false, 0, 0, 0, 0, 0},
		{"a beginning", told(1, 2, 3), false, false, 0, 0, 0, 0, 0},
		{"nothing yet", nil, false, false, 0, 0, 0, 0, 0},
		{"nothing at all", nil, true, false, 5, 0, 0, 0, 0},
		{"the end is missing", told(1, 2, 3), true, false, 2, 0, 0, 0, 0},
		{"the beginning is missing", told(3, 4), false, false, 2, 0, 0, 0, 0},
		{"a gap", told(1, 2, 4, 5), true, false, 1, 0, 0, 0, 0},
		{"twice", told(1, 2, 2, 3, 4, 5), true, false, 0, 1, 0, 0, 1},
		{"overtaken", told(1, 3, 2, 4, 5), true, false, 0, 0, 1, 0, 0},
		{"another content", other, true, false, 1, 0, 0, 1, 0},
		{"more than there is", told(1, 2, 3, 4, 5, 6), true, false, 0, 0, 0, 1, 0},
		{"no seq", told(0, 1), false, false, 0, 0, 0, 1, 0},
		{"told again", told(1, 2, 3, 1, 2, 3, 4, 5), true, true, 0, 0, 0, 0, 3},
		{"told again and overtaken", told(1, 2, 4, 3, 4, 5), true, true, 0, 0, 1, 0, 1},
		{"told again and left out", told(1, 2, 2, 4, 5), true, true, 1, 0, 0, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var f faults
			repeats := f.compare("x", tt.got, want, tt.whole, tt.again)
			if f.gaps != tt.gaps || f.doubled != tt.doubled || f.disorder != tt.disorder || f.altered != tt.altered || repeats != tt.repeats {
				t.Errorf("got %v, %d repeats", &f, repeats)
			}
			if (len(f.stories) > 0) != (f.broken() > 0) {
				t.Errorf("stories %q", f.stories)
			}
		})
	}
	var f faults
	stored := map[claybot.RunID][]note{"a": want}
	if n := f.sink("webhook", map[claybot.RunID][]note{"a": slices.Concat(want, want[3:]), "b": want[:1]}, stored); n != 2 || f.altered != 1 || f.broken() != 1 {
		t.Errorf("a sink: %d repeats, %v", n, &f)
	}
}
