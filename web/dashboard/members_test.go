package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

func TestNodesPage(t *testing.T) {
	b := &pages{views: sync.OnceValue(readViews)}
	who := viewer{web.Read}
	for name, tt := range map[string]struct {
		all  []storage.Member
		tone string
		want []string
		not  []string
	}{
		"three": {
			[]storage.Member{
				{ID: "a/1", Name: "a", State: storage.MemberLive, Working: 3, MaxRuns: 10, Seen: 5, Claims: []string{"telegram/42", "mend"}, Dests: 4},
				{ID: "b/1", Name: "b", State: storage.MemberDraining, MaxRuns: 10, Skew: -999},
				{ID: "c/1", Name: "c", State: storage.MemberLost, Version: "v1", Skew: 99_000, Working: 7},
				{ID: "a/0", Name: "a", State: storage.MemberGone, Version: "v0"},
			},
			"good",
			[]string{"2 members are live.", "live</span>", "draining", "lost", "stopped", "3 of 10", "<code>telegram/42</code>, <code>mend</code>", "sends to 4 destinations", "in sync"},
			[]string{"behind", "ahead", "7 of", "versions"},
		},
		"alone":    {[]storage.Member{{ID: "x", Name: "x", State: storage.MemberLive}}, "good", []string{"1 member is live."}, []string{"warning"}},
		"a clock":  {[]storage.Member{{Name: "x", State: storage.MemberLive, Skew: 1500}}, "warn", []string{"The clock of x is off", "1.5s ahead"}, nil},
		"behind":   {[]storage.Member{{Name: "x", State: storage.MemberLive, Skew: -2000}}, "warn", []string{"2s behind"}, nil},
		"versions": {[]storage.Member{{Name: "x", State: storage.MemberLive}, {Name: "y", State: storage.MemberLive, Version: "2"}}, "warn", []string{"finish the upgrade"}, nil},
		"one name": {
			[]storage.Member{{ID: "x/2", Name: "x", Started: 2000, Seen: 9000, State: storage.MemberLive}, {ID: "x/1", Name: "x", Started: 1000, Seen: 9000, State: storage.MemberLive}},
			"warn",
			[]string{"Several members are named x", "misconfigured", "another member is called x as well"},
			[]string{"lease"},
		},
		"in the place of one that was killed": {
			[]storage.Member{{ID: "x/2", Name: "x", Started: 8000, Seen: 9000, State: storage.MemberLive}, {ID: "x/1", Name: "x", Started: 1000, Seen: 7000, State: storage.MemberLive}},
			"good",
			[]string{"2 members are live."},
			[]string{"misconfigured", "Several"},
		},
		"leases": {
			[]storage.Member{
				{ID: "a", Name: "a", Started: 1, Seen: 1000, Until: 11_000, State: storage.MemberLive},
				{ID: "b", Name: "b", Started: 2, Seen: 1000, Until: 6000, State: storage.MemberDraining},
				{ID: "c", Name: "c", Started: 3, Seen: 1000, Until: 4000, State: storage.MemberLost},
				{ID: "d", Name: "d", Started: 4, Seen: 1000, State: storage.MemberGone},
			},
			"warn",
			[]string{"Members have different leases", "its node.lease is 5s, and that of others 10s"},
			[]string{"3s", "its node.lease is 10s"},
		},
		"none live": {[]storage.Member{{Name: "x", State: storage.MemberLost}}, "bad", []string{"No live members"}, nil},
	} {
		v := viewMembers(who, tt.all)
		html := rendered(t, b, pageCase{"members", "main", v})
		if v.Tone != tt.tone {
			t.Errorf("%s: %s, want %s: %s", name, v.Tone, tt.tone, v.Verdict)
		}
		for _, want := range tt.want {
			if !strings.Contains(html, want) {
				t.Errorf("%s: the page does not say %q:\n%s", name, want, html)
			}
		}
		for _, not := range tt.not {
			if strings.Contains(html, not) {
				t.Errorf("%s: the page says %q", name, not)
			}
		}
	}
}

// A database that is gone is the first thing that the page of health says.
func TestHealthWithoutDatabase(t *testing.T) {
	b := &pages{views: sync.OnceValue(readViews)}
	v := viewHealth(viewer{web.Read}, overview.Status{
		OutsideStatus: overview.OutsideStatus{Model: overview.ModelStatus{Name: "m", Err: "refused"}},
		Node:          &overview.NodeStatus{Name: "n2", Nodes: 3, Err: "the database does not answer"},
		Connectors: []overview.ConnectorStatus{
			{Name: "telegram", Health: connectors.Health{State: connectors.StateLive}, Held: "new messages wait"},
			{Name: "slack", Health: connectors.Health{State: connectors.StateStopped, Err: "The token is wrong."}},
		},
	})
	html := rendered(t, b, pageCase{"health", "main", v})
	if v.Tone != "bad" || v.Verdict != "The database does not answer." || !strings.Contains(html, "3 cluster members") || !strings.Contains(html, "as of the last lease renewal; this is n2") {
		t.Errorf("%s: %s\n%s", v.Tone, v.Verdict, html)
	}
	for _, want := range []string{`<span class="badge bad">not receiving</span>`, "New messages wait.", "off, needs action", "The token is wrong."} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(html, ">connected<") {
		t.Error("the page says of a connector that it works")
	}
}

// Metrics that are not current say so, and unknown metrics are left out.
func TestHealthFigures(t *testing.T) {
	b := &pages{views: sync.OnceValue(readViews)}
	const agents, old, unknown = ">agents<", "is when the counts of", "counts unknown"
	for name, tt := range map[string]struct {
		status    overview.Status
		want, not []string
	}{
		"of now":  {overview.Status{}, []string{agents, "runs-head"}, []string{old, unknown}},
		"disk":    {overview.Status{OutsideStatus: overview.OutsideStatus{Disk: &overview.DiskStatus{Free: 50 << 30, Total: 100 << 30}}}, []string{"free of 107 GB: enough space<"}, []string{"{"}},
		"full":    {overview.Status{OutsideStatus: overview.OutsideStatus{Disk: &overview.DiskStatus{Free: 1 << 20, Total: 100 << 30}}}, []string{"almost full: free up space"}, []string{"enough space"}},
		"old":     {overview.Status{StoreStatus: overview.StoreStatus{AsOf: claybot.At(time.Unix(1_700_000_000, 0))}}, []string{agents, "runs-head", old, `datetime="2023-11-14T22:13:20`}, []string{unknown}},
		"unknown": {overview.Status{StoreStatus: overview.StoreStatus{Unknown: true}}, []string{unknown, "doors-head"}, []string{agents, "runs-head", "outbox-head", "duplicates dropped", old}},
	} {
		html := rendered(t, b, pageCase{"health", "main", viewHealth(viewer{web.Read}, tt.status)})
		for _, s := range tt.want {
			if !strings.Contains(html, s) {
				t.Errorf("%s: the page does not say %q:\n%s", name, s, html)
			}
		}
		for _, s := range tt.not {
			if strings.Contains(html, s) {
				t.Errorf("%s: the page says %q", name, s)
			}
		}
	}
}

// What cannot be shown because the database is away is told in words, without those
// of its driver.
func TestDatabaseAway(t *testing.T) {
	err := fmt.Errorf("read: %w", storage.Unanswered(errors.New("dial tcp 10.1.2.3:5432: connection refused")))
	p := explain(err)
	if p == nil || p.Status != http.StatusServiceUnavailable || strings.Contains(p.Message+p.Fix, "10.1.2.3") || !strings.Contains(p.Message, "does not respond") {
		t.Errorf("%+v", p)
	}
}
