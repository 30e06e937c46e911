package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// Load implements storage.Portable.
func (a *Archive) Load(ctx context.Context, t storage.Table, rows iter.Seq2[storage.Row, error]) error {
	if t.Name == storage.TableSequences {
		return a.loadSequences(ctx, rows)
	}
	columns, more := slices.Clone(t.Columns), []any(nil)
	if t.Name == storage.TableTree {
		columns, more = append(columns, "version"), []any{int64(0)}
	}
	next, stop := iter.Pull2(rows)
	defer stop()
	version := int64(1) // tree_clock starts there
	_, err := a.conn.CopyFrom(ctx, pgx.Identifier{t.Name}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		r, err, ok := next()
		if !ok || err != nil {
			return nil, err
		}
		values := make([]any, 0, len(columns))
		for _, v := range r {
			if s, ok := v.(string); ok {
				v = storable(s)
			}
			values = append(values, v)
		}
		values = append(values, more...)
		if t.Name == storage.TableTree {
			version++
			values[len(values)-1] = version
		}
		return values, nil
	}))
	if err != nil {
		return classify(err)
	}
	return a.loaded(ctx, t, version)
}

// loaded fills in the derived columns and tables of a loaded table.
func (a *Archive) loaded(ctx context.Context, t storage.Table, version int64) error {
	switch t.Name {
	case storage.TableTree:
		if _, err := a.conn.Exec(ctx, "UPDATE tree_clock SET n = $1, pruned = 0 WHERE one = 1", version); err != nil {
			return classify(err)
		}
	case storage.TableRecords:
		_, err := a.conn.Exec(ctx, "UPDATE agents SET records = r.n FROM (SELECT agent, max(n) AS n FROM records GROUP BY agent) r WHERE r.agent = agents.id")
		if err != nil {
			return classify(err)
		}
	case "memories":
		if err := a.findable(ctx); err != nil {
			return err
		}
	}
	if t.Serial == "" {
		return nil
	}
	_, err := a.conn.Exec(ctx, fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%s', '%s'), max(%s)) FROM %s HAVING max(%s) > 0", t.Name, t.Serial, t.Serial, t.Name, t.Serial))
	return classify(err)
}

// loadSequences advances the sequences past numbers that no row has any more.
func (a *Archive) loadSequences(ctx context.Context, rows iter.Seq2[storage.Row, error]) error {
	for r, err := range rows {
		if err != nil {
			return err
		}
		name, _ := r[0].(string)
		last, _ := r[1].(int64)
		i := slices.IndexFunc(storage.Tables(), func(t storage.Table) bool { return t.Name == name && t.Serial != "" })
		if i < 0 || last < 1 {
			return fmt.Errorf("no table %.40q counts up to %d", name, last)
		}
		_, err = a.conn.Exec(ctx, "SELECT setval(pg_get_serial_sequence($1, $2), $3)", name, storage.Tables()[i].Serial, last)
		if err != nil {
			return classify(err)
		}
	}
	return nil
}

// notesAtOnce is how many notes are read before their words are indexed.
const notesAtOnce = 50

// findable indexes the words of all notes.
func (a *Archive) findable(ctx context.Context) error {
	s := &session{ctx: ctx, conn: a.conn}
	for last := int64(-1 << 62); ; {
		var page []relational.Row
		err := s.Each("SELECT n, scope, path, text FROM memories WHERE n > ? ORDER BY n LIMIT 0+?", func(r relational.Row) error {
			page = append(page, r)
			return nil
		}, []any{last, int64(notesAtOnce)})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			last = r.Int(0)
			if _, err := s.Exec(words.Save, []any{words.Fold(r.Str(2)), words.Fold(r.Str(3)), r.Str(1), r.Str(2)}); err != nil {
				return err
			}
		}
	}
}

// pieceSize is how many bytes of a file are in a row of chunks.
const pieceSize = 1 << 20

