package dashboard

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A bookkeeper sums up usage. It caches the sums of days that are over until the next
// day, because summing up months takes longer than a page may. Its zero value is ready.
type bookkeeper struct {
	spent     kept[storage.Spent]
	latencies kept[storage.Latency]
}

// A kept caches rows by a key; the page uses few keys.
type kept[T any] struct {
	mu  sync.Mutex
	day string // for which they hold
	all map[string]*entry[T]
}

type entry[T any] struct {
	mu   sync.Mutex // held while the rows are read, so that they are read once
	done bool
	rows []T
}

func (k *kept[T]) entry(day, key string) *entry[T] {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.day != day {
		k.day, k.all = day, make(map[string]*entry[T])
	}
	e := k.all[key]
	if e == nil {
		e = new(entry[T])
		k.all[key] = e
	}
	return e
}

// rows returns what is kept, or reads it. The caller must not change it.
func (k *kept[T]) rows(day, key string, read func() ([]T, error)) ([]T, error) {
	e := k.entry(day, key)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return e.rows, nil
	}
	rows, err := read()
	if err == nil {
		e.rows, e.done = rows, true
	}
	return rows, err
}

// has reports whether the rows are kept; while they are read, they are not.
func (k *kept[T]) has(day, key string) bool {
	e := k.entry(day, key)
	if !e.mu.TryLock() {
		return false
	}
	defer e.mu.Unlock()
	return e.done
}

// split parts a period into the days that are over, none when over is empty,
// and those since when something may still be added: a commit begun before
// midnight can end after it.
func (p period) split() (over, since string) {
	last, err := time.Parse(dayForm, p.To)
	if err != nil || p.Days < 3 {
		return "", p.From
	}
	return last.AddDate(0, 0, -2).Format(dayForm), last.AddDate(0, 0, -1).Format(dayForm)
}

// sums is what was spent in a period, by columns.
func (k *bookkeeper) sums(ctx context.Context, usage storage.Usages, p period, by ...string) ([]storage.Spent, error) {
	over, since := p.split()
	fresh, err := usage.Spent(ctx, storage.SpentQuery{From: since, To: p.To, By: by, Limit: storage.SpentRows})
	if err != nil || over == "" {
		return fresh, err
	}
	old, err := k.spent.rows(p.To, spentKey(p, by), func() ([]storage.Spent, error) {
		return usage.Spent(ctx, storage.SpentQuery{From: p.From, To: over, By: by, Limit: storage.SpentRows})
	})
	return addUp(old, fresh), err
}

func spentKey(p period, by []string) string { return p.From + " " + strings.Join(by, " ") }

// took is how long things took in a period.
func (k *bookkeeper) took(ctx context.Context, usage storage.Usages, p period) ([]storage.Latency, error) {
	over, since := p.split()
	fresh, err := usage.Latencies(ctx, since, p.To)
	if err != nil || over == "" {
		return fresh, err
	}
	old, err := k.latencies.rows(p.To, p.From, func() ([]storage.Latency, error) { return usage.Latencies(ctx, p.From, over) })
	return slices.Concat(old, fresh), err
}

// ready reports whether the page of a period can be made at once.
func (k *bookkeeper) ready(p period, by string) bool {
	for _, columns := range [][]string{{storage.ByDay}, {storage.ByDay, storage.ByModel}, {by}, {by, storage.ByModel}} {
		if by == storage.ByModel && len(columns) == 2 && columns[0] == by {
			continue
		}
		if !k.spent.has(p.To, spentKey(p, columns)) {
			return false
		}
	}
	return k.latencies.has(p.To, p.From)
}

// both is what was spent by one column, and by it and the model.
func (k *bookkeeper) both(ctx context.Context, usage storage.Usages, p period, by string) (all, byModel []storage.Spent, err error) {
	if all, err = k.sums(ctx, usage, p, by); err != nil || by == storage.ByModel {
		return all, all, err
	}
	byModel, err = k.sums(ctx, usage, p, by, storage.ByModel)
	return all, byModel, err
}

// addUp joins the sums of two times that do not overlap, in the order of the
// first, then of the second, which is the shorter one.
func addUp(first, second []storage.Spent) []storage.Spent {
	key := func(s storage.Spent) storage.Spent { // the columns alone
		s.Usage, s.Runs = claybot.Usage{}, 0
		return s
	}
	fresh := make(map[storage.Spent]int, len(second))
	for i, s := range second {
		fresh[key(s)] = i
	}
	out := make([]storage.Spent, 0, len(first)+len(second))
	joined := make([]bool, len(second))
	for _, s := range first {
		if i, ok := fresh[key(s)]; ok {
			s.Usage, s.Runs, joined[i] = s.Usage.Add(second[i].Usage), s.Runs+second[i].Runs, true
		}
		out = append(out, s)
	}
	for i, s := range second {
		if !joined[i] {
			out = append(out, s)
		}
	}
	return out
}
