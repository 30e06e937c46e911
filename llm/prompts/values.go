package prompts

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The values of templates are nil, bool, int64, float64, string, time.Time,
// []any, map[string]any, *undefined and *turn; nothing else gets in.

type undefined struct {
	what string
	line int
}

func (r *renderer) isUndefined(v any) bool {
	u, ok := v.(*undefined)
	if ok {
		r.report(u)
	}
	return ok
}

const maxDepth = 100

// plain makes a value of templates from one of the host, by way of JSON where
// it has a form of its own.
func plain(v any, depth int) any {
	if depth > maxDepth {
		exceed(0, "a value is nested too deeply")
	}
	switch v := v.(type) {
	case nil, bool, string, int64, time.Time:
		return v
	case float64:
		if whole := int64(v); float64(whole) == v && math.Abs(v) < 1<<53 {
			return whole // as JSON shows it
		}
		return v
	case int:
		return int64(v)
	case json.Number:
		return number(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e, depth+1)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = plain(e, depth+1)
		}
		return m
	}
	b, err := json.Marshal(v)
	if err != nil {
		stop(0, "a value of the type %T cannot be shown", v)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err != nil {
		stop(0, "a value of the type %T cannot be shown", v)
	}
	return plain(x, depth+1)
}

func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	f, err := n.Float64()
	if err != nil {
		return n.String()
	}
	return f
}

func asFloat(v any) float64 {
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	f, _ := v.(float64)
	return f
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "none"
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case time.Time:
		return "a time"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case *undefined:
		return "something undefined"
	}
	return "a loop"
}

func (r *renderer) truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return !r.isUndefined(v)
}

// equal compares as Jinja2 does, numbers by value.
func (r *renderer) equal(a, b any) bool {
	r.spend(1)
	if r.isUndefined(a) || r.isUndefined(b) {
		return false
	}
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return x == y
		}
		return isNumber(b) && float64(x) == asFloat(b)
	case float64:
		return isNumber(b) && x == asFloat(b)
	case string:
		y, ok := b.(string)
		r.spend(min(len(x), len(y)) / copied)
		return ok && x == y
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, r.equal)
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, r.equal)
	default:
		switch b.(type) {
		case []any, map[string]any:
			return false
		}
		return a == b // nil, bool, a loop
	}
}

// copied is how many bytes of a copy are one unit of work.
const copied = 32

// A sheet is a text that grows up to its limit.
type sheet struct {
	strings.Builder
	r *renderer
}

func (r *renderer) sheet() *sheet { return &sheet{r: r} }

func (s *sheet) put(text string) {
	s.room(len(text))
	s.WriteString(text)
}

// room stops the template when n bytes more are too many.
func (s *sheet) room(n int) {
	if s.Len()+n > MaxOutput {
		exceed(s.r.line, "the text becomes longer than %d KiB", MaxOutput>>10)
	}
	s.r.spend(n / copied)
}

func (r *renderer) text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case *undefined:
		r.report(v)
		return ""
	}
	s := r.sheet()
	s.show(v, style{quote: quotePython, none: "None", yes: "True", no: "False"}, 0)
	return s.String()
}

type style struct {
	quote         func(string) string
	none, yes, no string
	indent        int // blanks; JSON only
	json          bool
}

func jsonStyle(indent int) style {
	return style{quote: quoteJSON, none: "null", yes: "true", no: "false", indent: indent, json: true}
}

func (s *sheet) show(v any, as style, depth int) {
	s.r.spend(4)
	if depth > maxDepth {
		exceed(s.r.line, "a value is nested too deeply")
	}
	switch v := v.(type) {
	case nil:
		s.put(as.none)
	case bool:
		if v {
			s.put(as.yes)
		} else {
			s.put(as.no)
		}
	case int64:
		s.put(strconv.FormatInt(v, 10))
	case float64:
		s.put(floatText(v, as.json))
	case time.Time:
		if text := v.Format(time.RFC3339); depth > 0 || as.json {
			s.put(as.quote(text))
		} else {
			s.put(text)
		}
	case string:
		s.room(len(v)) // before the copy
		s.put(as.quote(v))
	case []any:
		s.list("[", "]", len(v), as, depth, func(i int) { s.show(v[i], as, depth+1) })
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		s.r.spend(len(keys))
		s.list("{", "}", len(v), as, depth, func(i int) {
			s.put(as.quote(keys[i]) + ": ")
			s.show(v[keys[i]], as, depth+1)
		})
	case *undefined:
		s.r.report(v)
		s.put(as.none)
	default:
		s.put("loop")
	}
}

func (s *sheet) list(begin, end string, n int, as style, depth int, entry func(int)) {
	s.put(begin)
	between := ", "
	if as.indent > 0 {
		between = ","
	}
	for i := range n {
		if i > 0 {
			s.put(between)
		}
		s.newline(as, depth+1)
		entry(i)
	}
	if n > 0 {
		s.newline(as, depth)
	}
	s.put(end)
}

func (s *sheet) newline(as style, depth int) {
	if as.indent > 0 {
		s.put("\n" + strings.Repeat(" ", as.indent*depth))
	}
}

// floatText writes a float as Python does: it is always seen to be one.
func floatText(f float64, json bool) string {
	switch {
	case json && (math.IsNaN(f) || math.IsInf(f, 0)):
		return "null"
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'f', -1, 64)), "+")
	case f != 0 && (math.Abs(f) >= 1e16 || math.Abs(f) < 1e-4):
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// quoteJSON leaves <, > and & as they are: no browser reads a prompt.
func quoteJSON(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return `""` // unreachable: a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var pythonEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

func quotePython(text string) string {
	text = pythonEscapes.Replace(text)
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `\'`) + "'"
}
