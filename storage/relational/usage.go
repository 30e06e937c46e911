package relational

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A meter collects the usage of the runs of one transaction, so that a commit of many
// calls writes each row once.
type meter struct {
	spent map[spentKey]spentSum
	spans map[spanKey]int64
}

// A spentKey is a row of spent. The type of an agent never changes.
type spentKey struct {
	day         string
	agent       claybot.AgentID
	owner, kind string
	model       string
	spoken
}

// spoken is the connector and channel of an agent, or of the root of a subagent.
type spoken struct{ connector, channel string }

type spentSum struct {
	claybot.Usage
	runs int64
}

// sums returns the values of the summed columns, in order.
func (s spentSum) sums() []any {
	return []any{
		s.Input, s.Output, s.CachedInput, s.CostMicroUSD, s.LLMCalls, s.ToolCalls, s.Estimated, s.runs, s.CacheWrite, s.Reasoning, s.Unpriced,
	}
}

func (m *meter) reset() {
	if m.spent == nil {
		m.spent, m.spans = make(map[spentKey]spentSum), make(map[spanKey]int64)
	}
	clear(m.spent)
	clear(m.spans)
}

func (m *meter) spend(k spentKey, u claybot.Usage, runs int64) {
	s := m.spent[k]
	m.spent[k] = spentSum{Usage: s.Add(u), runs: s.runs + runs}
}

// addSums is the end of a statement that adds to a row of sums.
const addSums = ` DO UPDATE SET
	input = t.input + excluded.input, output = t.output + excluded.output, cached = t.cached + excluded.cached,
	written = t.written + excluded.written, reasoning = t.reasoning + excluded.reasoning,
	cost = t.cost + excluded.cost, unpriced = t.unpriced + excluded.unpriced, calls = t.calls + excluded.calls, tools = t.tools + excluded.tools,
	estimated = CASE WHEN t.estimated > excluded.estimated THEN t.estimated ELSE excluded.estimated END, runs = t.runs + excluded.runs`

// A dayKey is a row of spent_days.
type dayKey struct{ day, model, kind string }

func (k dayKey) compare(o dayKey) int {
	return cmp.Or(cmp.Compare(k.day, o.day), cmp.Compare(k.model, o.model), cmp.Compare(k.kind, o.kind))
}

func (k spentKey) compare(o spentKey) int {
	return cmp.Or(cmp.Compare(k.day, o.day), cmp.Compare(k.agent, o.agent), cmp.Compare(k.owner, o.owner), cmp.Compare(k.model, o.model))
}

func (m *meter) flush(c *Conn) error {
	if len(m.spent) == 0 {
		return m.flushSpans(c)
	}
	days := make(map[dayKey]spentSum, len(m.spent))
	for _, k := range slices.SortedFunc(maps.Keys(m.spent), spentKey.compare) { // in a fixed order, to avoid deadlocks
		s := m.spent[k]
		err := c.do(`INSERT INTO spent AS t (day, agent, owner, model, type, connector, channel, input, output, cached, cost, calls, tools, estimated, runs, written, reasoning, unpriced)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (day, agent, owner, model)`+addSums,
			append([]any{k.day, k.agent, k.owner, k.model, k.kind, k.connector, k.channel}, s.sums()...)...)
		if err != nil {
			return err
		}
		day := dayKey{k.day, k.model, k.kind}
		sum := days[day]
		days[day] = spentSum{Usage: sum.Add(s.Usage), runs: sum.runs + s.runs}
	}
	const q = `INSERT INTO spent_days AS t (day, model, type, input, output, cached, cost, calls, tools, estimated, runs, written, reasoning, unpriced)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (day, model, type)` + addSums
	for _, k := range slices.SortedFunc(maps.Keys(days), dayKey.compare) {
		if err := c.do(q, append([]any{k.day, k.model, k.kind}, days[k].sums()...)...); err != nil {
			return err
		}
	}
	return m.flushSpans(c)
}

// dayOf returns the UTC day of at, in Unix milliseconds.
func dayOf(at int64) string { return time.UnixMilli(at).UTC().Format(time.DateOnly) }

// chargeAgent adds usage and the number of ended runs to the totals of an agent and of
// the day.
func chargeAgent(c *Conn, id claybot.AgentID, u claybot.Usage, calls []storage.ModelCall, runs, at int64) error {
	if u == (claybot.Usage{}) && len(calls) == 0 && runs == 0 {
		return nil
	}
	var p payer
	if err := c.ask(p.ask(id)); err != nil {
		return err
	}
	total, err := chargeAgentTo(c, p, id, u, calls, runs, at)
	if err != nil || total == nil {
		return err
	}
	return c.do("UPDATE agents SET usage = ? WHERE id = ?", total, id)
}

