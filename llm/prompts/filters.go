package prompts

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// A filter is what follows a |.
type filter struct {
	name   string
	params []param
	apply  apply
}

type apply = func(r *renderer, v any, args []any) any

type param struct {
	name     string
	value    any
	required bool
}

// filters are all that there are, as in Jinja2; date is claybot's own. They are
// made when the first template asks for one.
var filters = sync.OnceValue(func() []filter {
	return []filter{
		{"default", []param{{"default_value", "", false}, {"boolean", false, false}}, otherwise},
		{"upper", nil, mapped(strings.ToUpper)},
		{"lower", nil, mapped(strings.ToLower)},
		{"title", nil, mapped(title)},
		{"trim", []param{{"chars", nil, false}}, trim},
		{"join", []param{{"d", "", false}, {"attribute", nil, false}}, joinAll},
		{"length", nil, length},
		{"first", nil, end("first", 0)},
		{"last", nil, end("last", -1)},
		{"replace", []param{{"old", nil, true}, {"new", nil, true}, {"count", nil, false}}, replace},
		{"truncate", []param{{"length", int64(255), false}, {"killwords", false, false}, {"end", "...", false}, {"leeway", int64(5), false}}, truncate},
		{"round", []param{{"precision", int64(0), false}, {"method", "common", false}}, round},
		{"int", []param{{"default", int64(0), false}}, toInt},
		{"float", []param{{"default", 0.0, false}}, toFloat},
		{"tojson", []param{{"indent", int64(0), false}}, toJSON},
		{"date", []param{{"format", "%Y-%m-%d %H:%M", false}}, date},
	}
})

func (p *parser) filter(of *expr) *expr {
	t := p.want(word, "filter name must be an identifier")
	var args []*expr
	var named map[string]*expr
	if p.take("(") {
		args, named = p.arguments()
	}
	i := slices.IndexFunc(filters(), func(f filter) bool { return f.name == t.text })
	if i < 0 {
		var known []string
		for _, f := range filters() {
			known = append(known, f.name)
		}
		stop(t.line, "there is no filter %.40q; there are %s", t.text, strings.Join(known, ", "))
	}
	f := filters()[i]
	if f.name == "default" {
		of.use.optional()
	}
	if len(args) > len(f.params) {
		stop(t.line, "the filter %s takes at most %d values", f.name, len(f.params))
	}
	given := make([]*expr, len(f.params))
	copy(given, args)
	for name, e := range named {
		at := slices.IndexFunc(f.params, func(p param) bool { return p.name == name })
		if at < len(args) { // -1, too
			stop(t.line, "the filter %s does not take %.40q here", f.name, name)
		}
		given[at] = e
	}
	for i, p := range f.params {
		if p.required && given[i] == nil {
			stop(t.line, "the filter %s needs the value %s", f.name, p.name)
		}
	}
	e := above(func(r *renderer) any { return r.filter(f, t.line, r.eval(of), given) }, append([]*expr{of}, given...)...)
	e.what = of.describe
	return e
}

func (r *renderer) filter(f filter, line int, v any, given []*expr) any {
	args := make([]any, len(f.params))
	for i, p := range f.params {
		if args[i] = p.value; given[i] != nil {
			args[i] = r.eval(given[i])
		}
	}
	r.spend(4)
	r.line = line
	if u, ok := v.(*undefined); ok && f.name != "default" {
		r.report(u)
		switch f.name {
		case "first", "last", "round":
			return u
		case "tojson":
			v = nil
		default:
			v = "" // what it is shown as
		}
	}
	return f.apply(r, v, args)
}

// argument is a value given to a filter, as what it must be.
func argument[T any](r *renderer, filter string, v any) T {
	x, ok := v.(T)
	if !ok {
		stop(r.line, "the filter %s cannot use %s here", filter, kind(v))
	}
	return x
}

func otherwise(r *renderer, v any, args []any) any {
	if _, ok := v.(*undefined); ok {
		return args[0]
	}
	if r.truth(args[1]) && !r.truth(v) {
		return args[0]
	}
	return v
}

func mapped(f func(string) string) apply {
	return func(r *renderer, v any, _ []any) any {
		text := r.text(v)
		r.spend(len(text) / 4)
		return f(text)
	}
}

func title(text string) string {
	within := false
	return strings.Map(func(c rune) rune {
		begins := !within
		within = unicode.IsLetter(c) || unicode.IsDigit(c) || c == '\'' || c == '’' || c == '_'
		if begins {
			return unicode.ToTitle(c)
		}
		return unicode.ToLower(c)
	}, text)
}

func trim(r *renderer, v any, args []any) any {
	text := r.text(v)
	if args[0] == nil {
		return strings.TrimSpace(text)
	}
	chars := argument[string](r, "trim", args[0])
	r.spend(len(chars) + len(text)/copied*max(1, len(chars)/copied))
	return strings.Trim(text, chars)
}

