package dashboard

import (
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

func TestNodesPage(t *testing.T) {
	b := &board{views: sync.OnceValue(readViews)}
	who := viewer{web.Read}
	for name, tt := range map[string]struct {
		all  []storage.Node
		tone string
		want []string
		not  []string
	}{
		"three": {
			[]storage.Node{
				{ID: "a/1", Name: "a", State: storage.NodeLive, Working: 3, MaxRuns: 10, Seen: 5, Claims: []string{"telegram/42", "mend"}, Dests: 4},
				{ID: "b/1", Name: "b", State: storage.NodeDraining, MaxRuns: 10, Skew: -999},
				{ID: "c/1", Name: "c", State: storage.NodeLost, Version: "v1", Skew: 99_000, Working: 7},
				{ID: "a/0", Name: "a", State: storage.NodeGone, Version: "v0"},
			},
			"good",
			[]string{"2 nodes are there.", "works</span>", "is leaving", "was lost", "has left", "3 of 10", "<code>telegram/42</code>, <code>mend</code>", "sends to 4 destinations", "as the database&#39;s"},
			[]string{"behind", "ahead", "7 of", "versions"},
		},
		"alone":    {[]storage.Node{{ID: "x", Name: "x", State: storage.NodeLive}}, "good", []string{"1 node is there."}, []string{"attention"}},
		"a clock":  {[]storage.Node{{Name: "x", State: storage.NodeLive, Skew: 1500}}, "warn", []string{"The clock of x is off", "1.5s ahead"}, nil},
		"behind":   {[]storage.Node{{Name: "x", State: storage.NodeLive, Skew: -2000}}, "warn", []string{"2s behind"}, nil},
		"versions": {[]storage.Node{{Name: "x", State: storage.NodeLive}, {Name: "y", State: storage.NodeLive, Version: "2"}}, "warn", []string{"finish the upgrade"}, nil},
		"one name": {[]storage.Node{{Name: "x", State: storage.NodeLive}, {Name: "x", State: storage.NodeLive}}, "warn", []string{"Several are called x"}, nil},
		"nobody":   {[]storage.Node{{Name: "x", State: storage.NodeLost}}, "bad", []string{"No node is known to be there"}, nil},
	} {
		v := viewNodes(who, tt.all)
		html := rendered(t, b, pageCase{"nodes", "main", v})
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
	b := &board{views: sync.OnceValue(readViews)}
	v := viewHealth(viewer{web.Read}, agentsystem.Status{
		Model: agentsystem.ModelStatus{Name: "m", Err: "refused"},
		Node:  &agentsystem.NodeStatus{Name: "n2", Nodes: 3, Err: "the database does not answer"},
	})
	html := rendered(t, b, pageCase{"health", "main", v})
	if v.Tone != "bad" || v.Verdict != "The database does not answer." || !strings.Contains(html, "3 nodes") || !strings.Contains(html, "as of its last beat; this is n2") {
		t.Errorf("%s: %s\n%s", v.Tone, v.Verdict, html)
	}
}
