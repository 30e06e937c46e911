package sqlite

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/claybot/claybot/storage"
)

// lengthy takes much longer than anybody here waits for it.
const lengthy = "WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 400000) "

// TestReadEndsWithItsContext: a read that had begun went on to its end, and kept
// one of two connections for as long.
func TestReadEndsWithItsContext(t *testing.T) {
	db := openFresh(t)
	cause := errors.New("the caller has gone")
	for _, on := range []func(context.Context, func(*conn) error) error{db.read, db.report} {
		for range 3 * readers { // each connection, again and again
			// The driver misses an interruption that comes just before it begins;
			// then the read goes on to its end.
			var err error
			for try := 0; try < 10 && err == nil; try++ {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
				err = on(ctx, func(c *conn) error {
					return c.each(lengthy+"SELECT sum(i * 2) FROM k WHERE i % 3 = 1", func(row) error { return nil })
				})
				cancel()
			}
			if !errors.Is(err, cause) {
				t.Errorf("a sum ended with %v", err)
			}
			ctx, cancelRows := context.WithCancelCause(t.Context())
			rows := 0
			err = on(ctx, func(c *conn) error {
				return c.each(lengthy+"SELECT i FROM k", func(row) error {
					if rows++; rows == 100 {
						cancelRows(cause)
					}
					return nil
				})
			})
			if cancelRows(nil); !errors.Is(err, cause) || rows != 100 {
				t.Errorf("a list ended after %d rows with %v", rows, err)
			}
			err = on(t.Context(), func(c *conn) error {
				found, err := c.first("SELECT 1", func(row) error { return nil })
				if !found {
					t.Error("nothing found afterwards")
				}
				return err
			})
			if err != nil {
				t.Errorf("afterwards: %v", err)
			}
		}
	}
}

// TestReportsKeepToThemselves: reports and the reads of runs do not wait for
// each other.
func TestReportsKeepToThemselves(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	reports := func(ctx context.Context) error {
		_, err := db.Spent(ctx, storage.SpentQuery{By: []string{storage.ByAgent}})
		_, err2 := db.Latencies(ctx, "", "")
		return errors.Join(err, err2)
	}
	heavy := <-db.reporter // as if a report ran
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := reports(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second report beside the first: %v", err)
	}
	if _, err := db.RunPage(ctx, storage.RunQuery{}); err != nil {
		t.Error(err)
	}
	db.reporter <- heavy
	first, second := <-db.readers, <-db.readers // as if two reads ran
	if err := reports(ctx); err != nil {
		t.Error(err)
	}
	db.readers <- first
	db.readers <- second
}
