package connectors

import "testing"

func TestSpoken(t *testing.T) {
	for md, want := range map[string]string{
		"":                   "",
		"plain":              "plain",
		"**Yes**, _all_ `x`": "Yes, all x",
		"See [the docs](https://example.org/a?b=c).": "See the docs.",
		"# Title\n\ntext":                "Title\n\ntext",
		"- one\n- two":                   "one\ntwo",
		"1. one\n2. two":                 "1. one\n2. two",
		"Run this:\n\n```sh\nrm -r\n```": "Run this:",
		"```go\nx := 1\n```":             "",
		"> quoted":                       "quoted",
		"a < b & c":                      "a < b & c",
	} {
		if got := Spoken(md); got != want {
			t.Errorf("%q: got %q, want %q", md, got, want)
		}
	}
}
