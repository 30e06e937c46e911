package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// A table collects figures in the order in which they were measured.
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
	b.WriteString("| figure | value | ratio to the baseline | bar |\n|---|---:|---:|---|\n")
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

// writeReport keeps the last result with its conditions.
func writeReport(o options, table string) error {
	text := fmt.Sprintf(`# Benchmarks

The last run of `+"`make bench`"+`. It drives the real binary through the Telegram
emulator over the loopback address. The baselines are measured in the same run
against the same servers: a bare loop (long poll, model call, reply, each update
of a poll answered concurrently, no durability), the same with one fsync'd
append per message, and with one fsync per poll. The model answers one word
after 0 ms or 500 ms. Emulators, baselines and daemon share the machine, so the
figures are comparable with each other and not with another machine's.

The people of the throughput figure write again as soon as they are answered, so
their conversations grow to a hundred messages, all of which go to the model
each time; the baselines send one. On two processors the daemon is bounded by
processor time, the baselines with a sync by the disk: the quicker the disk, the
smaller the ratio.

In the burst, each person's one message lets the model start a hundred
subagents. Each of them makes one model call of 50 ms and ends; every tenth is
refused, which its parent must hear of once.

Conditions: %s, %s/%s, %d processors, %s, %v for each figure.

%s`, time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), o.span, table)
	return os.WriteFile(o.out, []byte(text), 0o644)
}
