package cron

import (
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors/schedule"
)

const (
	// grace is how late an instant may be noticed and still count as on time.
	grace = time.Minute
	// maxSetBack is the largest step back of the clock after which instants wait
	// until the clock has caught up. After a larger step the clock had been wrong
	// before, and waiting could take years; the ledger still prevents second
	// runs.
	maxSetBack = 24 * time.Hour
	// maxCount is the maximum count of missed instants.
	maxCount = 1000
)

// Misfire rules.
const (
	misfireSkip   = "skip"
	misfireOnce   = "run_once"
	misfireWithin = "run_if_within"
)

// A misfire is a misfire rule.
type misfire struct {
	rule   string
	within time.Duration // of run_if_within
}

// parseMisfire reads skip, run_once, and run_if_within with a duration after
// white space or "=".
func parseMisfire(text string) (misfire, error) {
	rule, rest, _ := strings.Cut(strings.Join(strings.Fields(strings.Replace(text, "=", " ", 1)), " "), " ")
	switch {
	case (rule == misfireSkip || rule == misfireOnce) && rest == "":
		return misfire{rule: rule}, nil
	case rule == misfireWithin:
		within, err := schedule.ParseDuration(rest)
		if err == nil && within > 0 {
			return misfire{rule, within}, nil
		}
	}
	return misfire{}, fmt.Errorf("%q is not one of skip, run_once and run_if_within 2h", text)
}

// A plan is the timetable of a task and its misfire rule. Its methods are pure
// functions.
type plan struct {
	timetable
	misfire misfire
	anchor  time.Time // an every counts from here
}

// A decision is the result of a plan at one moment.
type decision struct {
	fire   time.Time // the instant to run; zero: none
	late   bool      // it was missed
	skip   time.Time // the newest instant to skip; zero: none
	missed int       // number of instants to skip, including skip; at most maxCount
}

// due returns when decide next has a result; the zero time for never.
func (p plan) due(last time.Time) time.Time { return p.next(last, p.anchor) }

// since returns the start of counting at now, after the instant last.
func since(last, now time.Time) time.Time {
	if last.Sub(now) > maxSetBack {
		return now
	}
	return last
}

// decide returns what to do at now, if all instants up to last are settled.
func (p plan) decide(last, now time.Time) decision {
	newest, before, n := p.newest(since(last, now), now)
	switch late := now.Sub(newest); {
	case n == 0:
		return decision{}
	case late <= grace:
		d := decision{fire: newest, missed: n - 1}
		if p.misfire.rule == misfireSkip {
			d.skip = before
		}
		return d
	case p.misfire.rule == misfireOnce, p.misfire.rule == misfireWithin && late <= p.misfire.within:
		return decision{fire: newest, late: true, missed: n - 1}
	}
	return decision{skip: newest, missed: n}
}

// newest is the last instant after last and not after now, the one before it,
// and how many there are, of which it counts at most maxCount.
func (p plan) newest(last, now time.Time) (newest, before time.Time, n int) {
	if p.every > 0 {
		return p.newestEvery(last, now)
	}
	for t := p.next(last, p.anchor); !t.IsZero() && !t.After(now); t = p.next(t, p.anchor) {
		newest, before = t, newest
		if n++; n == maxCount {
			newest, before = p.recent(t, before, now)
			return newest, before, n
		}
	}
	return newest, before, n
}

// recent looks for the last instants up to now from nearby, where stepping from
// one to the next would take long.
func (p plan) recent(newest, before, now time.Time) (time.Time, time.Time) {
	for back := time.Hour; ; back *= 4 {
		from := now.Add(-back)
		if !from.After(newest) {
			from = newest
		}
		count, steps := newest, 0
		older := before
		for t := p.next(from, p.anchor); !t.IsZero() && !t.After(now); t = p.next(t, p.anchor) {
			count, older = t, count
			steps++
		}
		if steps >= 2 || from.Equal(newest) {
			return count, older
		}
	}
}

func (p plan) newestEvery(last, now time.Time) (newest, before time.Time, n int) {
	first := p.next(last, p.anchor)
	if first.After(now) {
		return newest, before, 0
	}
	step := int64(p.every / time.Second)
	steps := (now.Unix() - first.Unix()) / step
	newest = time.Unix(first.Unix()+steps*step, 0).In(p.zone)
	if steps > 0 {
		before = time.Unix(newest.Unix()-step, 0).In(p.zone)
	}
	return newest, before, int(min(steps+1, maxCount))
}
