package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// usagePages are the pages of tokens and cost.
type usagePages struct {
	*pages
	budgets *budgetPages
	usage   storage.Usages
	prices  func() llm.Prices // nil: none is known
	books   bookkeeper
}

func (b *usagePages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/usage", "usage", b.page),
		b.part("/ui/usage/top", "usage", "usage-top", b.read((*usagePages).readDays)),
		b.part("/ui/usage/now", "usage", "usage-now", b.read((*usagePages).readUsage)),
		{Pattern: "GET /ui/usage/data", Scope: web.Read, Handler: http.HandlerFunc(b.usageData)},
	}
}

// A usageView is the usage in a period.
type usageView struct {
	viewer
	period
	By        string // the column by which costs are broken down
	ByWords   string
	Days      spentTable
	Split     spentTable
	Durations []storage.Latency
	Periods   []filterView
	Tabs      []filterView
	Self      string // the query of this page
	CSV       string // the address of the same as a file
	Later     bool   // the page fetches the values
	Budgets   budgetsView
}

// Unit says in which unit the shares of a table are.
func (t spentTable) Unit() string {
	if t.Total.Cost.MicroUSD == 0 {
		return "tokens"
	}
	return "cost"
}

// Named says what a latency is of.
func (usageView) Named(what string) string { return latencyName(what) }

// page is the whole page. The first request for a long period gets it without the
// values, which the page fetches then: summing them up may take a while.
func (b *usagePages) page(r *http.Request) (any, error) {
	v := usageOf(r)
	var err error
	if v.Budgets, err = b.budgets.readBudgets(r); err != nil {
		return nil, err
	}
	if v.Later = !b.books.ready(v.period, v.By); v.Later {
		return v, nil
	}
	return v, b.readUsage(r.Context(), &v)
}

func usageOf(r *http.Request) usageView {
	q := r.URL.Query()
	v := usageView{viewer: viewerOf(r), period: periodOf(q.Get("days"), time.Now()), By: storage.ByModel}
	for _, x := range breakdowns {
		if x.By == q.Get("by") {
			v.By = x.By
		}
	}
	v.links()
	return v
}

func (b *usagePages) read(load func(*usagePages, context.Context, *usageView) error) loader {
	return func(r *http.Request) (any, error) {
		v := usageOf(r)
		err := load(b, r.Context(), &v)
		return v, err
	}
}

func (b *usagePages) readDays(ctx context.Context, v *usageView) error {
	days, byModel, err := b.books.both(ctx, b.usage, v.period, storage.ByDay)
	v.Days = tabulate(storage.ByDay, days, byModel, b.known())
	slices.Reverse(v.Days.Rows) // the newest first
	return err
}

// known returns the prices that are set now.
func (b *usagePages) known() llm.Prices {
	if b.prices == nil {
		return nil
	}
	return b.prices()
}

// readUsage sums up the period.
func (b *usagePages) readUsage(ctx context.Context, v *usageView) error {
	if err := b.readDays(ctx, v); err != nil {
		return err
	}
	split, byModel, err := b.books.both(ctx, b.usage, v.period, v.By)
	if err != nil {
		return err
	}
	v.Split = tabulate(v.By, split, byModel, b.known())
	v.Durations, err = b.books.took(ctx, b.usage, v.period)
	slices.SortStableFunc(v.Durations, func(a, b storage.Latency) int {
		if a.Day != b.Day {
			return strings.Compare(b.Day, a.Day)
		}
		return compareLatency(a.What, b.What)
	})
	return err
}

func (v *usageView) links() {
	at := func(days int, by string) string {
		return url.Values{"days": {strconv.Itoa(days)}, "by": {by}}.Encode()
	}
	v.Self = at(v.period.Days, v.By)
	for _, d := range periods {
		v.Periods = append(v.Periods, filterView{Words: strconv.Itoa(d) + " days", URL: "/ui/usage?" + at(d, v.By), Now: d == v.period.Days})
	}
	for _, x := range breakdowns {
		now := x.By == v.By
		if now {
			v.ByWords = x.Words
		}
		v.Tabs = append(v.Tabs, filterView{Words: x.Words, URL: "/ui/usage?" + at(v.period.Days, x.By), Now: now})
	}
	by := "day,agent,owner,channel,model,type"
	if v.period.Days > 31 { // more rows than the API sums up at once
		by = "agent,owner,channel,model,type"
	}
	v.CSV = "/usage?" + url.Values{"format": {"csv"}, "from": {v.From}, "to": {v.To}, "by": {by}}.Encode()
}

// usageData answers with the values of the charts.
func (b *usagePages) usageData(w http.ResponseWriter, r *http.Request) {
	p := periodOf(r.URL.Query().Get("days"), time.Now())
	byDay, byModel, err := b.books.both(r.Context(), b.usage, p, storage.ByDay)
	var latencies []storage.Latency
	if err == nil {
		latencies, err = b.books.took(r.Context(), b.usage, p)
	}
	if err != nil {
		b.fail(w, r, err)
		return
	}
	web.Answer(w, http.StatusOK, series(p, byDay, byModel, latencies))
}
