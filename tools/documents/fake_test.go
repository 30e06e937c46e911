package documents_test

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/claybot/claybot/storage"
)

// memory is storage.Documents without a disk, for what would take a disk long.
// With fail set, everything fails so.
type memory struct {
	mu    sync.Mutex
	texts map[string]map[string]string // scope, path
	fail  error
}

func (m *memory) Document(_ context.Context, scope, path string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.texts[scope][path]
	if m.fail != nil {
		return "", m.fail
	}
	if !ok {
		return "", storage.ErrNotFound
	}
	return text, nil
}

func (m *memory) Documents(_ context.Context, scope string) ([]storage.Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []storage.Document
	for _, path := range slices.Sorted(maps.Keys(m.texts[scope])) {
		all = append(all, storage.Document{Path: path, Size: int64(len(m.texts[scope][path]))})
	}
	return all, m.fail
}

func (m *memory) SaveDocument(_ context.Context, scope, path, text string, limit int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := int64(len(text))
	for p, t := range m.texts[scope] {
		if p != path {
			total += int64(len(t))
		}
	}
	if m.fail != nil {
		return m.fail
	}
	if total > limit {
		return storage.ErrTooMany
	}
	if m.texts == nil {
		m.texts = map[string]map[string]string{}
	}
	if m.texts[scope] == nil {
		m.texts[scope] = map[string]string{}
	}
	m.texts[scope][path] = text
	return nil
}

func (m *memory) DropDocuments(_ context.Context, scope, path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if path == "" {
		delete(m.texts, scope)
	}
	delete(m.texts[scope], path)
	return m.fail
}
