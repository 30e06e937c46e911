package main

import (
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

func TestNodeTable(t *testing.T) {
	now := time.Now()
	at := func(ago time.Duration) claybot.Time { return claybot.At(now.Add(-ago)) }
	since := moment(at(0).Time())
	for name, tt := range map[string]struct {
		node web.MemberView
		want []string
	}{
		"live": {
			web.MemberView{ID: "a/1", Name: "a", State: storage.MemberLive, Version: "v1", Seen: at(2 * time.Second), Working: 3, MaxRuns: 9, Claims: []string{"telegram/42", "mend"}, Destinations: 1},
			[]string{"a", "live", "v1", since, "2s ago", "3 of 9", "ok", "telegram/42, mend, sends to 1 destination", "a/1"},
		},
		"ahead":                 {web.MemberView{Name: "b", State: storage.MemberDraining, Skew: 61_040, Seen: at(0)}, []string{"b", "draining", "", since, "0s ago", "0 of 0", "1m1s ahead", "-", ""}},
		"behind":                {web.MemberView{Name: "b", State: storage.MemberLive, Skew: -1000, Destinations: 5}, []string{"b", "live", "", since, "-", "0 of 0", "1s behind", "sends to 5 destinations", ""}},
		"lost":                  {web.MemberView{Name: "c", State: storage.MemberLost, Working: 7, Skew: 99_999, Seen: at(time.Hour)}, []string{"c", "lost", "", since, "1h0m0s ago", "-", "-", "-", ""}},
		"set up wrongly":        {web.MemberView{Name: "e", State: storage.MemberLive, Doubt: "x."}, []string{"e", "live !", "", since, "-", "0 of 0", "ok", "-", ""}},
		"a renewal that is new": {web.MemberView{Name: "d", State: storage.MemberGone, Seen: at(-time.Minute)}, []string{"d", "gone", "", since, "0s ago", "-", "-", "-", ""}},
	} {
		tt.node.Started = at(0)
		if got := memberTable([]web.MemberView{tt.node}, now)[1]; !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, tt.want)
		}
	}
}

func TestNodeDoubts(t *testing.T) {
	got := memberDoubts([]web.MemberView{{Name: "a", ID: "a/1"}, {Name: "b", ID: "b/1", Doubt: "Mend it."}, {Name: "c", ID: "c/1", Doubt: "And this."}})
	if want := "\n! b (b/1): Mend it.\n! c (c/1): And this.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := memberDoubts([]web.MemberView{{Name: "a"}}); got != "" {
		t.Errorf("nothing is wrong: %q", got)
	}
}

// A connector that works, while the store does not, takes nothing in all the same.
func TestConnectorLine(t *testing.T) {
	at := time.Now()
	for want, c := range map[string]overview.ConnectorStatus{
		"starting":                          {Health: connectors.Health{State: connectors.StateStarting}},
		"stopped by a at noon":              {Health: connectors.Health{State: connectors.StateOff, Err: "stopped by a at noon"}},
		"off: no token":                     {Health: connectors.Health{State: connectors.StateStopped, Err: "no token"}},
		"live" + success(at):                {Health: connectors.Health{State: connectors.StateLive, LastOK: at}},
		"live, but they wait":               {Health: connectors.Health{State: connectors.StateLive, LastOK: at}, Held: "they wait"},
		"failed, but they wait: no network": {Health: connectors.Health{State: connectors.StateFailing, Err: "no network"}, Held: "they wait"},
	} {
		if got := connectorLine(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Metrics say how old they are when they are not current, or that they are unknown.
func TestFigureRows(t *testing.T) {
	now := time.Now()
	read := now.Add(-90 * time.Second)
	for name, tt := range map[string]struct {
		status overview.Status
		first  []string
		rows   int
	}{
		"of now":   {overview.Status{StoreStatus: overview.StoreStatus{Agents: 2}}, []string{"agents", "2"}, 4},
		"old":      {overview.Status{StoreStatus: overview.StoreStatus{Agents: 2, AsOf: claybot.At(read)}}, []string{"database", "does not respond; the counts are from " + moment(read) + ", 1m30s ago"}, 5},
		"from now": {overview.Status{StoreStatus: overview.StoreStatus{AsOf: claybot.At(now.Add(time.Hour))}}, []string{"database", "does not respond; the counts are from " + moment(now.Add(time.Hour)) + ", 0s ago"}, 5},
		"unknown":  {overview.Status{StoreStatus: overview.StoreStatus{Unknown: true}}, []string{"database", "does not respond; agents, messages and runs are unknown"}, 1},
	} {
		if rows := figureRows(tt.status, now); len(rows) != tt.rows || !slices.Equal(rows[0], tt.first) {
			t.Errorf("%s: %q", name, rows)
		}
	}
}

func TestNodeLine(t *testing.T) {
	for want, n := range map[string]overview.NodeStatus{
		"a":                               {Name: "a", Nodes: 1, OK: true},
		"a, one of 3":                     {Name: "a", Nodes: 3, OK: true},
		"a: the database does not answer": {Name: "a", Nodes: 3, Err: "the database does not answer"},
	} {
		if got := memberLine(&n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
