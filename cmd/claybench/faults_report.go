package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report prints the table of the lab and keeps it in the file of the benchmarks.
func (l *lab) report(v verdict) error {
	var b strings.Builder
	b.WriteString("| files | fault | lives | struck | of these before ready |\n|---|---|---:|---:|---:|\n")
	var sum tally
	for _, key := range slices.Sorted(maps.Keys(l.tally)) {
		t := l.tally[key]
		if t.lives == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", key, t.lives, t.struck, t.early)
		sum.lives, sum.struck, sum.early = sum.lives+t.lives, sum.struck+t.struck, sum.early+t.early
	}
	fmt.Fprintf(&b, "| all | | %d | %d | %d |\n\n", sum.lives, sum.struck, sum.early)
	fmt.Fprintf(&b, "| result | count | bar |\n|---|---:|---|\n| messages | %d | |\n| answered | %d | |\n| ended in a notice | %d | 0 |\n", v.said, v.answered, v.noticed)
	fmt.Fprintf(&b, "| lost | %d | 0 |\n| out of order | %d | 0 |\n| doubled without a mark | %d | 0 |\n| marked second copies | %d | |\n", v.lost, v.disorder, v.unexplained, v.explained)
	fmt.Fprintf(&b, "| approvals given | %d | |\n| subagents started, broken promises about them | %d, %d | 0 |\n", l.presser.presses, v.census.started, v.census.broken())
	fmt.Fprintf(&b, "| calls that failed with an injected error, as the model was told | %d | |\n", v.census.refused)
	fmt.Fprintf(&b, "| scheduled instants, broken promises about them | %d, %d | 0 |\n", v.instants.fired, v.instants.broken())
	fmt.Fprintf(&b, "| lives that the daemon ended itself after an injected error | %d | |\n", l.refusals)
	missed := l.reportMissed(&b)
	fmt.Print(b.String())
	if v.broken() > 0 {
		stories := slices.Concat(v.stories, v.census.stories, v.instants.stories)
		return fmt.Errorf("promises broken; repeat with: go run ./cmd/claybench -faults %d -seed %d\n%s", l.faults, l.seed, strings.Join(stories, "\n"))
	}
	if missed != nil || l.out == "" {
		return missed
	}
	return writeFaultsReport(l.options, b.String())
}

// reportMissed names the rows that were never struck. That is an error when there were
// lives enough for all of them.
func (l *lab) reportMissed(b *strings.Builder) error {
	var untried, missed []string
	for _, x := range l.missed() {
		if l.tallyOf(x).lives == 0 {
			untried = append(untried, x.row())
		} else {
			missed = append(missed, x.row())
		}
	}
	row := func(what, rows, why string) {
		fmt.Fprintf(b, "- %s: %s%s.\n", what, strings.ReplaceAll(rows, " | ", ", "), why)
	}
	b.WriteString("\n")
	if len(untried) > 0 {
		row(fmt.Sprintf("Not tried, because that takes %d lives", len(l.plan)), fmt.Sprint(len(untried), " rows"), "")
	}
	if len(missed) > 0 {
		row("Never struck", strings.Join(missed, "; "), "")
	}
	for _, x := range blueprints() {
		if x.never != "" {
			row("Cannot be struck", x.row(), " ("+x.never+")")
		}
	}
	if all := slices.Concat(untried, missed); len(all) > 0 && l.faults >= enoughLives*len(l.plan) {
		return fmt.Errorf("%d rows were never struck in %d lives: %s", len(all), l.faults, strings.Join(all, "; "))
	}
	return nil
}
