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
