package files

import (
	"container/list"
	"io/fs"
	"sync"
	"time"

	"github.com/claybot/claybot"
)

const (
	tailsLimit = 8 << 20         // bytes of history files whose tails stay decoded
	tailsIdle  = 5 * time.Minute // for at most this long after the last use
	tailCost   = 512             // what a tail takes besides its lines
)

// A cachedTail is the decoded tail of a history file as its last writer left
// it. It belongs to one at a time: the cache or an open history.
type cachedTail struct {
	id      claybot.AgentID
	marker  claybot.Record
	records []claybot.Record
	from    int64     // offset of the marker or summary
	noted   marker    // as far as is recorded
	size    int64     // of the whole file
	mod     time.Time // of the file
	used    time.Time
}

func (t *cachedTail) cost() int64 { return t.size - t.from + tailCost }

// tails keeps the tails of histories that were closed a moment ago, so that a
// busy agent's file is not read and decoded for every message.
type tails struct {
	mu    sync.Mutex
	byID  map[claybot.AgentID]*list.Element
	order *list.List // of *cachedTail, the most recently used first
	bytes int64
	limit int64
}

func newTails(limit int64) *tails {
	return &tails{byID: make(map[claybot.AgentID]*list.Element), order: list.New(), limit: limit}
}

// take removes the tail of id and returns it when the file is still as it was.
func (c *tails) take(id claybot.AgentID, file fs.FileInfo) (*cachedTail, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		return nil, false
	}
	t := c.remove(e)
	return t, t.size == file.Size() && t.mod.Equal(file.ModTime())
}

// put adds t and drops what is too old or too much.
func (c *tails) put(t *cachedTail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[t.id]; e != nil {
		c.remove(e)
	}
	t.used = time.Now()
	c.byID[t.id] = c.order.PushFront(t)
	c.bytes += t.cost()
	for e := c.order.Back(); e != nil; e = c.order.Back() {
		if c.bytes <= c.limit && t.used.Sub(e.Value.(*cachedTail).used) < tailsIdle {
			break
		}
		c.remove(e)
	}
}

// forget drops the tail of id.
func (c *tails) forget(id claybot.AgentID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[id]; e != nil {
		c.remove(e)
	}
}

func (c *tails) remove(e *list.Element) *cachedTail {
	t := c.order.Remove(e).(*cachedTail)
	delete(c.byID, t.id)
	c.bytes -= t.cost()
	return t
}
