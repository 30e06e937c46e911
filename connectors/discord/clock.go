package discord

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A clock estimates Discord's time from the Date of its responses and from the ids of events: the
// clock of this machine may be wrong. The zero value is ready to use, with the time of this machine.
type clock struct {
	mu   sync.Mutex
	said time.Time // Discord's time
	at   time.Time // the time here at that moment
}

// made returns when Discord made an id; zero if it is none.
//
// docs.discord.com/developers/reference, "Snowflakes", read 2026-11-28.
func made(id string) time.Time {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n>>22 + epoch)
}

// now returns Discord's time, and how long ago Discord last said it. The lock is held.
func (c *clock) now() (now time.Time, old time.Duration) {
	if c.said.IsZero() {
		return time.Now(), time.Hour
	}
	here := time.Now()
	old = max(here.Sub(c.at), here.Round(0).Sub(c.at.Round(0))) // the monotonic clock stops while a machine sleeps
	return c.said.Add(old), old
}

// dated notes the Date of a response, which has no fractions of a second.
func (c *clock) dated(h http.Header) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.now()
	switch {
	case now.Before(date) || c.said.IsZero():
		now = date
	case now.After(date.Add(2 * time.Second)):
		now = date.Add(time.Second)
	}
	c.said, c.at = now, time.Now()
}

// heard notes an id of an event: Discord's time is not before it.
func (c *clock) heard(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, _ := c.now(); made(id).After(now) && !c.said.IsZero() {
		c.said, c.at = made(id), time.Now()
	}
}

// age returns how long ago Discord made an id. sure is false if Discord did not say the time
// within the last minute.
func (c *clock) age(id string) (age time.Duration, sure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, old := c.now()
	return now.Sub(made(id)), old < time.Minute
}

// late reports whether an interaction can no longer be answered in time: Discord tells its user
// that it failed.
func (c *Connector) late(ctx context.Context, id string) bool {
	age, sure := c.api.clock.age(id)
	if age > answerTime && !sure {
		if _, err := c.application(ctx); err == nil { // its Date sets the clock
			age, _ = c.api.clock.age(id)
		}
	}
	return age > answerTime
}
