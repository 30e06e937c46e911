package web

import (
	"crypto/rand"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// The lengths of a task's ledger.
const (
	ledgerDefault = 20
	ledgerLimit   = 500
)

// keyForm is what may stand in ?key= of a call that can be repeated.
var keyForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// withTasks serves fn while cron is on.
func (s *Server) withTasks(fn func(http.ResponseWriter, *http.Request, connectors.Tasks)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.Tasks == nil {
			fail(w, http.StatusNotFound, "off", "Cron is off.")
			return
		}
		fn(w, r, s.cfg.Tasks)
	}
}

// withTask serves fn for a task that exists, named by its slug or its uid.
func (s *Server) withTask(fn func(http.ResponseWriter, *http.Request, connectors.Tasks, connectors.Task)) http.HandlerFunc {
	return s.withTasks(func(w http.ResponseWriter, r *http.Request, t connectors.Tasks) {
		all, _, err := t.Tasks(r.Context())
		if err != nil {
			s.internal(w, "list tasks", err)
			return
		}
		ref := r.PathValue("ref")
		i := slices.IndexFunc(all, func(x connectors.Task) bool { return x.Slug == ref })
		if i < 0 {
			i = slices.IndexFunc(all, func(x connectors.Task) bool { return x.UID == ref })
		}
		if i < 0 {
			fail(w, http.StatusNotFound, "not_found", "There is no such task; claybot cron lists them, with the files that cannot be read.")
			return
		}
		fn(w, r, t, all[i])
	})
}

// withBeats serves fn while the heartbeat is on.
func (s *Server) withBeats(fn func(http.ResponseWriter, *http.Request, connectors.Beats)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.Beats == nil {
			fail(w, http.StatusNotFound, "off", "The heartbeat is off.")
			return
		}
		fn(w, r, s.cfg.Beats)
	}
}

// scheduled answers with v, or with nothing when it is nil, or with why not:
// the errors of Tasks and Beats are sentences for whoever asked.
func (s *Server) scheduled(w http.ResponseWriter, v any, err error) {
	switch {
	case errors.Is(err, storage.ErrNotFound):
		fail(w, http.StatusNotFound, "not_found", err.Error())
	case err != nil:
		s.log.Debug("schedule not changed", "err", err)
		fail(w, http.StatusBadRequest, "refused", err.Error())
	case v == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, http.StatusOK, v)
	}
}

func (s *Server) tasks(w http.ResponseWriter, r *http.Request, t connectors.Tasks) {
	all, problems, err := t.Tasks(r.Context())
	if err != nil {
		s.internal(w, "list tasks", err)
		return
	}
	for i := range all {
		all[i].Next = orEmpty(all[i].Next)
	}
	answer(w, http.StatusOK, map[string]any{"tasks": orEmpty(all), "problems": orEmpty(problems)})
}

// addTask makes a task of a connectors.TaskSpec and answers with it. With
// "dry_run" nothing is saved, and the answer is {"next": [the next instants]}.
func (s *Server) addTask(w http.ResponseWriter, r *http.Request, t connectors.Tasks) {
	var in struct {
		connectors.TaskSpec
		DryRun bool `json:"dry_run"`
	}
	if !decode(w, r, &in) {
		return
	}
	if in.DryRun {
		next, err := t.Preview(r.Context(), in.TaskSpec)
		s.scheduled(w, map[string]any{"next": orEmpty(next)}, err)
		return
	}
	task, err := t.Add(r.Context(), in.TaskSpec)
	task.Next = orEmpty(task.Next)
	s.scheduled(w, task, err)
}

// A taskChange is a connectors.TaskChange with the names that the fields have
// in a task.
type taskChange struct {
	Name        *string `json:"name"`
	Description *string `json:"description"`
	Schedule    *string `json:"schedule"`
	Every       *string `json:"every"`
	At          *string `json:"at"`
	Timezone    *string `json:"timezone"`
	Prompt      *string `json:"prompt"`
	Misfire     *string `json:"misfire"`
	Route       *string `json:"route"`
	Enabled     *bool   `json:"enabled"`
	Once        *bool   `json:"once"`
	Retries     *int    `json:"retries"`
}

// changeTask replaces the fields that are given.
func (s *Server) changeTask(w http.ResponseWriter, r *http.Request, t connectors.Tasks, task connectors.Task) {
	var in taskChange
	if !decode(w, r, &in) {
		return
	}
	if in == (taskChange{}) {
		fail(w, http.StatusBadRequest, "bad_request", "There is nothing to change: give at least one field.")
		return
	}
	changed, err := t.Change(r.Context(), task.UID, connectors.TaskChange(in))
	changed.Next = orEmpty(changed.Next)
	s.scheduled(w, changed, err)
}

func (s *Server) removeTask(w http.ResponseWriter, r *http.Request, t connectors.Tasks, task connectors.Task) {
	s.scheduled(w, nil, t.Remove(r.Context(), task.UID))
}

// runTask fires a task now. A call that is repeated under the same ?key= has
// its effect once.
func (s *Server) runTask(w http.ResponseWriter, r *http.Request, t connectors.Tasks, task connectors.Task) {
	key, ok := callKey(w, r)
	if !ok {
		return
	}
	run, err := t.RunNow(r.Context(), task.UID, key)
	run.Next = orEmpty(run.Next)
	s.scheduled(w, run, err)
}

// ledger lists the newest firings of a task: ?limit=.
func (s *Server) ledger(w http.ResponseWriter, r *http.Request, t connectors.Tasks, task connectors.Task) {
	limit := ledgerDefault
	if q := r.URL.Query().Get("limit"); q != "" {
		n, err := strconv.Atoi(q)
		if err != nil || n < 1 {
			fail(w, http.StatusBadRequest, "bad_request", "limit must be a number from 1.")
			return
		}
		limit = min(n, ledgerLimit)
	}
	all, err := t.Ledger(r.Context(), task.UID, limit)
	s.scheduled(w, map[string]any{"firings": orEmpty(all)}, err)
}

// callKey is the ?key= of a request, or a fresh one.
func callKey(w http.ResponseWriter, r *http.Request) (key string, ok bool) {
	q := r.URL.Query()
	if !q.Has("key") {
		return rand.Text(), true
	}
	if key = q.Get("key"); !keyForm.MatchString(key) {
		fail(w, http.StatusBadRequest, "bad_request", "The key must be 1 to 64 letters, digits, - or _.")
		return "", false
	}
	return key, true
}

func (s *Server) beats(w http.ResponseWriter, r *http.Request, b connectors.Beats) {
	all, problems, err := b.Beats(r.Context())
	if err != nil {
		s.internal(w, "list tasks of the heartbeat", err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"beats": orEmpty(all), "problems": orEmpty(problems)})
}

// beat runs tasks of the heartbeat now: {"ids": […]}, all when none is named.
// The answer is {"tasks": how many}. ?key= is as for runTask.
func (s *Server) beat(w http.ResponseWriter, r *http.Request, b connectors.Beats) {
	var in struct {
		IDs []string `json:"ids"`
	}
	if !decode(w, r, &in) {
		return
	}
	if slices.Contains(in.IDs, "") {
		fail(w, http.StatusBadRequest, "bad_request", "An id is empty.")
		return
	}
	key, ok := callKey(w, r)
	if !ok {
		return
	}
	n, err := b.Beat(r.Context(), key, in.IDs...)
	s.scheduled(w, map[string]int{"tasks": n}, err)
}
