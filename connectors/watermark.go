package connectors

import (
	"context"
	"fmt"
	"time"
)

// markEvery is how often a Watermark is written at most.
const markEvery = time.Minute

// Marks keeps small facts across restarts. A missing key is the empty string.
type Marks interface {
	Checkpoint(ctx context.Context, key string) (string, error)
	SetCheckpoint(ctx context.Context, key, value string) error
}

// A Watermark is when a source was last known to deliver. It survives restarts
// where there are Marks, so that a gap is noticed whether the process or the
// source was down. A time later than now, which a clock that was ahead has left, is
// not known: it never hides a gap. A Watermark belongs to one goroutine.
type Watermark struct {
	Marks Marks // nil: memory only
	Key   string
	// Reach is how long ago the source delivered last where Marks have a time later
	// than now.
	Reach time.Duration

	last    time.Time // in this process
	seen    time.Time // when last was noted; its monotonic reading outlives a clock that is set
	assumed bool      // last is what Reach says
	written time.Time // the last one in Marks that this process has written
}

// aheadSlack is how far a mark may lie in the future: members of a cluster share it.
const aheadSlack = time.Minute

// ahead reports whether t is from a clock that was ahead of the present one.
func ahead(t time.Time) bool { return t.Sub(time.Now().Round(0)) > aheadSlack }

// correct brings last in line with a clock that was set back since: it is at least as
// long ago as the monotonic clock says.
func (w *Watermark) correct() {
	least, now := time.Since(w.seen), time.Now().Round(0)
	if !w.seen.IsZero() && now.Sub(w.last) < least-aheadSlack {
		w.last = now.Add(-least)
	}
}

// Last is when the source delivered last, by this process or, where Marks are
// shared, by another one; zero when it never has. Within a minute of a
// delivery to this process it does not look at Marks. What was before the store was put
// back to an earlier state is no gap.
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
	if err == nil && kept.Before(restored) { // it went back with the store
		kept = restored
	}
	switch {
	case err != nil: // none yet, or written by hand
	case ahead(kept):
		if w.last.IsZero() {
			w.last, w.seen, w.assumed = now.Round(0).Add(-w.Reach), now, true
		}
	case kept.After(w.last):
		return kept, nil
	}
	return w.last, nil
}

// Assumed reports whether what Last returned stands for a time that is not known.
func (w *Watermark) Assumed() bool { return w.assumed }

// Advance notes that the source delivered at t, unless t is later than now. It writes
// to Marks at most once a minute, so after a crash Last is up to a minute too early: a
// gap may look longer than it was, never shorter. With now it writes at once.
func (w *Watermark) Advance(ctx context.Context, t time.Time, now bool) error {
	w.correct()
	t = t.Round(0) // a process that slept with its machine must count that time
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

// A Missed is a time in which a source may have dropped messages of people.
type Missed struct {
	Connector string
	From, To  time.Time
	Assumed   bool // From is not known: the clock was ahead when the source delivered last
	// Channels are the chats concerned; nil stands for all in which a person
	// wrote lately.
	Channels []string
	// Flat says that the notices belong into the chats themselves, and not into
	// the threads that people used last.
	Flat bool
}

// A Chat is a place in which people write to claybot.
type Chat struct {
	ChannelID string
	// Threads are those in which people wrote last, newest first.
	Threads []string
}

// A GapHandler is a Handler that knows the chats that a gap concerns. Optional.
type GapHandler interface {
	// Recent lists the chats of a connector in which a person wrote at since or
	// later, the newest first. It is bounded: more is how many further chats, and threads
	// of the chats listed, there are. What it lists is as durable as the messages
	// themselves.
	Recent(ctx context.Context, connector string, since time.Time) (chats []Chat, more int, err error)
	// Missed returns once a notice to each chat is durable. The notice is made once
	// for each chat and From, however often it is called. Without Channels it is
	// bounded: untold is how many further chats there are.
	Missed(ctx context.Context, m Missed) (untold int, err error)
}
