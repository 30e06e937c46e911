package cron

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

// A briefing is all that the message of a firing says.
type briefing struct {
	def     *definition
	slug    string
	dir     string // of all tasks; empty: there is none to look into
	planned time.Time
	now     time.Time
	manual  bool
	late    bool
	attempt int
	missed  int                // instants given up in favour of this one
	skipped *storage.LedgerRow // the newest one given up before
	memory  string
	verdict schedule.Verdict
}

// lateness says what a late run missed and when it ran.
func (b briefing) lateness() string {
	planned := b.planned.In(b.def.plan.zone)
	return fmt.Sprintf("missed %s, ran %s", clock(planned, b.now), clock(b.now.In(planned.Location()), b.now))
}

// text is what the agent reads. The first lines are claybot's, then comes what is
// written in the task's files.
func (b briefing) text() string {
	var s strings.Builder
	planned := b.planned.In(b.def.plan.zone)
	when := "planned for " + planned.Format("2006-01-02 15:04:05 MST")
	if b.manual {
		when = "run by hand at " + planned.Format("2006-01-02 15:04:05 MST")
	}
	fmt.Fprintf(&s, "Task %q (%s), %s.", b.def.spec.Name, b.slug, when)
	if b.dir != "" {
		fmt.Fprintf(&s, " Its folder is %s.", filepath.Join(b.dir, b.slug))
	}
	s.WriteString("\n")
	if b.late {
		fmt.Fprintf(&s, "This run is late: %s.\n", b.lateness())
	}
	if b.missed > 0 {
		fmt.Fprintf(&s, "It stands for %s before as well.\n", times(b.missed, "missed run"))
	}
	if b.skipped != nil {
		fmt.Fprintf(&s, "Since the last run: missed %s%s.\n", clock(b.skipped.Planned.Time().In(planned.Location()), b.now), more(b.skipped.Reason))
	}
	if b.attempt > 1 {
		fmt.Fprintf(&s, "The last try failed; this is try %d.\n", b.attempt)
	}
	if b.memory != "" && b.memory != noMemory {
		fmt.Fprintf(&s, "\nMEMORY.md of the task:\n%s\n", b.memory)
	}
	fmt.Fprintf(&s, "\n%s\n", b.def.spec.Prompt)
	if b.verdict.Note != "" {
		fmt.Fprintf(&s, "\n%s\n", b.verdict.Note)
	}
	if b.verdict.Output != "" {
		fmt.Fprintf(&s, "\nThe gate command said:\n%s\n", b.verdict.Output)
	}
	return strings.TrimSuffix(s.String(), "\n")
}

// clock is the time of day of t, with its date when that is not the date of now.
func clock(t, now time.Time) string {
	now = now.In(t.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// more is how many instants a row of missed ones stands for, when it is several.
func more(reason string) string {
	n := strings.TrimSuffix(strings.TrimPrefix(reason, reasonMissed+" ("), ")")
	if n == reason || n == "1" {
		return ""
	}
	return " (" + n + " in all)"
}

// times counts things in words.
func times(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case n >= maxCount-1:
		return fmt.Sprintf("more than %d %ss", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