// A payer is the agent that usage is charged to.
type payer struct {
	before, owner, kind string // usage so far, as JSON; columns
	where               spoken
	recorded            bool // records is loaded
	records             int64
	found               bool
}

// payerColumns are what load reads, of an agent and its root.
const (
	payerColumns = "own.usage, own.owner, own.type, coalesce(root.descriptor, own.descriptor)"
	ofPayer      = " FROM agents own LEFT JOIN agents root ON root.id = own.root WHERE own.id = ?"
)

// load reads payerColumns.
func (p *payer) load(r Row) {
	p.before, p.owner, p.kind, p.where, p.found = r.Str(0), r.Str(1), r.Str(2), spokenAt(r.Str(3)), true
}

// ask loads the payer.
func (p *payer) ask(id claybot.AgentID) Ask {
	return Ask{Query: "SELECT " + payerColumns + ofPayer, Args: []any{id}, Row: func(r Row) error { p.load(r); return nil }}
}

// askWith loads the payer with its inbox, which load reads.
func (p *payer) askWith(c *Conn, a *inboxRow, load func(r Row) error) Ask {
	lock := c.locked()
	if lock != "" {
		lock += " OF own"
	}
	records := ""
	if p.recorded {
		records = "own.records, "
	}
	q := "SELECT " + ownInbox + ", " + records + payerColumns + ofPayer + lock
	return Ask{Query: q, Args: []any{a.id}, Row: once(&a.found, func(r Row) error {
		rest := r[inboxWidth:]
		if p.recorded {
			p.records, rest = rest.Int(0), rest[1:]
		}
		p.load(rest)
		return load(r)
	})}
}

// ownInbox are the columns of askInbox in a query of a payer.
var (
	ownInbox   = "own." + strings.ReplaceAll(inboxLoaded, ", ", ", own.") + ofFlow
	inboxWidth = strings.Count(inboxLoaded, ",") + 2
)

// chargeAgentTo is chargeAgent for a payer loaded in this transaction. The caller saves
// the payer's new total, unless it is nil: unchanged.
func chargeAgentTo(c *Conn, p payer, id claybot.AgentID, u claybot.Usage, calls []storage.ModelCall, runs, at int64) (total []byte, err error) {
	if err := need(p.found, nil); err != nil {
		return nil, err
	}
	for i, part := range byModel(u, calls) {
		if i > 0 {
			runs = 0
		}
		c.meter.spend(spentKey{day: dayOf(at), agent: id, owner: p.owner, kind: p.kind, model: part.Model, spoken: p.where}, part.Usage, runs)
	}
	for _, call := range calls {
		if call.MS > 0 {
			c.meter.took(at, storage.LatencyModel+call.Model, call.MS)
		}
	}
	if u == (claybot.Usage{}) {
		return nil, nil
	}
	var sum claybot.Usage
	if err := unmarshal(p.before, &sum); err != nil {
		return nil, err
	}
	return json.Marshal(sum.Add(u))
}

// spokenAt returns the connector and channel of a stored descriptor. It returns the zero
// value for a damaged descriptor: its usage counts all the same.
func spokenAt(descriptor string) spoken {
	var d claybot.Descriptor
	if unmarshal(descriptor, &d) != nil || d.Connector == "" {
		return spoken{}
	}
	return spoken{d.Connector, d.Connector + ":" + d.ChannelID}
}

// byModel splits u by model into at least one part. Tool calls belong to the first model
// called; usage that no call explains belongs to no model.
func byModel(u claybot.Usage, calls []storage.ModelCall) []storage.ModelCall {
	var parts []storage.ModelCall
	add := func(model string, v claybot.Usage) {
		for i := range parts {
			if parts[i].Model == model {
				parts[i].Usage = parts[i].Usage.Add(v)
				return
			}
		}
		parts = append(parts, storage.ModelCall{Model: model, Usage: v})
	}
	rest := u
	for _, call := range calls {
		add(call.Model, call.Usage)
		rest.Input -= call.Usage.Input
		rest.Output -= call.Usage.Output
		rest.CachedInput -= call.Usage.CachedInput
		rest.CacheWrite -= call.Usage.CacheWrite
		rest.Reasoning -= call.Usage.Reasoning
		rest.Unpriced -= call.Usage.Unpriced
		rest.CostMicroUSD -= call.Usage.CostMicroUSD
		rest.LLMCalls -= call.Usage.LLMCalls
		rest.ToolCalls -= call.Usage.ToolCalls
	}
	rest = claybot.Usage{
		Input: max(rest.Input, 0), Output: max(rest.Output, 0), CachedInput: max(rest.CachedInput, 0),
		CacheWrite: max(rest.CacheWrite, 0), Reasoning: max(rest.Reasoning, 0), Unpriced: max(rest.Unpriced, 0),
		CostMicroUSD: max(rest.CostMicroUSD, 0), LLMCalls: max(rest.LLMCalls, 0), ToolCalls: max(rest.ToolCalls, 0),
	}
	if len(parts) > 0 {
		parts[0].Usage.ToolCalls += rest.ToolCalls
		rest.ToolCalls = 0
	}
	if rest != (claybot.Usage{}) || len(parts) == 0 {
		rest.Estimated = u.Estimated
		add("", rest)
	}
	return parts
}

