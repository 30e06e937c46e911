package api_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A crowded desk shares its store with other nodes.
type crowded struct{ web.System }

func (crowded) Members(context.Context) ([]storage.Member, error) {
	return []storage.Member{
		{ID: "b/1", Name: "b", State: storage.MemberLive, Version: "v2", Started: 7, Seen: 1000, Until: 6000},
		{ID: "a/2", Name: "a", State: storage.MemberLive, Version: "v2", Seen: 1000, Until: 11_000, Working: 3, MaxRuns: 10, Skew: -7, Claims: []string{"mend", "telegram/42"}, Dests: 12},
		{ID: "a/1", Name: "a", State: storage.MemberLost, Version: "v1"},
	}, nil
}

func TestMembers(t *testing.T) {
	type node struct {
		ID, Name, State, Version string
		Working, MaxRuns         int
		SkewMS                   int64
		Claims                   []string
		Destinations             int
		LeaseMS                  int64
		Doubt                    string
	}
	var got struct{ Members []node }
	alone := start(t)
	alone.ask("GET", "/members", "", http.StatusOK, &got)
	if len(got.Members) != 1 || got.Members[0].State != "live" || got.Members[0].MaxRuns != 1000 || got.Members[0].ID == "" || got.Members[0].Claims == nil {
		t.Errorf("alone: %+v", got)
	}
	alone.refused("GET", "/members?x=1", "", 400, "bad_request", "")
	r := start(t, func(r *rig) { r.wrap = func(d *web.Backend) { d.System = crowded{d.System} } })
	r.ask("GET", "/members", "", http.StatusOK, &got)
	if len(got.Members) != 3 || got.Members[2].State != "lost" {
		t.Fatalf("%+v", got)
	}
	if n := got.Members[0]; n.LeaseMS != 5000 || n.Doubt != "its node.lease is 5s, and that of others 10s: give all members the same." {
		t.Errorf("another lease: %+v", n)
	}
	n := got.Members[1]
	if n.ID != "a/2" || n.Working != 3 || n.SkewMS != -7 || !slices.Equal(n.Claims, []string{"mend", "telegram/42"}) || n.Destinations != 12 || n.LeaseMS != 10_000 || n.Doubt != "" {
		t.Errorf("%+v", n)
	}
}
