package api

import (
	"encoding/csv"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	usageRows = 10_000 // of one report
	wideDays  = 31     // of one by day and by agent, owner or channel
)

var noMessage = hint{"Unknown message.", "Use the id of a message, a run or an outgoing message, or a platform's link to a message."}

// reports serves usage, latency, receipts and the status of the installation.
type reports struct {
	system web.System
	usage  storage.Usages
	log    *slog.Logger
}

func (a reports) operations() []operation {
	days := []param{
		{name: "from", about: "The first day, YYYY-MM-DD in UTC."}, {name: "to", about: "The last day."},
	}
	return operation{tag: "reports"}.like(
		op("getUsage", web.Read, "GET /usage", "Get token usage and cost.").
			explained("At most 10,000 rows. Sums by day together with agent, owner or channel cover at most 31 days, unless you name one agent.").
			query(append(slices.Clone(days),
				param{name: "by", about: "The columns to group by, separated by commas: day, agent, owner, channel, connector, model, type. One total if omitted."},
				param{name: "agent", about: "Only this agent."},
				param{name: "format", about: "json (default) or csv.", values: []string{"json", "csv"}})...).
			served(a.getUsage, answer{status: http.StatusOK, value: web.UsageReport{}, about: "With format=csv, the same as text/csv, with at most 10,000 rows per day if by starts with day; more are an error."}),
		returns(http.StatusOK, op("getLatency", web.Read, "GET /latency", "Get the durations of runs and model calls, by day.").query(days...), a.latency),
		returns(http.StatusOK, op("getReceipts", web.Read, "GET /receipts", "Trace a message, with the reason if there is no reply.").
			query(param{name: "message", about: "The id of a message, a run or an outgoing message, or a platform's link to a message."}).
			failing(http.StatusNotFound).unknown(noMessage), a.receipts),
		returns(http.StatusOK, op("getStatus", web.Read, "GET /status", "Get the status of the daemon.").tagged("about"), a.status),
		returns(http.StatusOK, op("listMembers", web.Read, "GET /members", "List cluster members.").tagged("about").
			explained("Without a shared database, the daemon is the only member."), a.members),
	)
}

// daysOf returns the first and last day of a report.
func daysOf(r *http.Request) (from, to string, err error) {
	q := r.URL.Query()
	from, to = q.Get("from"), q.Get("to")
	for _, x := range [][2]string{{"from", from}, {"to", to}} {
		if x[1] == "" {
			continue
		}
		if _, err := time.Parse(time.DateOnly, x[1]); err != nil {
			return "", "", bad(x[0]+" must be a day such as 2026-01-31.", "")
		}
	}
	if from != "" && to != "" && from > to {
		return "", "", bad("from is after to.", "")
	}
	return from, to, nil
}

var columns = []string{storage.ByDay, storage.ByAgent, storage.ByOwner, storage.ByModel, storage.ByType, storage.ByConnector, storage.ByChannel}

func (a reports) getUsage(w http.ResponseWriter, r *http.Request) error {
	from, to, err := daysOf(r)
	if err != nil {
		return err
	}
	q := storage.SpentQuery{From: from, To: to, Agent: claybot.AgentID(r.URL.Query().Get("agent")), Limit: usageRows + 1}
	if by := r.URL.Query().Get("by"); by != "" {
		q.By = strings.Split(by, ",")
	}
	for i, column := range q.By {
		if !slices.Contains(columns, column) || slices.Contains(q.By[:i], column) {
			return bad(fmt.Sprintf("Invalid column %.40q in by.", column), "Use any of: "+strings.Join(columns, ", ")+".")
		}
	}
	if wide(q, time.Now().UTC()) {
		return bad(fmt.Sprintf("Sums by day together with agent, owner or channel cover at most %d days.", wideDays), "Set from and to, remove day from by, or name one agent.")
	}
	if r.URL.Query().Get("format") == "csv" {
		return a.usageFile(w, r, q)
	}
	rows, err := a.usage.Spent(r.Context(), q)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, web.UsageReport{Usage: orEmpty(rows[:min(len(rows), usageRows)]), More: len(rows) > usageRows})
}

// usageFile serves a report as CSV, day by day if it has many rows. On an error it aborts
// the connection, so that an incomplete file is not mistaken for a complete one.
func (a reports) usageFile(w http.ResponseWriter, r *http.Request, q storage.SpentQuery) error {
	var out *csv.Writer
	for _, part := range byDays(q, time.Now().UTC()) {
		rows, err := a.usage.Spent(r.Context(), part)
		if err == nil && len(rows) > usageRows {
			err = bad(fmt.Sprintf("The result has more than %d rows.", usageRows), "Request fewer days with from and to, or fewer columns with by.")
		}
		switch {
		case err != nil && out == nil:
			return err
		case err != nil:
			a.log.Warn("report ended early", "day", part.From, "err", err)
			panic(http.ErrAbortHandler) // closes the connection
		case out == nil:
			w.Header().Set("Content-Type", "text/csv; charset=utf-8")
			w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
			w.Header().Set("Cache-Control", "no-store")
			out = csv.NewWriter(w)
			_ = out.Write(append(slices.Clone(q.By), "input", "output", "cached_input", "cost_micro_usd", "llm_calls", "tool_calls", "runs", "cache_write", "reasoning", "unpriced_calls")) // csv.Writer keeps the error
		}
		if !writeUsage(out, q.By, rows) {
			return nil // the client may have disconnected
		}
	}
	return nil
}

