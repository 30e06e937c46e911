package connectors

import (
	"context"
	"fmt"
	"time"
)

// markEvery is the minimum time between two writes of a Watermark.
const markEvery = time.Minute

// A Watermark is the last time at which a source is known to have delivered. With
// Marks it survives restarts, so a gap is noticed whether the process or the source
// was down. A time after now, left by a clock that was ahead, counts as unknown, so
// it never hides a gap. A Watermark must be used by one goroutine.
type Watermark struct {
	Marks Marks // nil: memory only
	Key   string
	// Reach is the assumed age of the last delivery if the time in Marks is after
	// now.
	Reach time.Duration

	last    time.Time // in this process
	seen    time.Time // when last was noted; its monotonic reading outlives a clock that is set
	assumed bool      // last is derived from Reach
	written time.Time // the last time that this process wrote to Marks
}

// aheadSlack is how far a mark may lie in the future: members of a cluster share it.
const aheadSlack = time.Minute

// ahead reports whether t is from a clock that was ahead of the present one.
func ahead(t time.Time) bool { return t.Sub(time.Now().Round(0)) > aheadSlack }

// correct adjusts last if the clock was set back since: last is at least as old as
// the monotonic clock measures.
func (w *Watermark) correct() {
	least, now := time.Since(w.seen), time.Now().Round(0)
	if !w.seen.IsZero() && now.Sub(w.last) < least-aheadSlack {
		w.last = now.Add(-least)
	}
}

// Last returns when the source last delivered to this process or, if Marks are shared,
// to another one; zero if it never has. Within a minute of a delivery to this process
// it does not read Marks. Time before a restore of the store is not a gap.
func (w *Watermark) Last(ctx context.Context) (time.Time, error) {
	w.correct()
	now := time.Now()
	if w.Marks == nil || now.Round(0).Sub(w.last) < markEvery {
		return w.last, nil
	}
	text, err := w.Marks.Checkpoint(ctx, w.Key)
	if err != nil {
		return w.last, fmt.Errorf("read when the source delivered last: %w", err)
	}
	restored, err := Restored(ctx, w.Marks, now.Round(0))
	if err != nil {
		return w.last, err
	}
	kept, err := time.Parse(time.RFC3339, text)
	if err == nil && kept.Before(restored) { // it was restored with the store
		kept = restored
	}
	switch {
	case err != nil: // missing, or edited by hand
	case ahead(kept):
		if w.last.IsZero() {
			w.last, w.seen, w.assumed = now.Round(0).Add(-w.Reach), now, true
		}
	case kept.After(w.last):
		return kept, nil
	}
	return w.last, nil
}

// Assumed reports whether Last returned an assumed time because the true one is
// unknown.
func (w *Watermark) Assumed() bool { return w.assumed }

// Advance records a delivery at t, unless t is after the present time. It writes to
// Marks at most once a minute, so after a crash Last may be up to a minute too early:
// a gap may look longer than it was, never shorter. If now is set, it writes at once.
func (w *Watermark) Advance(ctx context.Context, t time.Time, now bool) error {
	w.correct()
	t = t.Round(0) // wall clock: time in which the machine was suspended counts
	if t.After(w.last) && !ahead(t) {
		w.last, w.seen, w.assumed = t, time.Now(), false
	}
	due := now && !w.last.Equal(w.written) || w.last.Sub(w.written).Abs() >= markEvery
	if w.Marks == nil || !due {
		return nil
	}
	if err := w.Marks.SetCheckpoint(ctx, w.Key, w.last.UTC().Format(time.RFC3339)); err != nil {
		return fmt.Errorf("keep when the source delivered last: %w", err)
	}
	w.written = w.last
	return nil
}

// A Missed is a period in which a source may have dropped messages of users.
type Missed struct {
	Connector string
	From, To  time.Time
	Assumed   bool // From is unknown: the clock was ahead at the last delivery
	// Channels are the affected chats; nil means all chats with recent user
	// messages.
	Channels []string
	// Flat sends the notices to the chats themselves, not to the threads that
	// users wrote in last.
	Flat bool
}

// A Chat is a channel in which users write to claybot.
type Chat struct {
	ChannelID string
	// Threads are the threads with the latest user messages, newest first.
	Threads []string
}

// A GapHandler is a Handler that can list and notify the chats that a gap
// affects. Optional.
type GapHandler interface {
	// Recent lists the chats of a connector, whose ids begin with prefix, with user messages at
	// or after since, newest first. The list is bounded: more counts the chats, and threads of
	// listed chats, that it leaves out. The list is as durable as the messages themselves.
	Recent(ctx context.Context, connector, prefix string, since time.Time) (chats []Chat, more int, err error)
	// Missed posts a notice to each chat and returns once all are durable. It is
	// idempotent: each chat gets one notice for each From. Without Channels, gaps of a
	// connector that overlap, such as those that several members of a cluster report, are one,
	// and the number of notices is bounded; untold counts the chats without one.
	Missed(ctx context.Context, m Missed) (untold int, err error)
}
