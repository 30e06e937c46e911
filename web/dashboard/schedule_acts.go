package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// specOf reads the form of a task.
func specOf(form url.Values) (connectors.TaskSpec, error) {
	text := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	t := connectors.TaskSpec{
		Name: text("name"), Description: text("description"), Timezone: text("timezone"), Misfire: text("misfire"),
		Route: text("route"), Prompt: strings.ReplaceAll(form.Get("prompt"), "\r\n", "\n"), Once: form.Get("once") == "on",
		Owner: text("owner"),
	}
	when := text("when")
	switch form.Get("kind") {
	case "schedule":
		t.Schedule = when
	case "every":
		t.Every = when
	case "at":
		t.At = when
	default:
		return t, errKind
	}
	if when == "" {
		return t, errWhen
	}
	if n := text("retries"); n != "" {
		tries, err := strconv.Atoi(n)
		if err != nil {
			return t, errRetries
		}
		t.Retries = tries
	}
	return t, nil
}

// previewTask answers with the next times of the form, and saves nothing.
func (b *schedulePages) previewTask(w http.ResponseWriter, r *http.Request) error {
	spec, err := specOf(r.Form)
	if b.tasks == nil {
		err = errTasksOff
	}
	if err != nil {
		return err
	}
	spec.Name = "preview"
	if spec.Prompt == "" {
		spec.Prompt = "preview"
	}
	t, err := b.tasks.Add(r.Context(), spec, true)
	if err != nil {
		return scheduled(err)
	}
	html, err := b.render("schedule", "instants", t.Next)
	if err == nil {
		write(w, http.StatusOK, html)
	}
	return err
}

func (b *schedulePages) addTask(w http.ResponseWriter, r *http.Request) error {
	spec, err := specOf(r.Form)
	if b.tasks == nil {
		err = errTasksOff
	}
	if err != nil {
		return err
	}
	t, err := b.tasks.Add(r.Context(), spec, false)
	if err != nil {
		return scheduled(err)
	}
	w.Header().Set("HX-Redirect", "/ui/schedule/tasks/"+url.PathEscape(t.UID))
	b.done(w, doneTask)
	return nil
}

// changeTask writes the fields that differ, so that a file made by hand keeps the rest.
func (b *schedulePages) changeTask(r *http.Request) (string, error) {
	t, err := b.findTask(r)
	if err != nil {
		return "", err
	}
	spec, err := specOf(r.Form)
	if err != nil {
		return "", err
	}
	ch, any := changes(t.TaskSpec, spec)
	if !any {
		return doneUnchanged, nil
	}
	_, err = b.tasks.Change(r.Context(), t.UID, ch)
	return doneSaved, scheduled(err)
}

// changes is the difference between two tasks.
func changes(was, is connectors.TaskSpec) (ch connectors.TaskChange, any bool) {
	text := func(old, fresh string) *string {
		if strings.TrimSpace(old) == strings.TrimSpace(fresh) {
			return nil
		}
		any = true
		return &fresh
	}
	ch.Name, ch.Description = text(was.Name, is.Name), text(was.Description, is.Description)
	ch.Timezone, ch.Misfire, ch.Route = text(was.Timezone, is.Timezone), text(was.Misfire, is.Misfire), text(was.Route, is.Route)
	ch.Prompt = text(was.Prompt, is.Prompt)
	set := func(old, fresh string) *string { // Change clears the other ways of timing
		if fresh == "" {
			return nil
		}
		return text(old, fresh)
	}
	ch.Schedule, ch.Every, ch.At = set(was.Schedule, is.Schedule), set(was.Every, is.Every), set(was.At, is.At)
	if was.Once != is.Once {
		ch.Once, any = &is.Once, true
	}
	if was.Retries != is.Retries {
		ch.Retries, any = &is.Retries, true
	}
	return ch, any
}

// onTask makes an action on the task that the path names; said is a toast with its name.
func (b *schedulePages) onTask(do func(r *http.Request, t connectors.Task) (said string, err error)) func(*http.Request) (string, error) {
	return func(r *http.Request) (string, error) {
		t, err := b.findTask(r)
		if err != nil {
			return "", err
		}
		said, err := do(r, t)
		return fmt.Sprintf(said, connectors.OneLine(t.Name, 60)), scheduled(err)
	}
}

