package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

// fresh calls do after reading the current files.
func (h *Heartbeat) fresh(ctx context.Context, do func(run context.Context) error) error {
	return h.sched.Edit(ctx, func(run context.Context) error {
		if err := h.rescan(ctx); err != nil {
			return err
		}
		return do(run)
	})
}

func (h *Heartbeat) rescan(ctx context.Context) error {
	if err := h.scan(ctx); err != nil {
		return fmt.Errorf("the tasks of the heartbeat cannot be read: %w", err)
	}
	return nil
}

// A noTaskError means that there is no task with this id.
type noTaskError struct{ id string }

func (e noTaskError) Error() string        { return fmt.Sprintf("the heartbeat has no task %.80q", e.id) }
func (e noTaskError) Is(target error) bool { return target == storage.ErrNotFound }

// Heartbeats lists all tasks in the order in which they run, with the files that could not
// be read.
func (h *Heartbeat) Heartbeats(ctx context.Context) (tasks []connectors.HeartbeatTask, problems []connectors.Problem, err error) {
	err = h.fresh(ctx, func(context.Context) error {
		s := h.settings()
		problems = h.sched.Problems()
		for _, t := range h.tasks {
			tasks = append(tasks, h.view(t, s))
		}
		return nil
	})
	return tasks, problems, err
}

// view returns the current state of a task. The caller holds the lock of the
// files.
func (h *Heartbeat) view(t *task, s Settings) connectors.HeartbeatTask {
	b := connectors.HeartbeatTask{
		ID: t.id, Title: t.title, Every: t.everyText, ActiveHours: t.hoursText,
		Enabled: t.enabled, Prompt: t.prompt, Gate: t.gate,
	}
	if p := h.memory.state.Tasks[t.id]; p.Last != 0 {
		b.LastRun = p.Last.Time().In(s.Zone)
	}
	if h.memory.state.Paused != nil {
		b.Stopped = h.memory.state.Paused.Why
	} else {
		b.Next = h.memory.state.next(t, s, h.sched.Now())
	}
	return b
}

// AddHeartbeat creates a task, or replaces the one with this id. A replaced task keeps the time of its
// last run and, unless b has one, its gate.
func (h *Heartbeat) AddHeartbeat(ctx context.Context, b connectors.HeartbeatTask) (added connectors.HeartbeatTask, err error) {
	if b.ID != "" {
		if err := checkID(b.ID); err != nil {
			return added, err
		}
	}
	err = h.fresh(ctx, func(context.Context) error {
		id := b.ID
		if id == "" {
			id, _ = schedule.FreeName(schedule.NameOf(cmp.Or(strings.TrimSpace(b.Title), heading(b.Prompt))), func(try string) (bool, error) {
				_, taken := h.files[try+extension]
				return taken, nil
			})
		}
		t, err := h.check(ctx, id, b)
		if err != nil {
			return err
		}
		name := id + extension
		if _, err := h.cfg.Tree.Write(ctx, treePath(name), []byte(t.text), h.files[name].version); err != nil {
			return fmt.Errorf("the task cannot be saved: %s", schedule.Reason(err))
		}
		if err := h.rescan(ctx); err != nil {
			return err
		}
		added = h.view(&t, h.settings())
		return nil
	})
	if err == nil {
		h.sched.Kick()
	}
	return added, err
}

// check formats the text of a task and parses it to validate it.
func (h *Heartbeat) check(ctx context.Context, id string, b connectors.HeartbeatTask) (task, error) {
	every, hours := strings.TrimSpace(b.Every), strings.TrimSpace(b.ActiveHours)
	if every != "" {
		d, err := parseEvery(every)
		if err != nil {
			return task{}, fmt.Errorf("every: %w", err)
		}
		if d < minEvery {
			return task{}, errors.New("every: " + tooShort(every))
		}
	}
	var front configs.Frontmatter
	front.Set(keyTitle, connectors.OneLine(b.Title, maxTitle))
	front.Set(keyEvery, every)
	front.Set(keyHours, hours)
	front.Set(keyGate, strings.TrimSpace(cmp.Or(b.Gate, gateOf(ctx, h.cfg.Tree, id))))
	if !b.Enabled {
		front.Set(keyEnabled, "false")
	}
	front.Body = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(b.Prompt, "\uFFFD"), "\x00", ""))
	text := front.String()
	if len(text) > maxFile {
		return task{}, fmt.Errorf("the task is longer than %d KiB", maxFile>>10)
	}
	if _, replaces := h.files[id+extension]; !replaces && len(h.files) >= maxFiles {
		return task{}, fmt.Errorf("the heartbeat has %d tasks already, which is the limit", maxFiles)
	}
	t, _, err := readTask(id, text)
	var line *configs.LineError
	switch {
	case errors.As(err, &line):
		return t, errors.New(line.Text) // line numbers mean nothing to the caller
	case err != nil:
		return t, err
	case t.prompt == "":
		return t, errors.New("the prompt is empty")
	}
	return t, nil
}

