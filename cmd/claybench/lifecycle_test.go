package main

import (
	"slices"
	"testing"

	"github.com/claybot/claybot/nodes"
)

// Random calls that start, stop and configure nodes, with kills: every node has the state that the calls
// and the file say, nothing is left of what does not run, and no message is lost.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	o := options{lifecycle: 60, kills: 2, seed: testSeed, bin: binary(t)} // make lifecycle has 10,000
	if err := lifecycle(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// A register may have the value of each call that no later call is known to follow.
func TestRegister(t *testing.T) {
	for _, tt := range []struct {
		name string
		play func(r *register[string])
		want []string
	}{
		{"one after the other", func(r *register[string]) {
			r.begin("a").ended(done)
			r.begin("b").ended(done)
		}, []string{"b"}},
		{"at once", func(r *register[string]) {
			a, b := r.begin("a"), r.begin("b")
			a.ended(done)
			b.ended(done)
		}, []string{"a", "b"}},
		{"refused", func(r *register[string]) {
			r.begin("a").ended(done)
			r.begin("b").ended(refused)
		}, []string{"a"}},
		{"cut off", func(r *register[string]) {
			r.begin("a").ended(done)
			r.begin("b").ended(unheard)
		}, []string{"a", "b"}},
		{"cut off, then set", func(r *register[string]) {
			r.begin("a").ended(unheard)
			r.begin("b").ended(done)
		}, []string{"b"}},
		{"seen", func(r *register[string]) {
			r.begin("a").ended(unheard)
			r.begin("b").ended(unheard)
			r.is("a")
		}, []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := new(register[string])
			tt.play(r)
			if got := r.possible(); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The judge of the rig knows which state a node must have.
func TestPartState(t *testing.T) {
	p := &part{config: "connectors.x", broken: "{type: telegram, api_url: nowhere}"}
	server := &part{config: "mcp.x", broken: "{url: nowhere}"}
	for _, tt := range []struct {
		name    string
		part    *part
		file    string
		stopped bool
		want    string
	}{
		{"set", p, "connectors: {x: {type: telegram}}\n", false, nodes.Running},
		{"stopped", p, "connectors: {x: {type: telegram}}\n", true, nodes.Stopped},
		{"not set", p, "log: json\n", false, ""},
		{"not set, and stopped", p, "log: json\n", true, nodes.Stopped},
		{"broken", p, "connectors: {x: {type: telegram, api_url: nowhere}}\n", false, nodes.Off},
		{"broken, and stopped", p, "connectors: {x: {type: telegram, api_url: nowhere}}\n", true, nodes.Stopped},
		{"left out for a mistake", server, "mcp: {x: {url: nowhere}}\n", false, nodes.Off},
		{"always there", &part{}, "log: json\n", false, nodes.Running},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.part.state([]byte(tt.file), tt.stopped); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
