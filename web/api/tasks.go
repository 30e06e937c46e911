package api

import (
	"crypto/rand"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// ledgerDefault is how many firings of a task are listed.
const ledgerDefault = 20

var noTask = hint{"There is no such task.", "GET /cron lists them, with the files that cannot be read."}

// callForm is what may stand in ?key= of a call that can be repeated.
var callForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`) // and at most 64 bytes

var (
	keyParam   = param{name: "key", about: "1 to 64 letters, digits, - or _; a repeat under the same key does nothing new."}
	refusals   = []int{http.StatusNotFound}
	taskAnswer = []answer{{status: http.StatusOK, value: connectors.Task{}}}
)

type (
	taskList struct {
		Tasks    []connectors.Task    `json:"tasks"`
		Problems []connectors.Problem `json:"problems" doc:"Files that cannot be read."`
	}
	taskRequest struct {
		connectors.TaskSpec
		DryRun bool `json:"dry_run,omitempty" doc:"Save nothing, and answer with the next times alone."`
	}
	taskPreview struct {
		Next []time.Time `json:"next"`
	}
	ledgerPage struct {
		Firings []connectors.Firing `json:"firings" doc:"The newest first."`
	}
)

// A taskChange is a connectors.TaskChange with the names that the fields have
// in a task.
type taskChange struct {
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	Schedule    *string `json:"schedule,omitempty" doc:"Set the others of schedule, every and at to an empty string."`
	Every       *string `json:"every,omitempty"`
	At          *string `json:"at,omitempty"`
	Timezone    *string `json:"timezone,omitempty"`
	Prompt      *string `json:"prompt,omitempty"`
	Misfire     *string `json:"misfire,omitempty"`
	Route       *string `json:"route,omitempty"`
	Enabled     *bool   `json:"enabled,omitempty"`
	Once        *bool   `json:"once,omitempty"`
	Retries     *int    `json:"retries,omitempty"`
}

func (a *api) taskOperations() []operation {
	cron := func(o operation) operation {
		o.tag, o.missing, o.fails = "cron", noTask, refusals
		return o
	}
	const one = "/cron/{task}"
	return []operation{
		cron(operation{
			id: "listTasks", method: http.MethodGet, path: "/cron", scope: web.Read, summary: "List the tasks, with their next five times.",
			answers: []answer{{status: http.StatusOK, value: taskList{}}}, serve: a.withTasks(listTasks),
		}),
		cron(operation{
			id: "addTask", method: http.MethodPost, path: "/cron", scope: web.Admin, summary: "Make a task.", body: taskRequest{},
			answers: []answer{
				{status: http.StatusCreated, value: connectors.Task{}},
				{status: http.StatusOK, value: taskPreview{}, about: "Of a dry run."},
			},
			serve: a.withTasks(addTask),
		}),
		cron(operation{
			id: "getTask", method: http.MethodGet, path: one, scope: web.Read, summary: "One task, by its uid or its slug.",
			answers: taskAnswer, serve: a.withTask(getTask),
		}),
		cron(operation{
			id: "changeTask", method: http.MethodPatch, path: one, scope: web.Admin, summary: "Change a task; what is left out stays.", body: taskChange{},
			answers: taskAnswer, serve: a.withTask(changeTask),
		}),
		cron(operation{
			id: "removeTask", method: http.MethodDelete, path: one, scope: web.Admin, summary: "Take a task away; its folder moves to .done.",
			answers: []answer{{status: http.StatusNoContent}}, serve: a.withTask(removeTask),
		}),
		cron(operation{
			id: "runTask", method: http.MethodPost, path: one + "/run", scope: web.Operate, summary: "Run a task now, beside its schedule.",
			params: []param{keyParam}, answers: []answer{{status: http.StatusAccepted, value: connectors.Task{}}}, serve: a.withTask(runTask),
		}),
		cron(operation{
			id: "getLedger", method: http.MethodGet, path: one + "/ledger", scope: web.Read, summary: "What became of the past times of a task.",
			params:  []param{{name: "limit", about: "How many at most, 1 to 500; 20 when left out.", number: true}},
			answers: []answer{{status: http.StatusOK, value: ledgerPage{}}}, serve: a.withTask(ledger),
		}),
	}
}

type taskHandler func(http.ResponseWriter, *http.Request, web.Tasks, connectors.Task) error

// withTasks serves fn while cron is on.
func (a *api) withTasks(fn func(http.ResponseWriter, *http.Request, web.Tasks) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if a.Tasks == nil {
			return &problem{status: http.StatusNotFound, Code: "off", Message: "Cron is off.", Fix: "Turn it on in the configuration."}
		}
		return fn(w, r, a.Tasks)
	}
}

// withTask serves fn for a task that exists, named by its slug or its uid.
func (a *api) withTask(fn taskHandler) func(http.ResponseWriter, *http.Request) error {
	return a.withTasks(func(w http.ResponseWriter, r *http.Request, t web.Tasks) error {
		all, _, err := t.Tasks(r.Context())
		if err != nil {
			return err
		}
		ref := r.PathValue("task")
		i := slices.IndexFunc(all, func(x connectors.Task) bool { return x.Slug == ref })
		if i < 0 {
			i = slices.IndexFunc(all, func(x connectors.Task) bool { return x.UID == ref })
		}
		if i < 0 {
			return storage.ErrNotFound
		}
		return fn(w, r, t, all[i])
	})
}

// sentence makes an error of Tasks or Beats, which is a sentence for whoever
// asked, a problem.
func sentence(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrBusy):
		return err // it has an answer of its own
	case errors.Is(err, storage.ErrNotFound):
		return &problem{status: http.StatusNotFound, Code: "not_found", Message: err.Error()}
	}
	return &problem{status: http.StatusBadRequest, Code: "refused", Message: err.Error()}
}

// scheduled answers with v, or with why not.
func scheduled(w http.ResponseWriter, status int, v any, err error) error {
	if err != nil {
		return sentence(err)
	}
	return reply(w, status, v)
}

func listTasks(w http.ResponseWriter, r *http.Request, t web.Tasks) error {
	all, problems, err := t.Tasks(r.Context())
	if err != nil {
		return err
	}
	for i := range all {
		all[i] = viewTask(all[i])
	}
	return reply(w, http.StatusOK, taskList{orEmpty(all), orEmpty(problems)})
}

func viewTask(t connectors.Task) connectors.Task {
	t.Next = orEmpty(t.Next)
	return t
}

// addTask makes a task of a connectors.TaskSpec and answers with it. With
// "dry_run" nothing is saved, and the answer is {"next": [the next instants]}.
func addTask(w http.ResponseWriter, r *http.Request, t web.Tasks) error {
	var in taskRequest
	if err := readBody(r, &in); err != nil {
		return err
	}
	if in.DryRun {
		task, err := t.Add(r.Context(), in.TaskSpec, true)
		return scheduled(w, http.StatusOK, taskPreview{orEmpty(task.Next)}, err)
	}
	task, err := t.Add(r.Context(), in.TaskSpec, false)
	return scheduled(w, http.StatusCreated, viewTask(task), err)
}

func getTask(w http.ResponseWriter, _ *http.Request, _ web.Tasks, task connectors.Task) error {
	return reply(w, http.StatusOK, viewTask(task))
}

// changeTask replaces the fields that are given.
func changeTask(w http.ResponseWriter, r *http.Request, t web.Tasks, task connectors.Task) error {
	var in taskChange
	if err := readBody(r, &in); err != nil {
		return err
	}
	if in == (taskChange{}) {
		return bad("There is nothing to change: give at least one field.", "GET /openapi.json lists them.")
	}
	changed, err := t.Change(r.Context(), task.UID, connectors.TaskChange(in))
	return scheduled(w, http.StatusOK, viewTask(changed), err)
}

func removeTask(w http.ResponseWriter, r *http.Request, t web.Tasks, task connectors.Task) error {
	if err := t.Remove(r.Context(), task.UID); err != nil {
		return sentence(err)
	}
	return noContent(w)
}

// runTask fires a task now. A call that is repeated under the same ?key= has
// its effect once.
func runTask(w http.ResponseWriter, r *http.Request, t web.Tasks, task connectors.Task) error {
	key, err := callKey(r)
	if err != nil {
		return err
	}
	run, err := t.RunNow(r.Context(), task.UID, key)
	return scheduled(w, http.StatusAccepted, viewTask(run), err)
}

func ledger(w http.ResponseWriter, r *http.Request, t web.Tasks, task connectors.Task) error {
	limit, err := limitOf(r, ledgerDefault)
	if err != nil {
		return err
	}
	all, err := t.Ledger(r.Context(), task.UID, limit)
	return scheduled(w, http.StatusOK, ledgerPage{orEmpty(all)}, err)
}

// callKey is the ?key= of a request, or a fresh one.
func callKey(r *http.Request) (string, error) {
	q := r.URL.Query()
	if !q.Has("key") {
		return rand.Text(), nil
	}
	key := q.Get("key")
	if len(key) > 64 || !callForm.MatchString(key) {
		return "", bad("The key must be 1 to 64 letters, digits, - or _.", "")
	}
	return key, nil
}
