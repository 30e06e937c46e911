package api

import (
	"net/http"
	"slices"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noBeat = hint{"No heartbeat task with that id.", "GET /heartbeat lists all tasks, and files that cannot be read."}

// beats serves the tasks of the heartbeat; nil: the heartbeat is off.
type beats struct{ beats web.Beats }

func (b beats) operations() []operation {
	off := &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "The heartbeat is off.", Fix: "Turn it on in the configuration."}
	return whereOn(b.beats != nil, off, operation{tag: "heartbeat", missing: noBeat, fails: refusals}.like(
		returns(http.StatusOK, op("listBeats", web.Read, "GET /heartbeat", "List heartbeat tasks."), b.list),
		takes(http.StatusCreated, op("saveBeat", web.Admin, "POST /heartbeat", "Create or replace a heartbeat task."), b.save),
		returns(http.StatusOK, op("getBeat", web.Read, "GET /heartbeat/{beat}", "Get a heartbeat task."), b.get),
		does(op("removeBeat", web.Admin, "DELETE /heartbeat/{beat}", "Delete a heartbeat task."), func(r *http.Request) error { return sentence(b.beats.RemoveBeat(r.Context(), r.PathValue("beat"))) }),
		takes(http.StatusAccepted, op("runBeats", web.Operate, "POST /heartbeat/run", "Run heartbeat tasks now.").query(keyParam), b.run),
	))
}

func (b beats) list(r *http.Request) (web.BeatList, error) {
	all, problems, err := b.beats.Beats(r.Context())
	return web.BeatList{Beats: orEmpty(all), Problems: orEmpty(problems)}, err
}

func (b beats) get(r *http.Request) (none connectors.Beat, err error) {
	all, _, err := b.beats.Beats(r.Context())
	i := slices.IndexFunc(all, func(x connectors.Beat) bool { return x.ID == r.PathValue("beat") })
	switch {
	case err != nil:
		return none, err
	case i < 0:
		return none, storage.ErrNotFound
	}
	return all[i], nil
}

func (b beats) save(r *http.Request, in web.BeatSpec) (connectors.Beat, error) {
	saved, err := b.beats.AddBeat(r.Context(), connectors.Beat{
		ID: in.ID, Title: in.Title, Every: in.Every, ActiveHours: in.ActiveHours, Enabled: in.Enabled == nil || *in.Enabled, Prompt: in.Prompt,
	})
	return saved, sentence(err)
}

// run runs tasks now. ?key= makes a retry harmless, as for cron tasks.
func (b beats) run(r *http.Request, in web.BeatRequest) (none web.BeatDone, err error) {
	if slices.Contains(in.IDs, "") {
		return none, bad("An id is empty.", "")
	}
	key, err := callKey(r)
	if err != nil {
		return none, err
	}
	n, err := b.beats.Beat(r.Context(), key, in.IDs...)
	return web.BeatDone{Ran: n, Tasks: n}, sentence(err)
}
