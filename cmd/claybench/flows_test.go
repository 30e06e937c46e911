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

// A delivery has one reply, one notice that it may be missing, or both where the send that was cut off
// arrived after all.
func TestReplyOf(t *testing.T) {
	notice := flowNotice + ": the connection broke while I was sending it."
	for name, tt := range map[string]struct {
		said        []string
		reply       string
		noticed, ok bool
	}{
		"nothing":           {},
		"a reply":           {[]string{"a done"}, "a done", false, true},
		"a notice":          {[]string{notice}, "", true, true},
		"both":              {[]string{"a done", notice}, "a done", true, true},
		"two replies":       {said: []string{"a done", "a done"}},
		"two and a notice":  {said: []string{"a done", "a done", notice}, noticed: true},
		"two notices":       {said: []string{notice, notice}, reply: notice, noticed: true},
		"a reply that came": {said: []string{notice, "a done"}},
	} {
		if reply, noticed, ok := replyOf(tt.said); reply != tt.reply || noticed != tt.noticed || ok != tt.ok {
			t.Errorf("%s: %q, %v, %v", name, reply, noticed, ok)
		}
	}
}
