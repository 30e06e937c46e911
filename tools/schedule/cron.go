package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// maxRetries is how many times a failed task is retried.
const maxRetries = 10

// cron has the tools for tasks.
type cron struct {
	tasks  Tasks
	agents tools.Directory
}

// add is Once: a second call creates a second task.
func (c cron) add() tools.Tool {
	type input struct {
		Name        string `json:"name" jsonschema:"a short name for people"`
		Prompt      string `json:"prompt" jsonschema:"what to do each time; the agent of the task knows nothing of this conversation"`
		Schedule    string `json:"schedule,omitempty" jsonschema:"five cron fields: minute hour day month weekday, such as 0 9 * * 1-5, or @daily and the like"`
		Every       string `json:"every,omitempty" jsonschema:"instead of schedule: an interval such as 30m or 2h"`
		At          string `json:"at,omitempty" jsonschema:"instead of schedule: one time, as RFC 3339 such as 2026-12-24T18:00:00+01:00"`
		Timezone    string `json:"timezone,omitempty" jsonschema:"IANA zone of the schedule, such as Europe/Berlin"`
		Description string `json:"description,omitempty" jsonschema:"what the task is for, for people"`
		Misfire     string `json:"misfire,omitempty" jsonschema:"what happens to a missed run: skip, run_once, or run_if_within and a duration such as run_if_within 2h"`
		Once        bool   `json:"once,omitempty" jsonschema:"true: the task ends after its first run"`
		Retries     int    `json:"retries,omitempty" jsonschema:"how many times to retry a failed run, 0 to 10"`
		Route       string `json:"route,omitempty" jsonschema:"where its output goes: omit for this chat, none for nowhere, or agent:ID for you or one of your subagents"`
		DryRun      bool   `json:"dry_run,omitempty" jsonschema:"true: only shows the next runs and saves nothing"`
	}
	s := spec("cron_add", "Creates a task that an agent of its own runs on a schedule. Give exactly one of schedule, every and at. "+
		"Shows the next five runs; with dry_run it shows them without saving.", tools.Once)
	s.Undoes = true
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		t := connectors.TaskSpec{
			Name: in.Name, Prompt: in.Prompt, Description: in.Description,
			Schedule: in.Schedule, Every: in.Every, At: in.At, Timezone: in.Timezone,
			Misfire: in.Misfire, Once: in.Once, Retries: in.Retries,
			Owner: env.Agent.Descriptor.OwnerID(), Limited: true,
		}
		if err := checkSpec(&t); err != nil {
			return tools.Result{}, err
		}
		var err error
		if t.Route, err = c.route(ctx, env, in.Route); err != nil {
			return tools.Result{}, err
		}
		if in.DryRun {
			would, err := c.tasks.Add(ctx, t, true)
			if err != nil {
				return tools.Result{}, err
			}
			return tools.Result{Text: fmt.Sprintf("Nothing is saved. The task %q would run like this; %s.\n%s", t.Name, output(t.Route), upcoming(would.Next))}, nil
		}
		made, err := c.tasks.Add(ctx, t, false)
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{
			Text: fmt.Sprintf("Created task %s; %s.\n%s", made.Slug, output(made.Route), upcoming(made.Next)),
			What: fmt.Sprintf(texts.DidAddTask, made.Slug), Undo: tools.UndoCall(deleteName, deleting{Task: made.UID}),
		}, nil
	})
}

// checkSpec trims the fields of a new task and refuses those that cannot be right.
// What a schedule may be, Tasks knows.
func checkSpec(t *connectors.TaskSpec) error {
	for _, f := range textsOf(new(connectors.TaskChange), t) {
		f.must = f.must && !f.time
		if err := f.check(f.name, f.spec); err != nil {
			return err
		}
	}
	if n := given(t.Schedule, t.Every, t.At); n != 1 {
		return fmt.Errorf("fields schedule, every and at: %d are given, want exactly one", n)
	}
	return checkNumbers(t.Every, t.Retries)
}

// checkNumbers refuses an interval at which a task would run again and again, and too
// many retries.
func checkNumbers(every string, retries int) error {
	if d, err := time.ParseDuration(every); err == nil && d < minEvery {
		return fmt.Errorf("field every: %s is too often; the least is %v", every, minEvery)
	}
	if retries < 0 || retries > maxRetries {
		return fmt.Errorf("field retries: %d, want 0 to %d", retries, maxRetries)
	}
	return nil
}

// given counts the fields that are not empty.
func given(fields ...string) (n int) {
	for _, f := range fields {
		if f != "" {
			n++
		}
	}
	return n
}

