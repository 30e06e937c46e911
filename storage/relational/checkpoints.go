package relational

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot/storage"
)

// setMark sets one mark with the transaction; the zero Mark is none.
func setCheckpoint(c *Conn, m storage.Checkpoint) error {
	if m.Key == "" {
		return nil
	}
	return c.do("INSERT INTO marks (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", m.Key, m.Value)
}

// SetMarks sets several marks in one transaction, which is not synced by itself: a loss
// of power may take it back. An empty value removes a mark.
func (db access) SetCheckpoints(ctx context.Context, values map[string]string) error {
	_, err := lightly(ctx, db, func(c *Conn) (struct{}, error) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			var err error
			if value := values[key]; value == "" {
				err = c.do("DELETE FROM marks WHERE key = ?", key)
			} else {
				err = setCheckpoint(c, storage.Checkpoint{Key: key, Value: value})
			}
			if err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return fmt.Errorf("set %d marks: %w", len(values), err)
	}
	return nil
}

// MarkKeys lists the keys of the marks that begin with prefix.
func (db access) CheckpointKeys(ctx context.Context, prefix string) (keys []string, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return c.each("SELECT key FROM marks WHERE key >= ? ORDER BY key", func(r Row) error {
			if key := r.Str(0); strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
			return nil
		}, prefix)
	})
	if err != nil {
		return nil, fmt.Errorf("list the marks of %s: %w", prefix, err)
	}
	return keys, nil
}
