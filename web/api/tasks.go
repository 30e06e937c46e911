package api

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// ledgerDefault is the default number of listed firings.
const ledgerDefault = 20

var noTask = hint{"No such task.", "GET /cron lists all tasks, and files that cannot be read."}

// at most 64 bytes
var callForm = lazyregexp.New(`^[A-Za-z0-9_-]+$`) // and at most 64 bytes

var (
	keyParam = param{name: "key", about: "1 to 64 letters, digits, - or _. A retry with the same key does nothing new."}
	refusals = []int{http.StatusNotFound}
)

// tasks serves the tasks of cron; nil: cron is off.
type tasks struct{ tasks web.Tasks }

func (t tasks) operations() []operation {
	const one = "/cron/{task}"
	add := op("addTask", web.Admin, "POST /cron", "Create a task.").
		served(t.add, answer{status: http.StatusCreated, value: connectors.Task{}}, answer{status: http.StatusOK, value: web.TaskPreview{}, about: "For a dry run."})
	add.body = web.TaskRequest{}
	off := &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "Cron is off.", Fix: "Turn it on in the configuration."}
	return whereOn(t.tasks != nil, off, operation{tag: "cron", missing: noTask, fails: refusals}.like(
		returns(http.StatusOK, op("listTasks", web.Read, "GET /cron", "List tasks with their next five times."), t.list),
		add,
		returns(http.StatusOK, op("getTask", web.Read, "GET "+one, "Get a task by its uid or slug."), t.one),
		takes(http.StatusOK, op("changeTask", web.Admin, "PATCH "+one, "Change a task; omitted fields stay as they are."), t.change),
		does(op("removeTask", web.Admin, "DELETE "+one, "Delete a task and move its folder to .done."), func(r *http.Request) error {
			task, err := t.one(r)
			if err != nil {
				return err
			}
			return sentence(t.tasks.Remove(r.Context(), task.UID))
		}),
		returns(http.StatusAccepted, op("runTask", web.Operate, "POST "+one+"/run", "Run a task now, outside its schedule.").query(keyParam), ofTask(t, t.run)),
		returns(http.StatusOK, op("getLedger", web.Read, "GET "+one+"/ledger", "List the outcomes of a task's past times.").
			query(param{name: "limit", about: "Maximum number of entries, 1 to 500. Default: 20.", number: true}), ofTask(t, t.ledger)),
	))
}

// one returns the task that the path names by slug or uid.
func (t tasks) one(r *http.Request) (none connectors.Task, err error) {
	all, _, err := t.tasks.Tasks(r.Context())
	if err != nil {
		return none, err
	}
	ref := r.PathValue("task")
	i := slices.IndexFunc(all, func(x connectors.Task) bool { return x.Slug == ref })
	if i < 0 {
		i = slices.IndexFunc(all, func(x connectors.Task) bool { return x.UID == ref })
	}
	if i < 0 {
		return none, storage.ErrNotFound
	}
	return viewTask(all[i]), nil
}

// ofTask calls fn with the task that the path names.
func ofTask[T any](t tasks, fn func(*http.Request, connectors.Task) (T, error)) func(*http.Request) (T, error) {
	return func(r *http.Request) (T, error) {
		task, err := t.one(r)
		if err != nil {
			return *new(T), err
		}
		return fn(r, task)
	}
}

// sentence converts an error of Tasks or Heartbeats, which is a sentence for the caller, to a
// problem.
func sentence(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrBusy):
		return err // it has its own response
	case errors.Is(err, storage.ErrNotFound):
		return &web.Problem{Status: http.StatusNotFound, Code: "not_found", Message: err.Error()}
	}
	return &web.Problem{Status: http.StatusBadRequest, Code: "refused", Message: err.Error()}
}

func (t tasks) list(r *http.Request) (web.TaskList, error) {
	all, problems, err := t.tasks.Tasks(r.Context())
	return web.TaskList{Tasks: each(all, viewTask), Problems: orEmpty(problems)}, err
}

func viewTask(t connectors.Task) connectors.Task {
	t.Next = orEmpty(t.Next)
	return t
}

// add creates a task from a connectors.TaskSpec and returns it. With "dry_run" it saves
// nothing and returns {"next": [the next instants]}.
func (t tasks) add(w http.ResponseWriter, r *http.Request) error {
	var in web.TaskRequest
	if err := web.ReadJSON(r, &in); err != nil {
		return err
	}
	task, err := t.tasks.Add(r.Context(), in.TaskSpec, in.DryRun)
	switch {
	case err != nil:
		return sentence(err)
	case in.DryRun:
		return reply(w, http.StatusOK, web.TaskPreview{Next: orEmpty(task.Next)})
	}
	return reply(w, http.StatusCreated, viewTask(task))
}

// change replaces the given fields.
func (t tasks) change(r *http.Request, in web.TaskChange) (connectors.Task, error) {
	task, err := t.one(r)
	if err == nil && in == (web.TaskChange{}) {
		err = bad("Nothing to change: set at least one field.", "GET /openapi.json lists the fields.")
	}
	if err != nil {
		return task, err
	}
	changed, err := t.tasks.Change(r.Context(), task.UID, connectors.TaskChange(in))
	return viewTask(changed), sentence(err)
}

// run fires a task now. Repeating the call with the same ?key= has no further effect.
func (t tasks) run(r *http.Request, task connectors.Task) (connectors.Task, error) {
	key, err := callKey(r)
	if err != nil {
		return task, err
	}
	fired, err := t.tasks.RunNow(r.Context(), task.UID, key)
	return viewTask(fired), sentence(err)
}

func (t tasks) ledger(r *http.Request, task connectors.Task) (none web.LedgerPage, err error) {
	all, err := t.tasks.Ledger(r.Context(), task.UID, limitOf(r, ledgerDefault))
	return web.LedgerPage{Firings: orEmpty(all)}, sentence(err)
}

// callKey returns the ?key= of a request, or a new one.
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
