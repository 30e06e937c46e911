package messaging

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

const (
	// maxAhead is how far away a reminder may be. A year has a leap day now
	// and then.
	maxAhead = 366 * 24 * time.Hour
	// lateBy is how long ago the time of a new reminder may be: thinking takes
	// a model a while.
	lateBy = time.Minute
	// maxListedNote is how much of each note it shows, in bytes.
	maxListedNote = 150
)

func remindMe(r tools.Reminders) tools.Tool {
	type input struct {
		Note    string `json:"note" jsonschema:"what you are told then"`
		At      string `json:"at,omitempty" jsonschema:"such as 2026-12-24T18:00:00+01:00"`
		In      string `json:"in,omitempty" jsonschema:"such as 90m, 1h30m or 2d"`
		DelayMs *int64 `json:"delayMs,omitempty" jsonschema:"how long from now, in milliseconds, instead of at or in"`
	}
	type output struct {
		ID        string `json:"id"`
		Scheduled bool   `json:"scheduled"`
		At        string `json:"at"`
	}
	s := spec("remind_me", "Wakes you later, at most a year ahead, to answer here. Give at or in.", tools.Idempotent, scopeSchedule)
	s.Undoes, s.Brief = true, []string{"note", "at", "in"}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		note, err := tools.Required("note", in.Note, maxNote)
		if err != nil {
			return tools.Result{}, err
		}
		at, err := when(in.At, in.In, in.DelayMs, time.Now())
		if err != nil {
			return tools.Result{}, err
		}
		id, err := r.RemindMe(ctx, env, at, note)
		if err != nil {
			return tools.Result{}, err
		}
		// A repeat of the call finds the reminder of the first one, whose time
		// is what counts. One that is gone has come.
		if r, err := reminder(ctx, r, env, id); err == nil && r != nil {
			at = r.At
		}
		r, err := answer(output{id, true, at.UTC().Format(time.RFC3339)})
		r.What = fmt.Sprintf(texts.DidRemind, at.UTC().Format(time.RFC3339))
		r.Undo = tools.UndoCall(cancelName, canceling{ID: id})
		return r, err
	})
}

func when(at, in string, delayMs *int64, now time.Time) (time.Time, error) {
	at, in = strings.TrimSpace(at), strings.TrimSpace(in)
	given := 0
	for _, set := range []bool{at != "", in != "", delayMs != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		return time.Time{}, fmt.Errorf("fields at, in and delayMs: %d are given, want exactly one", given)
	}
	switch {
	case at != "":
		t, err := time.Parse(time.RFC3339, at)
		switch {
		case err != nil:
			return time.Time{}, fmt.Errorf("field at: %.60q is not a time with a zone such as 2026-12-24T18:00:00+01:00", at)
		case t.Before(now.Add(-lateBy)):
			return time.Time{}, fmt.Errorf("field at: %s has passed, now it is %s", at, now.In(t.Location()).Format(time.RFC3339))
		case t.After(now.Add(maxAhead)):
			return time.Time{}, fmt.Errorf("field at: %s is more than a year ahead", at)
		case t.Before(now):
			return now, nil
		}
		return t, nil
	case in != "":
		d, err := tools.ParseDuration(in, 0)
		if err != nil {
			return time.Time{}, fmt.Errorf("field in: %.60q: %w", in, err)
		}
		if d > maxAhead {
			return time.Time{}, fmt.Errorf("field in: %.60q is more than a year", in)
		}
		return now.Add(d), nil
	}
	if *delayMs < 0 || *delayMs > maxAhead.Milliseconds() {
		return time.Time{}, fmt.Errorf("field delayMs: %d, want 0 to %d (a year)", *delayMs, maxAhead.Milliseconds())
	}
	return now.Add(time.Duration(*delayMs) * time.Millisecond), nil
}

func listReminders(r tools.Reminders) tools.Tool {
	type entry struct {
		ID   string `json:"id"`
		At   string `json:"at"`
		Note string `json:"note"`
	}
	type output struct {
		Reminders []json.RawMessage `json:"reminders"`
		LeftOut   int               `json:"leftOut,omitempty"`
	}
	s := spec("list_reminders", "Lists the reminders that you are still waiting for, the next one first.", tools.ReadOnly, scopeSchedule)
	return tools.New(s, func(ctx context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
		all, err := r.Reminders(ctx, env)
		if err != nil {
			return tools.Result{}, err
		}
		listed := make([]entry, len(all))
		for i, r := range all {
			listed[i] = entry{r.ID, r.At.UTC().Format(time.RFC3339), tools.Short(r.Note, maxListedNote)}
		}
		var out output
		out.Reminders, out.LeftOut, err = fit(listed, func(entry) bool { return true })
		if err != nil {
			return tools.Result{}, err
		}
		return answer(out)
	})
}

const cancelName = "cancel_reminder"

type canceling struct {
	ID string `json:"id" jsonschema:"id of the reminder, as remind_me and list_reminders tell it"`
}

func cancelReminder(r tools.Reminders) tools.Tool {
	s := spec(cancelName, "Takes one of your reminders back.", tools.Idempotent, scopeSchedule)
	s.Undoes = true
	return tools.New(s, func(ctx context.Context, env tools.Env, in canceling) (tools.Result, error) {
		id, err := tools.Required("id", in.ID, maxID)
		if err != nil {
			return tools.Result{}, err
		}
		old, err := reminder(ctx, r, env, id)
		if err != nil {
			return tools.Result{}, err
		}
		if old == nil && env.Undo {
			return tools.Result{Text: fmt.Sprintf("reminder %s is not waiting any more; it has come or was canceled", id)}, nil
		}
		if err := r.CancelReminder(ctx, env, id); err != nil {
			return tools.Result{}, err
		}
		r := tools.Result{Text: fmt.Sprintf("reminder %s is canceled", id), What: texts.DidCancelSomeReminder}
		if old != nil {
			r.What = fmt.Sprintf(texts.DidCancelReminder, old.At.UTC().Format(time.RFC3339))
			r.Undo = tools.UndoCall("remind_me", map[string]string{"note": old.Note, "at": old.At.UTC().Format(time.RFC3339Nano)})
		}
		return r, nil
	})
}

func reminder(ctx context.Context, r tools.Reminders, env tools.Env, id string) (*tools.Reminder, error) {
	all, err := r.Reminders(ctx, env)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.ID == id {
			return &r, nil
		}
	}
	return nil, nil
}
