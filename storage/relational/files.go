package relational

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	chunkSize = 1 << 20
	// keepOrphans is how long bytes without a file are kept, left by interrupted
	// uploads.
	keepOrphans = 24 * time.Hour
	// keepDeleted is how long the history and the files of a deleted agent are
	// kept.
	keepDeleted = 30 * 24 * time.Hour
)

// blobPrefix begins the places of files that blobs keeps, chunkPrefix of those in
// the table chunks; the time in the latter tells orphans.
const (
	blobPrefix  = "agents/"
	chunkPrefix = "chunks/"
)

// Bytes is a parameter that is stored as bytes, not as a text.
type Bytes []byte

// Bytes returns a bytes column.
func (r Row) Bytes(i int) []byte {
	b, _ := r[i].([]byte)
	return b
}

// SaveFile implements storage.Files. The bytes are written outside of any
// transaction, so a slow sender blocks no other; the row that makes the file
// visible is written last.
func (s *Agents) SaveFile(ctx context.Context, id claybot.AgentID, f claybot.FileReference, content io.Reader, limit int64) (claybot.FileReference, error) {
	f, err := s.saveFile(ctx, id, f, content, limit)
	return result(f, err, "save a file of agent %s", id)
}

func (s *Agents) saveFile(ctx context.Context, id claybot.AgentID, f claybot.FileReference, content io.Reader, limit int64) (claybot.FileReference, error) {
	if _, err := s.Agent(ctx, id); err != nil { // before reading all bytes
		return f, err
	}
	switch {
	case f.ID == "":
		f.ID = string(claybot.NewID())
	case claybot.AgentID(f.ID).Validate() != nil: // it is part of a key
		return f, fmt.Errorf("invalid file id %.64q", f.ID)
	default:
		kept, _, err := s.reference(ctx, id, f.ID)
		if err == nil || !errors.Is(err, storage.ErrNotFound) {
			return kept, err
		}
	}
	if s.blobs == nil && s.maxInline > 0 {
		limit = min(limit, s.maxInline)
	}
	f.Name, f.Source = storage.FileName(f.Name), ""
	f.Path = "agents/" + string(id) + "/attachments/" + f.ID
	sum, start := sha256.New(), head{}
	counted := &counter{Reader: io.LimitReader(io.TeeReader(content, io.MultiWriter(sum, &start)), limit+1), limit: limit}
	place, err := s.keep(ctx, id, f.ID, counted)
	if err != nil {
		return f, err
	}
	f.Size, f.SHA256, f.Text = counted.n, hex.EncodeToString(sum.Sum(nil)), ""
	if len(start) <= storage.TextLimit && storage.PlainText(start) {
		f.Text = string(start)
	}
	return s.attach(ctx, id, f, place)
}

// attach makes a complete file visible. If it was stored concurrently, the
// existing one is returned.
func (s *Agents) attach(ctx context.Context, id claybot.AgentID, f claybot.FileReference, place string) (claybot.FileReference, error) {
	reference, err := json.Marshal(f)
	if err != nil {
		return f, err
	}
	added, err := write(ctx, s.core, func(c *Conn) (int64, error) {
		if _, err := loadInbox(c, id); err != nil {
			return 0, err
		}
		return c.exec("INSERT INTO attachments (agent, id, body, place, sent) VALUES (?, ?, ?, ?, ?) ON CONFLICT (agent, id) DO NOTHING", id, f.ID, reference, place, sentSize(f))
	})
	if err != nil || added > 0 {
		return f, err
	}
	kept, _, err := s.reference(ctx, id, f.ID)
	return kept, err
}

// sentSize is how many bytes of a file count as sent by a person.
func sentSize(f claybot.FileReference) int64 {
	if f.Sent {
		return f.Size
	}
	return 0
}

// SentBytes implements storage.Files. All members see the same: it is a sum over rows.
func (s *Agents) SentBytes(ctx context.Context, ids ...claybot.AgentID) (n int64, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return 0, err
	}
	err = s.read(ctx, func(c *Conn) error {
		_, err := c.first("SELECT CAST(COALESCE(SUM(t.sent), 0) AS BIGINT) FROM attachments t JOIN agents a ON a.id = t.agent WHERE t.agent IN (SELECT value FROM json_each(?))", func(r Row) error { n = r.Int(0); return nil }, list)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count the files sent to %d agents: %w", len(ids), err)
	}
	return n, nil
}

// A counter counts the bytes read and fails beyond a limit.
type counter struct {
	io.Reader
	n, limit int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	if c.n > c.limit {
		return n, fmt.Errorf("more than %d bytes: %w", c.limit, storage.ErrTooMany)
	}
	return n, err
}

// A head is the beginning of what is written to it, one byte more than a text
// may have at most.
type head []byte

func (h *head) Write(b []byte) (int, error) {
	*h = append(*h, b[:min(len(b), storage.TextLimit+1-len(*h))]...)
	return len(b), nil
}

