package schedule

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/lazyregexp"
)

// maxName is the maximum length of a name, in bytes.
const maxName = 64

var nameForm = lazyregexp.New(`^[a-z0-9_-][a-z0-9._-]*$`)

// ValidName reports whether the file or folder of a task may have a name: a-z, 0-9,
// dots, - and _, at most 64 of them, and no dot at the beginning.
func ValidName(name string) bool { return len(name) <= maxName && nameForm.MatchString(name) }

// NameOf derives a valid name from a title.
func NameOf(title string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(title) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.Trim(b.String(), "-._")
	return cmp.Or(strings.TrimRight(name[:min(len(name), maxName)], "-._"), "task")
}

// FreeName returns name, or the first of name-2, name-3 and so on that is not
// taken.
func FreeName(name string, taken func(string) (bool, error)) (string, error) {
	for n, try := 2, name; ; n++ {
		if is, err := taken(try); err != nil || !is {
			return try, err
		}
		end := "-" + strconv.Itoa(n)
		try = name[:min(len(name), maxName-len(end))] + end
	}
}

// ParseDuration is time.ParseDuration with leading whole weeks and days: "1w",
// "1d12h".
func ParseDuration(text string) (time.Duration, error) {
	rest := strings.TrimSpace(text)
	bad := fmt.Errorf("%.40q is not a duration such as 30m, 2h or 1d", text)
	var days time.Duration
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		n, after, ok := strings.Cut(rest, unit.name)
		if !ok {
			continue
		}
		count, err := strconv.ParseUint(n, 10, 31)
		if err != nil || time.Duration(count) > (math.MaxInt64-days)/unit.size {
			return 0, bad
		}
		days += time.Duration(count) * unit.size
		if rest = after; rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || d > math.MaxInt64-days {
		return 0, bad
	}
	return days + d, nil
}
