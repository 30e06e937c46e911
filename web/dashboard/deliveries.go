package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	deliveryRows = 50  // messages on one page of the outbox
	previewRunes = 140 // characters of a text in a row
)

// deliveryPages serves the outbox.
type deliveryPages struct {
	*pages
	outbox web.Outbox
	system web.System
}

func (b *deliveryPages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/deliveries", "deliveries", b.deliveries),
		b.part("/ui/deliveries/list", "deliveries", "delivery-list", b.deliveries),
		b.act("POST /ui/deliveries/retry", web.Operate, func(r *http.Request) (string, error) {
			_, err := b.outbox.RetryOutgoing(r.Context(), r.Form.Get("id"))
			return doneRetried, err
		}),
		b.act("POST /ui/deliveries/drop", web.Operate, func(r *http.Request) (string, error) {
			_, err := b.outbox.DropOutgoing(r.Context(), r.Form.Get("id"))
			return doneGivenUp, err
		}),
	}
}

// A deliveryFilter is what the list of the outbox shows.
type deliveryFilter struct {
	Show               string // open, waiting, failed, ambiguous, sent; empty for all
	Connector, Channel string // one destination
	Before             int64
}

// query converts f to a store query. An unknown filter shows all.
func (f deliveryFilter) query() storage.OutgoingQuery {
	q := storage.OutgoingQuery{Before: f.Before, Limit: deliveryRows + 1}
	switch f.Show {
	case "open":
		q.Open = true
	case "waiting", "attempted", "failed", "ambiguous", "sent":
		q.State = claybot.SendState(f.Show)
	}
	if f.Connector != "" {
		q.Dest = claybot.Route{Connector: f.Connector, ChannelID: f.Channel}.Dest()
	}
	return q
}

// values encodes f for a URL, with another Before.
func (f deliveryFilter) values(before int64) url.Values {
	v := url.Values{}
	for name, s := range map[string]string{"show": f.Show, "connector": f.Connector, "channel": f.Channel} {
		if s != "" {
			v.Set(name, s)
		}
	}
	if before != 0 {
		v.Set("before", fmt.Sprint(before))
	}
	return v
}

// at returns the URL of the filtered list.
func (f deliveryFilter) at(before int64) string {
	return strings.TrimSuffix("/ui/deliveries?"+f.values(before).Encode(), "?")
}

// A deliveriesView is the filtered outbox.
type deliveriesView struct {
	viewer
	deliveryFilter
	Counts  []stateCount
	Rows    []deliveryView
	Filters []filterView
	Self    string // the query of this page
	Older   string // the address of the next page; empty on the last one
	Newest  string // of the first one; empty there
	Place   string // the destination, when only one is shown
}

// A filterView is one choice of what a page shows.
type filterView struct {
	Words, URL string
	Now        bool
}

func (b *deliveryPages) deliveries(r *http.Request) (any, error) {
	q := r.URL.Query()
	f := deliveryFilter{Show: q.Get("show"), Connector: q.Get("connector"), Channel: q.Get("channel")}
	f.Before, _ = strconv.ParseInt(q.Get("before"), 10, 64) // invalid: the newest page
	status, err := b.system.Status(r.Context())
	if err != nil {
		return nil, err
	}
	all, err := b.outbox.OutgoingPage(r.Context(), f.query())
	v := deliveriesView{viewer: viewerOf(r), deliveryFilter: f, Counts: outboxCounts(status.Outbox), Self: f.values(f.Before).Encode()}
	all, more := cut(all, deliveryRows)
	if more > 0 {
		v.Older = f.at(all[len(all)-1].N)
	}
	if f.Before != 0 {
		v.Newest = f.at(0)
	}
	for _, o := range all {
		v.Rows = append(v.Rows, viewDelivery(o))
	}
	for _, show := range deliveryFilters {
		other := f
		other.Show = show
		v.Filters = append(v.Filters, filterView{cmp.Or(connectors.Capital(show), "All"), other.at(0), f.Show == show})
	}
	if f.Connector != "" {
		v.Place = connectors.OneLine(f.Connector+" · "+f.Channel, 80)
	}
	return v, err
}

var deliveryFilters = []string{"", "open", "failed", "ambiguous", "sent"}

// A deliveryView is one message of the outbox.
type deliveryView struct {
	claybot.Outgoing
	mark
	Preview string
	Whole   bool // the preview is all of the text
}

func viewDelivery(o claybot.Outgoing) deliveryView {
	v := deliveryView{Outgoing: o, mark: markOf(o), Preview: connectors.OneLine(o.Text, previewRunes)}
	v.Whole = v.Preview == strings.TrimSpace(o.Text)
	if o.File != nil {
		v.Preview = strings.TrimSpace("[" + connectors.FileLine(*o.File) + "] " + v.Preview)
	}
	return v
}

// About is the kind of the message.
func (v deliveryView) About() string { return cmp.Or(outgoingKinds[v.Kind], string(v.Kind)) }

// Place is the address of the list for its destination.
func (v deliveryView) Place() string {
	return deliveryFilter{Connector: v.Route.Connector, Channel: v.Route.ChannelID}.at(0)
}

// Retry reports whether it may be sent again, Drop whether it may be dropped.
func (v deliveryView) Retry() bool { return v.State == claybot.SendFailed || v.Drop() }
func (v deliveryView) Drop() bool  { return v.State == claybot.SendWaiting }

// A stateCount is how many there are in one state.
type stateCount struct {
	mark
	Name, URL string
	N         int
}

func outboxCounts(counts map[claybot.SendState]int) []stateCount {
	all := make([]stateCount, 0, 5)
	for _, s := range []claybot.SendState{claybot.SendWaiting, claybot.SendAttempted, claybot.SendAmbiguous, claybot.SendFailed, claybot.SendSent} {
		all = append(all, stateCount{Name: string(s), mark: markOf(claybot.Outgoing{State: s}), N: counts[s], URL: "/ui/deliveries?show=" + string(s)})
	}
	return all
}
