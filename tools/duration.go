package tools

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// units are what a number in a duration may count, the longer names first.
var units = []struct {
	name string
	unit time.Duration
}{
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", day},
	{"w", 7 * day},
}

var errDuration = errors.New("want a duration such as 90s, 45m, 1h30m or 2d")

// ParseDuration reads one or more numbers with units: ms, s, m, h, d (24 hours)
// and w. A number without a unit counts bare, if that is not 0.
func ParseDuration(s string, bare time.Duration) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseUint(s, 10, 32); err == nil && (bare > 0 || n == 0) {
		return time.Duration(n) * bare, nil // below 2^32 s, which fits
	}
	if s == "" {
		return 0, errDuration
	}
	var sum float64
	for s != "" {
		digits := 0
		for digits < len(s) && (s[digits] >= '0' && s[digits] <= '9' || s[digits] == '.') {
			digits++
		}
		n, err := strconv.ParseFloat(s[:digits], 64)
		if err != nil {
			return 0, errDuration
		}
		unit, rest, ok := cutUnit(s[digits:])
		if !ok {
			return 0, errDuration
		}
		sum += n * float64(unit)
		s = strings.TrimLeft(rest, " ")
	}
	if sum >= math.MaxInt64 {
		return 0, errDuration
	}
	return time.Duration(math.Round(sum)), nil
}

func cutUnit(s string) (unit time.Duration, rest string, ok bool) {
	for _, u := range units {
		if rest, ok := strings.CutPrefix(s, u.name); ok {
			return u.unit, rest, true
		}
	}
	return 0, s, false
}