// keep stores the bytes of a file and returns their place.
func (s *Agents) keep(ctx context.Context, id claybot.AgentID, file string, content io.Reader) (place string, err error) {
	if s.blobs == nil {
		place = fmt.Sprintf("%s%013d/%s", chunkPrefix, s.now(), claybot.NewID())
		return place, s.keepChunks(ctx, place, content)
	}
	// Spool first: the size must be known, and the sender may disconnect.
	spool, err := os.CreateTemp("", "claybot-file-*")
	if err != nil {
		return "", err
	}
	defer func() {
		_ = spool.Close() // it is read only from here on
		_ = os.Remove(spool.Name())
	}()
	size, err := io.Copy(spool, content)
	if err != nil {
		return "", err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	place = blobPrefix + string(id) + "/" + file + "." + string(claybot.NewID())
	return place, s.blobs.Put(ctx, place, spool, size)
}

func (s *Agents) keepChunks(ctx context.Context, place string, content io.Reader) error {
	buf := make([]byte, chunkSize)
	for part := 0; ; part++ {
		n, err := io.ReadFull(content, buf)
		if n > 0 {
			_, err := write(ctx, s.core, func(c *Conn) (int64, error) {
				return c.exec("INSERT INTO chunks (file, part, bytes) VALUES (?, ?, ?)", place, part, Bytes(buf[:n]))
			})
			if err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && n < len(buf) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// reference loads the reference of a file and the place of its bytes.
func (s *Agents) reference(ctx context.Context, id claybot.AgentID, file string) (f claybot.FileReference, place string, err error) {
	err = s.read(ctx, func(c *Conn) error {
		return need(c.first("SELECT t.body, t.place FROM attachments t JOIN agents a ON a.id = t.agent WHERE t.agent = ? AND t.id = ?",
			func(r Row) error { place = r.Str(1); return unmarshal(r.Str(0), &f) }, id, file))
	})
	return f, place, err
}

// OpenFile implements storage.Files.
func (s *Agents) OpenFile(ctx context.Context, id claybot.AgentID, file string) (claybot.FileReference, io.ReadCloser, error) {
	f, place, err := s.reference(ctx, id, file)
	if err != nil {
		return claybot.FileReference{}, nil, fmt.Errorf("open file %.64q of agent %s: %w", file, id, err)
	}
	if strings.HasPrefix(place, chunkPrefix) {
		return f, io.NopCloser(&chunks{ctx: ctx, s: s, place: place}), nil
	}
	if s.blobs == nil {
		return claybot.FileReference{}, nil, fmt.Errorf("open file %.64q of agent %s: its bytes are in a store of files, and none is configured (files.url)", file, id)
	}
	r, err := s.blobs.Open(ctx, place)
	if err != nil {
		return claybot.FileReference{}, nil, fmt.Errorf("open file %.64q of agent %s: %w", file, id, err)
	}
	return f, r, nil
}

// chunks reads a file of the table chunks, one piece at a time.
type chunks struct {
	ctx   context.Context //nolint:containedctx // of the caller who reads
	s     *Agents
	place string
	part  int
	rest  bytes.Reader
}

func (r *chunks) Read(b []byte) (int, error) {
	if r.rest.Len() == 0 {
		var next []byte
		err := r.s.read(r.ctx, func(c *Conn) error {
			_, err := c.first("SELECT bytes FROM chunks WHERE file = ? AND part = ?", func(row Row) error { next = row.Bytes(0); return nil }, r.place, r.part)
			return err
		})
		if err != nil {
			return 0, err
		}
		if len(next) == 0 {
			return 0, io.EOF
		}
		r.part++
		r.rest.Reset(next)
	}
	return r.rest.Read(b)
}

// SaveResult implements storage.Files.
func (s *Agents) SaveResult(ctx context.Context, id claybot.AgentID, call, text string) (string, error) {
	name := storage.ResultName(call)
	_, err := write(ctx, s.core, func(c *Conn) (int64, error) {
		if _, err := loadInbox(c, id); err != nil {
			return 0, err
		}
		return c.exec("INSERT INTO results (agent, name, text) VALUES (?, ?, ?) ON CONFLICT (agent, name) DO UPDATE SET text = excluded.text", id, name, text)
	})
	return result("agents/"+string(id)+"/results/"+name, err, "save a tool result of agent %s", id)
}

// PruneFiles removes bytes without a file, and the histories and files of agents
// deleted 30 days before at. Call it once a day.
func (s *Agents) PruneFiles(ctx context.Context, at time.Time) error {
	orphans := fmt.Sprintf("%s%013d", chunkPrefix, at.Add(-keepOrphans).UnixMilli())
	_, err := write(ctx, s.core, func(c *Conn) (int64, error) {
		return c.exec("DELETE FROM chunks WHERE file < ? AND NOT EXISTS (SELECT 1 FROM attachments WHERE place = chunks.file)", orphans)
	})
	if err != nil {
		return fmt.Errorf("prune files: %w", err)
	}
	var gone []claybot.AgentID
	err = s.read(ctx, func(c *Conn) error {
		return c.each("SELECT agent FROM quarantine WHERE at < ? ORDER BY at LIMIT 0+?", func(r Row) error {
			gone = append(gone, claybot.AgentID(r.Str(0)))
			return nil
		}, at.Add(-keepDeleted).UnixMilli(), 10*pruneChunk)
	})
	if err != nil {
		return fmt.Errorf("prune files: %w", err)
	}
	for _, id := range gone {
		if err := s.forget(ctx, id); err != nil {
			return fmt.Errorf("prune the deleted agent %s: %w", id, err)
		}
	}
	return nil
}

// forget removes the remaining data of a deleted agent.
func (s *Agents) forget(ctx context.Context, id claybot.AgentID) error {
	if s.blobs != nil {
		if err := s.blobs.Delete(ctx, blobPrefix+string(id)+"/"); err != nil {
			return err
		}
	}
	err := s.core.update(ctx, func(c *Conn) error {
		for _, q := range []string{
			"DELETE FROM chunks WHERE file IN (SELECT place FROM attachments WHERE agent = ?)",
			"DELETE FROM attachments WHERE agent = ?", "DELETE FROM results WHERE agent = ?",
			"DELETE FROM records WHERE agent = ?", "DELETE FROM quarantine WHERE agent = ?",
		} {
			if err := c.do(q, id); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
