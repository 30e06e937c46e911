package relational

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Sums are the increments of a transaction to tables of sums, by the names of their
// columns. Those of spent also apply to spent_days.
type Sums struct {
	Counters  []CounterSum `json:"counters,omitempty"`
	Spent     []SpentSum   `json:"spent,omitempty"`
	Latencies []LatencySum `json:"latencies,omitempty"`
}

// A CounterSum is an increment of a row of counters.
type CounterSum struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// A SpentSum is an increment of a row of spent. Estimated is a maximum, not a sum.
type SpentSum struct {
	Day       string `json:"day"`
	Agent     string `json:"agent"`
	Owner     string `json:"owner"`
	Model     string `json:"model"`
	Type      string `json:"type"`
	Connector string `json:"connector"`
	Channel   string `json:"channel"`
	Input     int64  `json:"input"`
	Output    int64  `json:"output"`
	Cached    int64  `json:"cached"`
	Written   int64  `json:"written"`
	Reasoning int64  `json:"reasoning"`
	Cost      int64  `json:"cost"`
	Unpriced  int64  `json:"unpriced"`
	Calls     int64  `json:"calls"`
	Tools     int64  `json:"tools"`
	Runs      int64  `json:"runs"`
	Estimated int64  `json:"estimated"`
}

// A LatencySum is an increment of a row of latencies.
type LatencySum struct {
	Day    string `json:"day"`
	What   string `json:"what"`
	Bucket int    `json:"bucket"`
	N      int64  `json:"n"`
}

// Empty reports whether there are no increments.
func (s Sums) Empty() bool { return len(s.Counters)+len(s.Spent)+len(s.Latencies) == 0 }

// leaveSums records the increments of the transaction, to be added up later.
func leaveSums(c *Conn) error {
	var s Sums
	for name, n := range c.tally {
		if n != 0 {
			s.Counters = append(s.Counters, CounterSum{name, n})
		}
	}
	for k, v := range c.meter.spent {
		s.Spent = append(s.Spent, spentSumOf(k, v))
	}
	for k, n := range c.meter.spans {
		s.Latencies = append(s.Latencies, LatencySum{k.day, k.what, k.bucket, n})
	}
	if s.Empty() {
		return nil
	}
	q, arg, err := c.dialect.Leave(s)
	if err != nil {
		return err
	}
	return c.do(q, arg)
}

func spentSumOf(k spentKey, v spentSum) SpentSum {
	s := SpentSum{
		Day: k.day, Agent: string(k.agent), Owner: k.owner, Model: k.model, Type: k.kind, Connector: k.connector, Channel: k.channel,
		Input: v.Input, Output: v.Output, Cached: v.CachedInput, Written: v.CacheWrite, Reasoning: v.Reasoning, Cost: v.CostMicroUSD,
		Unpriced: v.Unpriced, Calls: v.LLMCalls, Tools: v.ToolCalls, Runs: v.runs,
	}
	if v.Estimated {
		s.Estimated = 1
	}
	return s
}

// A Total adds up Sums. The zero value is ready.
type Total struct {
	counters map[string]int64
	spent    map[[4]string]SpentSum
	spans    map[LatencySum]int64 // by rows whose n is 0
}

// Add adds the sums of one transaction.
func (t *Total) Add(s Sums) {
	if t.counters == nil {
		t.counters, t.spent, t.spans = make(map[string]int64), make(map[[4]string]SpentSum), make(map[LatencySum]int64)
	}
	for _, r := range s.Counters {
		t.counters[r.Name] += r.N
	}
	for _, r := range s.Latencies {
		n := r.N
		r.N = 0
		t.spans[r] += n
	}
	for _, r := range s.Spent {
		key := [4]string{r.Day, r.Agent, r.Owner, r.Model}
		sum, known := t.spent[key]
		if !known {
			t.spent[key] = r
			continue
		}
		sum.add(r)
		t.spent[key] = sum
	}
}

// Sums returns the totals, one for each row of a table.
func (t *Total) Sums() Sums {
	var s Sums
	for name, n := range t.counters {
		s.Counters = append(s.Counters, CounterSum{name, n})
	}
	for r, n := range t.spans {
		r.N = n
		s.Latencies = append(s.Latencies, r)
	}
	for _, r := range t.spent {
		s.Spent = append(s.Spent, r)
	}
	return s
}

func (s *SpentSum) add(r SpentSum) {
	s.Input, s.Output, s.Cached, s.Written = s.Input+r.Input, s.Output+r.Output, s.Cached+r.Cached, s.Written+r.Written
	s.Reasoning, s.Cost, s.Unpriced = s.Reasoning+r.Reasoning, s.Cost+r.Cost, s.Unpriced+r.Unpriced
	s.Calls, s.Tools, s.Runs, s.Estimated = s.Calls+r.Calls, s.Tools+r.Tools, s.Runs+r.Runs, max(s.Estimated, r.Estimated)
}

// A tally collects the counter changes of one transaction, so that a commit of many calls
// writes each counter once.
type tally map[string]int64

// Names of counters; the prefixes are followed by a state.
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

// flush writes the collected changes. Without changes it does nothing.
func (t tally) flush(c *Conn) error {
	if len(t) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(t)) { // in a fixed order, to avoid deadlocks
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

// Stats implements storage.StatsReader. Its cost does not depend on the size of the store.
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
	return result(f, err, "figures")
}
