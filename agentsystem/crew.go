package agentsystem

import (
	"context"
	"sync"
	"time"

	"github.com/claybot/claybot/inbox"
)

// A crew is the workers of one node: at most size, each with one held agent.
type crew struct {
	slots chan struct{}
	wg    sync.WaitGroup

	mu   sync.Mutex
	busy map[*inbox.AgentInbox]struct{}
}

func newCrew(size int) *crew {
	return &crew{slots: make(chan struct{}, size), busy: make(map[*inbox.AgentInbox]struct{})}
}

// room blocks until at least one worker may start and says how many may. Only
// one goroutine may ask and start.
func (c *crew) room(ctx context.Context) (int, error) {
	select {
	case c.slots <- struct{}{}:
		<-c.slots
		return cap(c.slots) - len(c.slots), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// busyNow is how many workers have a slot.
func (c *crew) busyNow() int { return len(c.slots) }

// start gives b to a worker. The worker may call leave to give its slot to another one
// while it only waits.
func (c *crew) start(b *inbox.AgentInbox, work func(b *inbox.AgentInbox, leave func())) {
	c.slots <- struct{}{}
	c.mu.Lock()
	c.busy[b] = struct{}{}
	c.mu.Unlock()
	leave := sync.OnceFunc(func() { <-c.slots })
	c.wg.Go(func() {
		defer func() {
			b.Close()
			c.mu.Lock()
			delete(c.busy, b)
			c.mu.Unlock()
			leave()
		}()
		work(b, leave)
	})
}

// wait blocks until all workers have ended or d has passed; d of 0 is for ever.
func (c *crew) wait(d time.Duration) bool {
	done := make(chan struct{})
	go func() { // ends with the workers, for which wait is called again without a limit
		c.wg.Wait()
		close(done)
	}()
	if d == 0 {
		<-done
		return true
	}
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// end asks all workers to stop with a cause.
func (c *crew) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for b := range c.busy {
		b.End(cause)
	}
}
