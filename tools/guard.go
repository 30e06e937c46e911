package tools

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/claybot/claybot/lazyregexp"
)

// Codes of the faults that this package makes itself.
const (
	FaultCircuit     = "circuit"     // the tool has failed too often; see Guard
	FaultRate        = "rate"        // the tool is used too often; see Guard
	FaultTimeout     = "timeout"     // the tool did not end in time; it may have acted
	FaultInterrupted = "interrupted" // the run was stopped meanwhile; it may have acted
	FaultUnknown     = "unknown_tool"
	FaultArguments   = "invalid_arguments"
	FaultForbidden   = "forbidden" // the agent has no permission
	FaultStopped     = "stopped"   // an operator has stopped what the tool belongs to
	FaultInternal    = "internal"  // a mistake in the tool
	FaultFailed      = "failed"    // an error of the tool that says nothing else
)

// The circuit of a tool.
const (
	circuitFailures = 5
	circuitOpen     = time.Minute
)

const maxGuarded = 4096

const maxRate = 1000

// A Rate allows N calls in any time span of length Per. The zero Rate allows
// any number.
type Rate struct {
	N   int
	Per time.Duration
}

var rateForm = lazyregexp.New(`^([0-9]{1,4})/([smh])$`)

// ParseRate reads N/s, N/m or N/h, such as 5/s or 30/m, with N from 1 to 1000.
// Empty is no limit.
func ParseRate(s string) (Rate, error) {
	if s == "" {
		return Rate{}, nil
	}
	m := rateForm.FindStringSubmatch(s)
	if m == nil {
		return Rate{}, fmt.Errorf("rate %.40q: want a number and a time such as 5/s or 30/m", s)
	}
	n, _ := strconv.Atoi(m[1]) // four digits at most
	if n < 1 || n > maxRate {
		return Rate{}, fmt.Errorf("rate %.40q: want 1 to %d", s, maxRate)
	}
	return Rate{n, map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[m[2]]}, nil
}

func (r Rate) String() string {
	switch r.Per {
	case 0:
		return ""
	case time.Second:
		return fmt.Sprintf("%d/s", r.N)
	case time.Minute:
		return fmt.Sprintf("%d/m", r.N)
	case time.Hour:
		return fmt.Sprintf("%d/h", r.N)
	}
	return fmt.Sprintf("%d/%s", r.N, r.Per)
}

// A Guard keeps tools from being called when they are broken, and too often. For
// each pair of user and tool it has a circuit, which opens for 60 seconds after
// five failures in a row, and lets one trial call through then; and the rate of
// the tool. It remembers at most 4,096 pairs, of those used last at least 3,072.
// It is safe for concurrent use.
type Guard struct {
	rates func(tool string) Rate

	mu    sync.Mutex
	known map[guarded]*guardState
}

type guarded struct{ user, tool string }

type guardState struct {
	used     time.Time
	calls    []time.Time // within the rate, oldest first
	failures int         // in a row
	until    time.Time   // when the circuit lets a trial through; zero: it is closed
	trial    time.Time   // when a trial began that has not ended
}

// NewGuard makes a Guard. rates is asked at each call; nil, or a zero Rate, is
// no limit.
func NewGuard(rates func(tool string) Rate) *Guard {
	return &Guard{rates: rates, known: make(map[guarded]*guardState)}
}

// Enter is asked before each call. A Fault says why the tool must not be called
// now, and after what time it may be; nil counts the call, and Done must follow.
func (g *Guard) Enter(user, tool string) *Fault {
	var rate Rate
	if g.rates != nil {
		rate = g.rates(tool)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	s := g.state(guarded{user, tool}, now)
	if !s.until.IsZero() {
		if wait := s.until.Sub(now); wait > 0 {
			return circuitFault(tool, wait)
		}
		// A trial that never ends, as its process lost it, holds the others back
		// for no longer than an open circuit would.
		if wait := s.trial.Add(circuitOpen).Sub(now); !s.trial.IsZero() && wait > 0 {
			return circuitFault(tool, wait)
		}
	}
	if wait := s.limited(rate, now); wait > 0 {
		return &Fault{
			Code: FaultRate, Retriable: true, After: wait,
			Text: fmt.Sprintf("%s was not called: at most %s calls are allowed", tool, rate),
		}
	}
	if !s.until.IsZero() {
		s.trial = now
	}
	return nil
}

func circuitFault(tool string, wait time.Duration) *Fault {
	return &Fault{
		Code: FaultCircuit, Retriable: true, After: wait,
		Text: fmt.Sprintf("%s was not called: it failed %d times in a row and is left alone for a while", tool, circuitFailures),
	}
}

// limited counts a call, or returns how long it must wait for the rate.
func (s *guardState) limited(r Rate, now time.Time) time.Duration {
	if r.N <= 0 || r.Per <= 0 {
		s.calls = nil
		return 0
	}
	gone := 0
	for gone < len(s.calls) && now.Sub(s.calls[gone]) >= r.Per {
		gone++
	}
	s.calls = append(s.calls[:0], s.calls[gone:]...)
	if len(s.calls) >= r.N {
		return s.calls[len(s.calls)-r.N].Add(r.Per).Sub(now)
	}
	s.calls = append(s.calls, now)
	return 0
}

// Done says how a call ended that Enter let through; nil: well. Mistakes of the
// caller and calls that were stopped from outside say nothing about the tool.
func (g *Guard) Done(user, tool string, f *Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	s := g.state(guarded{user, tool}, now)
	s.trial = time.Time{}
	if f == nil {
		s.failures, s.until = 0, time.Time{}
		return
	}
	switch f.Code {
	case FaultUnknown, FaultArguments, FaultForbidden, FaultStopped, FaultInterrupted, FaultCircuit:
		return
	}
	s.failures++
	// A call that began before the circuit opened does not hold it open longer.
	if s.failures >= circuitFailures && !now.Before(s.until) {
		s.until = now.Add(circuitOpen)
	}
}

// state finds or makes the state of a pair. When there are too many, a quarter of
// them is forgotten, those not used for longest.
func (g *Guard) state(key guarded, now time.Time) *guardState {
	if s := g.known[key]; s != nil {
		s.used = now
		return s
	}
	if len(g.known) >= maxGuarded {
		oldest := slices.SortedFunc(maps.Keys(g.known), func(a, b guarded) int { return g.known[a].used.Compare(g.known[b].used) })
		for _, k := range oldest[:maxGuarded/4] {
			delete(g.known, k)
		}
	}
	s := &guardState{used: now}
	g.known[key] = s
	return s
}
