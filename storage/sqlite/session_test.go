package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/claybot/claybot/storage/relational"
)

// The tests look at the tables themselves.

type row = relational.Row

func (db *DB) read(ctx context.Context, fn func(c *conn) error) error {
	return db.readFrom(ctx, db.readers, fn)
}

func (db *DB) report(ctx context.Context, fn func(c *conn) error) error {
	return db.readFrom(ctx, db.reporter, fn)
}

// change runs statements in a transaction of the writer.
func (db *DB) change(ctx context.Context, fn func(c *conn) error) error {
	return db.Write(ctx, false, func(*relational.Conn) error { return fn(db.writer) })
}

func (c *conn) each(q string, f func(r row) error, args ...any) error {
	return c.Each(q, f, relational.Values(args))
}

func (c *conn) first(q string, f func(r row) error, args ...any) (found bool, err error) {
	err = c.each(q, func(r row) error {
		if found {
			return nil
		}
		found = true
		return f(r)
	}, args...)
	return found, err
}

func (c *conn) exec(q string, args ...any) (int64, error) {
	n, err := c.Exec(q, relational.Values(args))
	if n > 0 || err != nil {
		c.Spoiled()
	}
	return n, err
}

// An ender is a driver whose writes end as end says, after the store has done its
// part.
type ender struct {
	*DB
	end func(c *conn) error
}

func (e ender) Write(ctx context.Context, soft bool, fn func(c *relational.Conn) error) error {
	return e.DB.Write(ctx, soft, func(c *relational.Conn) error {
		err := fn(c)
		return errors.Join(err, e.end(e.writer))
	})
}

// ending is the store, but for how its writes end.
func (db *DB) ending(end func(c *conn) error) *relational.Store {
	return relational.New(ender{db, end}, &dialect, db.log)
}

// stored is a body as every version has written it, and its checksum.
func stored(t testing.TB, v any) (body string, crc uint32) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}