// LoadFile implements storage.Portable. It puts the bytes where a member would. Those
// in a bucket are not part of the transaction: the same file has the same key, so a
// second try overwrites the first.
func (a *Archive) LoadFile(ctx context.Context, f storage.PortableFile) error {
	sum := sha256.Sum256([]byte(f.Reference))
	place := "agents/" + f.Agent + "/" + f.ID + "." + hex.EncodeToString(sum[:12])
	content, err := f.Open(ctx)
	if err != nil {
		return err
	}
	if a.cfg.Blobs == nil {
		place = fmt.Sprintf("chunks/%013d/%s-%s", time.Now().UnixMilli(), f.Agent, f.ID)
		err = a.loadPieces(ctx, place, content)
	} else {
		err = a.put(ctx, place, content)
	}
	if err = errors.Join(err, content.Close()); err != nil {
		return err
	}
	var ref claybot.FileReference
	sent := int64(0)
	if json.Unmarshal([]byte(f.Reference), &ref) == nil && ref.Sent { // a damaged one is carried as it is
		sent = ref.Size
	}
	_, err = a.conn.Exec(ctx, "INSERT INTO attachments (agent, id, body, place, sent) VALUES ($1, $2, $3, $4, $5)", f.Agent, f.ID, storable(f.Reference), place, sent)
	return classify(err)
}

func (a *Archive) loadPieces(ctx context.Context, place string, content io.Reader) error {
	buf, part, ended := make([]byte, pieceSize), int64(0), false
	_, err := a.conn.CopyFrom(ctx, pgx.Identifier{"chunks"}, []string{"file", "part", "bytes"}, pgx.CopyFromFunc(func() ([]any, error) {
		if ended {
			return nil, nil
		}
		n, err := io.ReadFull(content, buf)
		ended = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case err != nil && !ended:
			return nil, err
		case n == 0:
			return nil, nil
		}
		part++
		return []any{place, part - 1, buf[:n]}, nil
	}))
	return classify(err)
}

// put copies a file to the bucket through a temporary file, because the upload needs
// the size first.
func (a *Archive) put(ctx context.Context, place string, content io.Reader) error {
	spool, err := os.CreateTemp("", "claybot-file-*")
	if err != nil {
		return err
	}
	defer func() {
		_ = spool.Close() // only reads follow
		_ = os.Remove(spool.Name())
	}()
	size, err := io.Copy(spool, content)
	if err != nil {
		return err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return a.cfg.Blobs.Put(ctx, place, spool, size)
}

// page reads a page of rows.
func (a *Archive) page(ctx context.Context, q string, args ...any) (page []relational.Row, err error) {
	rows, err := a.conn.Query(ctx, q, args...)
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		for i := range values {
			if err == nil {
				values[i], err = plain(values[i])
			}
		}
		if err != nil {
			return nil, err
		}
		page = append(page, values)
	}
	return page, classify(rows.Err())
}

// filesAtOnce is how many files are looked up before they are read: a connection
// answers one query at a time.
const filesAtOnce = 200

// Files implements storage.Portable.
func (a *Archive) Files(ctx context.Context, only string) iter.Seq2[storage.PortableFile, error] {
	return func(yield func(storage.PortableFile, error) bool) {
		s := &session{ctx: ctx, conn: a.conn}
		for agent, id := "", ""; ; {
			var page []relational.Row
			err := s.Each("SELECT agent, id, body, place FROM attachments"+ofSomebody+" AND (agent, id) > (?, ?) AND (? = '' OR agent = ?) ORDER BY agent, id LIMIT 0+?", func(r relational.Row) error {
				page = append(page, r)
				return nil
			}, []any{agent, id, only, only, int64(filesAtOnce)})
			if err != nil {
				yield(storage.PortableFile{}, err)
				return
			}
			for _, r := range page {
				agent, id = r.Str(0), r.Str(1)
				f := storage.PortableFile{Agent: agent, ID: id, Reference: r.Str(2), Open: func(ctx context.Context) (io.ReadCloser, error) { return a.open(ctx, r.Str(3)) }}
				if !yield(f, nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// open reads the bytes of a file.
func (a *Archive) open(ctx context.Context, place string) (io.ReadCloser, error) {
	if len(place) >= 7 && place[:7] == "chunks/" {
		return io.NopCloser(&pieces{ctx: ctx, a: a, place: place}), nil
	}
	if a.cfg.Blobs == nil {
		return nil, errors.New("its bytes are in a store of files, and none is configured (files.url)")
	}
	return a.cfg.Blobs.Open(ctx, place)
}

// pieces reads the bytes of a file from the table chunks, one row at a time.
type pieces struct {
	ctx   context.Context //nolint:containedctx // of the caller who reads
	a     *Archive
	place string
	part  int64
	rest  []byte
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		page, err := p.a.page(p.ctx, "SELECT bytes FROM chunks WHERE file = $1 AND part = $2", p.place, p.part)
		if err != nil {
			return 0, err
		}
		if len(page) > 0 {
			p.rest = page[0].Bytes(0)
		}
		if len(p.rest) == 0 {
			return 0, io.EOF
		}
		p.part++
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
