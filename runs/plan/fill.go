package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
)

// How arguments name inputs, and what looks as if it did.
var (
	inputForm = lazyregexp.New(`\{\{\s*inputs\.([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\s*\}\}`)
	inputLike = lazyregexp.New(`\{\{\s*inputs\b`)
)

// setNested sets the value of a key. A dotted one is a path, too: a.b sets a: {b}
// beside itself. What stands in the way of a path and is no object gives way.
func setNested(to map[string]json.RawMessage, key string, v json.RawMessage) {
	if head, rest, dotted := strings.Cut(key, "."); dotted && head != "" && rest != "" {
		inner, ok := members(to[head])
		if !ok {
			inner = make(map[string]json.RawMessage)
		}
		setNested(inner, rest, v)
		to[head] = encode(inner)
	}
	to[key] = v
}

// encode writes a value whose parts are JSON or plain as JSON.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// lookup finds an input by its key, or along a path.
func lookup(values map[string]json.RawMessage, key string) (json.RawMessage, bool) {
	if v, ok := values[key]; ok {
		return v, true
	}
	head, rest, dotted := strings.Cut(key, ".")
	if !dotted {
		return nil, false
	}
	inner, ok := members(values[head])
	if !ok {
		return nil, false
	}
	return lookup(inner, rest)
}

// A filling puts inputs into the arguments of steps. Inserted values are never
// read again.
type filling struct {
	values map[string]json.RawMessage
	known  []string // keys of the intent, with a value or without
	faults []string
	open   bool // an input was named that has no value yet
}

// fill returns arguments with the inputs in their places: a text that is nothing
// but the name of an input becomes its value with its type, in a longer text
// stands the value as text. A member or an element whose input has no value is
// left out.
func (f *filling) fill(args json.RawMessage) json.RawMessage {
	if !inputLike.Match(args) {
		return args
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		f.faults = append(f.faults, "the arguments are not JSON")
		return args
	}
	filled, _ := f.value(v)
	return encode(filled)
}

// value fills one value; ok is false when nothing is to stand in its place.
func (f *filling) value(v any) (filled any, ok bool) {
	switch v := v.(type) {
	case string:
		return f.text(v)
	case []any:
		list := make([]any, 0, len(v))
		for _, one := range v {
			if x, ok := f.value(one); ok {
				list = append(list, x)
			}
		}
		return list, true
	case map[string]any:
		object := make(map[string]any, len(v))
		for k, one := range v {
			if inputLike.MatchString(k) {
				f.faults = append(f.faults, "an input is used as the name of a member")
			}
			if x, ok := f.value(one); ok {
				object[k] = x
			}
		}
		return object, true
	}
	return v, true
}

func (f *filling) text(s string) (any, bool) {
	places := inputForm.FindAllStringSubmatchIndex(s, -1)
	if len(places) != len(inputLike.FindAllStringIndex(s, -1)) {
		f.faults = append(f.faults, fmt.Sprintf("%s uses an input in another form than {{ inputs.key }}", quoted(s)))
		return s, true
	}
	if len(places) == 0 {
		return s, true
	}
	if p := places[0]; len(places) == 1 && strings.TrimSpace(s) == s[p[0]:p[1]] {
		v, ok := f.input(s[p[2]:p[3]])
		return v, ok
	}
	var b strings.Builder
	end := 0
	for _, p := range places {
		b.WriteString(s[end:p[0]])
		if v, ok := f.input(s[p[2]:p[3]]); ok {
			b.WriteString(asText(v))
		}
		end = p[1]
	}
	b.WriteString(s[end:])
	return b.String(), true
}

// input is the value of an input; ok is false when it has none.
func (f *filling) input(key string) (json.RawMessage, bool) {
	if v, ok := lookup(f.values, key); ok && !blank(v) {
		return v, true
	}
	// A path may also lead into the value of a key, or be the beginning of keys.
	isKey := func(k string) bool {
		return k == key || strings.HasPrefix(k, key+".") || strings.HasPrefix(key, k+".")
	}
	if !slices.ContainsFunc(f.known, isKey) {
		f.faults = append(f.faults, fmt.Sprintf("there is no input %s", quoted(key)))
	}
	f.open = true
	return nil, false
}

// blank reports whether a value says nothing: null, blanks, or an empty list.
func blank(v json.RawMessage) bool {
	if absent(v) || string(v) == "[]" {
		return true
	}
	var s string
	return v[0] == '"' && json.Unmarshal(v, &s) == nil && strings.TrimSpace(s) == ""
}

// asText is a value as it stands in a longer text.
func asText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		return string(v)
	}
	all := make([]string, len(list))
	for i, one := range list {
		all[i] = asText(one)
	}
	return strings.Join(all, ", ")
}
