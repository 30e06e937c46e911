package nodes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The states of the life of a node, beside Stopped.
const (
	Created    = "created"
	Configured = "configured"
	Started    = "started"
	Deleted    = "deleted"
)

// Grace is how long a stop waits for what a node has begun.
const Grace = 10 * time.Second

// The errors of calls, and the causes of the end of a context of Work.
var (
	ErrNotConfigured = errors.New("not configured")
	ErrDeleted       = errors.New("deleted")
	ErrStopped       = errors.New("stopped")
	ErrReplaced      = errors.New("replaced by another configuration")
	// ErrHangs is of a node that has not ended within Grace. What follows it waits for its end.
	ErrHangs = errors.New("does not end")
)

// errIdle is of a Work that ended before it had started, without an error.
var errIdle = errors.New("it ended before it had started")

// A Node is what is configured and works, such as a connector. Its life is four calls, which may be
// repeated and come at once; the table of the package comment says what each does in each state.
type Node[C any] interface {
	// Configure gives it a configuration. If it works with another one, that ends, and the work
	// begins anew once it has. After an error nothing has changed.
	Configure(c C) error
	// Start begins the work and returns once that has started, or with the error of the attempt. All
	// calls that come meanwhile have the same attempt, which goes on when their ctx is done.
	Start(ctx context.Context) error
	// Stop ends the work, and a start that hangs, and returns once it has ended, or after Grace with
	// ErrHangs.
	Stop(ctx context.Context) error
	// Delete ends it for good, as Stop does. Its name may come again, as another node.
	Delete(ctx context.Context) error
	// State returns its state, and the error that stopped it; nil: a call did.
	State() (state string, err error)
}

// A life is a Node of a Set. The lock of the Set guards it.
type life[C comparable] struct {
	set    *Set[C]
	name   string
	state  string
	config C
	err    error
	stint  *stint[C] // the last one, also of a former node of the name; nil for none
}

// A stint is one time for which a node works.
type stint[C comparable] struct {
	name   string
	config C
	after  []*stint[C]              // that end first
	behind atomic.Pointer[stint[C]] // the one of after that it waits for; nil for none
	cut    context.CancelCauseFunc  // nil until it begins, by the lock of the Set
	up     func()                   // closes tried
	tried  chan struct{}            // closed when it has started, or failed to
	failed error                    // why; to be read when tried is closed
	ended  chan struct{}            // closed when it works no more
}

// Configure implements Node.
func (l *life[C]) Configure(c C) error {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	return l.configure(c, nil)
}

// configure is Configure; what begins waits for the stints after.
func (l *life[C]) configure(c C, after []*stint[C]) error {
	switch {
	case l.state == Deleted:
		return ErrDeleted
	case l.state == Created:
		l.state = Configured
	case l.config == c:
		return nil
	}
	l.config = c
	if l.state == Started {
		l.set.end(l.stint, ErrReplaced)
		l.begin(after)
	}
	return nil
}

// start begins the work, unless it has begun.
func (l *life[C]) start(after []*stint[C]) error {
	switch l.state {
	case Created:
		return ErrNotConfigured
	case Deleted:
		return ErrDeleted
	case Configured, Stopped:
		l.begin(after)
	}
	return nil
}

// begin begins a stint, which waits for those after and the last one.
func (l *life[C]) begin(after []*stint[C]) {
	if !l.stint.isOver() {
		after = append(slices.Clip(after), l.stint)
	}
	t := &stint[C]{name: l.name, config: l.config, after: after, tried: make(chan struct{}), ended: make(chan struct{})}
	t.up = sync.OnceFunc(func() { close(t.tried) })
	l.stint, l.state, l.err = t, Started, nil
	l.set.begin(t)
}

// Start implements Node.
func (l *life[C]) Start(ctx context.Context) error {
	l.set.mu.Lock()
	err, t := l.start(nil), l.stint
	l.set.mu.Unlock()
	for err == nil {
		select {
		case <-t.tried:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		l.set.mu.Lock()
		now, anew := l.stint, l.state == Started && l.stint != t
		l.set.mu.Unlock()
		if t.failed == nil || !anew {
			return t.failed
		}
		t = now // it was configured meanwhile
	}
	return err
}

// Stop implements Node.
func (l *life[C]) Stop(ctx context.Context) error {
	l.set.mu.Lock()
	if l.state == Started {
		l.state = Stopped
		l.set.end(l.stint, ErrStopped)
	}
	t := l.stint
	l.set.mu.Unlock()
	return t.gone(ctx)
}

// Delete implements Node.
func (l *life[C]) Delete(ctx context.Context) error {
	l.set.mu.Lock()
	t := l.delete()
	l.set.mu.Unlock()
	return t.gone(ctx)
}

// delete deletes it, and returns its last stint. The Set knows it until that has ended.
func (l *life[C]) delete() *stint[C] {
	was := l.state
	l.state = Deleted
	if was == Started {
		l.set.end(l.stint, ErrDeleted)
	}
	if l.set.all[l.name] == l && l.stint.isOver() {
		delete(l.set.all, l.name)
	}
	return l.stint
}

// State implements Node.
func (l *life[C]) State() (string, error) {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	return l.state, l.err
}

// isOver reports whether a stint has ended; nil has.
func (t *stint[C]) isOver() bool {
	if t == nil {
		return true
	}
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// gone waits until a stint has ended.
func (t *stint[C]) gone(ctx context.Context) error {
	if t.isOver() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Grace, ErrHangs)
	defer cancel()
	select {
	case <-t.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish ends a stint with its error. The caller holds the lock of the Set.
func (t *stint[C]) finish(set *Set[C], err error) {
	if l := set.all[t.name]; l != nil && l.stint == t {
		switch l.state {
		case Started:
			l.state, l.err = Stopped, err
		case Deleted:
			delete(set.all, t.name)
		}
	}
	select {
	case <-t.tried:
	default:
		if t.failed = err; err == nil {
			t.failed = errIdle
		}
	}
	t.up()
	close(t.ended)
}