func joinAll(r *renderer, v any, args []any) any {
	between := r.text(args[0])
	s := r.sheet()
	for i, e := range r.items(v) {
		r.spend(1)
		if i > 0 {
			s.put(between)
		}
		if args[1] != nil {
			name := argument[string](r, "join", args[1])
			m, _ := e.(map[string]any)
			x, ok := m[name]
			if !ok {
				x = &undefined{"the " + name + " of an entry", r.line}
			}
			e = x
		}
		s.put(r.text(e))
	}
	return s.String()
}

func length(r *renderer, v any, _ []any) any {
	switch v := v.(type) {
	case string:
		r.spend(len(v) / copied)
		return int64(utf8.RuneCountInString(v))
	case []any:
		return int64(len(v))
	case map[string]any:
		return int64(len(v))
	}
	stop(r.line, "%s has no length", kind(v))
	return nil
}

func end(name string, at int64) apply {
	return func(r *renderer, v any, _ []any) any {
		list := r.items(v)
		i, ok := index(at, len(list))
		if !ok {
			return &undefined{"the " + name + " of nothing", r.line}
		}
		return list[i]
	}
}

func replace(r *renderer, v any, args []any) any {
	text, from, to := r.text(v), r.text(args[0]), r.text(args[1])
	most := -1
	if args[2] != nil {
		most = int(max(-1, min(argument[int64](r, "replace", args[2]), MaxOutput)))
	}
	r.spend(len(text) / copied)
	times := strings.Count(text, from)
	if most >= 0 {
		times = min(times, most)
	}
	if size := len(text) + times*(len(to)-len(from)); size > MaxOutput {
		r.sheet().room(size)
	}
	r.spend(times + len(text)/copied)
	return strings.Replace(text, from, to, most)
}

func truncate(r *renderer, v any, args []any) any {
	text, end := r.text(v), r.text(args[2])
	most, leeway := argument[int64](r, "truncate", args[0]), argument[int64](r, "truncate", args[3])
	r.spend(len(text) / 8)
	runes, tail := []rune(text), []rune(end)
	if most < int64(len(tail)) || leeway < 0 {
		stop(r.line, "the filter truncate needs a length that has room for %q", end)
	}
	if int64(len(runes)) <= most || int64(len(runes))-most <= leeway {
		return text
	}
	cut := string(runes[:most-int64(len(tail))])
	if !r.truth(args[1]) {
		if i := strings.LastIndexByte(cut, ' '); i >= 0 {
			cut = cut[:i]
		}
	}
	return r.join(cut, end)
}

func round(r *renderer, v any, args []any) any {
	if !isNumber(v) {
		stop(r.line, "%s cannot be rounded; the filters int and float make numbers", kind(v))
	}
	precision := argument[int64](r, "round", args[0])
	if precision < -300 || precision > 300 {
		stop(r.line, "the filter round cannot use a precision of %d", precision)
	}
	way, ok := map[string]func(float64) float64{"common": math.RoundToEven, "ceil": math.Ceil, "floor": math.Floor}[r.text(args[1])]
	if !ok {
		stop(r.line, "the filter round has the methods common, ceil and floor")
	}
	f, scale := asFloat(v), math.Pow(10, float64(precision))
	if scaled := f * scale; !math.IsInf(scaled, 0) && scale != 0 {
		return way(scaled) / scale
	}
	return f
}

func toInt(r *renderer, v any, args []any) any {
	switch v := v.(type) {
	case int64:
		return v
	case bool:
		return map[bool]int64{true: 1}[v]
	case string:
		v = strings.TrimSpace(v)
		if i, err := strconv.ParseInt(v, 10, 64); err == nil {
			return i
		}
		if len(v) > 400 { // no number is that long
			return args[0]
		}
		if f, err := strconv.ParseFloat(v, 64); err == nil && math.Abs(f) < 1<<62 {
			return int64(f)
		}
	case float64:
		if math.Abs(v) < 1<<62 {
			return int64(v)
		}
	}
	return args[0]
}

func toFloat(_ *renderer, v any, args []any) any {
	switch v := v.(type) {
	case int64, float64:
		return asFloat(v)
	case bool:
		return map[bool]float64{true: 1}[v]
	case string:
		if v = strings.TrimSpace(v); len(v) <= 400 {
			if f, err := strconv.ParseFloat(v, 64); err == nil {
				return f
			}
		}
	}
	return args[0]
}

func toJSON(r *renderer, v any, args []any) any {
	indent := int64(0)
	if args[0] != nil {
		indent = argument[int64](r, "tojson", args[0])
	}
	if indent < 0 || indent > 8 {
		stop(r.line, "the filter tojson indents by 0 to 8")
	}
	s := r.sheet()
	s.show(v, jsonStyle(int(indent)), 0)
	return s.String()
}

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
		stop(r.line, "%s is not a date such as 2026-03-31 or 2026-03-31T15:04:05+02:00", shown(v))
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
