package relational

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.Memories = (*Store)(nil)

// maxTitle is the maximum length of a title in lists, in bytes.
const maxTitle = 100

func (db notes) Memory(ctx context.Context, scope, path string) (m storage.Memory, err error) {
	err = db.read(ctx, func(c *Conn) (err error) {
		var found bool
		m, found, err = loadMemory(c, scope, path)
		return need(found, err)
	})
	return m, failed(err, "memory %s of %s", path, scope)
}

func loadMemory(c *Conn, scope, path string) (m storage.Memory, found bool, err error) {
	found, err = c.first(memoryColumns+", m.text FROM memories m JOIN memory_versions v USING (version) WHERE m.scope = ? AND m.path = ?",
		func(r Row) error { m = readMemory(r); m.Text = r.Str(9); return nil }, scope, path)
	return m, found, err
}

// memoryColumns begin the queries that readMemory reads.
const memoryColumns = "SELECT m.path, m.title, m.size, m.tainted, v.agent, v.run, v.call, v.by, v.at"

func readMemory(r Row) storage.Memory {
	return storage.Memory{Path: r.Str(0), Title: r.Str(1), Size: r.Int(2), MemoryChange: storage.MemoryChange{
		Tainted: r.Int(3) != 0, Agent: claybot.AgentID(r.Str(4)), Run: claybot.RunID(r.Str(5)),
		Call: r.Str(6), By: r.Str(7), At: claybot.Time(r.Int(8)),
	}}
}

func (db notes) Memories(ctx context.Context, scopes ...string) ([]storage.Memory, error) {
	list, at, known := db.unchanged.listed(scopes)
	if known && db.dialect.Alone {
		return list, nil
	}
	q := memoryColumns + ", m.scope FROM memories m JOIN memory_versions v USING (version) WHERE m.scope IN (?" +
		strings.Repeat(", ?", max(len(scopes)-1, 0)) + ") ORDER BY m.path"
	args := make([]any, max(len(scopes), 1))
	for i, scope := range scopes {
		args[i] = scope
	}
	err := db.read(ctx, func(c *Conn) error {
		list = nil
		return c.each(q, func(r Row) error {
			m := readMemory(r)
			m.Scope = r.Str(9)
			list = append(list, m)
			return nil
		}, args...)
	})
	slices.SortStableFunc(list, func(a, b storage.Memory) int { return slices.Index(scopes, a.Scope) - slices.Index(scopes, b.Scope) })
	if err == nil && db.dialect.Alone {
		db.unchanged.keep(scopes, list, at)
	}
	return result(list, err, "memories of %s", strings.Join(scopes, ", "))
}

// SaveMemory implements storage.Memories. The limit counts the texts.
func (db notes) SaveMemory(ctx context.Context, scope string, m storage.Memory, limit int64) error {
	err := db.update(ctx, func(c *Conn) error {
		if err := c.lock("memories/" + scope); err != nil {
			return err
		}
		if same, err := sameMemory(c, scope, m); err != nil || same {
			return err
		}
		return saveMemory(c, scope, m, limit)
	})
	return failed(err, "save memory %s of %s", m.Path, scope)
}

func (db notes) ChangeMemory(ctx context.Context, scope, path string, by storage.MemoryChange, limit int64, change func(storage.Memory, bool) (string, bool, error)) error {
	err := db.update(ctx, func(c *Conn) error {
		if err := c.lock("memories/" + scope); err != nil {
			return err
		}
		if done, err := changedMemory(c, scope, path, by); err != nil || done {
			return err
		}
		old, found, err := loadMemory(c, scope, path)
		if err != nil {
			return err
		}
		m := storage.Memory{Path: path, MemoryChange: by}
		if m.Text, m.Tainted, err = change(old, found); err != nil {
			return err
		}
		m.Tainted = m.Tainted || by.Tainted
		return saveMemory(c, scope, m, limit)
	})
	return failed(err, "change memory %s of %s", path, scope)
}

// changedMemory reports whether a call has changed a note before.
func changedMemory(c *Conn, scope, path string, by storage.MemoryChange) (bool, error) {
	if by.Call == "" {
		return false, nil
	}
	return c.first("SELECT 1 FROM memory_versions WHERE scope = ? AND path = ? AND run = ? AND call = ?",
		func(Row) error { return nil }, scope, path, by.Run, by.Call)
}

// sameMemory reports whether a note is as its call has written it before.
func sameMemory(c *Conn, scope string, m storage.Memory) (bool, error) {
	if m.Call == "" {
		return false, nil
	}
	return c.first(`SELECT 1 FROM memories m JOIN memory_versions v USING (version)
		WHERE m.scope = ? AND m.path = ? AND m.text = ? AND v.run = ? AND v.call = ?`,
		func(Row) error { return nil }, scope, m.Path, m.Text, m.Run, m.Call)
}

