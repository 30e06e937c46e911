package cron

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	robfig "github.com/robfig/cron/v3"
)

// The five fields, in the order in which they stand.
var fields = [...]struct {
	name     string
	min, max int
	alone    robfig.ParseOption // reads this field only
}{
	{"minute", 0, 59, robfig.Minute},
	{"hour", 0, 23, robfig.Hour},
	{"day of month", 1, 31, robfig.Dom},
	{"month", 1, 12, robfig.Month},
	{"weekday", 0, 6, robfig.Dow},
}

// weekday is the position of the field where 7 means Sunday.
const weekday = 4

// part is one element of a list: a star or a value or a range, with a step.
var part = regexp.MustCompile(`^(?:[*?]|([0-9]{1,9}|[A-Za-z]{3})(?:-([0-9]{1,9}|[A-Za-z]{3}))?)(?:/([0-9]{1,9}))?$`)

// checkFields refuses what is not exactly five fields, and names the field that
// is wrong. The library is more lenient in places (it reads "*-5" as "*" and an
// empty list as never). The result is text with Sundays written as the library
// wants them.
func checkFields(text string) (string, error) {
	found := strings.Fields(text)
	if len(found) != len(fields) {
		hint := ""
		if len(found) == 6 {
			hint = "; there is no field for seconds"
		}
		return "", fmt.Errorf("%q has %d fields, want 5: minute hour day-of-month month weekday%s", text, len(found), hint)
	}
	for i, f := range found {
		if err := checkField(i, f); err != nil {
			return "", fmt.Errorf("%q: field %d (%s): %w", text, i+1, fields[i].name, err)
		}
	}
	found[weekday] = sundays(found[weekday])
	for i, f := range found {
		if _, err := robfig.NewParser(fields[i].alone).Parse(f); err != nil {
			return "", fmt.Errorf("%q: field %d (%s): %w", text, i+1, fields[i].name, err)
		}
	}
	return strings.Join(found, " "), nil
}

// checkField checks the form and the bounds of one field.
func checkField(i int, f string) error {
	for p := range strings.SplitSeq(f, ",") {
		m := part.FindStringSubmatch(p)
		if m == nil {
			return fmt.Errorf("%q is no value, range or step", p)
		}
		for _, v := range m[1:3] {
			if err := checkValue(i, v); err != nil {
				return err
			}
		}
		if m[2] != "" && number(i, m[2]) >= 0 && number(i, m[1]) > number(i, m[2]) {
			return fmt.Errorf("%q: the range runs backwards", p)
		}
		if m[3] == "" {
			continue
		}
		if step, _ := strconv.Atoi(m[3]); step == 0 || step > fields[i].max {
			return fmt.Errorf("%q: a step must be from 1 to %d", p, fields[i].max)
		}
	}
	return nil
}

// checkValue checks the bounds of a number. Names are the library's to know.
func checkValue(i int, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil {
		return nil
	}
	most := fields[i].max
	if i == weekday {
		most = 7
	}
	if n < fields[i].min || n > most {
		return fmt.Errorf("%d is not from %d to %d", n, fields[i].min, most)
	}
	return nil
}

// names of months and weekdays, by their number.
var (
	months = [...]string{"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	days   = [...]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// number is a value as a number; -1 for an unknown name.
func number(i int, v string) int {
	if n, err := strconv.Atoi(v); err == nil {
		return n
	}
	names := months[:]
	if i == weekday {
		names = days[:]
	}
	for n, name := range names {
		if strings.EqualFold(v, name) {
			return n
		}
	}
	return -1
}

// sundays writes out the parts of a weekday field that reach to 7, with 0 for
// it.
func sundays(f string) string {
	parts := strings.Split(f, ",")
	for i, p := range parts {
		m := part.FindStringSubmatch(p)
		first, last := number(weekday, m[1]), number(weekday, m[2])
		if first != 7 && last != 7 {
			continue
		}
		step := 1
		if m[3] != "" {
			step, _ = strconv.Atoi(m[3])
		}
		if m[2] == "" {
			last = first
		}
		var list []string
		for n := first; n >= 0 && n <= last; n += step {
			list = append(list, strconv.Itoa(n%7))
		}
		if list != nil { // nil: the range begins with an unknown name
			parts[i] = strings.Join(list, ",")
		}
	}
	return strings.Join(parts, ",")
}
