package storage

import (
	"container/list"
	"sync"
	"time"
)

// A Recent keeps values that were in use a moment ago and may be wanted again. A value
// belongs to its user alone: Take removes it, Put brings it back. It is safe for concurrent
// use.
type Recent[K comparable, V any] struct {
	limit int64
	idle  time.Duration

	mu    sync.Mutex
	byKey map[K]*list.Element // of recent[K, V]
	order list.List           // the value used last first
	cost  int64
	sweep *time.Timer // when to look for idle values next; nil: no time is set
}

type recent[K comparable, V any] struct {
	key   K
	value V
	cost  int64
	used  time.Time
}

// NewRecent returns an empty Recent that keeps values of the cost limit together, each for
// idle after its last use at most. The cost of a value is about the memory that it takes,
// in bytes.
func NewRecent[K comparable, V any](limit int64, idle time.Duration) *Recent[K, V] {
	return &Recent[K, V]{limit: limit, idle: idle, byKey: make(map[K]*list.Element)}
}

// Take removes and returns the value of a key.
func (c *Recent[K, V]) Take(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return value, false
	}
	return c.remove(e).value, true
}

// Put keeps a value in the place of another one of its key, and drops the values that were
// not used for the longest time where all together cost too much.
func (c *Recent[K, V]) Put(key K, value V, cost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[key]; e != nil {
		c.remove(e)
	}
	now := time.Now()
	c.byKey[key] = c.order.PushFront(recent[K, V]{key, value, cost, now})
	c.cost += cost
	c.release(now)
}

// Shrink drops the values that were not used for the longest time until the others cost at most
// limit, and are at most n.
func (c *Recent[K, V]) Shrink(limit int64, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Back(); e != nil && (c.cost > limit || len(c.byKey) > n); e = c.order.Back() {
		c.remove(e)
	}
}

// Size is how many values are kept, and what they cost.
func (c *Recent[K, V]) Size() (n int, cost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byKey), c.cost
}

// release drops what is too old or too much, and looks again when the next one is too old.
func (c *Recent[K, V]) release(now time.Time) {
	for e := c.order.Back(); e != nil; e = c.order.Back() {
		left := c.idle - now.Sub(e.Value.(recent[K, V]).used)
		if left > 0 && c.cost <= c.limit {
			if c.sweep == nil {
				c.sweep = time.AfterFunc(left, func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.sweep = nil
					c.release(time.Now())
				})
			}
			return
		}
		c.remove(e)
	}
}

func (c *Recent[K, V]) remove(e *list.Element) recent[K, V] {
	x := c.order.Remove(e).(recent[K, V])
	delete(c.byKey, x.key)
	c.cost -= x.cost
	return x
}
