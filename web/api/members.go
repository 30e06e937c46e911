package api

import (
	"net/http"

	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

func viewMember(n storage.Member) web.MemberView {
	return web.MemberView{
		ID: n.ID, Name: n.Name, Addr: n.Addr, State: n.State, Version: n.Version, Started: n.Started, Seen: n.Seen,
		Working: n.Working, MaxRuns: n.MaxRuns, Skew: n.Skew, Claims: orEmpty(n.Claims), Destinations: n.Dests, Lease: n.Lease().Milliseconds(),
	}
}

func (a reports) members(r *http.Request) (web.MemberList, error) {
	all, err := a.system.Members(r.Context())
	list := web.MemberList{Members: make([]web.MemberView, 0, len(all))}
	doubts := cluster.Doubts(all)
	for _, n := range all {
		v := viewMember(n)
		v.Doubt = doubts[n.ID]
		list.Members = append(list.Members, v)
	}
	return list, err
}
