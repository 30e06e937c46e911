package main

import "testing"

// Deliveries that start workflows are sent three times while the daemon is killed: each has one reply, a
// call that may act only once is made once, and runs that wait still wait after a kill.
func TestFlowRuns(t *testing.T) {
	t.Parallel()
	o := options{flows: 30, kills: 3, seed: testSeed, bin: binary(t)} // make flows has 1,000
	if err := flowRuns(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// A run through nodes of every kind is killed ten times, each time at another node: it goes the way of its
// file, a call that may act only once is made at most once, and it ends once, with one reply.
func TestFlowWalk(t *testing.T) {
	t.Parallel()
	if err := walks(t.Context(), options{kills: 10, seed: testSeed, bin: binary(t)}, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}
