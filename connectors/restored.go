package connectors

import (
	"context"
	"fmt"
	"time"
)

// MarkRestored is the key of the time, in RFC 3339, at which a restored store was
// reconciled.
const MarkRestored = "restored_at"

// Restored returns when the store was last restored to an earlier state; zero if it never was. A
// time after now comes from a clock that was ahead: the first call corrects it to now. A source
// must not rerun what it may have run before that time, because the restored store has no record of
// it.
func Restored(ctx context.Context, marks Marks, now time.Time) (time.Time, error) {
	if marks == nil {
		return time.Time{}, nil
	}
	text, err := marks.Checkpoint(ctx, MarkRestored)
	if err != nil {
		return time.Time{}, fmt.Errorf("read when the store was restored: %w", err)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil { // missing, or edited by hand
		return time.Time{}, nil
	}
	if at.After(now) { // the clock was ahead
		if err := marks.SetCheckpoint(ctx, MarkRestored, now.UTC().Format(time.RFC3339)); err != nil {
			return time.Time{}, fmt.Errorf("correct when the store was restored: %w", err)
		}
		return now, nil
	}
	return at, nil
}
