package api

import (
	"net/http"
	"slices"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noHeartbeat = hint{"No heartbeat task with that id.", "GET /heartbeat lists all tasks, and files that cannot be read."}

// heartbeats serves the tasks of the heartbeat; nil: the heartbeat is off.
type heartbeats struct{ heartbeats web.Heartbeats }

func (b heartbeats) operations() []operation {
	off := &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "The heartbeat is off.", Fix: "Turn it on in the configuration."}
	return whereOn(b.heartbeats != nil, off, operation{tag: "heartbeat", missing: noHeartbeat, fails: refusals}.like(
		returns(http.StatusOK, op("listBeats", web.Read, "GET /heartbeat", "List heartbeat tasks."), b.list),
		takes(http.StatusCreated, op("saveBeat", web.Admin, "POST /heartbeat", "Create or replace a heartbeat task."), b.save),
		returns(http.StatusOK, op("getBeat", web.Read, "GET /heartbeat/{beat}", "Get a heartbeat task."), b.get),
		does(op("removeBeat", web.Admin, "DELETE /heartbeat/{beat}", "Delete a heartbeat task."), func(r *http.Request) error {
			return sentence(b.heartbeats.RemoveHeartbeat(r.Context(), r.PathValue("beat")))
		}),
		takes(http.StatusAccepted, op("runBeats", web.Operate, "POST /heartbeat/run", "Run heartbeat tasks now.").query(keyParam), b.run),
	))
}

func (b heartbeats) list(r *http.Request) (web.HeartbeatList, error) {
	all, problems, err := b.heartbeats.Heartbeats(r.Context())
	return web.HeartbeatList{Heartbeats: orEmpty(all), Problems: orEmpty(problems)}, err
}

func (b heartbeats) get(r *http.Request) (none connectors.HeartbeatTask, err error) {
	all, _, err := b.heartbeats.Heartbeats(r.Context())
	i := slices.IndexFunc(all, func(x connectors.HeartbeatTask) bool { return x.ID == r.PathValue("beat") })
	switch {
	case err != nil:
		return none, err
	case i < 0:
		return none, storage.ErrNotFound
	}
	return all[i], nil
}

func (b heartbeats) save(r *http.Request, in web.HeartbeatSpec) (connectors.HeartbeatTask, error) {
	saved, err := b.heartbeats.AddHeartbeat(r.Context(), connectors.HeartbeatTask{
		ID: in.ID, Title: in.Title, Every: in.Every, ActiveHours: in.ActiveHours, Enabled: in.Enabled == nil || *in.Enabled, Prompt: in.Prompt,
	})
	return saved, sentence(err)
}

// run runs tasks now. ?key= makes a retry harmless, as for cron tasks.
func (b heartbeats) run(r *http.Request, in web.HeartbeatRequest) (none web.HeartbeatResult, err error) {
	if slices.Contains(in.IDs, "") {
		return none, bad("An id is empty.", "")
	}
	key, err := callKey(r)
	if err != nil {
		return none, err
	}
	n, err := b.heartbeats.RunHeartbeats(r.Context(), key, in.IDs...)
	return web.HeartbeatResult{Ran: n, Tasks: n}, sentence(err)
}
