package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"

	robfig "github.com/robfig/cron/v3"

	"github.com/claybot/claybot/connectors/schedule"
)

// A timetable defines the instants of a task. Exactly one is set: wall for five
// fields, every for an interval, at for a single instant.
type timetable struct {
	wall  robfig.Schedule
	every time.Duration
	at    time.Time
	zone  *time.Location // never nil
}

// minEvery is the minimum of `every`, because instants are whole seconds.
const minEvery = time.Second

// next returns the first instant after t; the zero time if there is none.
// Instants of every are anchor plus a multiple of it.
func (s timetable) next(t, anchor time.Time) time.Time {
	switch {
	case s.every > 0:
		return s.nextEvery(t, anchor)
	case s.wall == nil:
		if s.at.After(t) {
			return s.at.In(s.zone)
		}
		return time.Time{}
	}
	return s.nextWall(t)
}

func (s timetable) nextEvery(t, anchor time.Time) time.Time {
	if t.Before(anchor) {
		t = anchor
	}
	step := int64(s.every / time.Second)
	// Seconds since the epoch cannot overflow where a Duration could.
	n := (t.Unix()-anchor.Unix())/step + 1
	return time.Unix(anchor.Unix()+n*step, 0).In(s.zone)
}

// nextWall finds the next wall-clock time, ignoring clock changes, and then the
// moment when clocks first show it. So a repeated time has one moment, and times
// in a gap share the moment after it.
func (s timetable) nextWall(t time.Time) time.Time {
	t = t.In(s.zone)
	wall := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	for {
		wall = nextSlot(s.wall, wall)
		if wall.IsZero() {
			return time.Time{}
		}
		if m := moment(wall, s.zone); m.After(t) {
			return m
		}
	}
}

// nextSlot calls the library, which searches only five years ahead: not enough
// from one leap day to the next around the year 2100.
func nextSlot(s robfig.Schedule, wall time.Time) time.Time {
	next := s.Next(wall)
	if next.IsZero() {
		next = s.Next(wall.AddDate(4, 0, 0))
	}
	return next
}

// moment returns when clocks in zone first show the wall-clock time that w has
// in UTC. If they never do, it returns the first moment after the gap.
func moment(w time.Time, zone *time.Location) time.Time {
	if zone == time.UTC {
		return w
	}
	t := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), 0, zone)
	start, end := t.ZoneBounds()
	var first time.Time
	for _, near := range [...]time.Time{start.Add(-time.Second), t, end} {
		if start.IsZero() && near.Before(t) || end.IsZero() && near.Equal(end) {
			continue // the zone has no such change
		}
		_, offset := near.Zone()
		m := time.Unix(w.Unix()-int64(offset), 0).In(zone)
		if _, is := m.Zone(); is == offset && (first.IsZero() || m.Before(first)) {
			first = m
		}
	}
	switch {
	case !first.IsZero():
		return first
	case end.IsZero() || !start.IsZero() && t.Sub(start) < end.Sub(t):
		return start
	}
	return end
}

// upcoming returns the next n instants after t.
func (s timetable) upcoming(t, anchor time.Time, n int) []time.Time {
	next := make([]time.Time, 0, n)
	for range n {
		if t = s.next(t, anchor); t.IsZero() {
			break
		}
		next = append(next, t)
	}
	return next
}

// parseWall reads five fields or a word such as @daily.
func parseWall(text string) (s robfig.Schedule, err error) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "TZ=") {
		return nil, fmt.Errorf("%q: the zone has a field of its own, timezone", text)
	}
	if strings.HasPrefix(text, "@") {
		if s, err = robfig.ParseStandard(text); err != nil || strings.HasPrefix(text, "@every") {
			return nil, fmt.Errorf("%q is not one of @yearly, @monthly, @weekly, @daily and @hourly", text)
		}
		return s, nil
	}
	return parseFields(text)
}

// parseEvery parses an interval of whole seconds.
func parseEvery(text string) (time.Duration, error) {
	d, err := schedule.ParseDuration(text)
	switch {
	case err != nil:
		return 0, err
	case d < minEvery:
		return 0, fmt.Errorf("%q is too short: want at least %v", text, minEvery)
	case d%time.Second != 0:
		return 0, fmt.Errorf("%q: want whole seconds", text)
	}
	return d, nil
}

// localForms are the formats of an `at` without an offset, which is in the task's
// zone.
var localForms = [...]string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// parseAt reads one instant, cut to the second.
func parseAt(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	t, err := time.Parse(time.RFC3339, text)
	impossible := outOfRange(err)
	for _, form := range localForms {
		if err == nil {
			break
		}
		if t, err = time.Parse(form, text); err == nil {
			t = moment(t, zone)
		}
		impossible = impossible || outOfRange(err)
	}
	switch {
	case impossible:
		return t, fmt.Errorf("%q: there is no such day or time", text)
	case err != nil:
		return t, fmt.Errorf("%q is not a time such as 2026-12-24T18:00:00+01:00", text)
	}
	if t.Year() < 1970 || t.Year() > 9999 {
		return t, fmt.Errorf("%q: want a year from 1970 to 9999", text)
	}
	return t.Truncate(time.Second).In(zone), nil
}

// outOfRange reports whether err means a well-formed but impossible date or
// time.
func outOfRange(err error) bool {
	var e *time.ParseError
	return errors.As(err, &e) && strings.Contains(e.Message, "out of range")
}

// loadZone loads an IANA zone. It refuses Local, which would differ between
// machines.
func loadZone(name string) (*time.Location, error) {
	if name = strings.TrimSpace(name); name == "" || name == "Local" {
		return nil, fmt.Errorf("%q is not an IANA zone such as Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not an IANA zone such as Europe/Berlin", name)
	}
	return zone, nil
}

// CheckSchedule returns why a schedule of five fields cannot be used; nil if it can.
func CheckSchedule(text string) error {
	s, err := parseWall(text)
	if err == nil && nextSlot(s, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		err = fmt.Errorf("%q never comes: there is no such day", text)
	}
	return err
}
