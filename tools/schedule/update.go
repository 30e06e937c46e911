package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/tools"
)

func (c cron) update() tools.Tool {
	s := spec(updateName, "Changes a task; fields that are absent stay as they are. Shows the next five runs.", tools.Idempotent)
	s.Undoes = true
	return tools.New(s, func(ctx context.Context, env tools.Env, in change) (tools.Result, error) {
		t, err := c.find(ctx, env, in.Task)
		if err != nil {
			return tools.Result{}, err
		}
		ch, err := in.check()
		if err != nil {
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
		r := tools.Result{Text: "The task is changed.\n" + describe(changed), What: "changed the task " + t.Slug}
		// Where nothing was to change, an earlier try of this call has done it, and
		// nobody knows what was there before.
		if back, differs := before(t, ch); differs {
			r.Undo = tools.UndoCall(updateName, back)
		}
		return r, nil
	})
}

// change are the arguments of cron_update.
type change struct {
	Task        string  `json:"task" jsonschema:"slug of the task, as cron_list tells it"`
	Name        *string `json:"name,omitempty" jsonschema:"a new name"`
	Prompt      *string `json:"prompt,omitempty" jsonschema:"what shall be done from now on"`
	Schedule    *string `json:"schedule,omitempty" jsonschema:"five cron fields; replaces every and at"`
	Every       *string `json:"every,omitempty" jsonschema:"a distance such as 30m; replaces schedule and at"`
	At          *string `json:"at,omitempty" jsonschema:"one time, as RFC 3339; replaces schedule and every"`
	Timezone    *string `json:"timezone,omitempty" jsonschema:"IANA zone; empty for the usual one"`
	Description *string `json:"description,omitempty" jsonschema:"what the task is for"`
	Misfire     *string `json:"misfire,omitempty" jsonschema:"skip, run_once, or run_if_within and a duration"`
	Once        *bool   `json:"once,omitempty" jsonschema:"true: the task goes away after its next run"`
	Enabled     *bool   `json:"enabled,omitempty" jsonschema:"false: the task rests until it is enabled again"`
	Retries     *int    `json:"retries,omitempty" jsonschema:"how often a failed run is tried again, 0 to 10"`
	Route       *string `json:"route,omitempty" jsonschema:"empty for this chat, none for nowhere, or agent:ID for you or one of your subagents"`
}

// check returns all of the change but its route.
func (in change) check() (connectors.TaskChange, error) {
	ch := connectors.TaskChange{Once: in.Once, Enabled: in.Enabled, Retries: in.Retries}
	for _, f := range []struct {
		name    string
		from    *string
		to      **string
		limit   int
		must    bool // not be empty
		oneLine bool
	}{
		{"name", in.Name, &ch.Name, maxName, true, true},
		{"prompt", in.Prompt, &ch.Prompt, maxPrompt, true, false},
		{"schedule", in.Schedule, &ch.Schedule, maxField, true, true},
		{"every", in.Every, &ch.Every, maxField, true, true},
		{"at", in.At, &ch.At, maxField, true, true},
		{"timezone", in.Timezone, &ch.Timezone, maxField, false, true},
		{"description", in.Description, &ch.Description, maxDescription, false, false},
		{"misfire", in.Misfire, &ch.Misfire, maxField, false, true},
	} {
		if f.from == nil {
			continue
		}
		v, err := tools.Optional(f.name, *f.from, f.limit)
		if f.must {
			v, err = tools.Required(f.name, *f.from, f.limit)
		}
		if f.oneLine {
			v, err = oneLine(f.name, v, err)
		}
		if err != nil {
			return ch, err
		}
		*f.to = &v
	}
	if in.Retries != nil {
		if err := checkRetries(*in.Retries); err != nil {
			return ch, err
		}
	}
	if ch.Every != nil {
		if err := rare(*ch.Every); err != nil {
			return ch, err
		}
	}
	return ch, oneKind(&ch)
}

// oneKind sees to it that a change of the times leaves exactly one kind of them.
func oneKind(ch *connectors.TaskChange) error {
	kinds := []**string{&ch.Schedule, &ch.Every, &ch.At}
	n := 0
	for _, k := range kinds {
		if *k != nil {
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("fields schedule, every and at: %d are given, want one at most", n)
	}
	for _, k := range kinds {
		if n == 1 && *k == nil {
			*k = new(string)
		}
	}
	return nil
}

// before is the change that takes another one back from a task that is still as
// t, and whether that is a change at all.
func before(t connectors.Task, ch connectors.TaskChange) (back change, differs bool) {
	back.Task = t.UID
	for _, f := range []struct {
		set  *string
		was  string
		back **string
	}{
		{ch.Name, t.Name, &back.Name},
		{ch.Prompt, t.Prompt, &back.Prompt},
		{ch.Timezone, t.Timezone, &back.Timezone},
		{ch.Description, t.Description, &back.Description},
		{ch.Misfire, t.Misfire, &back.Misfire},
		{ch.Route, cmp.Or(t.Route, nowhere), &back.Route},
	} {
		if f.set != nil {
			*f.back = &f.was
			differs = differs || *f.set != f.was
		}
	}
	for _, f := range []struct { // of which one is set, and stands for all
		set  *string
		was  string
		back **string
	}{{ch.Schedule, t.Schedule, &back.Schedule}, {ch.Every, t.Every, &back.Every}, {ch.At, t.At, &back.At}} {
		if f.set != nil && f.was != "" {
			*f.back = &f.was
		}
		differs = differs || f.set != nil && *f.set != f.was
	}
	if ch.Once != nil {
		back.Once = &t.Once
		differs = differs || *ch.Once != t.Once
	}
	if ch.Enabled != nil {
		back.Enabled = &t.Enabled
		differs = differs || *ch.Enabled != t.Enabled
	}
	if ch.Retries != nil {
		back.Retries = &t.Retries
		differs = differs || *ch.Retries != t.Retries
	}
	return back, differs
}
