package discord

import "sync"

// A memory has the newest values by their keys. The zero value is ready to use.
type memory[V any] struct {
	mu    sync.Mutex
	by    map[string]V
	order []string // of the keys, the oldest first
}

// keep notes a value, and forgets the oldest ones where there are more than most.
func (m *memory[V]) keep(key string, value V, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = make(map[string]V)
	}
	if _, again := m.by[key]; !again {
		m.order = append(m.order, key)
	}
	m.by[key] = value
	for len(m.order) > most {
		delete(m.by, m.order[0])
		m.order = m.order[1:]
	}
}

// get returns the value of a key; the zero value if there is none.
func (m *memory[V]) get(key string) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by[key]
}