// gateOf returns the gate in the file of a task, even if the file has mistakes.
func gateOf(ctx context.Context, tree storage.Tree, id string) string {
	f, err := storage.ReadFile(ctx, tree, treePath(id+extension))
	if err != nil {
		return ""
	}
	t, _, _ := readTask(id, string(f.Body)) // the fields before the mistake suffice
	return t.gate
}

// RemoveHeartbeat deletes a task.
func (h *Heartbeat) RemoveHeartbeat(ctx context.Context, id string) error {
	if checkID(id) != nil {
		return noTaskError{id}
	}
	return h.fresh(ctx, func(context.Context) error {
		if _, there := h.files[id+extension]; !there {
			return noTaskError{id}
		}
		if err := h.cfg.Tree.Remove(ctx, treePath(id+extension), 0); err != nil {
			return fmt.Errorf("the task cannot be removed: %s", schedule.Reason(err))
		}
		err := h.memory.edit(ctx, func(m *state) {
			delete(m.Tasks, id)
			if p := m.Pending; p != nil {
				p.Tasks = slices.DeleteFunc(p.Tasks, func(x string) bool { return x == id })
			}
		})
		return errors.Join(h.scan(ctx), err)
	})
}

// RunHeartbeats runs tasks as one run in the background and returns their number. It is
// idempotent for equal keys. It ignores gates, schedules and pauses. While a
// message is pending it runs nothing and returns 0. With ids it runs these
// tasks, even disabled ones; without ids, all enabled ones.
func (h *Heartbeat) RunHeartbeats(ctx context.Context, key string, ids ...string) (n int, err error) {
	if strings.TrimSpace(key) == "" {
		return 0, errors.New("the key is empty")
	}
	err = h.fresh(ctx, func(run context.Context) (err error) {
		n, err = h.run(ctx, run, key, ids)
		return err
	})
	if err != nil {
		n = 0
	}
	h.sched.Kick()
	return n, err
}

func (h *Heartbeat) run(ctx, run context.Context, key string, ids []string) (n int, err error) {
	items, err := h.choose(ids)
	if err == nil {
		err = h.memory.pull(ctx)
	}
	if err == nil && h.unsure {
		err = h.follow(ctx)
	}
	if err == nil {
		err = h.settle(ctx)
	}
	if err != nil {
		return 0, err
	}
	id := claybot.MessageID(manualPrefix + key)
	switch p := h.memory.state.Pending; {
	case p != nil && p.ID == id:
		return len(p.Tasks), nil
	case p != nil || len(items) == 0:
		return 0, nil
	}
	if _, err := h.cfg.Receipts.Receipt(ctx, id); !errors.Is(err, storage.ErrNotFound) {
		return len(items), err // it was posted, or the outcome is unknown
	}
	release, err := h.sched.Claim(ctx, tickClaim)
	if errors.Is(err, storage.ErrHeld) {
		return 0, nil // another member starts a tick
	}
	if err != nil {
		return 0, err
	}
	defer release()
	route, _, err := h.place(ctx, h.settings())
	if err != nil {
		return 0, err
	}
	// The caller may disconnect; a started tick is completed.
	both, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(run, stop)()
	return h.send(both, key, items, route)
}

// choose returns the tasks with the ids or, without ids, all enabled ones.
func (h *Heartbeat) choose(ids []string) ([]item, error) {
	var items []item
	for _, id := range ids {
		if !slices.ContainsFunc(h.tasks, func(t *task) bool { return t.id == id }) {
			return nil, noTaskError{id}
		}
	}
	for _, t := range h.tasks {
		if slices.Contains(ids, t.id) || len(ids) == 0 && t.enabled {
			items = append(items, item{task: t})
		}
	}
	return items, nil
}
