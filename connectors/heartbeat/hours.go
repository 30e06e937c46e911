package heartbeat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/lazyregexp"
)

// Limits of an `every`.
const (
	usualEvery = 30 * time.Minute
	minEvery   = 5 * time.Minute
	maxEvery   = 366 * 24 * time.Hour
)

const dayMinutes = 24 * 60

// hours are the active hours of a day, in minutes of the wall clock. The zero
// value is the whole day.
type hours struct{ from, to int }

var hoursForm = lazyregexp.New(`^([0-9]{1,2}):([0-9]{2}) *- *([0-9]{1,2}):([0-9]{2})$`)

// parseHours reads "08:00-22:00", which may pass midnight.
func parseHours(text string) (hours, error) {
	m := hoursForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return hours{}, fmt.Errorf("%.40q is not of the form 08:00-22:00", text)
	}
	n := [4]int{}
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // two digits
	}
	h := hours{60*n[0] + n[1], 60*n[2] + n[3]}
	switch {
	case n[1] > 59 || n[3] > 59 || h.from >= dayMinutes || h.to > dayMinutes:
		return hours{}, fmt.Errorf("%.40q holds a time that no clock shows", text)
	case h.from == 0 && h.to == dayMinutes:
		return hours{}, nil
	}
	if h.to %= dayMinutes; h.from == h.to {
		return hours{}, errors.New("the hours begin and end at the same time; leave them out for the whole day")
	}
	return h, nil
}

// contain reports whether t, in its own zone, is within the hours.
func (h hours) contain(t time.Time) bool {
	m := 60*t.Hour() + t.Minute()
	switch {
	case h.from == h.to:
		return true
	case h.from < h.to:
		return h.from <= m && m < h.to
	}
	return m >= h.from || m < h.to
}

// next returns the first moment at or after t within the hours.
func (h hours) next(t time.Time) time.Time {
	if h.contain(t) {
		return t
	}
	// A clock change may skip the beginning of the hours on one day.
	for day := range 3 {
		if at := time.Date(t.Year(), t.Month(), t.Day()+day, 0, h.from, 0, 0, t.Location()); at.After(t) && h.contain(at) {
			return at
		}
	}
	return t.Add(24 * time.Hour) // no zone is like that
}

// parseEvery reads a duration of at most a year.
func parseEvery(text string) (time.Duration, error) {
	d, err := schedule.ParseDuration(text)
	if d > maxEvery {
		return 0, fmt.Errorf("%.40s is too long: want at most a year", text)
	}
	return d, err
}

// tooShort returns the error text of an `every` below the minimum.
func tooShort(text string) string {
	return fmt.Sprintf("%s is too short: want at least %.0fm", text, minEvery.Minutes())
}
