package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A clock tells the time of the server by the monotonic clock of this machine, so
// that setting the clock of the machine changes nothing.
type clock struct {
	mu   sync.Mutex
	at   time.Time // when it was measured
	then int64     // the server's unix milliseconds at that moment
	off  time.Duration
}

const (
	// slowAnswer is one that tells little about the time: it may be off by half of
	// that.
	slowAnswer = 100 * time.Millisecond
	keepAnswer = 10 * time.Minute // in which clocks drift by less
)

// measure asks the server for the time. The answer is taken to be from the middle
// between question and answer, so it is off by half a round trip at most.
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
		return nil // what is known is better
	}
	c.at, c.then = middle, server
	c.off = time.Duration(middle.UnixMilli()-server) * time.Millisecond
	return nil
}

// now is the server's present moment in unix milliseconds.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.then + time.Since(c.at).Milliseconds()
}

// skew is how far the clock of this machine is ahead of the server's.
func (c *clock) skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.off
}