// byDays splits a query whose rows start with the day into one per day, if these are few.
// The rows and their order do not change.
func byDays(q storage.SpentQuery, now time.Time) []storage.SpentQuery {
	first, err := time.Parse(time.DateOnly, q.From)
	if err != nil || len(q.By) < 2 || q.By[0] != storage.ByDay {
		return []storage.SpentQuery{q}
	}
	last := now
	if q.To != "" {
		last, _ = time.Parse(time.DateOnly, q.To) // validated
	}
	if last.Before(first) || last.Sub(first) >= wideDays*24*time.Hour {
		return []storage.SpentQuery{q}
	}
	var parts []storage.SpentQuery
	for day := first; !day.After(last); day = day.AddDate(0, 0, 1) {
		q.From = day.Format(time.DateOnly)
		q.To = q.From
		parts = append(parts, q)
	}
	return parts
}

// wide reports whether a query sums so many rows that it would delay others: agents times
// days.
func wide(q storage.SpentQuery, now time.Time) bool {
	each := slices.ContainsFunc(q.By, func(by string) bool { return by == storage.ByAgent || by == storage.ByOwner || by == storage.ByChannel })
	if !each || !slices.Contains(q.By, storage.ByDay) || q.Agent != "" {
		return false
	}
	last := now
	if q.To != "" {
		last, _ = time.Parse(time.DateOnly, q.To) // validated
	}
	first, err := time.Parse(time.DateOnly, q.From)
	return err != nil || last.Sub(first) >= wideDays*24*time.Hour
}

// writeUsage writes rows as CSV. It reports whether the client is still reading.
func writeUsage(out *csv.Writer, by []string, rows []storage.Spent) bool {
	var line []string
	for _, s := range rows {
		line = line[:0]
		for _, column := range by {
			line = append(line, cell(cellOf(s, column)))
		}
		u := s.Usage
		for _, n := range []int64{u.Input, u.Output, u.CachedInput, u.CostMicroUSD, u.LLMCalls, u.ToolCalls, s.Runs, u.CacheWrite, u.Reasoning, u.Unpriced} {
			line = append(line, strconv.FormatInt(n, 10))
		}
		if out.Write(line) != nil {
			return false
		}
	}
	out.Flush()
	return out.Error() == nil
}

// cellOf returns the value of a column.
func cellOf(s storage.Spent, column string) string {
	switch column {
	case storage.ByDay:
		return s.Day
	case storage.ByAgent:
		return string(s.Agent)
	case storage.ByOwner:
		return s.Owner
	case storage.ByModel:
		return s.Model
	case storage.ByConnector:
		return s.Connector
	case storage.ByChannel:
		return s.Channel
	}
	return string(s.Type)
}

// cell escapes a text that a spreadsheet would treat as a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func (a reports) latency(r *http.Request) (none web.LatencyReport, err error) {
	from, to, err := daysOf(r)
	if err != nil {
		return none, err
	}
	rows, err := a.usage.Latencies(r.Context(), from, to)
	return web.LatencyReport{Latency: orEmpty(rows)}, err
}

func (a reports) receipts(r *http.Request) (none web.ReceiptList, err error) {
	ref := r.URL.Query().Get("message")
	if ref == "" {
		return none, bad("The parameter message is missing.", noMessage.fix)
	}
	all, err := a.system.Why(r.Context(), ref)
	if err == nil && len(all) == 0 {
		err = storage.ErrNotFound
	}
	return web.ReceiptList{Receipts: each(all, viewReceipt)}, err
}

func viewReceipt(s overview.Story) web.ReceiptView {
	m := s.Message
	v := web.ReceiptView{
		Message: m.ID, Type: m.Type, Kind: m.Kind, Agent: s.Agent, From: m.From, Text: shorten(typed(m), shortText), Stored: s.Stored,
		Skipped: s.Skipped, Due: s.Due, Behind: s.Busy, Ahead: s.Ahead, Replies: each(s.Replies, viewOutgoing), Steps: orEmpty(s.Steps), Silence: s.Silence, Verdict: s.Verdict(),
	}
	if s.Run != nil {
		run := viewRun(*s.Run)
		v.Run = &run
	}
	return v
}

func (a reports) status(r *http.Request) (overview.Status, error) {
	v, err := a.system.Status(r.Context())
	v.Connectors = orEmpty(v.Connectors)
	return v, err
}