// saveMemory writes a note, with a version.
func saveMemory(c *Conn, scope string, m storage.Memory, limit int64) error {
	if m.Path == "" {
		return errNoPath
	}
	if err := fitsMemory(c, scope, m, limit); err != nil {
		return err
	}
	version, err := addVersion(c, scope, m.Path, m.Text, m.MemoryChange, false)
	if err != nil {
		return err
	}
	c.touched.notes = true
	err = c.do(`INSERT INTO memories (scope, path, title, text, size, tainted, version) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (scope, path) DO UPDATE SET title = excluded.title, text = excluded.text, size = excluded.size,
			tainted = excluded.tainted, version = excluded.version`,
		scope, m.Path, titleOf(m.Text), m.Text, len(m.Text), m.Tainted, version)
	if w := c.dialect.Words; err == nil && w.Save != "" {
		err = c.do(w.Save, w.Fold(m.Path), w.Fold(m.Text), scope, m.Path)
	}
	return err
}

// fitsMemory returns storage.ErrTooMany if a note exceeds the limits of its
// scope.
func fitsMemory(c *Conn, scope string, m storage.Memory, limit int64) error {
	size, others := int64(len(m.Text)), int64(0)
	_, err := c.first("SELECT coalesce(sum(size), 0), count(*) FROM memories WHERE scope = ? AND path <> ?",
		func(r Row) error { size += r.Int(0); others = r.Int(1); return nil }, scope, m.Path)
	switch {
	case err != nil:
		return err
	case size > limit:
		return fmt.Errorf("%w: %d of %d bytes", storage.ErrTooMany, size, limit)
	case others >= storage.MaxMemories:
		return fmt.Errorf("%w: %d notes", storage.ErrTooMany, others)
	}
	return nil
}

// addVersion inserts a version, and removes the oldest ones beyond the limit.
func addVersion(c *Conn, scope, path, text string, by storage.MemoryChange, gone bool) (version int64, err error) {
	at := by.At
	if at == 0 {
		at = claybot.Now()
	}
	_, err = c.insert(`INSERT INTO memory_versions (scope, path, gone, text, agent, run, call, by, tainted, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		RETURNING version`, func(r Row) error { version = r.Int(0); return nil },
		scope, path, gone, text, by.Agent, by.Run, by.Call, by.By, by.Tainted, at)
	if err != nil {
		return 0, err
	}
	err = c.do(`DELETE FROM memory_versions WHERE scope = ?1 AND path = ?2 AND version <=
		(SELECT version FROM memory_versions WHERE scope = ?1 AND path = ?2 ORDER BY version DESC LIMIT 1 OFFSET 0+?3)`,
		scope, path, storage.MaxMemoryVersions)
	return version, err
}

// titleOf returns the first non-blank line of a note, without heading marks.
func titleOf(s string) string {
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#"))
		if line == "" {
			continue
		}
		if len(line) <= maxTitle {
			return line
		}
		end := maxTitle
		for !utf8.RuneStart(line[end]) {
			end--
		}
		return line[:end] + "…"
	}
	return ""
}

func (db notes) DropMemory(ctx context.Context, scope, path string, by storage.MemoryChange) error {
	err := db.update(ctx, func(c *Conn) error {
		c.touched.notes = true
		n, err := c.exec("DELETE FROM memories WHERE scope = ? AND path = ?", scope, path)
		if err == nil && n == 0 {
			err = storage.ErrNotFound
		}
		if err == nil {
			_, err = addVersion(c, scope, path, "", by, true)
		}
		return err
	})
	return failed(err, "drop memory %s of %s", path, scope)
}

// FindMemories implements storage.Memories, by the full-text index.
func (db notes) FindMemories(ctx context.Context, scopes []string, query string, limit int) ([]storage.FoundMemory, error) {
	words, w := wordsOf(query), db.dialect.Words
	if len(words) == 0 || len(scopes) == 0 {
		return nil, nil
	}
	args := []any{w.Match(words)}
	for _, s := range scopes {
		args = append(args, s)
	}
	args = append(args, limit)
	var found []storage.FoundMemory
	err := db.read(ctx, func(c *Conn) error {
		q := fmt.Sprintf(w.Find, memoryColumns+", m.scope", "?"+strings.Repeat(", ?", len(scopes)-1))
		return c.each(q, func(r Row) error {
			excerpt := r.Str(10)
			if w.Excerpt != nil {
				excerpt = w.Excerpt(excerpt, words)
			}
			found = append(found, storage.FoundMemory{Memory: readMemory(r), Scope: r.Str(9), Excerpt: excerpt})
			return nil
		}, args...)
	})
	return result(found, err, "find memories")
}

// maxWords is the maximum number of words of a query; further ones are ignored.
const maxWords = 20

