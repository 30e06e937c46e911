package slack

import (
	"context"
	"errors"
	"slices"
	"time"
)

// errAgain means that a call for a conversation failed and that it is to be read again, behind the
// others: see replay.ready.
var errAgain = errors.New("read again later")

// An outage is a time without an answer of Slack while a gap is closed: it is no fault of a
// conversation.
type outage struct {
	answered time.Time // when Slack last answered a read
	answers  int       // how many it answered
	failed   int       // reads without an answer since then
	until    time.Time // no read before
}

// answer notes whether Slack answered a read. After two without an answer, which may be of two
// conversations, reads keep a distance.
func (o *outage) answer(ok bool) {
	if ok {
		*o = outage{answered: time.Now(), answers: o.answers + 1}
		return
	}
	if o.failed++; o.failed > 1 {
		o.until = time.Now().Add(outagePause)
	}
}

// over reports whether a conversation whose reads fail since so many answers should be abandoned:
// because Slack answers others, or answers none for long.
func (o *outage) over(answers int) bool {
	return o.answers > answers || time.Since(o.answered) >= outageTime
}

// next returns the conversation to read next, once it may be read: one with a waiting live message,
// or else the one with the newest message, and in both cases first one that has not failed; nil for
// none. Once ctx is done, none waits.
func (b *backfill) next(ctx context.Context) *replay {
	for {
		r, at := b.first(ctx.Err() != nil)
		wait := time.Until(at)
		if r == nil || wait <= 0 {
			return r
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-b.given:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// first returns the conversation to read first, and when; nil for none.
func (b *backfill) first(now bool) (first *replay, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, channel := range b.order {
		r := b.open[channel]
		if r == nil {
			continue
		}
		var ready time.Time
		if !now && !r.abandoned() {
			ready = latest(r.ready, b.outage.until)
		}
		if time.Until(ready) <= 0 {
			ready = time.Time{}
		}
		if first == nil || ready.Before(at) || ready.Equal(at) && r.waited && !first.waited {
			first, at = r, ready
		}
	}
	return first, at
}

// waiting reports whether other conversations are open.
func (b *backfill) waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open) > 1
}

// latest returns the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// requeue puts a conversation behind the others.
func (b *backfill) requeue(r *replay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.order = slices.DeleteFunc(b.order, func(channel string) bool { return channel == r.channel })
	b.order = append(b.order, r.channel)
}

// settle lets the live messages of a conversation go on.
func (b *backfill) settle(r *replay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, r.channel)
	close(r.done)
}
