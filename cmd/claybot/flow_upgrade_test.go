package main

import (
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
)

// A run that waits for branches goes on with a version that has the same ones.
func TestUpgradeNeedsTheSameBranches(t *testing.T) {
	version := func(branches string) *flows.Flow {
		f, faults := configs.ReadFlow("f.yaml", []byte("owner: chat/ann\nstart: a\nnodes: {a: {kind: parallel, branches: {"+branches+"}, next: END}}\n"))
		for _, x := range faults {
			t.Fatal(x)
		}
		return &f
	}
	old := version("x: {kind: agent, prompt: x}, y: {kind: flow, flow: z}")
	for branches, want := range map[string]string{
		"x: {kind: agent, prompt: better}, y: {kind: flow, flow: other}":                        "",
		"x: {kind: agent, prompt: x}, y: {kind: agent, prompt: y}":                              "it waits in the node a, which has other branches in version",
		"x: {kind: agent, prompt: x}":                                                           "it waits in the node a, which has other branches in version",
		"x: {kind: agent, prompt: x}, y: {kind: flow, flow: z}, more: {kind: agent, prompt: x}": "it waits in the node a, which has other branches in version",
	} {
		if got := stays(old, version(branches), "a"); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", branches, got, want)
		}
	}
}

// A run goes on with a version in which the same ends the node where it waits.
func TestUpgradeNeedsTheSameEnd(t *testing.T) {
	version := func(node string) *flows.Flow {
		f, faults := configs.ReadFlow("f.yaml", []byte("owner: chat/ann\nstart: a\nnodes: {a: {"+node+", next: END}}\n"))
		for _, x := range faults {
			t.Fatal(x)
		}
		return &f
	}
	const both = "kind: parallel, branches: {x: {kind: agent, prompt: x}, y: {kind: agent, prompt: y}}"
	const each = `kind: each, over: "{{ [1] }}", prompt: x`
	for _, tt := range []struct {
		old, now string
		moves    bool
	}{
		{"kind: wait, for: 1h", "kind: wait, for: 2h", true},
		{"kind: wait, for: 1h", "kind: wait, event: callback, for: 1h", false},
		{"kind: wait, event: callback, for: 1h", "kind: wait, for: 1h", false},
		{"kind: wait, event: callback", "kind: wait, event: callback, for: 2h", true},
		{both, both + ", join: all, on_error: stop", true},
		{both, both + ", join: any", false},
		{both, both + ", on_error: collect", false},
		{each, each + ", at_once: 2", true},
		{each, each + ", on_error: continue", false},
	} {
		got := stays(version(tt.old), version(tt.now), "a")
		if tt.moves != (got == "") || !tt.moves && !strings.HasPrefix(got, "it waits in the node a, which ends in another way in version") {
			t.Errorf("%s, %s: %q", tt.old, tt.now, got)
		}
	}
}
