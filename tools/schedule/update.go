package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

func (c cron) update() tools.Tool {
	s := spec(updateName, "Changes a task; omitted fields stay as they are. Shows the next five runs.", tools.Idempotent)
	s.Undoes = true
	return tools.New(s, func(ctx context.Context, env tools.Env, in change) (tools.Result, error) {
		t, err := c.find(ctx, env, in.Task)
		if err != nil {
			return tools.Result{}, err
		}
		ch := connectors.TaskChange(in.changes)
		if err := checkChange(&ch); err != nil {
			return tools.Result{}, err
		}
		if in.Route != nil {
			r, err := c.route(ctx, env, *in.Route)
			if err != nil {
				return tools.Result{}, err
			}
			ch.Route = &r
		}
		if ch == (connectors.TaskChange{}) {
			return tools.Result{}, errors.New("nothing to change: give a field besides task")
		}
		changed, err := c.tasks.Change(ctx, t.UID, ch)
		if err != nil {
			return tools.Result{}, err
		}
		r := tools.Result{Text: "The task is changed.\n" + describe(changed), What: fmt.Sprintf(texts.DidChangeTask, t.Slug)}
		// Where nothing was to change, an earlier try of this call has done it, and
		// what was there before is not known.
		if back, differs := before(t, ch); differs {
			r.Undo = tools.UndoCall(updateName, back)
		}
		return r, nil
	})
}

// change are the arguments of cron_update.
type change struct {
	Task string `json:"task" jsonschema:"slug of the task, as cron_list shows it"`
	changes
}

// changes are a connectors.TaskChange that a model writes.
type changes struct {
	Name        *string `json:"name,omitempty" jsonschema:"a new name"`
	Description *string `json:"description,omitempty" jsonschema:"what the task is for"`
	Schedule    *string `json:"schedule,omitempty" jsonschema:"five cron fields; replaces every and at"`
	Every       *string `json:"every,omitempty" jsonschema:"an interval such as 30m; replaces schedule and at"`
	At          *string `json:"at,omitempty" jsonschema:"one time, as RFC 3339; replaces schedule and every"`
	Timezone    *string `json:"timezone,omitempty" jsonschema:"IANA zone; empty for the usual one"`
	Prompt      *string `json:"prompt,omitempty" jsonschema:"what to do from now on"`
	Misfire     *string `json:"misfire,omitempty" jsonschema:"skip, run_once, or run_if_within and a duration"`
	Route       *string `json:"route,omitempty" jsonschema:"empty for this chat, none for nowhere, or agent:ID for you or one of your subagents"`
	Enabled     *bool   `json:"enabled,omitempty" jsonschema:"false: disable the task"`
	Once        *bool   `json:"once,omitempty" jsonschema:"true: the task ends after its next run"`
	Retries     *int    `json:"retries,omitempty" jsonschema:"how many times to retry a failed run, 0 to 10"`
}

// A text is a field of a task that holds text, in a change and in the task itself.
type text struct {
	rule
	name   string
	change **string
	spec   *string
	time   bool // one of the fields of which a task has one
}

func textsOf(c *connectors.TaskChange, t *connectors.TaskSpec) []text {
	return []text{
		{rule{maxName, true, true}, "name", &c.Name, &t.Name, false},
		{rule{maxPrompt, true, false}, "prompt", &c.Prompt, &t.Prompt, false},
		{rule{maxDescription, false, false}, "description", &c.Description, &t.Description, false},
		{rule{maxField, true, true}, "schedule", &c.Schedule, &t.Schedule, true},
		{rule{maxField, true, true}, "every", &c.Every, &t.Every, true},
		{rule{maxField, true, true}, "at", &c.At, &t.At, true},
		{rule{maxField, false, true}, "timezone", &c.Timezone, &t.Timezone, false},
		{rule{maxField, false, true}, "misfire", &c.Misfire, &t.Misfire, false},
	}
}

// checkChange trims the texts of a change and refuses those that cannot be right. A
// change of the times leaves exactly one kind of them.
func checkChange(ch *connectors.TaskChange) error {
	times := 0
	texts := textsOf(ch, new(connectors.TaskSpec))
	for _, f := range texts {
		if *f.change == nil {
			continue
		}
		v := **f.change
		if err := f.check(f.name, &v); err != nil {
			return err
		}
		if *f.change = &v; f.time {
			times++
		}
	}
	if times > 1 {
		return fmt.Errorf("fields schedule, every and at: %d are given, want one at most", times)
	}
	for _, f := range texts {
		if times == 1 && f.time && *f.change == nil {
			*f.change = new(string)
		}
	}
	every, retries := "", 0
	if ch.Every != nil {
		every = *ch.Every
	}
	if ch.Retries != nil {
		retries = *ch.Retries
	}
	return checkNumbers(every, retries)
}

// before is the change that undoes another one of a task that is still as t, and
// whether that is a change at all.
func before(t connectors.Task, ch connectors.TaskChange) (back change, differs bool) {
	was := t.TaskSpec
	var b connectors.TaskChange
	backs := textsOf(&b, &was)
	for i, f := range textsOf(&ch, &was) {
		if *f.change == nil {
			continue
		}
		if !f.time || *f.spec != "" { // of the times one is set, and stands for all
			*backs[i].change = f.spec
		}
		differs = differs || **f.change != *f.spec
	}
	was.Route = cmp.Or(was.Route, nowhere)
	b.Route, differs = restore(ch.Route, was.Route, differs)
	b.Once, differs = restore(ch.Once, was.Once, differs)
	b.Enabled, differs = restore(ch.Enabled, t.Enabled, differs)
	b.Retries, differs = restore(ch.Retries, was.Retries, differs)
	return change{t.UID, changes(b)}, differs
}

// restore is what undoes a change of one value, and whether that, or another one,
// changes anything.
func restore[T comparable](set *T, was T, differs bool) (*T, bool) {
	if set == nil {
		return nil, differs
	}
	return &was, differs || *set != was
}
