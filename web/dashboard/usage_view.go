package dashboard

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// A period is the days that the usage page shows, both ends included.
type period struct {
	Days     int
	From, To string // YYYY-MM-DD in UTC
}

// periods are the lengths that can be chosen, in days.
var periods = []int{7, 30, 90}

const (
	defaultPeriod = 30
	dayForm       = "2006-01-02"
	// spentRows is the most rows of one table; the file for spreadsheets has
	// all.
	spentRows = 50
)

// periodOf is the period of a length in days that ends today. An unknown length is
// the default.
func periodOf(length string, now time.Time) period {
	p := period{Days: defaultPeriod}
	for _, d := range periods {
		if length == strconv.Itoa(d) {
			p.Days = d
		}
	}
	now = now.UTC()
	p.From, p.To = now.AddDate(0, 0, 1-p.Days).Format(dayForm), now.Format(dayForm)
	return p
}

// days lists the days of p, the first one first.
func (p period) days() []string {
	last, err := time.Parse(dayForm, p.To)
	if err != nil {
		return nil
	}
	all := make([]string, p.Days)
	for i := range all {
		all[i] = last.AddDate(0, 0, i+1-p.Days).Format(dayForm)
	}
	return all
}

// A spend is a cost, as far as prices are known.
type spend struct {
	MicroUSD int64
	// Free are the tokens of the free model.
	Free int64
	// Unpriced are the tokens of models without a price; they are not in
	// MicroUSD.
	Unpriced int64
	// Calls are the calls without a price, where others of the same model have one.
	Calls     int64
	Estimated bool
	// Saved is what the caches of providers saved, at the prices that are set now, less than nothing where writing to them
	// cost more; of models with a price alone, and unknown unless Priced.
	Saved  int64
	Priced bool
}

// spendOf is what calls of one model cost.
func spendOf(u claybot.Usage, model string) spend {
	c := spend{MicroUSD: u.CostMicroUSD, Estimated: u.Estimated}
	switch {
	case u.CostMicroUSD != 0:
		c.Calls = u.Unpriced
	case model == freeModel:
		c.Free, c.Estimated = u.Input+u.Output, false // zero is no estimate
	default:
		c.Unpriced = u.Input + u.Output
	}
	return c
}

func (c spend) add(d spend) spend {
	return spend{c.MicroUSD + d.MicroUSD, c.Free + d.Free, c.Unpriced + d.Unpriced, c.Calls + d.Calls, c.Estimated || d.Estimated, c.Saved + d.Saved, c.Priced || d.Priced}
}

// CacheSaved is what caches saved; a dash if no model has a price.
func (c spend) CacheSaved() string {
	switch {
	case !c.Priced:
		return "–"
	case c.Saved < 0:
		return "−" + money(-c.Saved)
	}
	return money(c.Saved)
}

// Known is the part with a known price, or that there is none.
func (c spend) Known() string {
	switch {
	case c.MicroUSD != 0:
	case c.Unpriced > 0:
		return unpriced
	case c.Free > 0:
		return "free"
	}
	return money(c.MicroUSD)
}

// String never shows tokens of an unknown price as free.
func (c spend) String() string {
	if c.Unpriced+c.Calls > 0 && c.MicroUSD > 0 {
		return c.Known() + " + " + unpriced
	}
	return c.Known()
}

// A spentRow is one line of a table of what was spent.
type spentRow struct {
	Key   string
	Label string
	URL   string // of its page; empty when it has none
	Runs  int64
	Usage claybot.Usage
	Cost  spend
	Share int // of the greatest row, in percent
}

// A spentTable is what was spent, by one column.
type spentTable struct {
	Rows  []spentRow
	More  int // rows that are not shown
	Total spentRow
}

// tabulate makes a table of sums. byModel has the same sums by model as well, which
// tells tokens of an unknown price from free ones, and what caches saved at prices.
func tabulate(by string, sums, byModel []storage.Spent, prices llm.Prices) spentTable {
	costs := make(map[string]spend, len(sums))
	for _, s := range byModel {
		key := keyOf(by, s)
		cost := spendOf(s.Usage, s.Model)
		cost.Saved, cost.Priced = prices.Saved(s.Model, s.Usage)
		costs[key] = costs[key].add(cost)
	}
	t := spentTable{Rows: make([]spentRow, 0, len(sums))}
	for _, s := range sums {
		row := spentRow{Key: keyOf(by, s), Runs: s.Runs, Usage: s.Usage}
		row.Cost = costs[row.Key]
		t.Total.Runs += row.Runs
		t.Total.Usage = t.Total.Usage.Add(row.Usage)
		t.Total.Cost = t.Total.Cost.add(row.Cost)
		t.Rows = append(t.Rows, row)
	}
	if by != storage.ByDay {
		slices.SortFunc(t.Rows, dearer)
		t.More = max(len(t.Rows)-spentRows, 0)
		t.Rows = t.Rows[:len(t.Rows)-t.More]
	}
	for i, row := range t.Rows {
		t.Rows[i].Label, t.Rows[i].URL = labelOf(by, row.Key)
	}
	t.share()
	return t
}

