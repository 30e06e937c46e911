package cron

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	stateSkipped = "skipped"
	manual       = "manual/" // prefix of the instant of a manual run
	// maxAwaiting is how long a paused run keeps its task from running again.
	maxAwaiting = 24 * time.Hour
	// rowsFirst and rowsMost are the numbers of ledger rows to read for a task.
	rowsFirst = 4
	rowsMost  = 2048
	// toldAgain is the consecutive failure that is reported besides the first.
	toldAgain = 3
)

// A past is the ledger's history of a task that is about to run.
type past struct {
	open     bool // a run has not ended
	fails    int  // consecutive failed instants, among the rows read
	told     bool // one of them was reported
	lastFail claybot.Time
	dead     string // why nothing arrives, if that happened twice in a row
	// missed is the newest row of instants skipped since the last run; nil for
	// none.
	missed *storage.LedgerRow
	// taken is the existing row of the instant; nil for none.
	taken *storage.LedgerRow
}

// readRows reads the newest rows of a task, in growing numbers until enough
// returns true.
func readRows(ctx context.Context, l storage.Ledger, uid string, enough func([]storage.LedgerRow) bool) error {
	for n := rowsFirst; ; n *= 4 {
		rows, err := l.Firings(ctx, uid, n)
		if err != nil || enough(rows) || len(rows) < n || n >= rowsMost {
			return err
		}
	}
}

// newestRow is the newest scheduled run of a task; nil for none.
func newestRow(ctx context.Context, l storage.Ledger, uid string) (newest *storage.LedgerRow, err error) {
	err = readRows(ctx, l, uid, func(rows []storage.LedgerRow) bool {
		i := slices.IndexFunc(rows, func(r storage.LedgerRow) bool { return !strings.HasPrefix(r.Instant, manual) })
		if i >= 0 {
			newest = &rows[i]
		}
		return i >= 0
	})
	return newest, err
}

// readPast reads the ledger as far as necessary. It does not count rows of the
// instant as failures, and ignores undelivered output before lifted.
func readPast(ctx context.Context, l storage.Ledger, uid, instant string, lifted claybot.Time, now time.Time) (p past, err error) {
	err = readRows(ctx, l, uid, func(rows []storage.LedgerRow) (enough bool) {
		p, enough = judge(rows, instant, lifted, now)
		return enough
	})
	return p, err
}

// judge evaluates rows, newest first. enough reports that older rows cannot
// change the result.
func judge(rows []storage.LedgerRow, instant string, lifted claybot.Time, now time.Time) (p past, enough bool) {
	var ended []*storage.LedgerRow
	var latest []string // instants of several attempts whose last one was read
	streak, runs := true, 0
	for i := range rows {
		r := &rows[i]
		if r.Instant == instant && p.taken == nil {
			p.taken = r
		}
		if slices.Contains(latest, r.Instant) {
			continue
		}
		if r.Attempt > 1 {
			latest = append(latest, r.Instant)
		}
		if r.State == stateSkipped {
			if runs == 0 && p.missed == nil && strings.HasPrefix(r.Reason, reasonMissed) {
				p.missed = r
			}
			continue
		}
		runs++
		if r.Open() {
			p.open = p.open || r.State != string(claybot.RunAwaiting) || now.Sub(startOf(r)) < maxAwaiting
			continue
		}
		ended = append(ended, r)
		if r.Instant == instant || !streak {
			continue
		}
		switch r.State {
		case string(claybot.RunFailed):
			p.fails++
			p.told = p.told || !r.Quiet
			p.lastFail = max(p.lastFail, r.Planned)
		case string(claybot.RunSucceeded):
			streak = false
		}
	}
	p.dead = undelivered(ended, lifted)
	p.told = p.told || p.fails >= toldAgain
	return p, (!streak || p.fails >= toldAgain) && len(ended) >= 2
}

func startOf(r *storage.LedgerRow) time.Time { return max(r.Started, r.Entered).Time() }

// undelivered returns why the output of the last two runs did not arrive; empty
// if one of them did.
func undelivered(ended []*storage.LedgerRow, lifted claybot.Time) string {
	if len(ended) < 2 {
		return ""
	}
	for _, r := range ended[:2] {
		if r.Undelivered == "" || r.Entered < lifted {
			return ""
		}
	}
	return ended[0].Undelivered
}

// tells reports whether a failure of the instant planned is reported on the task's
// route: the first in a row, the third, and from then on the first of each day
// in the task's zone.
func (p past) tells(planned time.Time) bool {
	if !p.told || p.fails+1 == toldAgain {
		return true
	}
	y, m, d := planned.Date()
	ly, lm, ld := p.lastFail.Time().In(planned.Location()).Date()
	return p.fails >= toldAgain && (y != ly || m != lm || d != ld)
}
