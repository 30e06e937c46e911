package budgets

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// tokenRoom is how many tokens a budget of a token needs for another request: a short
// answer, and a short conversation before it.
const tokenRoom = 4096

// tokenOwners are the owner ids of the conversations of a token: over the API, and in the
// web chat.
func tokenOwners(name string) []string {
	return []string{claybot.ConnectorAPI + "/" + name, "web/token:" + name}
}

// ofToken reports whether a budget is that of a token, by its key.
func ofToken(key string) bool { return strings.HasPrefix(key, PerToken+"/") }

// TokenSpent reports whether the budget of a token has no room for another request, and when
// its next period begins. A token without a budget has room.
func (l *Limiter) TokenSpent(ctx context.Context, name string) (resets time.Time, spent bool, err error) {
	for _, r := range l.cfg.Rules() {
		if r.Per != PerToken || r.Token != name {
			continue
		}
		now := l.now()
		level := storage.Level{
			Key: r.key(name, now), Period: r.period(now), Name: "the budget of the token " + name + now.Format(" for 2 Jan 2006"),
			Unit: r.Unit, Limit: r.Limit, Hard: r.Hard,
		}
		try := storage.Reservation{ID: l.cfg.NewID(), Levels: []storage.Level{level}, Amount: storage.Amount{Tokens: min(tokenRoom, r.Limit)}}
		err := l.reserve(ctx, try)
		if over, ok := errors.AsType[*storage.OverBudgetError](err); ok {
			return nextOf(now.Format(time.DateOnly), now), over.Limit+over.Extension-over.Spent < try.Amount.Tokens, nil
		}
		if err != nil {
			return resets, false, err
		}
		_, err = l.book(ctx, try.ID, storage.Amount{})
		return resets, false, err
	}
	return resets, false, nil
}