func (b *schedulePages) runTask(r *http.Request, t connectors.Task) (string, error) {
	_, err := b.tasks.RunNow(r.Context(), t.UID, r.Form.Get("key"))
	return doneRuns, err
}

func (b *schedulePages) switchTask(r *http.Request, t connectors.Task) (string, error) {
	on := r.Form.Get("to") == "on"
	_, err := b.tasks.Change(r.Context(), t.UID, connectors.TaskChange{Enabled: &on})
	return onOff(on), err
}

func onOff(on bool) string {
	if on {
		return doneOn
	}
	return doneOff
}

func (b *schedulePages) removeTask(r *http.Request, t connectors.Task) (string, error) {
	return doneRemoved, b.tasks.Remove(r.Context(), t.UID)
}

// onHeartbeat is onTask for the tasks of the heartbeat.
func (b *schedulePages) onHeartbeat(do func(r *http.Request, x connectors.HeartbeatTask) (said string, err error)) func(*http.Request) (string, error) {
	return func(r *http.Request) (string, error) {
		if b.heartbeats == nil {
			return "", errHeartbeatsOff
		}
		all, _, err := b.heartbeats.Heartbeats(r.Context())
		if err != nil {
			return "", scheduled(err)
		}
		i := slices.IndexFunc(all, func(x connectors.HeartbeatTask) bool { return x.ID == r.PathValue("id") })
		if i < 0 {
			return "", storage.ErrNotFound
		}
		said, err := do(r, all[i])
		return fmt.Sprintf(said, connectors.OneLine(all[i].Title, 60)), scheduled(err)
	}
}

func (b *schedulePages) runHeartbeat(r *http.Request, x connectors.HeartbeatTask) (string, error) {
	_, err := b.heartbeats.RunHeartbeats(r.Context(), r.Form.Get("key"), x.ID)
	return doneRuns, err
}

func (b *schedulePages) switchHeartbeat(r *http.Request, x connectors.HeartbeatTask) (string, error) {
	x.Enabled = r.Form.Get("to") == "on"
	_, err := b.heartbeats.AddHeartbeat(r.Context(), x)
	return onOff(x.Enabled), err
}

// A taskView is one cron task as the page shows it.
type taskView struct {
	connectors.Task
	State string // on, off, paused, done
	Words string // why it does not run; empty when it does
	When  string
	First time.Time
	Last  *firingView
	// Key makes two presses of one button one run.
	Key string
}

// A firingView is one past run of a task.
type firingView struct {
	connectors.Firing
	mark
	Manual bool
	MS     int64 // how long it took; 0 while it has not ended
}

// A heartbeatView is one task of the heartbeat.
type heartbeatView struct {
	connectors.HeartbeatTask
	State string // on, off, stopped
	Words string
	Key   string
}

func viewTask(t connectors.Task, key string) taskView {
	v := taskView{Task: t, When: timing(t.TaskSpec), Key: key}
	switch {
	case !t.Enabled:
		v.State, v.Words = "off", "Turned off; it runs only manually."
	case t.Paused != "":
		v.State, v.Words = "paused", t.Paused
	case len(t.Next) == 0:
		v.State, v.Words = "done", "No runs left."
	default:
		v.State, v.First = "on", t.Next[0]
	}
	if t.Last != nil {
		last := viewFiring(*t.Last)
		v.Last = &last
	}
	return v
}

func timing(t connectors.TaskSpec) string {
	switch {
	case t.Every != "":
		return "every " + t.Every
	case t.At != "":
		return "once, at " + t.At
	case t.Schedule != "":
		return t.Schedule
	}
	return "no schedule"
}

func viewFiring(f connectors.Firing) firingView {
	v := firingView{Firing: f, mark: markOf(f), Manual: strings.HasPrefix(f.Instant, "manual/")}
	if !f.Started.IsZero() && f.Ended.After(f.Started) {
		v.MS = f.Ended.Sub(f.Started).Milliseconds()
	}
	return v
}

func viewHeartbeat(b connectors.HeartbeatTask, key string) heartbeatView {
	v := heartbeatView{HeartbeatTask: b, State: "on", Key: key}
	switch {
	case !b.Enabled:
		v.State, v.Words = "off", "Turned off; it runs only manually."
	case b.Stopped != "":
		v.State, v.Words = "stopped", b.Stopped
	}
	return v
}