// lastDay sorts after every day.
const lastDay = "9999-99-99"

// spentColumns are the columns that Spent can sum by.
var spentColumns = map[string]string{
	storage.ByDay: "day", storage.ByAgent: "agent", storage.ByOwner: "owner", storage.ByModel: "model", storage.ByType: "type",
	storage.ByConnector: "connector", storage.ByChannel: "channel",
}

// spentOfAgents are the columns that only the larger table has.
var spentOfAgents = []string{storage.ByAgent, storage.ByOwner, storage.ByConnector, storage.ByChannel}

// Spent implements storage.Usages. It rejects unknown columns. Sums by agent or owner
// read a row of each agent and day; others a few rows of each day.
func (db spending) Spent(ctx context.Context, q storage.SpentQuery) ([]storage.Spent, error) {
	query, err := spentSQL(q, db.dialect.Summed)
	if err != nil {
		return nil, fmt.Errorf("spent: %w", err)
	}
	to := q.To
	if to == "" {
		to = lastDay
	}
	args := []any{q.From, to}
	if q.Agent != "" {
		args = append(args, q.Agent)
	}
	for _, owner := range q.Owners {
		args = append(args, owner)
	}
	limit := q.Limit
	if limit <= 0 {
		limit = storage.SpentRows + 1 // one more shows that there are too many
	}
	args = append(args, limit)
	var sums []storage.Spent
	err = db.report(ctx, func(c *Conn) error {
		return c.each(query, func(r Row) error {
			if q.Limit <= 0 && len(sums) == storage.SpentRows {
				return fmt.Errorf("%w: more than %d rows; ask for fewer days, or sum up by fewer columns", storage.ErrTooMany, storage.SpentRows)
			}
			s := storage.Spent{Usage: claybot.Usage{
				Input: r.Int(0), Output: r.Int(1), CachedInput: r.Int(2), CostMicroUSD: r.Int(3),
				LLMCalls: r.Int(4), ToolCalls: r.Int(5), Estimated: r.Int(6) != 0,
				CacheWrite: r.Int(8), Reasoning: r.Int(9), Unpriced: r.Int(10),
			}, Runs: r.Int(7)}
			for i, by := range q.By {
				switch v := r.Str(11 + i); by {
				case storage.ByDay:
					s.Day = v
				case storage.ByAgent:
					s.Agent = claybot.AgentID(v)
				case storage.ByOwner:
					s.Owner = v
				case storage.ByModel:
					s.Model, s.Runs = v, 0
				case storage.ByConnector:
					s.Connector = v
				case storage.ByChannel:
					s.Channel = v
				case storage.ByType:
					s.Type = claybot.AgentType(v)
				}
			}
			sums = append(sums, s)
			return nil
		}, args...)
	})
	return result(sums, err, "spent")
}

