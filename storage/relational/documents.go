package relational

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// errNoPath refuses a document that could not be told from its scope.
var errNoPath = errors.New("it has no path")

// agentScope is the scope of the documents that belong to one agent and go with
// it.
func agentScope(id claybot.AgentID) string { return "agent/" + string(id) }

// Document implements storage.Documents.
func (db notes) Document(ctx context.Context, scope, path string) (string, error) {
	var s string
	err := db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT text FROM documents WHERE scope = ? AND path = ?",
			func(r Row) error { s = r.Str(0); return nil }, scope, path))
	})
	if err != nil {
		return "", fmt.Errorf("document %s of %s: %w", path, scope, err)
	}
	return s, nil
}

// Documents implements storage.Documents.
func (db notes) Documents(ctx context.Context, scope string) ([]storage.Document, error) {
	var list []storage.Document
	err := db.read(ctx, func(c *Conn) error {
		return c.each("SELECT path, size, at FROM documents WHERE scope = ? ORDER BY path", func(r Row) error {
			list = append(list, storage.Document{Path: r.Str(0), Size: r.Int(1), At: claybot.Time(r.Int(2))})
			return nil
		}, scope)
	})
	if err != nil {
		return nil, fmt.Errorf("documents of %s: %w", scope, err)
	}
	return list, nil
}

// SaveDocument implements storage.Documents. The limit counts the texts.
func (db notes) SaveDocument(ctx context.Context, scope, path, content string, limit int64) error {
	_, err := write(ctx, db, func(c *Conn) (struct{}, error) {
		if path == "" {
			return struct{}{}, errNoPath
		}
		if err := c.lock("documents/" + scope); err != nil {
			return struct{}{}, err
		}
		size := int64(len(content))
		total := size
		_, err := c.first("SELECT coalesce(sum(size), 0) FROM documents WHERE scope = ? AND path <> ?",
			func(r Row) error { total += r.Int(0); return nil }, scope, path)
		if err != nil {
			return struct{}{}, err
		}
		if total > limit {
			return struct{}{}, fmt.Errorf("%w: %d of %d bytes", storage.ErrTooMany, total, limit)
		}
		err = c.do(`INSERT INTO documents (scope, path, text, size, at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (scope, path) DO UPDATE SET text = excluded.text, size = excluded.size, at = excluded.at`,
			scope, path, content, size, c.now())
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("save document %s of %s: %w", path, scope, err)
	}
	return nil
}

// DropDocuments implements storage.Documents. What is not there changes nothing.
func (db notes) DropDocuments(ctx context.Context, scope, path string) error {
	_, err := write(ctx, db, func(c *Conn) (int64, error) {
		return c.exec("DELETE FROM documents WHERE scope = ?1 AND (path = ?2 OR CAST(?2 AS TEXT) = '')", scope, path)
	})
	if err != nil {
		return fmt.Errorf("drop documents of %s: %w", scope, err)
	}
	return nil
}
