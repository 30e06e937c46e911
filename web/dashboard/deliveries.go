package dashboard

import (
	"net/http"
	"strconv"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/web"
)

// deliveryPages are the pages of the outbox.
type deliveryPages struct {
	*pages
	outbox web.Outbox
	system web.System
}

// deliveryRoutes are the page of the messages on their way out.
func (b *deliveryPages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/deliveries", "deliveries", b.deliveries),
		b.part("/ui/deliveries/list", "deliveries", "delivery-list", b.deliveries),
		b.act("POST /ui/deliveries/retry", web.Operate, b.retryDelivery),
		b.act("POST /ui/deliveries/drop", web.Operate, b.dropDelivery),
	}
}

// A deliveriesView is the outbox as far as a filter shows it.
type deliveriesView struct {
	viewer
	deliveryFilter
	Counts  []stateCount
	Rows    []deliveryView
	Filters []filterView
	Self    string // the query of this page
	Older   string // the address of the next page; empty on the last one
	Newest  string // of the first one; empty there
	Place   string // the destination in words, when only one is shown
}

// A filterView is one choice of what the list shows.
type filterView struct {
	Words, URL string
	Now        bool
}

func (b *deliveryPages) deliveries(r *http.Request) (any, error) {
	q := r.URL.Query()
	f := deliveryFilter{Show: q.Get("show"), Connector: q.Get("connector"), Channel: q.Get("channel")}
	f.Before, _ = strconv.ParseInt(q.Get("before"), 10, 64) // what is no number is the newest page
	status, err := b.system.Status(r.Context())
	if err != nil {
		return nil, err
	}
	all, err := b.outbox.OutgoingPage(r.Context(), f.query())
	if err != nil {
		return nil, err
	}
	v := deliveriesView{viewer: viewerOf(r), deliveryFilter: f, Counts: outboxCounts(status.Outbox), Self: f.values(f.Before).Encode()}
	if len(all) > deliveryRows {
		all = all[:deliveryRows]
		v.Older = f.at(all[len(all)-1].N)
	}
	if f.Before != 0 {
		v.Newest = f.at(0)
	}
	for _, o := range all {
		v.Rows = append(v.Rows, viewDelivery(o))
	}
	for _, x := range deliveryFilters {
		other := f
		other.Show = x.Show
		v.Filters = append(v.Filters, filterView{Words: x.Words, URL: other.at(0), Now: f.Show == x.Show})
	}
	if f.Connector != "" {
		v.Place = connectors.OneLine(f.Connector+" · "+f.Channel, 80)
	}
	return v, nil
}

// at is the address of the list as a filter shows it.
func (f deliveryFilter) at(before int64) string {
	if q := f.values(before).Encode(); q != "" {
		return "/ui/deliveries?" + q
	}
	return "/ui/deliveries"
}

func (b *deliveryPages) retryDelivery(r *http.Request) (string, error) {
	_, err := b.outbox.RetryOutgoing(r.Context(), r.Form.Get("id"))
	return "It is sent again.", err
}

func (b *deliveryPages) dropDelivery(r *http.Request) (string, error) {
	_, err := b.outbox.DropOutgoing(r.Context(), r.Form.Get("id"))
	return "It is given up and will not be sent.", err
}
