package main

import (
	"os"
	"testing"
	"time"
)

// A message that kills the real daemon is given up with one notice, and the others
// are answered, however many starts that takes; so are all after kills from outside.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	for _, s := range []loopScene{
		{name: "poison", people: 4, poison: 1, thought: 50 * time.Millisecond, deaths: 10, limit: 3 * time.Minute},
		{name: "kills", people: 12, thought: 400 * time.Millisecond, kills: 3, limit: 3 * time.Minute},
	} {
		t.Run(s.name, func(t *testing.T) {
			if s.poison > 0 && os.Getenv("CRASHLOOP") == "" {
				t.Skip("takes half a minute of waiting; set CRASHLOOP=1 (agentsystem has the same in virtual time)")
			}
			r, err := s.play(t.Context(), options{bin: binary(t)}, t.TempDir())
			if err == nil {
				t.Log(r)
				err = r.check()
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The judge of the rig sees what it is there to see.
func TestLoopCheck(t *testing.T) {
	s := loopScene{people: 3, poison: 1, deaths: 2}
	for _, tt := range []struct {
		name string
		r    loopResult
		bad  bool
	}{
		{"as it should be", loopResult{answered: 2, told: []int{1}, deaths: 2}, false},
		{"not answered", loopResult{answered: 1, unanswered: 1, told: []int{1}}, true},
		{"given up", loopResult{answered: 1, spare: 1, told: []int{1}}, true},
		{"too many deaths", loopResult{answered: 2, told: []int{1}, deaths: 3}, true},
		{"not told", loopResult{answered: 2, told: []int{0}}, true},
		{"told twice", loopResult{answered: 2, told: []int{2}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.scene = s
			if err := tt.r.check(); (err != nil) != tt.bad {
				t.Errorf("got %v", err)
			}
		})
	}
}
