package api

import (
	"net/http"

	"github.com/claybot/claybot/overview"

	"github.com/claybot/claybot/web"
)

// A parkedList is the agents that cannot be used, with what is parked for them.
type parkedList struct {
	Parked []overview.ParkedAgent `json:"parked"`
}

func (a *api) parkedOperations() []operation {
	return []operation{
		{
			id: "listParked", method: http.MethodGet, path: "/parked", tag: "agents", scope: web.Read,
			summary: "List agents that cannot be used: those with parked messages first, in the order of their oldest ones.", params: []param{limitParam},
			answers: []answer{{status: http.StatusOK, value: parkedList{}}}, serve: a.listParked,
		},
		{
			id: "dropParked", method: http.MethodDelete, path: "/parked", tag: "agents", scope: web.Operate,
			summary: "Drop the parked messages of one agent.", params: []param{{name: "agent", about: "The agent as the list has it: connector:channel:user."}},
			answers: []answer{{status: http.StatusOK, value: dropped{}}}, fails: []int{http.StatusNotFound},
			missing: hint{"No messages are parked for that agent.", "GET /parked lists the agents that have some."}, serve: a.dropParked,
		},
	}
}

func (a *api) listParked(w http.ResponseWriter, r *http.Request) error {
	limit, err := limitOf(r, pageDefault)
	if err != nil {
		return err
	}
	all, err := a.Desk.ParkedAgents(r.Context(), limit)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, parkedList{orEmpty(all)})
}

func (a *api) dropParked(w http.ResponseWriter, r *http.Request) error {
	agent := r.URL.Query().Get("agent")
	if agent == "" {
		return bad("?agent= must name an agent.", "GET /parked lists them.")
	}
	gone, err := a.Desk.DropParked(r.Context(), agent)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, dropped{orEmpty(gone)})
}