// own are the tasks that the caller may see: those of its owner. Where others read as
// well, only those that answer there, or to the caller itself.
func (c cron) own(ctx context.Context, env tools.Env) ([]connectors.Task, []connectors.Problem, error) {
	all, problems, err := c.owned(ctx, env)
	if err != nil || c.agents == nil {
		return all, problems, err
	}
	here := c.agents.Readers(ctx, env).Place
	if here == "" {
		return all, problems, nil
	}
	return slices.DeleteFunc(all, func(t connectors.Task) bool {
		return t.Route != here && t.Route != "agent:"+string(env.Agent.ID)
	}), nil, nil
}

// owned are the tasks of the caller's owner, or all for an agent without an owner.
func (c cron) owned(ctx context.Context, env tools.Env) ([]connectors.Task, []connectors.Problem, error) {
	all, problems, err := c.tasks.Tasks(ctx)
	owner := env.Agent.Descriptor.OwnerID()
	if err != nil || owner == "" {
		return all, problems, err
	}
	var mine []connectors.Task
	for _, t := range all {
		if t.Owner == owner {
			mine = append(mine, t)
		}
	}
	return mine, nil, nil // a file that cannot be read has no known owner
}

// find is the caller's task with this slug or uid. A task of another owner is none.
func (c cron) find(ctx context.Context, env tools.Env, ref string) (connectors.Task, error) {
	ref, err := tools.Required("task", ref, maxField)
	if err != nil {
		return connectors.Task{}, err
	}
	mine, _, err := c.own(ctx, env)
	if err != nil {
		return connectors.Task{}, err
	}
	for _, t := range mine {
		if t.Slug == ref || t.UID == ref {
			return t, nil
		}
	}
	return connectors.Task{}, noTaskError(ref)
}

// A noTaskError names a task that the caller does not have.
type noTaskError string

func (e noTaskError) Error() string {
	return fmt.Sprintf("field task: you have no task %.80q; cron_list shows yours", string(e))
}

func (c cron) list() tools.Tool {
	return list("cron_list", "Lists the tasks with a schedule, with their next runs and how the last one ended.", "There are no tasks.", c.own, describe)
}

// describe is a task in some lines.
func describe(t connectors.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", t.Slug, tools.Short(t.Name, maxName))
	switch {
	case t.Schedule != "":
		fmt.Fprintf(&b, "schedule: %s", t.Schedule)
	case t.Every != "":
		fmt.Fprintf(&b, "every: %s", t.Every)
	default:
		fmt.Fprintf(&b, "at: %s", t.At)
	}
	if t.Timezone != "" {
		fmt.Fprintf(&b, " (%s)", t.Timezone)
	}
	switch {
	case !t.Enabled:
		b.WriteString("\nstate: disabled")
	case t.Paused != "":
		fmt.Fprintf(&b, "\nstate: paused, %s", tools.Short(t.Paused, maxField))
	default:
		b.WriteString("\nstate: enabled")
	}
	fmt.Fprintf(&b, "\n%s\nprompt: %s\n%s", output(t.Route), tools.Short(t.Prompt, 2*maxField), upcoming(t.Next))
	if t.Last != nil {
		fmt.Fprintf(&b, "\nlast: planned %s, %s", instant(t.Last.Planned), t.Last.State)
		if t.Last.Reason != "" {
			fmt.Fprintf(&b, " (%s)", tools.Short(t.Last.Reason, maxField))
		}
	}
	return b.String()
}

// Names of tools that undo others.
const (
	updateName = "cron_update"
	deleteName = "cron_delete"
)

type deleting struct {
	Task string `json:"task" jsonschema:"slug of the task, as cron_list shows it"`
}

func (c cron) remove() tools.Tool {
	s := spec(deleteName, "Deletes a task; its folder moves to .done.", tools.Idempotent)
	return tools.New(s, func(ctx context.Context, env tools.Env, in deleting) (tools.Result, error) {
		t, err := c.find(ctx, env, in.Task)
		if errors.As(err, new(noTaskError)) && env.Undo {
			return tools.Result{Text: fmt.Sprintf("Task %s no longer exists.", in.Task)}, nil
		}
		if err != nil {
			return tools.Result{}, err
		}
		if err := c.tasks.Remove(ctx, t.UID); err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: fmt.Sprintf("Task %s is deleted.", t.Slug), What: fmt.Sprintf(texts.DidDeleteTask, t.Slug)}, nil
	})
}

func (c cron) run() tools.Tool {
	type input struct {
		Task string `json:"task" jsonschema:"slug of the task, as cron_list shows it"`
	}
	s := spec("cron_run", "Runs a task once, now and in the background, outside its schedule.", tools.Idempotent)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		t, err := c.find(ctx, env, in.Task)
		if err != nil {
			return tools.Result{}, err
		}
		if t, err = c.tasks.RunNow(ctx, t.UID, key(env)); err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: fmt.Sprintf("Task %s runs now; %s.", t.Slug, output(t.Route)), What: fmt.Sprintf(texts.DidRunTask, t.Slug)}, nil
	})
}
