package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/claybot/claybot/web"
)

func TestPlaceOfBrokenJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{`:                             "at byte 1",
		`{"a":`:                         "in the field a",
		`{"a":1,"b":tru}`:               "in the field b",
		`{"a":{"b":[1,{"c":nul}]}}`:     "in the field a.b.c",
		`{"a":{"b":1},"c":}`:            "in the field c",
		`{"a":{"b":1},}`:                "in the field a",
		`{"a" 1}`:                       "in the field a",
		`nonsense`:                      "at byte",
		"{\"a\":\"line\nbreak\"}":       "in the field a",
		`{"` + strings.Repeat("x", 300): "at byte",
	} {
		if got := web.Place([]byte(in)); !strings.Contains(got, want) || len(got) > 200 {
			t.Errorf("%s breaks %s, want %s", in, got, want)
		}
	}
}

// Whatever a body is, it is read or refused, and what is read is what it says.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"text":"x"}`, `{"text":1}`, `{"txt":1}`, `{`, `[]`, `null`, `{"text":"x"}{}`, `{"n":{"text":[{}]}}`, "\x00", `{"text":"\ud800"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.TrimSpace(s) == "" {
			return // refused before
		}
		var v struct {
			Text string `json:"text"`
			N    *struct {
				Text []struct{} `json:"text"`
			} `json:"n"`
		}
		err := web.ParseJSON([]byte(s), &v, true)
		if err == nil && !json.Valid([]byte(s)) {
			t.Fatalf("%q was read", s)
		}
		if err != nil && err.Error() == "" {
			t.Fatalf("%q is refused without a word", s)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x00") {
			t.Fatalf("%q is refused with %q", s, err)
		}
	})
}
