package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot"
)

const (
	// callTime is the time limit of a call for the files of one agent while a
	// source waits.
	callTime = 2 * time.Second
	// mostStuck is the maximum number of abandoned calls, each of which may hold
	// a thread.
	mostStuck = 256
)

// Causes of the fault of an agent whose files do not respond.
var (
	errNoAnswer    = fmt.Errorf("the files of the agent did not answer within %s", callTime)
	errStillCalled = errors.New("an earlier call for the files of the agent has not returned")
)

// calls are the calls that were abandoned and have not returned, by the key of an
// agent. The zero value is ready.
type calls struct {
	mu    sync.Mutex
	stuck map[string]int
	all   int
}

// refuses returns why no call is made for the agent with a key; nil if calls
// are allowed.
func (c *calls) refuses(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stuck[key] > 0:
		return &Fault{Class: ClassAgent, Err: errStillCalled}
	case c.all >= mostStuck:
		return &Fault{Class: ClassMember, Err: fmt.Errorf("%d calls for files of agents have not returned", c.all)}
	}
	return nil
}

// count adds n abandoned calls for the agent with a key. It needs mu.
func (c *calls) count(key string, n int) {
	if c.stuck == nil {
		c.stuck = make(map[string]int)
	}
	c.all += n
	if c.stuck[key] += n; c.stuck[key] == 0 {
		delete(c.stuck, key)
	}
}

// within makes a call for the files of the agent with a key, and returns a fault of
// that agent when the call takes longer than callTime. The call goes on then, because
// nothing ends a system call, and its result is discarded. Until it returns, further
// calls for the agent fail at once, so retries do not pile up behind it. With mostStuck
// of them, the fault is of this member, and no further call is made.
func within[T any](ctx context.Context, c *calls, key string, call func() (T, error)) (T, error) {
	type result struct {
		value    T
		err      error
		panicked any
	}
	var none T
	if err := c.refuses(key); err != nil {
		return none, err
	}
	done := make(chan result, 1)
	returned, abandoned := false, false // guarded by c.mu
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			c.mu.Lock()
			defer c.mu.Unlock()
			done <- r
			if returned = true; abandoned {
				c.count(key, -1)
			}
		}()
		r.value, r.err = call()
	}()
	abandon := func(why error) (T, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if abandoned = !returned; abandoned {
			c.count(key, 1)
		}
		return none, why
	}
	timer := time.NewTimer(callTime)
	defer timer.Stop()
	select {
	case r := <-done:
		if r.panicked != nil {
			panic(r.panicked) // as if called here
		}
		return r.value, r.err
	case <-ctx.Done():
		return abandon(context.Cause(ctx))
	case <-timer.C:
		return abandon(&Fault{Class: ClassAgent, Err: errNoAnswer})
	}
}

// AgentLookup finds and creates agents; see Agents.
type AgentLookup interface {
	AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error)
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
	MoveChannel(ctx context.Context, connector, from, to string) error
}

// Bounded implements AgentLookup with a time limit: no call takes longer than 2 s,
// even if the files of an agent do not respond.
type Bounded struct {
	agents AgentLookup
	calls  calls
}

// NewBounded returns a Bounded that calls agents.
func NewBounded(agents AgentLookup) *Bounded { return &Bounded{agents: agents} }

// AgentFor finds or creates the agent of a descriptor.
func (b *Bounded) AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error) {
	return within(ctx, &b.calls, d.Key(), func() (claybot.Agent, error) { return b.agents.AgentFor(ctx, d) })
}

// Agent finds an agent by its id.
func (b *Bounded) Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error) {
	return within(ctx, &b.calls, string(id), func() (claybot.Agent, error) { return b.agents.Agent(ctx, id) })
}

// MoveChannel gives the agents of a channel its new id.
func (b *Bounded) MoveChannel(ctx context.Context, connector, from, to string) error {
	_, err := within(ctx, &b.calls, connector+"/"+from, func() (struct{}, error) {
		return struct{}{}, b.agents.MoveChannel(ctx, connector, from, to)
	})
	return err
}

// Text makes a call that reads the files of an agent for a text.
func (b *Bounded) Text(ctx context.Context, d claybot.Descriptor, call func() (string, error)) (string, error) {
	return within(ctx, &b.calls, d.Key(), call)
}
