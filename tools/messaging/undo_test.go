package messaging_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/messaging"
)

// diary is tools.Agents whose reminders are kept.
type diary struct {
	society
	made int
}

func (d *diary) RemindMe(_ context.Context, env tools.Env, at time.Time, note string) (string, error) {
	id := fmt.Sprint("rem-", env.Run, env.CallID)
	if !slices.ContainsFunc(d.reminders, func(r tools.Reminder) bool { return r.ID == id }) {
		d.reminders = append(d.reminders, tools.Reminder{ID: id, At: at, Note: note})
		d.made++
	}
	return id, nil
}

func (d *diary) CancelReminder(_ context.Context, _ tools.Env, id string) error {
	n := len(d.reminders)
	d.reminders = slices.DeleteFunc(d.reminders, func(r tools.Reminder) bool { return r.ID == id })
	if len(d.reminders) == n {
		return fmt.Errorf("you have no reminder %q", id)
	}
	return nil
}

func TestUndoOfReminders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(diary)
		set, err := tools.NewSet(messaging.Tools(d, d, d)...)
		if err != nil {
			t.Fatal(err)
		}
		do := func(run claybot.RunID, undo bool, call claybot.ToolCall) claybot.Record {
			return set.Do(t.Context(), tools.Env{Agent: env.Agent, Run: run, CallID: "c", Undo: undo}, call).Record
		}
		made := do("r1", false, claybot.ToolCall{Name: "remind_me", Args: `{"note":"tea \u0026 \"milk\"","in":"90m"}`})
		if made.Undo == nil || made.Undo.What != "made a reminder for 2000-01-01T01:30:00Z" {
			t.Fatalf("%+v", made)
		}
		before := slices.Clone(d.reminders)
		gone := do("r2", false, claybot.ToolCall{Name: "cancel_reminder", Args: `{"id":"rem-r1c"}`})
		if len(d.reminders) != 0 || gone.Undo == nil || gone.Undo.What != "canceled a reminder for 2000-01-01T01:30:00Z" {
			t.Fatalf("%+v", gone)
		}
		for range 2 { // after a crash it is made again
			if r := do("u2", true, *gone.Undo.Call); !r.OK || r.Undo != nil {
				t.Errorf("%+v", r)
			}
		}
		if len(d.reminders) != 1 || !d.reminders[0].At.Equal(before[0].At) || d.reminders[0].Note != before[0].Note || d.made != 2 {
			t.Errorf("%+v, want %+v", d.reminders, before)
		}
		d.reminders = before
		for range 2 {
			if r := do("u1", true, *made.Undo.Call); !r.OK {
				t.Errorf("%+v", r)
			}
		}
		if len(d.reminders) != 0 {
			t.Errorf("%+v", d.reminders)
		}
		if r := do("r3", false, *made.Undo.Call); r.OK {
			t.Errorf("a model cancels what is not there: %+v", r)
		}
		// A reminder whose time has passed cannot be made again, and that is said.
		time.Sleep(3 * time.Hour)
		if r := do("u3", true, *gone.Undo.Call); r.OK {
			t.Errorf("%+v", r)
		}
	})
}

// What was said to others cannot be taken back, and is told.
func TestEffectsOnOthers(t *testing.T) {
	s := &society{result: tools.Result{Text: `[{"ok":true,"output":"x"}]`}, stopped: 2}
	set, err := tools.NewSet(append(messaging.Tools(s, s, s), messaging.TaskTool(s, []claybot.Helper{{Name: "mole"}}))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tool, args, what string }{
		{"start_subagent", `{"task":"dig","name":"mole"}`, "started the agent mole (" + other + ")"},
		{"start_subagent", `{"task":"dig"}`, "started the agent " + other},
		{"spawn_and_wait", `{"tasks":[{"task":"a"},{"task":"b"}]}`, "let 2 subagents work"},
		{"ask_agent", `{"to":"` + other + `","text":"q"}`, "asked the agent " + other},
		{"send_agent_message", `{"text":"hi"}`, "sent a message to agent " + other},
		{"stop_agent", `{"id":"` + other + `"}`, "stopped the agent " + other},
		{"task", `{"subagent":"mole","task":"dig"}`, "let the subagent mole work"},
		{"list_agents", `{}`, ""},
	} {
		r := set.Do(t.Context(), env, claybot.ToolCall{Name: tt.tool, Args: tt.args}).Record
		if !r.OK || (r.Undo == nil) != (tt.what == "") || r.Undo != nil && (r.Undo.What != tt.what || r.Undo.Call != nil) {
			t.Errorf("%s: %+v %+v", tt.tool, r, r.Undo)
		}
		spec, _ := set.Spec(tt.tool)
		if spec.Undoes || len(spec.Scopes) != 1 || spec.Scopes[0] != "agents" {
			t.Errorf("%s: %+v", tt.tool, spec)
		}
	}
	s.stopped = 0
	if r := set.Do(t.Context(), env, claybot.ToolCall{Name: "stop_agent", Args: `{"id":"` + other + `"}`}).Record; r.Undo != nil {
		t.Errorf("stopping nothing has an effect: %+v", r.Undo)
	}
	s.result = tools.Result{Wait: &claybot.Awaiting{Answers: []claybot.MessageID{"a"}, Until: 5}}
	if o := set.Do(t.Context(), env, claybot.ToolCall{Name: "ask_agent", Args: `{"to":"` + other + `","text":"q"}`}); o.Wait == nil || o.Record.Undo != nil {
		t.Errorf("%+v", o)
	}
}
