package main

import (
	"slices"
	"sync"
	"sync/atomic"
)

// instants order the beginnings and ends of calls.
var instants atomic.Int64

// A register is a value that concurrent calls set. Where calls overlap, or one has no answer, it
// may have one of several values.
type register[T comparable] struct {
	mu  sync.Mutex
	all []*setting[T]
}

// A setting is one call that sets a register.
type setting[T comparable] struct {
	register   *register[T]
	value      T
	begun, end int64
	done       bool // it has an answer that says so
}

// begin notes that a call which sets the register is about to be made.
func (r *register[T]) begin(value T) *setting[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &setting[T]{register: r, value: value, begun: instants.Add(1)}
	r.all = append(r.all, s)
	return s
}

// ended notes the outcome of the call: done, refused, or unheard, because the daemon was killed.
func (s *setting[T]) ended(o outcome) {
	r := s.register
	r.mu.Lock()
	defer r.mu.Unlock()
	s.end, s.done = instants.Add(1), o == done
	if o == refused {
		r.all = slices.DeleteFunc(r.all, func(x *setting[T]) bool { return x == s })
	}
}

// possible are the values that the register may have now that all calls have ended: those of calls
// that had not ended when the last one began that is known to be done.
func (r *register[T]) possible() (values []T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := int64(0)
	for _, s := range r.all {
		if s.done {
			last = max(last, s.begun)
		}
	}
	for _, s := range r.all {
		if s.end >= last && !slices.Contains(values, s.value) {
			values = append(values, s.value)
		}
	}
	return values
}

// is sets the value that the register is seen to have while no call is under way.
func (r *register[T]) is(value T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := instants.Add(1)
	r.all = []*setting[T]{{register: r, value: value, begun: now, end: now, done: true}}
}

// An outcome is what is known of a call.
type outcome int

const (
	unheard outcome = iota // a kill came first
	done
	refused
)
