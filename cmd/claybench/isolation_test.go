package main

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// While the files of one agent are faulty everybody else is answered by the real daemon,
// and after the mend so is that agent's person, in order.
func TestIsolation(t *testing.T) {
	s := isolationSize{others: 4, every: 500 * time.Millisecond, loud: 3, phase: time.Second, rounds: 1}
	for _, f := range fileFaults() {
		if strings.Contains(f.name, "state.json") || strings.Contains(f.name, "FIFO") { // make isolation has all
			s.faults = append(s.faults, f)
		}
	}
	r, err := s.play(t.Context(), options{bin: binary(t), seed: 1}, t.TempDir())
	if err == nil {
		t.Log("\n" + r.markdown())
		err = r.check()
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := 2*len(s.faults) + 1; len(r.phases) != want {
		t.Errorf("got %d phases, want %d", len(r.phases), want)
	}
	for _, ph := range r.phases {
		if ph.fault != "" && (ph.loudSaid == 0 || ph.loudMeanwhile > 0 || ph.notices > 1) {
			t.Errorf("the fault did not strike, or was told twice: %v", ph)
		}
	}
}

// The judge of the scene sees what it is there to see.
func TestIsolationCheck(t *testing.T) {
	for _, tt := range []struct {
		name       string
		r          isolationResult
		bad, polls bool
	}{
		{"as it should be", isolationResult{phases: []*isolationPhase{{held: time.Second}}}, false, false},
		{"slow", isolationResult{phases: []*isolationPhase{{quantiles: [3]time.Duration{2: time.Hour}}}}, false, false},
		{"others are not answered", isolationResult{unanswered: 1}, true, false},
		{"parked and lost", isolationResult{parkedLost: 1}, true, false},
		{"disorder", isolationResult{disorder: 1}, true, false},
		{"a poll was held", isolationResult{phases: []*isolationPhase{{held: time.Second}, {held: time.Minute}}}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.r.check(); (err != nil) != tt.bad {
				t.Errorf("promises: got %v", err)
			}
			if err := tt.r.checkPolls(); (err != nil) != tt.polls {
				t.Errorf("polls: got %v", err)
			}
		})
	}
}

// A fault is compared with the phases around it, round by round.
func TestContrasts(t *testing.T) {
	phase := func(fault string, p99 time.Duration) *isolationPhase {
		return &isolationPhase{fault: fault, quantiles: [3]time.Duration{1, 1, p99}}
	}
	r := &isolationResult{phases: []*isolationPhase{
		phase("", 1), phase("x", 4), phase("", 3), phase("y", 4), phase("", 5), phase("x", 6), phase("", 7),
	}}
	names, all := r.contrasts()
	if !slices.Equal(names, []string{"x", "y"}) {
		t.Errorf("got %q", names)
	}
	x := all["x"]
	got := fmt.Sprint(listed(x.ratios(p50)), "; ", listed(x.ratios(p99)), "; ", listed(x.noise(p99)), "; ", middle(x.ratios(p99)))
	if want := "1.00, 1.00; 2.00, 1.00; 0.33, 0.71; 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, lowest, highest := r.floor(); lowest != 1 || highest != 7 {
		t.Errorf("the phases without a fault lie between %v and %v", lowest, highest)
	}
}

// A window knows the first time of each message only, and that no poll is open.
func TestWindow(t *testing.T) {
	w := newWindow()
	defer w.server.Close()
	w.server.Say(1, 1, "please answer m0-1")
	poll := func() {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/bot"+telegramtest.Token+"/getUpdates", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w.ServeHTTP(httptest.NewRecorder(), r)
	}
	poll()
	first := w.handed["m0-1"]
	if w.came("m0-1") || first.IsZero() || w.longest() == 0 {
		t.Errorf("handed out at %v, a reply: %v", first, w.came("m0-1"))
	}
	w.reply(telegramtest.Message{Text: "re m0-1"})
	took, ok := w.took("m0-1")
	poll() // brings it again, as nothing was confirmed
	w.reply(telegramtest.Message{Text: "sent again: re m0-1"})
	if again, _ := w.took("m0-1"); !ok || again != took || !w.handed["m0-1"].Equal(first) {
		t.Errorf("took %v (%v), and with repetitions %v", took, ok, again)
	}
}
