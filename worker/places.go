package worker

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/profiles"
)

// places are those of runs of workflows at work, by flow. A run that waits has none. They are safe for
// concurrent use.
type places struct {
	most func(flow string) int // 0: there is no limit

	mu    sync.Mutex
	taken map[string]int
	queue map[string][]chan struct{} // in the order in which they came
}

func newPlaces(most func(flow string) int) *places {
	return &places{most: most, taken: make(map[string]int), queue: make(map[string][]chan struct{})}
}

// enter asks for a place. turn is closed when it is there. leave gives it back, or leaves the queue; it is
// called once.
func (p *places) enter(flow string) (turn <-chan struct{}, leave func()) {
	mine := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue[flow] = append(p.queue[flow], mine)
	p.move(flow)
	return mine, func() { p.leave(flow, mine) }
}

func (p *places) leave(flow string, mine chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queue[flow], mine); i >= 0 {
		p.queue[flow] = slices.Delete(p.queue[flow], i, i+1)
	} else if p.taken[flow]--; p.taken[flow] == 0 {
		delete(p.taken, flow)
	}
	p.move(flow)
}

// move lets the first ones of a queue in, as far as there are places. Called under the lock.
func (p *places) move(flow string) {
	most := p.most(flow)
	for len(p.queue[flow]) > 0 && (most == 0 || p.taken[flow] < most) {
		close(p.queue[flow][0])
		p.queue[flow] = p.queue[flow][1:]
		p.taken[flow]++
	}
	if len(p.queue[flow]) == 0 {
		delete(p.queue, flow)
	}
}

// takePlace waits until a run of a workflow may be at work. While it waits, the slot of the worker is for
// others. out gives the place back.
func (s *Worker) takePlace(box *inbox.AgentInbox, slot func()) (out func(), err error) {
	name := flowOf(box)
	if name == "" || s.places == nil {
		return func() {}, nil
	}
	turn, leave := s.places.enter(name)
	select {
	case <-turn:
		return leave, nil
	default:
	}
	slot()
	select {
	case <-turn:
		return leave, nil
	case <-box.Context().Done():
		err = context.Cause(box.Context())
	case <-s.draining:
		err = inbox.ErrShutdown
	}
	leave()
	if _, canceled := errors.AsType[*inbox.CanceledError](err); canceled {
		return func() {}, nil // its run ends
	}
	return nil, err
}

// placed takes a run through its pass, once there is a place for it.
func (s *Worker) placed(ctx context.Context, box *inbox.AgentInbox, agent claybot.Agent, profile profiles.Profile, slot func()) error {
	out, err := s.takePlace(box, slot)
	if err != nil {
		return err
	}
	defer out()                              // also after a panic
	if s.holds(box, agent, profile.Policy) { // it was stopped while it waited
		return s.hold(ctx, box, agent, profile)
	}
	return s.pass(ctx, box, agent, profile, nil)
}

// flowOf returns the flow that the run of a box is of, or that the message is of that begins it; empty
// for none.
func flowOf(box *inbox.AgentInbox) string {
	for _, all := range [][]claybot.AgentMessage{box.Bound, box.Waiting} {
		for _, m := range all {
			if m.Flow != nil {
				return m.Flow.Name
			}
		}
	}
	return ""
}
