package relational

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A tally collects how one transaction moves the figures, so that a commit of
// many calls writes each counter once.
type tally map[string]int64

// Names of counters; states follow the prefixes.
const (
	countAgents    = "agents"
	countWaiting   = "waiting"
	countAmbiguous = "ambiguous"
	countRun       = "run:"
	countSend      = "send:"
)

func (t *tally) reset() {
	if *t == nil {
		*t = make(tally)
	}
	clear(*t)
}

// flush writes the collected changes. A batch that changed no figure costs
// nothing.
func (t tally) flush(c *Conn) error {
	if len(t) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(t)) { // in one order, so that no two wait for each other
		if t[name] == 0 {
			continue
		}
		err := c.do("INSERT INTO counters (name, n) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = counters.n + excluded.n", name, t[name])
		if err != nil {
			return err
		}
	}
	return nil
}

func (t tally) run(from, to claybot.RunState) {
	if from != "" {
		t[countRun+string(from)]--
	}
	t[countRun+string(to)]++
}

func (t tally) send(from, to claybot.SendState) {
	if from != "" {
		t[countSend+string(from)]--
	}
	t[countSend+string(to)]++
	if to == claybot.SendAmbiguous && from != to {
		t[countAmbiguous]++
	}
}

// Figures implements storage.StatsReader. It costs the same however much is stored.
func (db upkeep) Stats(ctx context.Context) (storage.Stats, error) {
	f := storage.Stats{
		Runs:       make(map[claybot.RunState]int),
		Outbox:     make(map[claybot.SendState]int),
		Duplicates: db.duplicates.Load(),
	}
	err := db.read(ctx, func(c *Conn) error {
		_, err := c.first("SELECT at FROM messages INDEXED BY messages_oldest WHERE run IS NULL AND skipped IS NULL AND silent = 0 ORDER BY at LIMIT 1",
			func(r Row) error { f.OldestWaiting = claybot.Time(r.Int(0)); return nil })
		if err != nil {
			return err
		}
		return c.each("SELECT name, sum(n) FROM counters"+c.dialect.Summed+" GROUP BY name", func(r Row) error {
			name, n := r.Str(0), r.Int(1)
			if s, ok := strings.CutPrefix(name, countRun); ok && n != 0 {
				f.Runs[claybot.RunState(s)] = int(n)
			} else if s, ok := strings.CutPrefix(name, countSend); ok && n != 0 {
				f.Outbox[claybot.SendState(s)] = int(n)
			}
			switch name {
			case countAgents:
				f.Agents = int(n)
			case countWaiting:
				f.Waiting = int(n)
			case countAmbiguous:
				f.Ambiguous = n
			}
			return nil
		})
	})
	if err != nil {
		return storage.Stats{}, fmt.Errorf("figures: %w", err)
	}
	return f, nil
}