// dearer orders rows by their cost, then by their tokens.
func dearer(a, b spentRow) int {
	return cmp.Or(cmp.Compare(b.Cost.MicroUSD, a.Cost.MicroUSD), cmp.Compare(tokensOf(b), tokensOf(a)), strings.Compare(a.Key, b.Key))
}

// share sets the share of each row: of money, or of tokens where nothing has a
// price.
func (t *spentTable) share() {
	weight := func(r spentRow) int64 { return r.Cost.MicroUSD }
	if t.Total.Cost.MicroUSD == 0 {
		weight = tokensOf
	}
	var most int64
	for _, r := range t.Rows {
		most = max(most, weight(r))
	}
	for i, r := range t.Rows {
		if most > 0 {
			t.Rows[i].Share = int(float64(weight(r)) / float64(most) * 100)
		}
	}
}

func tokensOf(r spentRow) int64 { return r.Usage.Input + r.Usage.Output }

func keyOf(by string, s storage.Spent) string {
	return map[string]string{
		storage.ByDay: s.Day, storage.ByAgent: string(s.Agent), storage.ByOwner: s.Owner,
		storage.ByModel: s.Model, storage.ByType: string(s.Type), storage.ByChannel: s.Channel,
	}[by]
}

// labelOf names a row, with the page that has more.
func labelOf(by, key string) (label, url string) {
	switch by {
	case storage.ByAgent:
		if key == "" {
			return "no agent", ""
		}
		return key, "/ui/agents/" + key
	case storage.ByOwner:
		return cmp.Or(key, "none"), ""
	case storage.ByChannel:
		return cmp.Or(key, "none"), ""
	case storage.ByModel:
		return cmp.Or(key, "not recorded"), ""
	case storage.ByType:
		return cmp.Or(agentTypes[claybot.AgentType(key)], key, "not recorded"), ""
	}
	return key, ""
}

// A usageSeries has the values of the charts, one for each day.
type usageSeries struct {
	Days      []string        `json:"days"`
	Cost      []float64       `json:"cost"`     // US dollars
	Unpriced  []int64         `json:"unpriced"` // tokens of models without a price
	Input     []int64         `json:"input"`    // tokens
	Output    []int64         `json:"output"`
	Cached    []int64         `json:"cached"` // part of Input
	Runs      []int64         `json:"runs"`
	Durations []latencySeries `json:"durations"`
}

// A latencySeries is the duration of one operation by day, in milliseconds; nil on days
// without it.
type latencySeries struct {
	What string   `json:"what"`
	Name string   `json:"name"`
	P50  []*int64 `json:"p50"`
	P90  []*int64 `json:"p90"`
	P99  []*int64 `json:"p99"`
}

// series spreads sums over all days of a period, those without any included.
func series(p period, byDay, byModel []storage.Spent, latencies []storage.Latency) usageSeries {
	days := p.days()
	n := len(days)
	at := make(map[string]int, n)
	for i, d := range days {
		at[d] = i
	}
	s := usageSeries{
		Days: days, Cost: make([]float64, n), Unpriced: make([]int64, n), Input: make([]int64, n),
		Output: make([]int64, n), Cached: make([]int64, n), Runs: make([]int64, n), Durations: []latencySeries{},
	}
	for _, d := range byDay {
		if i, ok := at[d.Day]; ok {
			s.Cost[i] += float64(d.Usage.CostMicroUSD) / 1e6
			s.Input[i] += d.Usage.Input
			s.Output[i] += d.Usage.Output
			s.Cached[i] += d.Usage.CachedInput
			s.Runs[i] += d.Runs
		}
	}
	for _, d := range byModel {
		if i, ok := at[d.Day]; ok {
			s.Unpriced[i] += spendOf(d.Usage, d.Model).Unpriced
		}
	}
	s.Durations = durations(at, n, latencies)
	return s
}

// durations puts latencies in order: whole runs first, then models by name.
func durations(at map[string]int, n int, all []storage.Latency) []latencySeries {
	by := make(map[string]*latencySeries)
	for _, l := range all {
		i, ok := at[l.Day]
		if !ok {
			continue
		}
		s := by[l.What]
		if s == nil {
			s = &latencySeries{What: l.What, Name: latencyName(l.What), P50: make([]*int64, n), P90: make([]*int64, n), P99: make([]*int64, n)}
			by[l.What] = s
		}
		s.P50[i], s.P90[i], s.P99[i] = &l.P50, &l.P90, &l.P99
	}
	out := make([]latencySeries, 0, len(by))
	for _, what := range slices.SortedFunc(maps.Keys(by), compareLatency) {
		out = append(out, *by[what])
	}
	return out
}

// compareLatency orders whole runs before models.
func compareLatency(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == storage.LatencyRun:
		return -1
	case b == storage.LatencyRun:
		return 1
	}
	return strings.Compare(a, b)
}

func latencyName(what string) string {
	if what == storage.LatencyRun {
		return "runs, including pauses"
	}
	if model, ok := strings.CutPrefix(what, storage.LatencyModel); ok {
		return "model calls: " + cmp.Or(model, "not recorded")
	}
	return what
}