// Words is the full-text search of a database. It matches notes with all words
// of a query, by prefix.
type Words struct {
	// Match is the parameter of Find for words of letters and numbers alone.
	Match func(words []string) string
	// Find is the query: the first verb of its format are the columns it begins
	// with (of memories m and memory_versions v), the second the parameters that
	// are the scopes. Its last column is the excerpt, or the text that Excerpt
	// makes it of.
	Find    string
	Excerpt func(text string, words []string) string
	// Save, when there is one, keeps path and text of a note as Fold makes them,
	// for the note of a scope and path.
	Save string
	Fold func(text string) string
}

// wordsOf returns the words of a query.
func wordsOf(query string) []string {
	words := strings.FieldsFunc(strings.ToValidUTF8(query, " "), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	return words[:min(len(words), maxWords)]
}

func (db notes) MemoryVersions(ctx context.Context, scope, path string, limit int) ([]storage.MemoryVersion, error) {
	list, err := selectAll(ctx, db, readVersion, versionColumns+" WHERE scope = ?1 AND (path = ?2 OR CAST(?2 AS TEXT) = '') ORDER BY version DESC LIMIT 0+?3", scope, path, limit)
	return result(list, err, "versions of memory %s of %s", path, scope)
}

func (db notes) MemoryVersion(ctx context.Context, scope string, version int64) (v storage.MemoryVersion, err error) {
	err = db.read(ctx, func(c *Conn) error {
		return need(c.first(versionColumns+" WHERE scope = ? AND version = ?", func(r Row) error { v = readVersion(r); return nil }, scope, version))
	})
	return v, failed(err, "version %d of a memory of %s", version, scope)
}

const versionColumns = "SELECT version, path, gone, text, agent, run, call, by, tainted, at FROM memory_versions"

func readVersion(r Row) storage.MemoryVersion {
	body := r.Str(3)
	return storage.MemoryVersion{Version: r.Int(0), Gone: r.Int(2) != 0, Memory: storage.Memory{
		Path: r.Str(1), Title: titleOf(body), Text: body, Size: int64(len(body)), MemoryChange: storage.MemoryChange{
			Agent: claybot.AgentID(r.Str(4)), Run: claybot.RunID(r.Str(5)), Call: r.Str(6), By: r.Str(7), Tainted: r.Int(8) != 0, At: claybot.Time(r.Int(9)),
		},
	}}
}

// errNoPath means that a document has no path.
var errNoPath = errors.New("it has no path")

// agentScope returns the scope of an agent's documents, which are deleted with
// the agent.
func agentScope(id claybot.AgentID) string { return "agent/" + string(id) }

func (db notes) Document(ctx context.Context, scope, path string) (string, error) {
	var s string
	err := db.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT text FROM documents WHERE scope = ? AND path = ?",
			func(r Row) error { s = r.Str(0); return nil }, scope, path))
	})
	return result(s, err, "document %s of %s", path, scope)
}

func (db notes) Documents(ctx context.Context, scope string) ([]storage.Document, error) {
	list, err := selectAll(ctx, db, func(r Row) storage.Document {
		return storage.Document{Path: r.Str(0), Size: r.Int(1), At: claybot.Time(r.Int(2))}
	}, "SELECT path, size, at FROM documents WHERE scope = ? ORDER BY path", scope)
	return result(list, err, "documents of %s", scope)
}

// SaveDocument implements storage.Documents. The limit counts the texts.
func (db notes) SaveDocument(ctx context.Context, scope, path, content string, limit int64) error {
	err := db.update(ctx, func(c *Conn) error {
		if path == "" {
			return errNoPath
		}
		if err := c.lock("documents/" + scope); err != nil {
			return err
		}
		size := int64(len(content))
		total := size
		_, err := c.first("SELECT coalesce(sum(size), 0) FROM documents WHERE scope = ? AND path <> ?",
			func(r Row) error { total += r.Int(0); return nil }, scope, path)
		if err != nil {
			return err
		}
		if total > limit {
			return fmt.Errorf("%w: %d of %d bytes", storage.ErrTooMany, total, limit)
		}
		return c.do(`INSERT INTO documents (scope, path, text, size, at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (scope, path) DO UPDATE SET text = excluded.text, size = excluded.size, at = excluded.at`,
			scope, path, content, size, c.now())
	})
	return failed(err, "save document %s of %s", path, scope)
}

// DropDocuments implements storage.Documents. What is not there changes nothing.
func (db notes) DropDocuments(ctx context.Context, scope, path string) error {
	_, err := write(ctx, db, func(c *Conn) (int64, error) {
		return c.exec("DELETE FROM documents WHERE scope = ?1 AND (path = ?2 OR CAST(?2 AS TEXT) = '')", scope, path)
	})
	return failed(err, "drop documents of %s", scope)
}
