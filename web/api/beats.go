package api

import (
	"net/http"
	"slices"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noBeat = hint{"The heartbeat has no task with that id.", "GET /heartbeat lists them, with the files that cannot be read."}

type (
	beatList struct {
		Beats    []connectors.Beat    `json:"beats"`
		Problems []connectors.Problem `json:"problems" doc:"Files that cannot be read."`
	}
	beatRequest struct {
		IDs []string `json:"ids,omitempty" doc:"The tasks; all when none is named."`
	}
	// beatDone has the number under the name that the command line reads, too.
	beatDone struct {
		Ran   int `json:"ran" doc:"How many tasks run now."`
		Tasks int `json:"tasks" doc:"The same as ran."`
	}
)

// A beatSpec makes a task of the heartbeat.
type beatSpec struct {
	ID          string `json:"id,omitempty" doc:"Of a task to replace."`
	Title       string `json:"title"`
	Every       string `json:"every,omitempty" doc:"A duration; as configured when left out."`
	ActiveHours string `json:"activeHours,omitempty"`
	Enabled     *bool  `json:"enabled,omitempty" doc:"true when left out."`
	Prompt      string `json:"prompt"`
}

func (a *api) beatOperations() []operation {
	beat := func(o operation) operation {
		o.tag, o.missing, o.fails = "heartbeat", noBeat, refusals
		return o
	}
	return []operation{
		beat(operation{
			id: "listBeats", method: http.MethodGet, path: "/heartbeat", scope: web.Read, summary: "List the tasks of the heartbeat.",
			answers: []answer{{status: http.StatusOK, value: beatList{}}}, serve: a.withBeats(listBeats),
		}),
		beat(operation{
			id: "saveBeat", method: http.MethodPost, path: "/heartbeat", scope: web.Admin, summary: "Make a task of the heartbeat, or replace the one with this id.",
			body: beatSpec{}, answers: []answer{{status: http.StatusCreated, value: connectors.Beat{}}}, serve: a.withBeats(saveBeat),
		}),
		beat(operation{
			id: "getBeat", method: http.MethodGet, path: "/heartbeat/{beat}", scope: web.Read, summary: "One task of the heartbeat.",
			answers: []answer{{status: http.StatusOK, value: connectors.Beat{}}}, serve: a.withBeats(getBeat),
		}),
		beat(operation{
			id: "removeBeat", method: http.MethodDelete, path: "/heartbeat/{beat}", scope: web.Admin, summary: "Take a task of the heartbeat away.",
			answers: []answer{{status: http.StatusNoContent}}, serve: a.withBeats(removeBeat),
		}),
		beat(operation{
			id: "runBeats", method: http.MethodPost, path: "/heartbeat/run", scope: web.Operate, summary: "Run tasks of the heartbeat now.",
			params: []param{keyParam}, body: beatRequest{},
			answers: []answer{{status: http.StatusAccepted, value: beatDone{}}}, serve: a.withBeats(runBeats),
		}),
	}
}

// withBeats serves fn while the heartbeat is on.
func (a *api) withBeats(fn func(http.ResponseWriter, *http.Request, web.Beats) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if a.Beats == nil {
			return &problem{status: http.StatusNotFound, Code: "off", Message: "The heartbeat is off.", Fix: "Turn it on in the configuration."}
		}
		return fn(w, r, a.Beats)
	}
}

func listBeats(w http.ResponseWriter, r *http.Request, b web.Beats) error {
	all, problems, err := b.Beats(r.Context())
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, beatList{orEmpty(all), orEmpty(problems)})
}

func getBeat(w http.ResponseWriter, r *http.Request, b web.Beats) error {
	all, _, err := b.Beats(r.Context())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(x connectors.Beat) bool { return x.ID == r.PathValue("beat") })
	if i < 0 {
		return storage.ErrNotFound
	}
	return reply(w, http.StatusOK, all[i])
}

func saveBeat(w http.ResponseWriter, r *http.Request, b web.Beats) error {
	var in beatSpec
	if err := readBody(r, &in); err != nil {
		return err
	}
	saved, err := b.AddBeat(r.Context(), connectors.Beat{
		ID: in.ID, Title: in.Title, Every: in.Every, ActiveHours: in.ActiveHours, Enabled: in.Enabled == nil || *in.Enabled, Prompt: in.Prompt,
	})
	return scheduled(w, http.StatusCreated, saved, err)
}

func removeBeat(w http.ResponseWriter, r *http.Request, b web.Beats) error {
	if err := b.RemoveBeat(r.Context(), r.PathValue("beat")); err != nil {
		return sentence(err)
	}
	return noContent(w)
}

// runBeats runs tasks now. ?key= is as for runTask.
func runBeats(w http.ResponseWriter, r *http.Request, b web.Beats) error {
	var in beatRequest
	if err := readBody(r, &in); err != nil {
		return err
	}
	if slices.Contains(in.IDs, "") {
		return bad("An id is empty.", "")
	}
	key, err := callKey(r)
	if err != nil {
		return err
	}
	n, err := b.Beat(r.Context(), key, in.IDs...)
	return scheduled(w, http.StatusAccepted, beatDone{n, n}, err)
}
