package api

import (
	"net/http"

	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

func viewNode(n storage.Member) web.NodeView {
	return web.NodeView{
		ID: n.ID, Name: n.Name, Addr: n.Addr, State: n.State, Version: n.Version, Started: n.Started, Seen: n.Seen,
		Working: n.Working, MaxRuns: n.MaxRuns, Skew: n.Skew, Claims: orEmpty(n.Claims), Destinations: n.Dests, Lease: n.Lease().Milliseconds(),
	}
}

func (a reports) nodes(r *http.Request) (web.NodeList, error) {
	all, err := a.system.Members(r.Context())
	list := web.NodeList{Nodes: make([]web.NodeView, 0, len(all))}
	doubts := cluster.Doubts(all)
	for _, n := range all {
		v := viewNode(n)
		v.Doubt = doubts[n.ID]
		list.Nodes = append(list.Nodes, v)
	}
	return list, err
}
