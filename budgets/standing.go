package budgets

import (
	"context"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// A Standing is how a budget stands that the calls of an agent belong to.
type Standing struct {
	Per    string // PerAgent and the like
	Name   string // for the person of the agent, in English
	Tokens bool   // else the amounts are millionths of a US dollar
	Limit  int64  // with extensions
	Spent  int64  // with what is reserved for calls under way
	// Resets is when the next period begins; zero: never.
	Resets time.Time
}

// Standings returns how the budgets of each agent stand, in the order of the configuration,
// without those of single runs. The error is a *llm.LimitError where the limit of one is unknown.
func (l *Limiter) Standings(ctx context.Context, ids ...claybot.AgentID) (map[claybot.AgentID][]Standing, error) {
	if l.cfg.Rules == nil {
		return nil, nil
	}
	var stored map[string]storage.Budget
	all := make(map[claybot.AgentID][]Standing, len(ids))
	for _, id := range ids {
		on, err := l.levels(ctx, llm.Charge{Agent: id})
		if err != nil {
			return nil, err
		}
		if len(on.levels) == 0 {
			continue
		}
		if stored == nil { // all at once: one read of the budgets for all agents
			if stored, err = l.stored(ctx); err != nil {
				return nil, err
			}
		}
		for _, level := range on.levels {
			b := stored[level.Key]
			per, _, _ := strings.Cut(level.Key, "/")
			all[id] = append(all[id], Standing{
				Per: per, Name: on.names[level.Key], Tokens: level.Unit == storage.UnitTokens,
				Limit: level.Limit + b.Extension, Spent: b.Spent + b.Reserved, Resets: nextOf(level.Period, l.now()),
			})
		}
	}
	return all, nil
}

// nextOf returns when a period that contains now ends; zero: never.
func nextOf(period string, now time.Time) time.Time {
	year, month, day := now.Date()
	switch period {
	case now.Format(time.DateOnly):
		return time.Date(year, month, day+1, 0, 0, 0, 0, now.Location())
	case now.Format("2006-01"):
		return time.Date(year, month+1, 1, 0, 0, 0, 0, now.Location())
	}
	return time.Time{}
}
