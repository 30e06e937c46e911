package react

import (
	"container/list"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

const (
	recentLimit = 32 << 20    // bytes of kept chats
	recentIdle  = time.Minute // for at most this long after the last turn
	leastKept   = 32          // records: a shorter chat is soon made anew
)

// A kept chat is that of a history that may have grown since. The history stays in memory
// with it, so that another one never has the same place.
type kept struct {
	history []claybot.Record
	chat    *llm.Chat
}

// recent keeps the chats of conversations that had a turn a moment ago. The zero value is
// ready. It may be used by any number of goroutines.
type recent struct {
	mu    sync.Mutex
	byID  map[claybot.AgentID]*list.Element
	order list.List // of recentChat, the newest first
	bytes int
	sweep *time.Timer
}

type recentChat struct {
	agent claybot.AgentID
	kept
	bytes int
	used  time.Time
}

// take removes and returns the chat of an agent, if it is that of this history as it was
// before: in the same place of memory, where records are only ever added. Otherwise the
// chat is empty.
func (c *recent) take(id claybot.AgentID, history []claybot.Record) kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := kept{history, new(llm.Chat)}
	if e := c.byID[id]; e != nil {
		old := c.remove(e).kept.history
		if len(history) >= len(old) && &history[0] == &old[0] {
			k.chat = e.Value.(recentChat).chat
		}
	}
	return k
}

// put keeps the chat of an agent after a turn.
func (c *recent) put(id claybot.AgentID, k kept) {
	if len(k.history) < leastKept {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[id]; e != nil {
		c.remove(e)
	}
	if c.byID == nil {
		c.byID = make(map[claybot.AgentID]*list.Element)
	}
	x := recentChat{id, k, k.chat.Size(), time.Now()}
	c.byID[id] = c.order.PushFront(x)
	c.bytes += x.bytes
	c.release(x.used)
}

// release drops what is too old or too much, and looks again when more may be too old.
func (c *recent) release(now time.Time) {
	for e := c.order.Back(); e != nil; e = c.order.Back() {
		left := recentIdle - now.Sub(e.Value.(recentChat).used)
		if left > 0 && c.bytes <= recentLimit {
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

func (c *recent) remove(e *list.Element) recentChat {
	x := c.order.Remove(e).(recentChat)
	delete(c.byID, x.agent)
	c.bytes -= x.bytes
	return x
}
