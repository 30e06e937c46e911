package cron

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// lateness describes what a late run missed and when it ran.
func (s shot) lateness() string {
	planned := s.planned.In(s.def.plan.zone)
	return fmt.Sprintf("missed %s, ran %s", clock(planned, s.now), clock(s.now.In(planned.Location()), s.now))
}

// text returns the message to the agent: a header by claybot, followed by the
// contents of the task's files. dir is the directory of all tasks; empty if the
// agent cannot see it.
func (s shot) text(dir, memory string) string {
	var b strings.Builder
	planned := s.planned.In(s.def.plan.zone)
	when := "planned for "
	if s.manual {
		when = "run by hand at "
	}
	fmt.Fprintf(&b, "Task %q (%s), %s.", s.def.spec.Name, s.slug, when+planned.Format("2006-01-02 15:04:05 MST"))
	if dir != "" {
		fmt.Fprintf(&b, " Its folder is %s.", filepath.Join(dir, s.slug))
	}
	b.WriteString("\n")
	if s.late {
		fmt.Fprintf(&b, "This run is late: %s.\n", s.lateness())
	}
	if s.missed > 0 {
		fmt.Fprintf(&b, "It stands for %s before as well.\n", times(s.missed, "missed run"))
	}
	if row := s.past.missed; row != nil && (s.def.agent != "" || s.def.route.agent != "" || s.def.route.place.Connector != "") {
		fmt.Fprintf(&b, "Since the last run: missed %s%s.\n", clock(row.Planned.Time().In(planned.Location()), s.now), more(row.Reason))
	}
	if s.attempt > 1 {
		fmt.Fprintf(&b, "The last try failed; this is try %d.\n", s.attempt)
	}
	if memory != "" && memory != noMemory {
		fmt.Fprintf(&b, "\nMEMORY.md of the task:\n%s\n", memory)
	}
	fmt.Fprintf(&b, "\n%s\n", s.def.spec.Prompt)
	if s.verdict.Note != "" {
		fmt.Fprintf(&b, "\n%s\n", s.verdict.Note)
	}
	if s.verdict.Output != "" {
		fmt.Fprintf(&b, "\nThe gate command said:\n%s\n", s.verdict.Output)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clock formats the time of day of t, with the date unless it is that of now.
func clock(t, now time.Time) string {
	now = now.In(t.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// more returns the number of missed instants of a row, if more than one.
func more(reason string) string {
	n := strings.TrimSuffix(strings.TrimPrefix(reason, reasonMissed+" ("), ")")
	if n == reason || n == "1" {
		return ""
	}
	return " (" + n + " in all)"
}

// times formats a count.
func times(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case n >= maxCount-1:
		return fmt.Sprintf("more than %d %ss", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
