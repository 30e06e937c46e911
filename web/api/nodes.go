package api

import (
	"net/http"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type nodeList struct {
	Nodes []nodeView `json:"nodes" doc:"Those of the last day, the newest first."`
}

// A nodeView is one process that shares the store.
type nodeView struct {
	ID           string            `json:"id" doc:"New for every process."`
	Name         string            `json:"name" doc:"Stays across restarts."`
	Addr         string            `json:"addr,omitempty" doc:"Of its web page."`
	State        storage.NodeState `json:"state" doc:"live; draining: it takes no more work and leaves soon; gone: it has left in order; lost: it has not been heard of."`
	Version      string            `json:"version"`
	Started      claybot.Time      `json:"startedAt"`
	Seen         claybot.Time      `json:"seenAt,omitempty" doc:"Its last beat, by the clock of the store; left out where it has the store for itself."`
	Working      int               `json:"working" doc:"Agents that it worked on at its last beat."`
	MaxRuns      int               `json:"maxRuns" doc:"Agents that it works on at the same time, at most."`
	Skew         int64             `json:"skewMs" doc:"Milliseconds that its clock is ahead of the store's."`
	Lease        int64             `json:"leaseMs,omitempty" doc:"Milliseconds after which others take over from it when it is not heard of; left out where it has the store for itself."`
	Doubt        string            `json:"doubt,omitempty" doc:"What is wrong with how it is set up beside the others: a name that another node has, another lease."`
	Claims       []string          `json:"claims" doc:"What it alone does now: connections to platforms, sinks of events, mending."`
	Destinations int               `json:"destinations" doc:"How many destinations it alone sends to now."`
}

func viewNode(n storage.Node) nodeView {
	return nodeView{
		ID: n.ID, Name: n.Name, Addr: n.Addr, State: n.State, Version: n.Version, Started: n.Started, Seen: n.Seen,
		Working: n.Working, MaxRuns: n.MaxRuns, Skew: n.Skew, Claims: orEmpty(n.Claims), Destinations: n.Dests, Lease: n.Lease().Milliseconds(),
	}
}

func (a *api) nodeOperations() []operation {
	return []operation{{
		id: "getNodes", method: http.MethodGet, path: "/nodes", tag: "about", scope: web.Read,
		summary: "The processes that share the store.",
		about:   "A process that has the store for itself is the only one.",
		answers: []answer{{status: http.StatusOK, value: nodeList{}}}, serve: a.getNodes,
	}}
}

func (a *api) getNodes(w http.ResponseWriter, r *http.Request) error {
	all, err := a.Desk.Nodes(r.Context())
	if err != nil {
		return err
	}
	list := nodeList{Nodes: make([]nodeView, 0, len(all))}
	doubts := nodes.Doubts(all)
	for _, n := range all {
		v := viewNode(n)
		v.Doubt = doubts[n.ID]
		list.Nodes = append(list.Nodes, v)
	}
	return reply(w, http.StatusOK, list)
}
