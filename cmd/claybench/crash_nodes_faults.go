package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// A fault is something that happens to nodes or to their database.
type fault int

// The faults.
const (
	faultKill    fault = iota // kill -9 of a node, and its restart
	faultFreeze               // SIGSTOP for longer than a lease, then SIGCONT
	faultCut                  // the connections between a node and the database
	faultRestart              // of the database
	faultTear                 // death in the middle of a write to the database, and a restart
	faultKinds
)

func (f fault) String() string { return [...]string{"kill", "freeze", "cut", "restart", "tear"}[f] }

// A nodesSize says how many faults there are.
type nodesSize [faultKinds]int

// plan is all faults in random order.
func (s nodesSize) plan(rng *rand.Rand) []fault {
	var all []fault
	for f, n := range s {
		for range n {
			all = append(all, fault(f))
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// A blow is one fault as it happened.
type blow struct {
	fault
	node     string // empty: all
	at, over time.Time
	how      string
}

// A storm lets faults happen.
type storm struct {
	*cluster
	rng   *rand.Rand
	calm  bool // each fault is got over before the next
	blows []*blow
	// restarts counts processes that ended by themselves, each of which was
	// started again.
	restarts int
	stories  []string

	thawing sync.WaitGroup
	mu      sync.Mutex
	failed  error
}

// rage lets all planned faults happen, one after the other; the next one may come
// while a node is frozen.
func (s *storm) rage(ctx context.Context, plan []fault, tick func(done int)) error {
	defer s.thawing.Wait()
	for i, f := range plan {
		if err := s.strike(ctx, f); err != nil {
			return fmt.Errorf("%v %d of %d: %w", f, i+1, len(plan), err)
		}
		if err := s.revive(ctx); err != nil {
			return err
		}
		tick(i + 1)
		// Sometimes what follows is quick, mostly there is time to get over it.
		wait := s.upTo(s.lease / 4)
		if s.calm || s.rng.IntN(4) > 0 {
			wait = s.lease + 2*time.Second + s.upTo(s.lease/2)
		}
		if !pause(ctx, wait) {
			return context.Cause(ctx)
		}
		if err := s.trouble(); err != nil {
			return err
		}
	}
	s.thawing.Wait()
	return s.trouble()
}

func (s *storm) upTo(d time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(d) + 1)) }

func (s *storm) trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// revive starts what ended by itself, as a service manager does.
func (s *storm) revive(ctx context.Context) error {
	for _, n := range s.nodes {
		if n.p == nil || n.alive() {
			continue
		}
		s.restarts++
		if len(s.stories) < 5 {
			s.stories = append(s.stories, fmt.Sprintf("node %s ended by itself: %v: %s", n.name, <-n.p.ended, lastLines(n.p.log.String(), 3)))
		}
		n.p = nil
		if err := n.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// pick is a node that nothing is wrong with at the moment.
func (s *storm) pick() *node {
	var ready []*node
	for _, n := range s.nodes {
		if !n.away.Load() {
			ready = append(ready, n)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return ready[s.rng.IntN(len(ready))]
}

func (s *storm) begin(f fault, node, how string) *blow {
	b := &blow{fault: f, node: node, how: how, at: time.Now()}
	s.blows = append(s.blows, b)
	return b
}

// strike lets one fault happen. It returns when that is over, for a freeze when
// it has begun.
func (s *storm) strike(ctx context.Context, f fault) error {
	if f == faultRestart || f == faultFreeze {
		s.thawing.Wait() // at most one is frozen, and the database is not started for it
	}
	if f == faultRestart {
		return s.restart(ctx)
	}
	n := s.pick()
	if n == nil {
		s.thawing.Wait()
		if n = s.pick(); n == nil {
			return errors.New("no node is left to strike")
		}
	}
	switch f {
	case faultKill:
		return s.kill(ctx, n)
	case faultFreeze:
		return s.freeze(ctx, n)
	case faultTear:
		return s.tear(ctx, n)
	default:
		return s.cut(ctx, n)
	}
}

// kill ends a node and starts it again, at once or when others have its work.
func (s *storm) kill(ctx context.Context, n *node) error {
	b := s.begin(faultKill, n.name, "")
	defer func() { b.over = time.Now() }()
	if err := n.kill(); err != nil {
		return err
	}
	b.at = time.Now()
	var wait time.Duration
	if s.rng.IntN(2) == 0 {
		wait = s.lease + s.upTo(s.lease/2)
	}
	if !pause(ctx, wait) {
		return context.Cause(ctx)
	}
	return n.start(ctx)
}

// freeze stops a node for longer than its lease. It goes on meanwhile.
func (s *storm) freeze(ctx context.Context, n *node) error {
	length := s.lease + s.lease/10 + s.upTo(s.lease/2)
	if s.rng.IntN(5) == 0 {
		length += 2 * s.lease
	}
	b := s.begin(faultFreeze, n.name, length.Round(time.Millisecond).String())
	if err := n.freeze(); err != nil {
		return err
	}
	s.thawing.Go(func() {
		pause(ctx, length)
		err := n.thaw()
		s.mu.Lock()
		defer s.mu.Unlock()
		b.over = time.Now()
		s.failed = errors.Join(s.failed, err)
	})
	return nil
}

// cut ends the connections of a node to the database: once, for a while, without
// telling anybody, or from the side of the database.
func (s *storm) cut(ctx context.Context, n *node) error {
	way := s.rng.IntN(4)
	b := s.begin(faultCut, n.name, [...]string{"once", "for a while", "silently", "by the database"}[way])
	defer func() { b.over = time.Now() }()
	switch way {
	case 0:
		n.wire.Drop()
	case 1, 2:
		n.away.Store(true)
		if way == 1 {
			n.wire.Cut()
		} else {
			n.wire.Freeze()
		}
		gone := !pause(ctx, s.upTo(2*s.lease))
		n.wire.Restore()
		n.wire.Thaw()
		n.away.Store(false)
		if gone {
			return context.Cause(ctx)
		}
	default:
		_, err := s.db.Terminate(ctx, "usename = '"+nodeRole(n.name)+"'")
		return err
	}
	return nil
}

// restart stops the database, fast or as if it had crashed, and starts it again.
func (s *storm) restart(ctx context.Context) error {
	mode, how := postgrestest.Fast, "fast"
	if s.rng.IntN(2) == 0 {
		mode, how = postgrestest.Immediate, "immediate"
	}
	b := s.begin(faultRestart, "", how)
	defer func() { b.over = time.Now() }()
	if err := s.db.Stop(ctx, mode); err != nil {
		return err
	}
	if !pause(ctx, s.upTo(s.lease/2)) {
		return context.Cause(ctx)
	}
	return s.db.Start(ctx)
}

// disturbed reports whether a fault other than b fell into the time from b on
// until t.
func (s *storm) disturbed(b *blow, t time.Time) bool {
	for _, o := range s.blows {
		over := o.over
		if over.IsZero() {
			over = t
		}
		// What is over may still be felt for a moment.
		if o != b && o.at.Before(t) && over.Add(s.lease).After(b.at) {
			return true
		}
	}
	return false
}
