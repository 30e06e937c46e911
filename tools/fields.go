package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

// Required trims the field of an input and refuses what is empty or longer than limit
// bytes. Errors are for the model.
func Required(field, s string, limit int) (string, error) {
	s, err := Optional(field, s, limit)
	if err == nil && s == "" {
		err = fmt.Errorf("field %s: must not be empty", field)
	}
	return s, err
}

// Optional trims the field of an input and refuses what is longer than limit bytes.
func Optional(field, s string, limit int) (string, error) {
	s = strings.TrimSpace(s)
	if len(s) > limit {
		return "", fmt.Errorf("field %s: %d bytes, the limit is %d", field, len(s), limit)
	}
	return s, nil
}

// Short is s as one line of at most limit bytes, and a sign when it was longer.
func Short(s string, limit int) string {
	whole := true
	if few := 8 * limit; len(s) > few { // megabytes are not worth reading
		s, whole = s[:few], false
	}
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s, whole = s[:limit], false
	}
	if whole {
		return s
	}
	for s != "" { // the cut may have hit the middle of a character
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s + "…"
}

// UndoCall is the call of a tool that undoes an effect. args must marshal.
func UndoCall(tool string, args any) *claybot.ToolCall {
	b, _ := json.Marshal(args)
	return &claybot.ToolCall{Name: tool, Args: string(b)}
}

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
