package dashboard

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	// ledgerRows is how many past runs of a task its page shows at first,
	// ledgerMost how many at most.
	ledgerRows = 25
	ledgerMost = 500
)

// schedulePages are the pages of tasks, the heartbeat and reminders.
type schedulePages struct {
	*pages
	rows       lookup
	tasks      web.Tasks
	heartbeats web.Heartbeats
	reminders  web.Reminders
}

func (b *schedulePages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/schedule", "schedule", b.schedule),
		b.part("/ui/schedule/list", "schedule", "schedule-list", b.schedule),
		b.screen("/ui/schedule/new", "schedule", b.newTask),
		b.screen("/ui/schedule/tasks/{ref}", "schedule", b.task),
		b.part("/ui/schedule/tasks/{ref}/state", "schedule", "task-state", b.task),
		b.form("POST /ui/schedule/tasks", web.Admin, b.addTask),
		b.form("POST /ui/schedule/preview", web.Operate, b.previewTask),
		b.act("POST /ui/schedule/tasks/{ref}", web.Admin, b.changeTask),
		b.act("POST /ui/schedule/tasks/{ref}/run", web.Operate, b.onTask(b.runTask)),
		b.act("POST /ui/schedule/tasks/{ref}/switch", web.Admin, b.onTask(b.switchTask)),
		b.act("DELETE /ui/schedule/tasks/{ref}", web.Admin, b.onTask(b.removeTask)),
		b.act("POST /ui/schedule/beats/{id}/run", web.Operate, b.onHeartbeat(b.runHeartbeat)),
		b.act("POST /ui/schedule/beats/{id}/switch", web.Admin, b.onHeartbeat(b.switchHeartbeat)),
	}
}

// A scheduleView is the page of the schedule, or that of one task.
type scheduleView struct {
	viewer
	Tasks             []taskView
	Problems          []connectors.Problem
	Heartbeats        []heartbeatView
	HeartbeatProblems []connectors.Problem
	Reminders         []reminderView
	// TasksOff and HeartbeatsOff say why there are none; empty when there may be.
	TasksOff, HeartbeatsOff string

	Task   *taskView // whose page it is
	Ledger []firingView
	Limit  int // rows of the ledger that were asked for
	More   int // the limit with which there are more; 0 when there are no more
	New    bool
}

// shownReminders is how many reminders the page shows at most.
const shownReminders = 100

// A reminderView is a reminder with the name of its agent.
type reminderView struct {
	storage.Reminder
	Name string
}

func (b *schedulePages) readReminders(ctx context.Context) ([]reminderView, error) {
	all, err := b.reminders.NextReminders(ctx, shownReminders)
	if err != nil {
		return nil, err
	}
	views := make([]reminderView, len(all))
	for i, m := range all {
		name, err := b.rows.agentName(ctx, m.Agent)
		if err != nil {
			return nil, err
		}
		views[i] = reminderView{m, name}
	}
	return views, nil
}

// Title implements titled.
func (v scheduleView) Title() string {
	switch {
	case v.Task != nil:
		return connectors.OneLine(v.Task.Name, 80)
	case v.New:
		return "New task"
	}
	return "Schedule"
}

func (b *schedulePages) schedule(r *http.Request) (any, error) {
	ctx, v := r.Context(), scheduleView{viewer: viewerOf(r), TasksOff: tasksOff, HeartbeatsOff: heartbeatsOff}
	reminders, err := b.readReminders(ctx)
	if err != nil {
		return nil, err
	}
	v.Reminders = reminders
	if b.tasks != nil {
		all, problems, err := b.tasks.Tasks(ctx)
		v.Problems, v.TasksOff = problems, offWords(err)
		for _, t := range all {
			v.Tasks = append(v.Tasks, viewTask(t, keyFor(t)))
		}
	}
	if b.heartbeats != nil {
		all, problems, err := b.heartbeats.Heartbeats(ctx)
		v.HeartbeatProblems, v.HeartbeatsOff = problems, offWords(err)
		for _, x := range all {
			v.Heartbeats = append(v.Heartbeats, viewHeartbeat(x, pressKey("beat", x.ID, x.LastRun.UTC().Format(time.RFC3339Nano))))
		}
	}
	return v, nil
}

// offWords says why a list cannot be shown; empty for no error.
func offWords(err error) string {
	if err == nil {
		return ""
	}
	return sentence(storage.Plain(err))
}

// keyFor is the key of the button that runs a task: it is another one as soon
// as the task has fired, so that two presses on the same page are one run.
func keyFor(t connectors.Task) string {
	last := ""
	if t.Last != nil {
		last = t.Last.Instant + "/" + strconv.Itoa(t.Last.Attempt)
	}
	return pressKey("task", t.UID, last)
}

func pressKey(parts ...string) string {
	h := fnv.New128a()
	for _, p := range parts {
		_, _ = h.Write([]byte(strconv.Quote(p))) // a hash never fails
	}
	return "page-" + hex.EncodeToString(h.Sum(nil))
}

// sentence is a text with a capital letter and a full stop.
func sentence(s string) string {
	if s = strings.TrimSpace(s); s == "" {
		return "Request failed."
	}
	s = connectors.Capital(s)
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}

// scheduled makes an error of the schedule a refusal: its text is for the user.
func scheduled(err error) error {
	if err == nil || explain(err) != nil || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return refused(http.StatusBadRequest, sentence(err.Error()), "")
}

// findTask is the task that the path of a request names.
func (b *schedulePages) findTask(r *http.Request) (connectors.Task, error) {
	if b.tasks == nil {
		return connectors.Task{}, errTasksOff
	}
	all, problems, err := b.tasks.Tasks(r.Context())
	if err != nil {
		return connectors.Task{}, scheduled(err)
	}
	ref := r.PathValue("ref")
	if i := slices.IndexFunc(all, func(t connectors.Task) bool { return t.UID == ref || t.Slug == ref }); i >= 0 {
		return all[i], nil
	}
	for _, p := range problems {
		if name, _, _ := strings.Cut(p.File, "/"); name == ref {
			return connectors.Task{}, problem(http.StatusNotFound, "unreadable", fmt.Sprintf(taskUnreadable, p.Text), fmt.Sprintf(taskMend, p.File))
		}
	}
	return connectors.Task{}, errNoTask
}

func (b *schedulePages) task(r *http.Request) (any, error) {
	t, err := b.findTask(r)
	if err != nil {
		return nil, err
	}
	limit := ledgerRows
	if n, err := strconv.Atoi(r.URL.Query().Get("rows")); err == nil && n > 0 {
		limit = min(n, ledgerMost)
	}
	rows, err := b.tasks.Ledger(r.Context(), t.UID, limit+1)
	if err != nil {
		return nil, scheduled(err)
	}
	view := viewTask(t, keyFor(t))
	v := scheduleView{viewer: viewerOf(r), Task: &view, Limit: limit}
	rows, more := cut(rows, limit)
	if more > 0 && limit < ledgerMost {
		v.More = min(limit*4, ledgerMost)
	}
	for _, f := range rows {
		v.Ledger = append(v.Ledger, viewFiring(f))
	}
	return v, nil
}

func (b *schedulePages) newTask(r *http.Request) (any, error) {
	if b.tasks == nil {
		return nil, errTasksOff
	}
	daily := taskView{Task: connectors.Task{TaskSpec: connectors.TaskSpec{Every: "24h"}}}
	return scheduleView{viewer: viewerOf(r), New: true, Tasks: []taskView{daily}}, nil
}
