// Command claybench measures the real claybot binary against emulated
// platforms, and kills it to see what survives.
//
//	claybench             throughput, latency, memory, start, as ratios to bare loops of the same run
//	claybench -crash N    N kills at random moments under load; counts what was lost
//	claybench -faults N   N lives in each of which a system call goes wrong; counts what was lost
//	claybench -leaks N    N sequences of people who tell secrets to agents that pass on all they know; counts what reached others
//	claybench -lifecycle N  N random calls that start, stop and configure nodes, with kills; counts what is not as it should be
//	claybench -flows N    one run of a workflow killed at many nodes, and N runs: their pace and cost, N deliveries sent three times with kills, 10 N runs that wait
//	claybench -burst N    N subagents at once: time, peak memory, notices
//	claybench -watch      runs with many readers, the pages with a full store, kills with readers and relays
//	claybench -isolation D  how long others wait while the files of one agent are faulty, in phases of D
//	claybench -crash-loop   kills in a row, a message that kills the daemon, and too little memory; counts who got no answer
//	claybench -crash-nodes  kills, freezes, cuts and restarts of three nodes over one PostgreSQL; counts what was lost
//	claybench -bench-nodes  one node and three over PostgreSQL against one over SQLite
//
// The binary is built from the tree this runs in. Traffic stays on the loopback
// address.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	asSaboteur()
	var o options
	flag.IntVar(&o.crash, "crash", 0, "kill the daemon this often instead of measuring")
	flag.IntVar(&o.threads, "threads", 0, "with -crash, people write in so many threads on each platform, with memory, instead of directly")
	flag.BoolVar(&o.pushed, "pushed", false, "with -crash, the platforms send updates over HTTP where they can")
	flag.IntVar(&o.faults, "faults", 0, "let a system call go wrong in each of so many lives of the daemon instead of measuring")
	flag.IntVar(&o.leaks, "leaks", 0, "let people and agents pass on secrets in this many sequences instead of measuring")
	flag.IntVar(&o.lifecycle, "lifecycle", 0, "make this many random calls that start, stop and configure nodes instead of measuring")
	flag.IntVar(&o.flows, "flows", 0, "kill one run of a workflow at as many nodes as there are kills, measure so many runs, kill the daemon while each delivery is sent three times, and let ten times as many wait")
	flag.IntVar(&o.burst, "burst", 0, "start this many subagents at once and measure nothing else")
	flag.BoolVar(&o.growing, "growing", false, "measure many answers that grow at once on a platform and nothing else")
	flag.IntVar(&o.stored, "on-disk", 0, "measure the start with this many agents in the data directory and nothing else")
	flag.BoolVar(&o.watch, "watch", false, "measure runs that are watched and nothing else")
	flag.IntVar(&o.kills, "kills", 50, "of the daemon, with -watch, -lifecycle or -flows")
	flag.Int64Var(&o.seed, "seed", time.Now().UnixNano(), "of the random moments")
	flag.DurationVar(&o.span, "span", 8*time.Second, "duration of each throughput and latency measurement")
	flag.DurationVar(&o.idle, "idle", 5*time.Second, "how long an idle daemon is left alone before its memory is read")
	flag.IntVar(&o.agents, "agents", 10_000, "number of idle agents of the last memory result; with -watch, of agents in the store")
	flag.StringVar(&o.out, "out", "docs/BENCHMARKS.md", "file for the table; empty prints only")
	flag.BoolVar(&o.crashNodes, "crash-nodes", false, "strike three nodes over one PostgreSQL instead of measuring")
	flag.BoolVar(&o.crashLoop, "crash-loop", false, "let the daemon die in a row, by itself and from outside, instead of measuring")
	flag.DurationVar(&o.isolation, "isolation", 0, "measure the others' answers beside a faulty agent in phases of this length, and nothing else")
	flag.StringVar(&o.scene, "scene", "", "with -crash-loop, only these: kills, poison, crowd, memory")
	flag.BoolVar(&o.benchNodes, "bench-nodes", false, "measure many nodes and nothing else")
	o.many.flags()
	flag.StringVar(&o.bin, "bin", "", "binary to measure; built when empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "claybench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	crash     int
	threads   int  // with crash
	pushed    bool // with crash
	faults    int
	leaks     int
	lifecycle int // calls
	flows     int
	deny      bool // with leaks: nothing is approved
	burst     int  // 0: everything is measured, with a burst of the usual size
	stored    int  // agents in the data directory; 0: everything is measured
	watch     bool
	kills     int // with watch, lifecycle or flows

	scene string // of crashLoop; empty: all

	isolation time.Duration // a phase

	crashLoop, crashNodes, benchNodes, growing bool
	many                                       nodesOptions // with one of these

	seed   int64
	span   time.Duration
	idle   time.Duration
	agents int
	out    string
	bin    string
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "claybench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a leftover in the temporary directory does no harm
	if o.bin == "" {
		o.bin = filepath.Join(dir, "claybot")
		if err := build(ctx, o.bin); err != nil {
			return err
		}
	}
	if o.crash > 0 {
		return crash(ctx, o, dir)
	}

	if o.faults > 0 {
		_, err := faultLab(ctx, o, dir)
		return err
	}
	if o.leaks > 0 {
		return leaks(ctx, o, dir)
	}
	if o.lifecycle > 0 {
		return lifecycle(ctx, o, dir)
	}
	if o.flows > 0 {
		return allFlows(ctx, o, dir)
	}
	if o.isolation > 0 {
		return isolation(ctx, o, dir)
	}
	if o.crashLoop {
		return crashLoop(ctx, o, dir)
	}
	if o.crashNodes {
		return crashNodes(ctx, o, dir)
	}
	if o.benchNodes {
		return benchNodes(ctx, o, dir)
	}
	if o.watch {
		return watch(ctx, o, dir, watchBars(o))
	}
	if o.growing {
		return growing(ctx, o, dir)
	}
	if o.burst > 0 || o.stored > 0 {
		b := &bencher{options: o, dir: dir}
		step := b.crowd
		if o.stored > 0 {
			step = b.onDisk
		}
		err := step(ctx)
		fmt.Print(b.table.markdown())
		return err
	}
	return bench(ctx, o, dir)
}

// build makes the binary as releases are made.
func build(ctx context.Context, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, "./cmd/claybot")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build claybot: %w", err)
	}
	return nil
}
