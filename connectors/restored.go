package connectors

import (
	"context"
	"fmt"
	"time"
)

// MarkRestored is the mark that has the time, in RFC 3339, at which a store that went back
// to an earlier state was settled.
const MarkRestored = "restored_at"

// Restored is when the store was last put back to an earlier state; zero when it never
// was. A time after now is of a clock that was ahead: the first look corrects it to now. A source does not run again what it may have run before that time:
// the store has forgotten it.
func Restored(ctx context.Context, marks Marks, now time.Time) (time.Time, error) {
	if marks == nil {
		return time.Time{}, nil
	}
	text, err := marks.Checkpoint(ctx, MarkRestored)
	if err != nil {
		return time.Time{}, fmt.Errorf("read when the store was restored: %w", err)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil { // none, or written by hand
		return time.Time{}, nil
	}
	if at.After(now) { // of a clock that was ahead
		if err := marks.SetCheckpoint(ctx, MarkRestored, now.UTC().Format(time.RFC3339)); err != nil {
			return time.Time{}, fmt.Errorf("correct when the store was restored: %w", err)
		}
		return now, nil
	}
	return at, nil
}
