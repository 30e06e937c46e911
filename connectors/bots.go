package connectors

import (
	"fmt"
	"sync"
)

// Bots are the bots of the connectors of one process, by their identity on the platform.
// No two connectors may be one bot: the platform would spread its messages over them. The
// zero value has none; a nil *Bots lets everything pass. It is safe for concurrent use.
type Bots struct {
	mu sync.Mutex
	by map[string]string
}

// Take notes that a connector is the bot with an identity. If another connector is that bot,
// it returns a PermanentError that names both.
func (b *Bots) Take(identity, connector string) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if other, taken := b.by[identity]; taken && other != connector {
		return &PermanentError{
			Err: fmt.Errorf("the connectors %s and %s are the same bot (%s)", other, connector, identity),
			Fix: "give each its own app, or remove one of the two from the configuration",
		}
	}
	if b.by == nil {
		b.by = make(map[string]string)
	}
	b.by[identity] = connector
	return nil
}

// Leave notes that a connector is the bot with an identity no more.
func (b *Bots) Leave(identity, connector string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[identity] == connector {
		delete(b.by, identity)
	}
}
