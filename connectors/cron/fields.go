package cron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	robfig "github.com/robfig/cron/v3"

	"github.com/claybot/claybot/lazyregexp"
)

// A field is one of the five of a schedule.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on
}

// The five fields, in the order in which they stand.
var fields = [...]field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"weekday", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

const (
	sunday = 7 // is 0 as well
	// anyDay is the bit with which the library knows a field that was a star: of day and
	// weekday the other one decides alone then.
	anyDay = 1 << 63
)

// part is one element of a list: a star or a value or a range, with a step.
var part = lazyregexp.New(`^(?:[*?]|([0-9]{1,9}|[A-Za-z]{3})(?:-([0-9]{1,9}|[A-Za-z]{3}))?)(?:/([0-9]{1,9}))?$`)

// parseFields reads exactly five fields, and names the field that is wrong. The parser
// of the library is more lenient: it reads "*-5" as "*" and an empty list as never.
func parseFields(text string) (robfig.Schedule, error) {
	found := strings.Fields(text)
	if len(found) != len(fields) {
		hint := ""
		if len(found) == len(fields)+1 {
			hint = "; there is no field for seconds"
		}
		return nil, fmt.Errorf("%q has %d fields, want 5: minute hour day-of-month month weekday%s", text, len(found), hint)
	}
	var bits [len(fields)]uint64
	for i, f := range found {
		var err error
		if bits[i], err = fields[i].parse(f); err != nil {
			return nil, fmt.Errorf("%q: field %d (%s): %w", text, i+1, fields[i].name, err)
		}
	}
	return &robfig.SpecSchedule{Second: 1, Minute: bits[0], Hour: bits[1], Dom: bits[2], Month: bits[3], Dow: bits[4], Location: time.UTC}, nil
}

// parse returns the values of a field, one bit for each.
func (f field) parse(text string) (bits uint64, err error) {
	most := f.max
	if most == sunday {
		most--
	}
	for p := range strings.SplitSeq(text, ",") {
		m := part.FindStringSubmatch(p)
		if m == nil {
			return 0, fmt.Errorf("%q is not a value, range or step", p)
		}
		first, last, step := f.min, most, 1
		if m[1] != "" {
			if first, err = f.value(m[1]); err != nil {
				return 0, err
			}
			if m[3] == "" || m[2] != "" || first > most { // else a step goes up to the end
				last = first
			}
		}
		if m[2] != "" {
			if last, err = f.value(m[2]); err != nil {
				return 0, err
			}
		}
		if m[3] != "" {
			if step, _ = strconv.Atoi(m[3]); step == 0 || step > most {
				return 0, fmt.Errorf("%q: a step must be from 1 to %d", p, most)
			}
		}
		switch {
		case first > last:
			return 0, fmt.Errorf("%q: the range runs backwards", p)
		case m[1] == "" && step == 1:
			bits |= anyDay
		}
		for n := first; n <= last; n += step {
			if f.max == sunday {
				bits |= 1 << (n % sunday)
			} else {
				bits |= 1 << n
			}
		}
	}
	return bits, nil
}

// value is a number, or a name as one.
func (f field) value(v string) (int, error) {
	if i := slices.Index(f.names, strings.ToLower(v)); i >= 0 {
		return f.min + i, nil
	}
	n, err := strconv.Atoi(v)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a value", v)
	case n < f.min || n > f.max:
		return 0, fmt.Errorf("%d is not from %d to %d", n, f.min, f.max)
	}
	return n, nil
}
