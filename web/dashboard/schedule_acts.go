package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
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
		return t, refused(http.StatusBadRequest, "Choose how the task is timed.", "")
	}
	if when == "" {
		return t, refused(http.StatusBadRequest, "Say when the task fires.", "For example 0 9 * * 1-5 as a schedule, or 90m as an interval.")
	}
	if n := text("retries"); n != "" {
		tries, err := strconv.Atoi(n)
		if err != nil {
			return t, refused(http.StatusBadRequest, "The number of retries must be a whole number.", "")
		}
		t.Retries = tries
	}
	return t, nil
}

func (b *schedulePages) withTasks() error {
	if b.tasks == nil {
		return &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "Tasks are off.", Fix: "Enable cron in the configuration."}
	}
	return nil
}

// previewTask answers with the next instants of what stands in the form, and
// saves nothing.
func (b *schedulePages) previewTask(w http.ResponseWriter, r *http.Request) error {
	spec, err := specOf(r.Form)
	if err = errors.Join(b.withTasks(), err); err != nil {
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
	if err = errors.Join(b.withTasks(), err); err != nil {
		return err
	}
	t, err := b.tasks.Add(r.Context(), spec, false)
	if err != nil {
		return scheduled(err)
	}
	w.Header().Set("HX-Redirect", "/ui/schedule/tasks/"+url.PathEscape(t.UID))
	b.done(w, "The task is made.")
	return nil
}

// changeTask replaces what the form has. Fields that the form leaves as they
// were are not written, so that a file made by hand keeps its own words.
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
		return "Nothing was changed.", nil
	}
	_, err = b.tasks.Change(r.Context(), t.UID, ch)
	return "Saved. It applies at once.", scheduled(err)
}

// changes is what makes was into is.
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
	set := func(old, fresh string) *string { // the other ways of timing are taken out by Change
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

func (b *schedulePages) runTask(r *http.Request) (string, error) {
	t, err := b.findTask(r)
	if err != nil {
		return "", err
	}
	_, err = b.tasks.RunNow(r.Context(), t.UID, r.Form.Get("key"))
	return "“" + connectors.OneLine(t.Name, 60) + "” runs now.", scheduled(err)
}

func (b *schedulePages) switchTask(r *http.Request) (string, error) {
	t, err := b.findTask(r)
	if err != nil {
		return "", err
	}
	on := r.Form.Get("to") == "on"
	_, err = b.tasks.Change(r.Context(), t.UID, connectors.TaskChange{Enabled: &on})
	return "“" + connectors.OneLine(t.Name, 60) + "” is " + onOff(on) + ".", scheduled(err)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func (b *schedulePages) removeTask(r *http.Request) (string, error) {
	t, err := b.findTask(r)
	if err != nil {
		return "", err
	}
	return "“" + connectors.OneLine(t.Name, 60) + "” is removed; its folder is in cron/.done.", scheduled(b.tasks.Remove(r.Context(), t.UID))
}

// findBeat is the task of the heartbeat that the path of a request names.
func (b *schedulePages) findBeat(r *http.Request) (connectors.Beat, error) {
	if b.beats == nil {
		return connectors.Beat{}, &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "The heartbeat is off.", Fix: "Enable it in the configuration."}
	}
	all, _, err := b.beats.Beats(r.Context())
	if err != nil {
		return connectors.Beat{}, scheduled(err)
	}
	i := slices.IndexFunc(all, func(x connectors.Beat) bool { return x.ID == r.PathValue("id") })
	if i < 0 {
		return connectors.Beat{}, storage.ErrNotFound
	}
	return all[i], nil
}

func (b *schedulePages) runBeat(r *http.Request) (string, error) {
	x, err := b.findBeat(r)
	if err != nil {
		return "", err
	}
	_, err = b.beats.Beat(r.Context(), r.Form.Get("key"), x.ID)
	return "“" + connectors.OneLine(x.Title, 60) + "” runs now.", scheduled(err)
}

func (b *schedulePages) switchBeat(r *http.Request) (string, error) {
	x, err := b.findBeat(r)
	if err != nil {
		return "", err
	}
	x.Enabled = r.Form.Get("to") == "on"
	_, err = b.beats.AddBeat(r.Context(), x)
	return "“" + connectors.OneLine(x.Title, 60) + "” is " + onOff(x.Enabled) + ".", scheduled(err)
}
