package budgets

import (
	"cmp"
	"context"
	"fmt"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	// warnAt is the part of a budget, in percent, after which its owner is notified.
	warnAt = 80
	// maxWarned bounds what a Limiter remembers of warnings. Their keys make sure that
	// each is sent once.
	maxWarned = 10_000
)

// warn notifies the owner once that most of a budget is spent, and once that one is
// which stops nothing. The next call retries what could not be sent.
func (l *Limiter) warn(ctx context.Context, who payer, name string, b storage.Budget) {
	limit := b.Limit + b.Extension
	part := int64(warnAt)
	switch {
	case b.Spent*100 < limit*part || b.Spent == 0 || ofToken(b.Key) || ofFlow(b.Key): // a program reads no notices, and the run ends, or goes on
		return
	case !b.Hard && b.Spent >= limit:
		part = 100
	}
	key := fmt.Sprintf("budget/%s/%d", b.Key, part)
	sent, logged := l.known(key)
	if sent {
		return
	}
	if !logged {
		l.cfg.Log.Warn("budget nearly spent", "budget", b.Key, "spent", b.Spent, "limit", limit, "unit", string(b.Unit), "agent", who.id)
	}
	err := l.cfg.People.Notify(ctx, who.owner(), key, func(v texts.Voice) string {
		return v.BudgetWarning(cmp.Or(name, b.Name), b.Unit == storage.UnitTokens, b.Spent, limit, b.Hard)
	})
	if err == nil {
		l.mu.Lock()
		l.warned[key] = true
		l.mu.Unlock()
	} else if !logged {
		l.cfg.Log.Warn("failed to send a budget warning; the next call retries", "budget", b.Key, "err", err)
	}
}

// known reports what was done about a warning, and counts it as logged from now on.
func (l *Limiter) known(key string) (sent, logged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent, logged = l.warned[key]
	if len(l.warned) >= maxWarned {
		clear(l.warned)
	}
	l.warned[key] = sent
	return sent, logged
}
