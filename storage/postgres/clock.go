package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A clock derives the server's time from the monotonic clock of this machine, so
// setting the clock of the machine has no effect.
type clock struct {
	mu   sync.Mutex
	at   time.Time // when it was measured
	then int64     // the server's unix milliseconds at that moment
	off  time.Duration
}

const (
	// slowAnswer is too slow to measure the time by: the result may be off by half of it.
	slowAnswer = 100 * time.Millisecond
	keepAnswer = 10 * time.Minute // clocks drift by less than slowAnswer in this time
)

// measure asks the server for the time. It assumes that the server answered halfway
// through the round trip, so the error is at most half of it.
func (c *clock) measure(ctx context.Context, conn *pgx.Conn) error {
	var server int64
	began := time.Now()
	err := conn.QueryRow(ctx, "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)").Scan(&server)
	if err != nil {
		return err
	}
	took := time.Since(began)
	middle := began.Add(took / 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	if took > slowAnswer && !c.at.IsZero() && time.Since(c.at) < keepAnswer {
		return nil // the earlier measurement is better
	}
	c.at, c.then = middle, server
	c.off = time.Duration(middle.UnixMilli()-server) * time.Millisecond
	return nil
}

// now returns the server's time in Unix milliseconds.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.then + time.Since(c.at).Milliseconds()
}

// skew returns how far the clock of this machine is ahead of the server's.
func (c *clock) skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.off
}
