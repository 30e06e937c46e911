package relational

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Rate implements storage.Ratings.
func (db runs) Rate(ctx context.Context, id claybot.RunID, f claybot.Feedback) (bool, error) {
	changed, err := write(ctx, db, func(c *Conn) (bool, error) { return rateRun(c, id, f) })
	return result(changed, err, "rate run %s", id)
}

func rateRun(c *Conn, id claybot.RunID, f claybot.Feedback) (changed bool, err error) {
	run, err := loadRun(c, id)
	if err != nil {
		return false, err
	}
	// The agent is locked before the run is read again: the run may end at this moment.
	if _, err := loadInbox(c, run.Agent); err != nil {
		return false, err
	}
	var o outcome
	err = need(c.first("SELECT outcome FROM runs WHERE id = ?", func(r Row) error { return unmarshal(r.Str(0), &o) }, id))
	if err != nil {
		return false, err
	}
	o.Feedback, changed = rated(o.Feedback, f)
	if len(o.Feedback) > storage.MaxFeedback {
		return false, fmt.Errorf("the run has %d feedbacks: %w", storage.MaxFeedback, storage.ErrTooMany)
	}
	b, err := json.Marshal(o)
	if err != nil {
		return false, err
	}
	return changed, c.do("UPDATE runs SET outcome = ? WHERE id = ?", b, id)
}

// rated returns the feedbacks of a run after f, and whether f changed them.
func rated(all []claybot.Feedback, f claybot.Feedback) ([]claybot.Feedback, bool) {
	for i, old := range all {
		if old.By != f.By || old.Message != f.Message || old.Emoji != f.Emoji {
			continue
		}
		if f.At < old.At {
			return all, false
		}
		all[i] = f // also one that says the same: what happened between the two is older
		return all, f.Withdrawn != old.Withdrawn
	}
	return append(all, f), true
}
