package prompts

import (
	"strconv"
	"strings"
	"time"
)

// dateForms are the texts that the filter date reads.
var dateForms = []string{
	time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00",
	"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly,
}

// date shows a time in the form that is asked for, with the letters of
// strftime. A text is read as ISO 8601, a number as seconds since 1970 in UTC.
func date(r *renderer, v any, args []any) any {
	format := argument[string](r, "date", args[0])
	t, ok := moment(v)
	if !ok {
		if v == "" || v == nil {
			return "" // nothing has no date
		}
		stop(r.line, "%s is no date such as 2026-03-31 or 2026-03-31T15:04:05+02:00", shown(v))
	}
	s := r.sheet()
	for {
		before, after, found := strings.Cut(format, "%")
		s.put(before)
		if !found {
			return s.String()
		}
		bare := strings.HasPrefix(after, "-")
		after = strings.TrimPrefix(after, "-")
		if after == "" {
			stop(r.line, "the form of a date ends within a %%")
		}
		part, known := datePart(t, after[0])
		if !known {
			stop(r.line, "the form of a date has a part %%%c that is not known", []rune(after)[0])
		}
		if bare {
			part = strings.TrimLeft(part[:len(part)-1], "0 ") + part[len(part)-1:]
		}
		s.put(part)
		r.spend(8)
		format = after[1:]
	}
}

func shown(v any) string {
	if text, ok := v.(string); ok {
		if runes := []rune(text); len(runes) > 40 {
			text = string(runes[:40]) + "…"
		}
		return strconv.Quote(text)
	}
	return kind(v)
}

func moment(v any) (time.Time, bool) {
	switch v := v.(type) {
	case time.Time:
		return v, true
	case int64:
		t := time.Unix(v, 0).UTC()
		return t, t.Year() >= 0 && t.Year() <= 9999
	case string:
		if len(v) > 64 {
			return time.Time{}, false
		}
		for _, form := range dateForms {
			if t, err := time.Parse(form, strings.TrimSpace(v)); err == nil {
				return t, true
			}
		}
	}
	return time.Time{}, false
}

func datePart(t time.Time, letter byte) (string, bool) {
	switch letter {
	case '%':
		return "%", true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1), true
	case 'w':
		return strconv.Itoa(int(t.Weekday())), true
	case 'V':
		_, week := t.ISOWeek()
		return strconv.Itoa(100 + week)[1:], true
	}
	layout, ok := map[byte]string{
		'Y': "2006", 'y': "06", 'm': "01", 'B': "January", 'b': "Jan", 'd': "02", 'e': "_2", 'j': "002",
		'A': "Monday", 'a': "Mon", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'Z': "MST", 'z': "-0700",
		'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04",
	}[letter]
	return t.Format(layout), ok
}
