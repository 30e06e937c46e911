package schedule

import (
	"context"
	"fmt"
	"slices"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// maxIDs is the most tasks that one heartbeat_run names.
const maxIDs = 100

// heart has the tools for the heartbeat.
type heart struct{ heartbeats Heartbeats }

// A heartbeatTask is what a model says about a task of the heartbeat.
type heartbeatTask struct {
	Title       string `json:"title" jsonschema:"a short title for people"`
	Prompt      string `json:"prompt" jsonschema:"what to look after each time"`
	ID          string `json:"id,omitempty" jsonschema:"id of the task, of a-z 0-9 . _ -; derived from the title when omitted; replaces the task with this id"`
	Every       string `json:"every,omitempty" jsonschema:"interval such as 30m or 2h, at least 5m; omit for the configured one"`
	ActiveHours string `json:"active_hours,omitempty" jsonschema:"when it may run, such as 08:00-22:00; omit for always"`
	Enabled     *bool  `json:"enabled,omitempty" jsonschema:"false: disable the task; omit for true"`
}

// add is Once: without an id, a second call may create a second task.
func (h heart) add() tools.Tool {
	s := spec(addName, "Creates or replaces a task of the heartbeat: something small to look after at regular intervals, together with the others that are due.", tools.Once)
	s.Undoes = true
	return tools.New(s, func(ctx context.Context, _ tools.Env, in heartbeatTask) (tools.Result, error) {
		b := connectors.HeartbeatTask{
			ID: in.ID, Title: in.Title, Prompt: in.Prompt, Every: in.Every, ActiveHours: in.ActiveHours,
			Enabled: in.Enabled == nil || *in.Enabled,
		}
		for _, f := range []struct {
			rule
			name string
			to   *string
		}{
			{rule{maxName, true, true}, "title", &b.Title},
			{rule{maxPrompt, true, false}, "prompt", &b.Prompt},
			{rule{maxField, false, true}, "id", &b.ID},
			{rule{maxField, false, true}, "every", &b.Every},
			{rule{maxField, false, true}, "active_hours", &b.ActiveHours},
		} {
			if err := f.check(f.name, f.to); err != nil {
				return tools.Result{}, err
			}
		}
		all, _, err := h.heartbeats.Heartbeats(ctx)
		if err != nil {
			return tools.Result{}, err
		}
		// Only people set gates, and a model must not remove one either.
		if old := findHeartbeat(all, b.ID); old != nil {
			b.Gate = old.Gate
		}
		made, err := h.heartbeats.AddHeartbeat(ctx, b)
		if err != nil {
			return tools.Result{}, err
		}
		r := tools.Result{
			Text: "The heartbeat has this task now.\n" + describeHeartbeat(made),
			What: fmt.Sprintf(texts.DidAddHeartbeat, made.ID), Undo: tools.UndoCall(removeName, removing{ID: made.ID}),
		}
		if old := findHeartbeat(all, made.ID); old != nil {
			r.What, r.Undo = fmt.Sprintf(texts.DidReplaceHeartbeat, made.ID), tools.UndoCall(addName, heartbeatOf(*old))
		}
		return r, nil
	})
}

// findHeartbeat finds a task by its id; nil when there is none.
func findHeartbeat(all []connectors.HeartbeatTask, id string) *connectors.HeartbeatTask {
	i := slices.IndexFunc(all, func(b connectors.HeartbeatTask) bool { return b.ID == id && id != "" })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// heartbeatOf is how a model would say what a task is.
func heartbeatOf(b connectors.HeartbeatTask) heartbeatTask {
	return heartbeatTask{Title: b.Title, Prompt: b.Prompt, ID: b.ID, Every: b.Every, ActiveHours: b.ActiveHours, Enabled: &b.Enabled}
}

func (h heart) list() tools.Tool {
	all := func(ctx context.Context, _ tools.Env) ([]connectors.HeartbeatTask, []connectors.Problem, error) {
		return h.heartbeats.Heartbeats(ctx)
	}
	return list("heartbeat_list", "Lists the tasks of the heartbeat.", "The heartbeat has no tasks.", all, describeHeartbeat)
}

// describeHeartbeat is a task of the heartbeat in some lines.
func describeHeartbeat(b connectors.HeartbeatTask) string {
	s := fmt.Sprintf("%s: %s", b.ID, tools.Short(b.Title, maxName))
	if b.Every != "" {
		s += "\nevery: " + b.Every
	}
	if b.ActiveHours != "" {
		s += "\nactive hours: " + b.ActiveHours
	}
	if !b.Enabled {
		s += "\nstate: disabled"
	}
	if b.Stopped != "" {
		s += "\nstate: the heartbeat is paused, " + tools.Short(b.Stopped, maxField)
	}
	if !b.LastRun.IsZero() {
		s += "\nlast: " + instant(b.LastRun)
	}
	if !b.Next.IsZero() {
		s += "\nnext: " + instant(b.Next)
	}
	return s + "\nprompt: " + tools.Short(b.Prompt, 2*maxField)
}

func (h heart) run() tools.Tool {
	type input struct {
		IDs []string `json:"ids,omitempty" jsonschema:"ids of the tasks to run; omit for all"`
	}
	s := spec("heartbeat_run", "Runs tasks of the heartbeat now, in the background.", tools.Idempotent)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		if len(in.IDs) > maxIDs {
			return tools.Result{}, fmt.Errorf("field ids: %d entries, the limit is %d", len(in.IDs), maxIDs)
		}
		ids := make([]string, len(in.IDs))
		for i, id := range in.IDs {
			var err error
			if ids[i], err = tools.Required(fmt.Sprintf("ids[%d]", i), id, maxField); err != nil {
				return tools.Result{}, err
			}
		}
		n, err := h.heartbeats.RunHeartbeats(ctx, key(env), ids...)
		if err != nil {
			return tools.Result{}, err
		}
		what := texts.DidRunHeartbeat
		if n == 0 {
			what = ""
		}
		if n == 1 {
			return tools.Result{Text: "1 task runs now", What: what}, nil
		}
		return tools.Result{Text: fmt.Sprintf("%d tasks run now", n), What: what}, nil
	})
}

// Names of tools that undo each other.
const (
	addName    = "heartbeat_add"
	removeName = "heartbeat_remove"
)

type removing struct {
	ID string `json:"id" jsonschema:"id of the task, as heartbeat_list shows it"`
}

func (h heart) remove() tools.Tool {
	s := spec(removeName, "Deletes a task of the heartbeat.", tools.Idempotent)
	s.Undoes = true
	return tools.New(s, func(ctx context.Context, env tools.Env, in removing) (tools.Result, error) {
		id, err := tools.Required("id", in.ID, maxField)
		if err != nil {
			return tools.Result{}, err
		}
		all, _, err := h.heartbeats.Heartbeats(ctx)
		if err != nil {
			return tools.Result{}, err
		}
		old := findHeartbeat(all, id)
		if old == nil && env.Undo {
			return tools.Result{Text: fmt.Sprintf("task %s of the heartbeat no longer exists", id)}, nil
		}
		if err := h.heartbeats.RemoveHeartbeat(ctx, id); err != nil {
			return tools.Result{}, err
		}
		r := tools.Result{Text: fmt.Sprintf("task %s of the heartbeat is removed", id), What: fmt.Sprintf(texts.DidRemoveHeartbeat, tools.Short(id, maxField))}
		if old != nil && old.Gate == "" { // a gate only people can set
			r.Undo = tools.UndoCall(addName, heartbeatOf(*old))
		}
		return r, nil
	})
}
