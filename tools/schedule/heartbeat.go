package schedule

import (
	"context"
	"fmt"
	"slices"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/tools"
)

// maxIDs is the most tasks that one heartbeat_run names.
const maxIDs = 100

// heart makes the tools for the heartbeat.
type heart struct{ beats Beats }

// A beat is what a model says about a task of the heartbeat.
type beat struct {
	Title       string `json:"title" jsonschema:"a short title for people"`
	Prompt      string `json:"prompt" jsonschema:"what shall be looked after each time"`
	ID          string `json:"id,omitempty" jsonschema:"id of the task, of a-z 0-9 . _ -; made from the title when absent; a task with this id is replaced"`
	Every       string `json:"every,omitempty" jsonschema:"how often, such as 30m or 2h, at least 5m; the usual distance when absent"`
	ActiveHours string `json:"active_hours,omitempty" jsonschema:"when it may run, such as 08:00-22:00; always when absent"`
	Enabled     *bool  `json:"enabled,omitempty" jsonschema:"false: the task rests; true when absent"`
}

// add is Once: without an id, a second call may make a second task.
func (h heart) add() tools.Tool {
	s := spec(addName, "Makes or replaces a task of the heartbeat: something small that is looked after again and again, together with the others that are due.", tools.Once)
	s.Undoes = true
	return tools.New(s, func(ctx context.Context, _ tools.Env, in beat) (tools.Result, error) {
		b := connectors.Beat{Enabled: in.Enabled == nil || *in.Enabled}
		for _, f := range []struct {
			name, from string
			to         *string
			limit      int
			must       bool // not be empty
			oneLine    bool
		}{
			{"title", in.Title, &b.Title, maxName, true, true},
			{"prompt", in.Prompt, &b.Prompt, maxPrompt, true, false},
			{"id", in.ID, &b.ID, maxField, false, true},
			{"every", in.Every, &b.Every, maxField, false, true},
			{"active_hours", in.ActiveHours, &b.ActiveHours, maxField, false, true},
		} {
			v, err := tools.Optional(f.name, f.from, f.limit)
			if f.must {
				v, err = tools.Required(f.name, f.from, f.limit)
			}
			if f.oneLine {
				v, err = oneLine(f.name, v, err)
			}
			if err != nil {
				return tools.Result{}, err
			}
			*f.to = v
		}
		all, _, err := h.beats.Beats(ctx)
		if err != nil {
			return tools.Result{}, err
		}
		// Gates are set by people only, and are not to be taken away by a model
		// either.
		if old := findBeat(all, b.ID); old != nil {
			b.Gate = old.Gate
		}
		made, err := h.beats.AddBeat(ctx, b)
		if err != nil {
			return tools.Result{}, err
		}
		r := tools.Result{
			Text: "The heartbeat has this task now.\n" + describeBeat(made),
			What: "made the task " + made.ID + " of the heartbeat", Undo: tools.UndoCall(removeName, removing{ID: made.ID}),
		}
		if old := findBeat(all, made.ID); old != nil {
			r.What, r.Undo = "replaced the task "+made.ID+" of the heartbeat", tools.UndoCall(addName, beatOf(*old))
		}
		return r, nil
	})
}

// findBeat finds a task by its id; nil when there is none.
func findBeat(all []connectors.Beat, id string) *connectors.Beat {
	i := slices.IndexFunc(all, func(b connectors.Beat) bool { return b.ID == id && id != "" })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// beatOf is how a model would say what a task is.
func beatOf(b connectors.Beat) beat {
	return beat{Title: b.Title, Prompt: b.Prompt, ID: b.ID, Every: b.Every, ActiveHours: b.ActiveHours, Enabled: &b.Enabled}
}

func (h heart) list() tools.Tool {
	s := spec("heartbeat_list", "Lists the tasks of the heartbeat.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, _ tools.Env, _ struct{}) (tools.Result, error) {
		all, problems, err := h.beats.Beats(ctx)
		if err != nil {
			return tools.Result{}, err
		}
		var entries []string
		for _, p := range problems {
			entries = append(entries, problem(p))
		}
		for _, b := range all {
			entries = append(entries, describeBeat(b))
		}
		return fit(entries, "The heartbeat has no tasks."), nil
	})
}

// describeBeat is a task of the heartbeat in some lines.
func describeBeat(b connectors.Beat) string {
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
		s += "\nstate: the heartbeat rests, " + tools.Short(b.Stopped, maxField)
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
		IDs []string `json:"ids,omitempty" jsonschema:"ids of the tasks to run; all when absent"`
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
		n, err := h.beats.Beat(ctx, key(env), ids...)
		if err != nil {
			return tools.Result{}, err
		}
		what := "let the heartbeat run"
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
	ID string `json:"id" jsonschema:"id of the task, as heartbeat_list tells it"`
}

func (h heart) remove() tools.Tool {
	s := spec(removeName, "Takes a task of the heartbeat away.", tools.Idempotent)
	s.Undoes = true
	return tools.New(s, func(ctx context.Context, env tools.Env, in removing) (tools.Result, error) {
		id, err := tools.Required("id", in.ID, maxField)
		if err != nil {
			return tools.Result{}, err
		}
		all, _, err := h.beats.Beats(ctx)
		if err != nil {
			return tools.Result{}, err
		}
		old := findBeat(all, id)
		if old == nil && env.Undo {
			return tools.Result{Text: fmt.Sprintf("task %s of the heartbeat is not there any more", id)}, nil
		}
		if err := h.beats.RemoveBeat(ctx, id); err != nil {
			return tools.Result{}, err
		}
		r := tools.Result{Text: fmt.Sprintf("task %s of the heartbeat is removed", id), What: "removed the task " + tools.Short(id, maxField) + " of the heartbeat"}
		if old != nil && old.Gate == "" { // a gate only people can set
			r.Undo = tools.UndoCall(addName, beatOf(*old))
		}
		return r, nil
	})
}
