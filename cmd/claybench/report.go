package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"
)

// A table collects results in the order in which they were measured.
type table struct{ rows []row }

type row struct {
	what  string
	value float64
	unit  string
	ratio float64 // to the baseline of the same run; 0: none
	bar   string
}

func (t *table) add(what string, value float64, unit string, ratio float64, bar string) {
	t.rows = append(t.rows, row{what, value, unit, ratio, bar})
}

func (t *table) markdown() string {
	var b strings.Builder
	b.WriteString("| result | value | ratio to the baseline | bar |\n|---|---:|---:|---|\n")
	for _, r := range t.rows {
		ratio := ""
		if r.ratio != 0 {
			ratio = fmt.Sprintf("%.2f", r.ratio)
		}
		digits := 2
		if r.value >= 100 {
			digits = 0
		}
		fmt.Fprintf(&b, "| %s | %.*f %s | %s | %s |\n", r.what, digits, r.value, r.unit, ratio, r.bar)
	}
	return b.String()
}

// The headings of what the other commands write. What stands before the first
// heading is that of the plain one.
const (
	watchHeading  = "\n## Runs that are watched\n"
	nodesHeading  = "\n## Many nodes\n"
	faultsHeading = "\n## Faults\n"

	isolationHeading = "\n## Beside a faulty agent\n"
)

const anyHeading = "\n## "

// writeSection replaces what stands below a heading in a file, up to the next one,
// or the beginning of the file when heading is empty. All else is kept. A heading
// that is not there yet comes last.
func writeSection(path, text, heading string) error {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, rest, _ := strings.Cut(string(b), heading)
	if heading == "" {
		before, rest = "", string(b)
	}
	if _, after, found := strings.Cut(rest, anyHeading); found {
		text += anyHeading + after
	}
	return os.WriteFile(path, []byte(before+heading+text), 0o644)
}

// writeNodesReport keeps the last result of -bench-nodes.
func writeNodesReport(o options, table string) error {
	lease := "the default lease"
	if o.many.benchLease > 0 {
		lease = fmt.Sprintf("a lease of %v", o.many.benchLease)
	}
	text := fmt.Sprintf(`
The last run of `+"`make bench-nodes`"+`. The real binary, one process or three, with
a store in SQLite or in one PostgreSQL server whose every commit is synced. The
setups take turns, each with a world of its own; a result is the median of %d
rounds of %v. Nodes, database, emulators and model share the machine: where the
model answers at once, they compete for its processors, and more nodes bring
nothing. The nodes reach the database by its Unix socket. Where the model waits and
each node works on %d runs at most, the nodes are what limits. Acquire is timed in process, in turn with few and with many agents.
Statements of idle nodes are counted in the log of the server. The takeovers are
those of runs whose node was killed, with %s, and nothing else happened to
meanwhile.

Conditions: %s, %s/%s, %d processors, %s.

%s`, o.many.rounds, o.span, nodesAtOnce, lease, time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), table)
	return writeSection(o.out, text, nodesHeading)
}

// writeWatchReport keeps the last result of -watch, below the other results.
func writeWatchReport(o options, size watchSize, table string) error {
	text := fmt.Sprintf(`
The last run of `+"`make bench-watch`"+`. The real binary serves %d agents and
%d runs; readers, writers, receivers of relays and the model are programs on the same machine,
which come in over HTTP on the loopback address with a bearer token. So the
readers take processor time from the daemon, as they would not elsewhere.

In each of %d rounds a message is posted every %v; a run makes %d tool calls,
and the model takes %v for each answer. Rounds with streams and rounds without
take turns; what is written until the first runs have ended is not measured. The
times are medians of those of the rounds. %d streams only read, %d give up after some events and go on by
Last-Event-ID, %d never read. What each of them got is compared with the store
in the end, event by event.

In the kills, the daemon ends with SIGKILL while runs have readers, a webhook
and a file. Half of the kills come while the webhook has a request open: its
events are committed and do not count as published yet.

Conditions: %s, %s/%s, %d processors, %s, rounds of %v.

%s`, size.agents, size.runs, 2*size.rounds, size.every, size.steps, size.thought, size.steady, size.hopping, size.asleep,
		time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), size.span, table)
	return writeSection(o.out, text, watchHeading)
}

// writeReport keeps the last result with its conditions.
func writeReport(o options, table string) error {
	text := fmt.Sprintf(`# Benchmarks

The last run of `+"`make bench`"+`. It drives the real binary through the Telegram
emulator over the loopback address. The baselines are measured in the same run
against the same servers: a bare loop (long poll, model call, reply, each update
of a poll answered concurrently, no durability), the same with one fsync'd
append per message, and with one fsync per poll. The model answers one word
after 0 ms or 500 ms. Emulators, baselines and daemon share the machine, so the
results are comparable with each other and not with another machine's.

The people of the throughput result write again as soon as they are answered, so
their conversations grow to a hundred messages, all of which go to the model
each time; the baselines send one. On two processors the daemon is bounded by
processor time, the baselines with a sync by the disk: the quicker the disk, the
smaller the ratio.

In the burst, each person's one message lets the model start a hundred
subagents. Each of them makes one model call of 50 ms and ends; every tenth is
refused, which its parent must hear of once.

Conditions: %s, %s/%s, %d processors, %s, %v for each result.

%s`, time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), o.span, table)
	return writeSection(o.out, text, "")
}

// writeFaultsReport keeps the last result of -faults.
func writeFaultsReport(o options, table string) error {
	text := fmt.Sprintf(`
The last run of `+"`make faults`"+`. The real binary runs under ptrace while people on
emulated platforms write to it, upload files, approve calls and start subagents, and
scheduled tasks fire. In each of %d lives, one system call goes wrong: the k-th over
all threads that concerns the named files. A kill comes before the call, after half of
its bytes, or after it returned; an error is returned once, three times or from then
on. The next life begins with the recovery, in which the next call goes wrong. In the
end every message must have its reply.

Conditions: %s, %s/%s, %d processors, %s, seed %d.

%s`, o.faults, time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), o.seed, table)
	return writeSection(o.out, text, faultsHeading)
}
