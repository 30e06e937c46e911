package agentsystem

import (
	"fmt"
	"sync"
	"time"
)

// stuckAfter is how long a connector waits for one message to be stored until it
// counts as failing.
const stuckAfter = 10 * time.Second

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
