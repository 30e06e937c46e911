package nodes

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Kind is what the nodes of a Set have in common.
type Kind[C comparable] struct {
	// Work works with a configuration until ctx is done, for a cause, or an error stops it; before it returns,
	// it closes what it has opened. It calls up when the start has succeeded. ctx may be done from the beginning.
	Work func(ctx context.Context, name string, c C, up func()) error
	// Alone says that the nodes share nothing: one of Reconcile waits for the end of what had its name alone.
	Alone bool
	// Wait is how long Reconcile waits for what ends before it goes on; 0: not at all.
	Wait time.Duration
	// Ended is called by Reconcile for each configuration that has ended, or hangs, before anything takes its
	// place; nil: not.
	Ended func(name string, hangs bool)
}

// A Set is the nodes of one kind, by name. Equal configurations are the same one. It is safe for concurrent
// use, but calls of Reconcile come one after another.
type Set[C comparable] struct {
	kind Kind[C]

	mu     sync.Mutex
	all    map[string]*life[C]
	launch func(*stint[C]) // nil while Run does not work
	over   error           // why Run works no more
}

// NewSet makes a Set without nodes. What is started works while Run does.
func NewSet[C comparable](k Kind[C]) *Set[C] {
	return &Set[C]{kind: k, all: make(map[string]*life[C])}
}

// Run has all work that are started, until ctx is done, and returns when all have ended. It runs once.
func (s *Set[C]) Run(ctx context.Context) error {
	var working sync.WaitGroup
	s.mu.Lock()
	s.launch = func(t *stint[C]) {
		mine, cut := context.WithCancelCause(ctx)
		t.cut = cut
		working.Go(func() {
			defer cut(nil)
			err := s.work(mine, t)
			s.mu.Lock()
			defer s.mu.Unlock()
			t.finish(s, err)
		})
	}
	for _, l := range s.all {
		if l.state == Started {
			s.launch(l.stint)
		}
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.launch, s.over = nil, context.Cause(ctx) // from here on none begins
	s.mu.Unlock()
	working.Wait()
	return context.Cause(ctx)
}

// work works once those before it have ended, also where this one is to end: the next one waits for it.
func (s *Set[C]) work(ctx context.Context, t *stint[C]) error {
	for _, former := range t.after {
		t.behind.Store(former)
		<-former.ended
	}
	t.behind.Store(nil)
	t.after = nil
	err := s.kind.Work(ctx, t.name, t.config, func() {
		if ctx.Err() == nil {
			t.up()
		}
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// begin begins a stint, now or with Run. The caller holds the lock.
func (s *Set[C]) begin(t *stint[C]) {
	switch {
	case s.launch != nil:
		s.launch(t)
	case s.over != nil:
		t.finish(s, s.over)
	}
}

// end ends a stint. The caller holds the lock.
func (s *Set[C]) end(t *stint[C], cause error) {
	switch {
	case t.cut != nil:
		t.cut(cause)
	case !t.isOver(): // it has not begun
		t.finish(s, cause)
	}
}

// Node returns the node of a name; one that is not there is made, in the state Created.
func (s *Set[C]) Node(name string) Node[C] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node(name)
}

// node is Node for a caller that holds the lock.
func (s *Set[C]) node(name string) *life[C] {
	was := s.all[name]
	if was != nil && was.state != Deleted {
		return was
	}
	l := &life[C]{set: s, name: name, state: Created}
	if was != nil {
		l.stint = was.stint
	}
	s.all[name] = l
	return l
}

// Reconcile makes next the nodes of the set, all started, by the fewest calls. One whose configuration stays is
// left alone, in whatever state. Those that are gone are stopped and deleted. One that has another configuration,
// or is new, begins when all that end have ended: two of a name, or of what they share, never work at a time.
// Nodes that are Alone wait for what had their name.
// Reconcile returns then, or after the Wait of the Kind, the names that have another configuration or are new,
// sorted; a start that fails is told by the state of its node alone.
func (s *Set[C]) Reconcile(ctx context.Context, next map[string]C) (changed []string) {
	changed, ending := s.endOthers(next)
	wait, cancel := context.WithTimeout(ctx, s.kind.Wait)
	defer cancel()
	for _, t := range ending {
		select {
		case <-t.ended:
		case <-wait.Done():
		}
		if s.kind.Ended != nil {
			s.kind.Ended(t.name, !t.isOver() && ctx.Err() == nil)
		}
	}
	if s.kind.Alone {
		ending = nil // a node waits for the last stint of its name anyway
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range changed {
		l := s.node(name)
		_ = l.configure(next[name], ending) // node returns none that is deleted
		_ = l.start(ending)
	}
	return changed
}

// endOthers ends what next lacks or has otherwise. It returns the names that are to be configured, sorted, and
// the stints that end.
func (s *Set[C]) endOthers(next map[string]C) (changed []string, ending []*stint[C]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, c := range next {
		if l := s.all[name]; l == nil || l.state == Created || l.state == Deleted || l.config != c {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		l := s.all[name]
		_, stays := next[name]
		switch {
		case l.state == Deleted, stays && !slices.Contains(changed, name):
			continue
		case !stays:
			l.delete()
		case l.state == Started:
			s.end(l.stint, ErrReplaced)
		}
		if l.stint != nil {
			ending = append(ending, l.stint)
		}
	}
	return changed, ending
}

// Configuration returns the present configuration of a node; the zero value for none.
func (s *Set[C]) Configuration(name string) (c C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.all[name]; l != nil && l.state != Deleted {
		c = l.config
	}
	return c
}

// Configurations returns those of all nodes, by name.
func (s *Set[C]) Configurations() (all []C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		if l := s.all[name]; l.state != Deleted && l.state != Created {
			all = append(all, l.config)
		}
	}
	return all
}

// Follows reports whether a node waits for what worked before it, and returns the name of that.
func (s *Set[C]) Follows(name string) (former string, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.all[name]
	if l == nil || l.state != Started {
		return "", false
	}
	t := l.stint.behind.Load()
	if t.isOver() {
		return "", false
	}
	return t.name, true
}
