package api

import (
	"net/http"

	"github.com/claybot/claybot/web"
)

// An effectView is one effect of a run.
type effectView struct {
	Step string `json:"step" doc:"Of the plan, or the id of the call."`
	Tool string `json:"tool"`
	What string `json:"what" doc:"The effect in a few words."`
	Can  bool   `json:"can" doc:"Something takes it back."`
}

func (a *api) undoOperations() []operation {
	return []operation{
		{
			id: "undoRun", method: http.MethodPost, path: "/agents/runs/{run}/undo", tag: "runs", scope: web.Operate,
			summary: "Take back what a run did.",
			about: "A new run calls what takes each effect back, the newest first, and tells what was undone, what failed and what cannot be undone. " +
				"A run is undone once, after its end and within 30 days; an undo cannot be undone.",
			answers: []answer{{status: http.StatusAccepted, value: accepted{}, about: "The run that takes it back."}},
			fails:   []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable}, missing: noRun, serve: a.undoRun,
		},
	}
}

func (a *api) undoRun(w http.ResponseWriter, r *http.Request) error {
	got, err := a.Desk.UndoRun(r.Context(), runOf(r), web.User(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, accepted{got, streamPath(got.Run)})
}
