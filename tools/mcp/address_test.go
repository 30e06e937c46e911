package mcp_test

import (
	"testing"

	"github.com/claybot/claybot/tools/mcp"
)

// What follows the host of an address may be a secret, and status and logs do not show it.
func TestLineHasNoPaths(t *testing.T) {
	for text, want := range map[string]string{
		`Post "https://h.example/s/FAKE/mcp": dial tcp: refused`: `Post "https://h.example": dial tcp: refused`,
		`Get "http://127.0.0.1:1/?key=FAKE": EOF`:                `Get "http://127.0.0.1:1": EOF`,
		"https://h.example?FAKE and HTTPS://u:FAKE@h.example/x":  "https://h.example and HTTPS://h.example",
		"http://[::1]:8080/FAKE#FAKE was closed":                 "http://[::1]:8080 was closed",
		"is not an http or https address":                        "is not an http or https address",
	} {
		if got := mcp.Line(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
