package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// An Archive is a claybot.db as tables, to be copied as a whole. Nobody else may use
// the file, and it may be used by one goroutine at a time. It has what package storage
// says of a Portable, but for what agents remember and were sent.
type Archive struct {
	c       *conn
	path    string
	loading bool
	rows    int // since the last commit
	bytes   int
}

// A commit of a load has about so much.
const (
	loadRows  = 20_000
	loadBytes = 32 << 20
)

// OpenArchive opens a claybot.db that Open has brought to the present version.
func OpenArchive(ctx context.Context, path string) (*Archive, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openArchive(ctx, path)
}

// CreateArchive makes an empty claybot.db; there must be none.
func CreateArchive(ctx context.Context, path string) (*Archive, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	a, err := openArchive(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := a.c.control("DELETE FROM counters"); err != nil { // the zeros that the schema begins with
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func openArchive(ctx context.Context, path string) (*Archive, error) {
	if err := prepareFile(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	c, err := connect(ctx, path, writerPragmas)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := migrate(c); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, errors.Join(err, c.close()))
	}
	return &Archive{c: c, path: path}, nil
}

// Close ends the last commit and closes the file.
func (a *Archive) Close() error {
	err := a.commit()
	if err = errors.Join(err, a.c.close()); err != nil {
		return fmt.Errorf("close %s: %w", a.path, err)
	}
	return nil
}

func (a *Archive) commit() error {
	if !a.loading {
		return nil
	}
	a.loading, a.rows, a.bytes = false, 0, 0
	return a.c.control("COMMIT")
}

// autoIncremented are the tables whose numbers never come back, also when the newest
// row goes.
const autoIncremented = "SELECT name, seq FROM sqlite_sequence WHERE name IN ('outbox', 'memory_versions') ORDER BY name"

var errEnough = errors.New("enough")

// Rows yields the rows of a table, and none for a table that the file does not have.
func (a *Archive) Rows(ctx context.Context, t storage.Table) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		q, there, err := a.selection(t)
		if err == nil && there {
			a.c.until = ctx
			err = a.c.Each(q, func(r relational.Row) error {
				if !yield(r, nil) {
					return errEnough
				}
				return nil
			}, nil)
			a.c.until = context.Background()
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

func (a *Archive) selection(t storage.Table) (q string, there bool, err error) {
	if t.Name == storage.TableSequences {
		return autoIncremented, true, nil
	}
	if there, err = a.has(t.Name); err != nil || !there {
		return "", there, err
	}
	return "SELECT " + quoted(t.Columns) + " FROM " + t.Name, true, nil
}

func (a *Archive) has(table string) (bool, error) {
	n := 0
	err := a.c.Each("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", func(relational.Row) error { n++; return nil }, []any{table})
	return n > 0, err
}

func quoted(columns []string) string { return `"` + strings.Join(columns, `", "`) + `"` }

// Load adds rows to a table. They are committed now and then: whoever loads keeps the
// file from being used until it is whole.
func (a *Archive) Load(ctx context.Context, t storage.Table, rows iter.Seq2[storage.Row, error]) error {
	q := "INSERT INTO " + t.Name + " (" + quoted(t.Columns) + ") VALUES (" + strings.Repeat("?, ", len(t.Columns)-1) + "?)"
	if t.Name == storage.TableSequences {
		q = ""
	}
	for r, err := range rows {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil && !a.loading {
			err = a.c.control("BEGIN IMMEDIATE")
			a.loading = err == nil
		}
		if err == nil && q == "" {
			err = a.sequence(r)
		} else if err == nil {
			_, err = a.c.Exec(q, slices.Clone(r))
		}
		if err == nil {
			err = a.count(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sequence lets a table go on behind a number.
func (a *Archive) sequence(r storage.Row) error {
	n, err := a.c.Exec("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", []any{r[1], r[0]})
	if err == nil && n == 0 {
		_, err = a.c.Exec("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", []any{r[0], r[1]})
	}
	return err
}

func (a *Archive) count(r storage.Row) error {
	a.rows++
	for _, v := range r {
		if s, ok := v.(string); ok {
			a.bytes += len(s)
		}
	}
	if a.rows < loadRows && a.bytes < loadBytes {
		return nil
	}
	return a.commit()
}
