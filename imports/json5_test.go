package imports

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
)

func TestParseJSON5(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{`{}`, `{}`},
		{" // a comment\n{a: 1, 'b': [true, null, .5, +1, -0x1F,], /* two */ \"c\": 'it\\'s',}", `{"a":1,"b":[true,null,0.5,1,-31],"c":"it's"}`},
		{"\ufeff{$include: './x', _y1: \"a\\\n b\"}", `{"$include":"./x","_y1":"a b"}`},
		{`["\u00e4\x41\ud83d\ude00\0\q"]`, "[\"äA😀\\u0000q\"]"},
		{`{a: 1, a: 2}`, `{"a":2}`},
		{`'x'`, `"x"`},
		{`1e3`, `1000`},
	} {
		got, err := ParseJSON5([]byte(x.text))
		var want any
		if err := json.Unmarshal([]byte(x.want), &want); err != nil {
			t.Fatal(err)
		}
		if err != nil || !reflect.DeepEqual(got.v, want) {
			t.Errorf("ParseJSON5(%q) = %#v, %v, want %#v", x.text, got.v, err, want)
		}
	}
}

func TestParseJSON5Mistakes(t *testing.T) {
	for _, x := range []struct {
		text string
		line int
		want string
	}{
		{"", 1, "the text ends, want a value"},
		{"{\n  a: 1\n  b: 2\n}", 3, `found 'b', want a comma or }`},
		{"{\n a\n}", 3, `found '}', want a colon`},
		{"{a: sk-fake-secret}", 1, `found 's', want a value`},
		{"{a: 'x\n'}", 1, "a string has no end"},
		{"{a: \"x", 1, "a string has no end"},
		{"{a: '\\", 1, "a string has no end"},
		{"{a: '\\u12'}", 1, "an escape in a string is not hexadecimal"},
		{"\n/* x", 2, "a comment has no end"},
		{"[1, 2", 1, "the text ends, want a comma or ]"},
		{"{1a: 2}", 1, `found '1', want a key`},
		{"{} {}", 1, `found '{', want the end`},
		{"--1", 1, `found '-', want a value`},
		{"\xff", 1, "it is not UTF-8"},
		{strings.Repeat("[", 200), 1, "it is nested deeper than 100 levels"},
	} {
		_, err := ParseJSON5([]byte(x.text))
		var line *configs.LineError
		if !errors.As(err, &line) || line.Line != x.line || line.Text != x.want {
			t.Errorf("ParseJSON5(%q): %v, want line %d: %s", x.text, err, x.line, x.want)
		}
	}
}

// Whatever the text, there is no panic, and what encoding/json reads is the same here.
func FuzzParseJSON5(f *testing.F) {
	for _, text := range []string{`{"a": [1, "b", {"c": null}]}`, "{a: 'x', /* y */ b: .5,}", `"\ud800\udc00\u12"`, "//", "[[[["} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ParseJSON5(text)
		var want any
		if json.Unmarshal(text, &want) == nil && err == nil && !reflect.DeepEqual(got.v, want) && !strings.Contains(string(text), `\u`) {
			t.Errorf("ParseJSON5(%q) = %#v, encoding/json has %#v", text, got.v, want)
		}
	})
}
