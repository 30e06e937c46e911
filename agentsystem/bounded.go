package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	// callTime bounds a call for the files of one agent that a source waits for.
	callTime = 2 * time.Second
	// stuckAfter is how long a connector waits for one message to be stored until it
	// counts as failing.
	stuckAfter = 10 * time.Second
	// mostStuck is how many abandoned calls there may be: each may hold a thread.
	mostStuck = 256
)

// The causes of a fault of an agent whose files do not answer.
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

// refuses is why no call is made for the agent with a key now.
func (c *calls) refuses(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stuck[key] > 0:
		return &storage.Fault{Class: storage.ClassAgent, Err: errStillCalled}
	case c.all >= mostStuck:
		return &storage.Fault{Class: storage.ClassMember, Err: fmt.Errorf("%d calls for files of agents have not returned", c.all)}
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
			panic(r.panicked) // as if it had been called here
		}
		return r.value, r.err
	case <-ctx.Done():
		return abandon(context.Cause(ctx))
	case <-timer.C:
		return abandon(&storage.Fault{Class: storage.ClassAgent, Err: errNoAnswer})
	}
}

// agentFor is AgentFor of the store, within callTime.
func (s *AgentSystem) agentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error) {
	return within(ctx, &s.calls, d.Key(), func() (claybot.Agent, error) { return s.Agents.AgentFor(ctx, d) })
}

// agent is Agent of the store, within callTime.
func (s *AgentSystem) agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error) {
	return within(ctx, &s.calls, string(id), func() (claybot.Agent, error) { return s.Agents.Agent(ctx, id) })
}

// An intake knows since when connectors wait for messages to be stored. The zero
// value is ready.
type intake struct {
	mu    sync.Mutex
	last  int
	since map[int]pending
}

type pending struct {
	connector string
	at        time.Time
}

// begin notes that a connector waits, until end is called.
func (i *intake) begin(connector string) (end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.since == nil {
		i.since = make(map[int]pending)
	}
	i.last++
	n := i.last
	i.since[n] = pending{connector, time.Now()}
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.since, n)
	}
}

// stuck says for how long a connector has waited for one message, in a sentence;
// empty when that is not too long.
func (i *intake) stuck(connector string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var longest time.Duration
	for _, p := range i.since {
		if p.connector == connector {
			longest = max(longest, time.Since(p.at))
		}
	}
	if longest < stuckAfter {
		return ""
	}
	return fmt.Sprintf("a message waits to be stored for %s, and others wait behind it", longest.Truncate(time.Second))
}
