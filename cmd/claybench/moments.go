package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A phase is a part of a subagent's life, as the model can tell it.
type phase int

// The phases that a kill may fall into.
const (
	starting phase = iota // the parent has the calls that start it, and acts on them
	working               // the model does its work
	failing               // the model has refused it, and the daemon records that
	telling               // its parent reads the notice
	phases
)

func (p phase) String() string {
	return [...]string{"starting", "working", "failing", "telling"}[p]
}

// after is how long the daemon is at least busy with an answer of the model.
const after = 20 * time.Millisecond

// moments count into which phases the kills fell. The zero value is ready.
type moments struct {
	mu    sync.Mutex
	spans []span
	kills [phases]int
}

type span struct {
	phase
	from, to time.Time
}

// note says that something is in a phase for a while, from a moment on.
func (m *moments) note(p phase, from time.Time, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spans = append(m.spans, span{p, from, from.Add(d)})
}

// kill counts a kill at a moment, once for each phase that something is in, and
// forgets the spans: nothing outlives it.
func (m *moments) kill(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var hit [phases]bool
	for _, s := range m.spans {
		hit[s.phase] = hit[s.phase] || !at.Before(s.from) && !at.After(s.to)
	}
	for p := range hit {
		if hit[p] {
			m.kills[p]++
		}
	}
	m.spans = nil
}

func (m *moments) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var parts []string
	for p, n := range m.kills {
		parts = append(parts, fmt.Sprintf("%d %v", n, phase(p)))
	}
	return strings.Join(parts, ", ")
}