// spentSQL returns the query for q. Its parameters are the days, the agent and the
// owners if q has some, and the limit.
func spentSQL(q storage.SpentQuery, summed string) (string, error) {
	var b strings.Builder
	b.WriteString(`SELECT coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cached), 0), coalesce(sum(cost), 0),
		coalesce(sum(calls), 0), coalesce(sum(tools), 0), coalesce(max(estimated), 0), coalesce(sum(runs), 0),
		coalesce(sum(written), 0), coalesce(sum(reasoning), 0), coalesce(sum(unpriced), 0)`)
	columns := make([]string, len(q.By))
	byModel, table := false, "spent_days"
	if q.Agent != "" || len(q.Owners) > 0 {
		table = "spent"
	}
	for i, by := range q.By {
		column, ok := spentColumns[by]
		if !ok {
			return "", fmt.Errorf("there is no column %q", by)
		}
		columns[i] = column
		b.WriteString(", " + column)
		byModel = byModel || by == storage.ByModel
		if slices.Contains(spentOfAgents, by) {
			table = "spent"
		}
	}
	b.WriteString(" FROM " + table + summed + " WHERE day >= ? AND day <= ?")
	if q.Agent != "" {
		b.WriteString(" AND agent = ?")
	}
	if n := len(q.Owners); n > 0 {
		b.WriteString(" AND owner IN (?" + strings.Repeat(", ?", n-1) + ")")
	}
	if len(columns) > 0 {
		list := strings.Join(columns, ", ")
		b.WriteString(" GROUP BY " + list)
		if byModel { // excludes runs that called no model
			b.WriteString(" HAVING sum(input) + sum(output) + sum(cached) + sum(cost) + sum(calls) + sum(tools) > 0")
		}
		b.WriteString(" ORDER BY " + list)
	}
	b.WriteString(" LIMIT 0+?")
	return b.String(), nil
}

// A spanKey identifies a row of latencies: how often an operation took about so long on
// one day.
type spanKey struct {
	day, what string
	bucket    int
}

// took records that an operation took ms milliseconds.
func (m *meter) took(at int64, what string, ms int64) {
	m.spans[spanKey{day: dayOf(at), what: what, bucket: bucketOf(ms)}]++
}

func (m *meter) flushSpans(c *Conn) error {
	const q = "INSERT INTO latencies (day, what, bucket, n) VALUES (?, ?, ?, ?) ON CONFLICT (day, what, bucket) DO UPDATE SET n = latencies.n + excluded.n"
	for _, k := range slices.SortedFunc(maps.Keys(m.spans), spanKey.compare) {
		if err := c.do(q, k.day, k.what, k.bucket, m.spans[k]); err != nil {
			return err
		}
	}
	return nil
}

func (k spanKey) compare(o spanKey) int {
	return cmp.Or(cmp.Compare(k.day, o.day), cmp.Compare(k.what, o.what), cmp.Compare(k.bucket, o.bucket))
}

// There are eight buckets per octave, so the middle of one is off by at most 1/16 of a
// value in it. Each value below exact has its own.
const (
	subBits = 3
	exact   = 1 << (subBits + 1)
)

// bucketOf returns the bucket of a duration in milliseconds; negative values count as 0.
func bucketOf(ms int64) int {
	if ms < exact {
		return int(max(ms, 0))
	}
	shift := bits.Len64(uint64(ms)) - subBits - 1
	return shift<<subBits + int(ms>>shift)
}

// bucketValue returns the middle of a bucket.
func bucketValue(bucket int) int64 {
	if bucket < exact {
		return int64(bucket)
	}
	shift := bucket>>subBits - 1
	low := int64(bucket-shift<<subBits) << shift
	return low + (int64(1)<<shift)/2
}

// A spread has the buckets of one operation on one day, in order.
type spread struct {
	buckets []int
	counts  []int64
	n       int64
}

// at returns the value that p percent do not exceed.
func (s spread) at(p int64) int64 {
	rank := (s.n*p + 99) / 100
	for i, n := range s.counts {
		if rank -= n; rank <= 0 {
			return bucketValue(s.buckets[i])
		}
	}
	return 0
}

// Latencies implements storage.Usages, sorted by day and operation.
func (db spending) Latencies(ctx context.Context, from, to string) ([]storage.Latency, error) {
	if to == "" {
		to = lastDay
	}
	var (
		list []storage.Latency
		s    spread
	)
	close := func() {
		if len(list) > 0 {
			l := &list[len(list)-1]
			l.N, l.P50, l.P90, l.P99, l.Max = s.n, s.at(50), s.at(90), s.at(99), s.at(100)
		}
	}
	err := db.report(ctx, func(c *Conn) error {
		return c.each("SELECT day, what, bucket, n FROM latencies"+c.dialect.Summed+" WHERE day >= ? AND day <= ? ORDER BY day, what, bucket", func(r Row) error {
			day, what := r.Str(0), r.Str(1)
			if len(list) == 0 || list[len(list)-1].Day != day || list[len(list)-1].What != what {
				close()
				list, s = append(list, storage.Latency{Day: day, What: what}), spread{}
			}
			s.buckets, s.counts, s.n = append(s.buckets, int(r.Int(2))), append(s.counts, r.Int(3)), s.n+r.Int(3)
			return nil
		}, from, to)
	})
	if err != nil {
		return nil, fmt.Errorf("latencies: %w", err)
	}
	close()
	return list, nil
}
