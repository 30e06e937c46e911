package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/web"
)

// cronScene shows an agent that wakes by itself: a task at its time, one that
// was missed, one that fails, and a reminder.
func cronScene() scene {
	return scene{
		name:  "cron",
		about: "tasks that fire by themselves, one late, one failing, and a reminder",
		model: cronModel,
		play: func(ctx context.Context, s *stage) error {
			for _, act := range []func(context.Context) error{s.friend, s.greeting, s.onTime, s.byHand, s.late, s.failingTask, s.brokenFile, s.reminder} {
				if err := act(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// cronModel is the scripted model of the scene.
func cronModel(r openaitest.Request) openaitest.Reply {
	last := r.Messages[len(r.Messages)-1]
	text := r.LastUser()
	switch {
	case last.Role == llm.RoleTool:
		return openaitest.Reply{Text: "I will."}
	case strings.Contains(text, "remind me of the tea"):
		args := `{"in":"2s","note":"The tea is ready."}`
		return openaitest.Reply{Calls: []claybot.ToolCall{{ID: "call_1", Name: "remind_me", Args: args}}}
	case strings.Contains(text, "The tea is ready"):
		return openaitest.Reply{Text: "Your tea is ready!"}
	case strings.Contains(text, "Count the boats"):
		return openaitest.Reply{Text: "I counted three boats."}
	case strings.Contains(text, "Count the stars"):
		return openaitest.Reply{Fault: openaitest.FaultBadRequest}
	}
	return openaitest.Reply{Text: "You said: " + text}
}

// greeting makes the person's agent known.
func (s *stage) greeting(ctx context.Context) error {
	_, err := s.tell(ctx, "hello", 1)
	return err
}

// addTask adds a task as `claybot cron add` does, for the person on Telegram.
func (s *stage) addTask(ctx context.Context, name, at, prompt string) (connectors.Task, error) {
	s.say("operator $", "claybot cron add --name %q --at %s --route telegram/%d %q", name, at, telegramPerson, prompt)
	spec := connectors.TaskSpec{Name: name, At: at, Prompt: prompt, Route: fmt.Sprintf("telegram/%d", telegramPerson)}
	var t connectors.Task
	if err := s.client.call(ctx, "POST", "/cron", spec, &t); err != nil {
		return t, err
	}
	for _, next := range t.Next {
		s.say("", "next: %s", next.Format(time.DateTime+" MST"))
	}
	return t, nil
}

// hears waits for a message of the bot to the person on Telegram that has all of
// these parts.
func (s *stage) hears(ctx context.Context, want ...string) error {
	lacks := func(text string) bool {
		return slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(text, part) })
	}
	for {
		for _, m := range s.telegram.Sent(telegramPerson) {
			if !lacks(m.Text) {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("no message said %q: %w", want, context.Cause(ctx))
		}
	}
}

// onTime shows a task that fires at its time, once.
func (s *stage) onTime(ctx context.Context) error {
	at := time.Now().UTC().Add(4 * time.Second).Truncate(time.Second)
	t, err := s.addTask(ctx, "Boats", at.Format(time.RFC3339), "Count the boats.")
	if err != nil {
		return err
	}
	if err := s.hears(ctx, "I counted three boats."); err != nil {
		return err
	}
	if late := time.Since(at); late > time.Minute { // until then it is on time
		return fmt.Errorf("the task fired %v late", late)
	}
	return s.ledger(ctx, t.Slug, string(claybot.RunSucceeded), 1)
}

// ledger waits until the newest firing of a task has ended in a state, prints
// the ledger, and checks how many firings there are.
func (s *stage) ledger(ctx context.Context, slug, state string, n int) error {
	for {
		var out web.LedgerPage
		if err := s.client.call(ctx, "GET", "/cron/"+slug+"/ledger", nil, &out); err != nil {
			return err
		}
		if len(out.Firings) > 0 && out.Firings[0].State == state {
			if len(out.Firings) != n {
				return fmt.Errorf("%d firings of %s, want %d", len(out.Firings), slug, n)
			}
			f := out.Firings[0]
			s.say("ledger", "%s planned %s, %s, run %s", slug, f.Planned.UTC().Format(time.TimeOnly), f.State, f.Run)
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the firing of %s has not ended as %s: %+v", slug, state, out.Firings)
		}
	}
}

// byHand shows a run beside the schedule.
func (s *stage) byHand(ctx context.Context) error {
	s.say("operator $", "claybot cron run boats")
	if err := s.client.call(ctx, "POST", "/cron/boats/run", map[string]any{}, nil); err != nil {
		return err
	}
	return s.ledger(ctx, "boats", string(claybot.RunSucceeded), 2)
}

// writeTask makes the file of a task, as a person does with an editor.
func (s *stage) writeTask(slug, text string) error {
	s.say("operator $", "edit cron/%s/TASK.md", slug)
	dir := filepath.Join(s.dir, "data", "cron", slug)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "TASK.md"), []byte(text), 0o600)
}

// late shows a task whose time has passed: it runs all the same, and says so.
func (s *stage) late(ctx context.Context) error {
	at := time.Now().UTC().Add(-31 * time.Minute).Truncate(time.Second)
	text := fmt.Sprintf("---\nuid: zyxwvutsrqponmlkjihgfedc\nname: Late\nat: %s\nroute: telegram/%d\n---\nCount the boats.\n",
		at.Format(time.RFC3339), telegramPerson)
	if err := s.writeTask("late", text); err != nil {
		return err
	}
	return s.hears(ctx, "(missed ", at.Format("15:04")) // between the two stands the date, if it was yesterday
}

// failingTask shows the one line about a task that fails.
func (s *stage) failingTask(ctx context.Context) error {
	at := time.Now().UTC().Add(4 * time.Second).Truncate(time.Second)
	t, err := s.addTask(ctx, "Stars", at.Format(time.RFC3339), "Count the stars.")
	if err != nil {
		return err
	}
	if err := s.hears(ctx, "The scheduled task “Stars” failed."); err != nil {
		return err
	}
	return s.ledger(ctx, t.Slug, string(claybot.RunFailed), 1)
}

// brokenFile shows a file with a mistake, which costs nothing but itself.
func (s *stage) brokenFile(ctx context.Context) error {
	if err := s.writeTask("broken", "---\nuid: abcdefghijklmnopqrstuvwx\nname: Broken\nschedule: 0 25 * * *\n---\nNever.\n"); err != nil {
		return err
	}
	for {
		var out web.TaskList
		if err := s.client.call(ctx, "GET", "/cron", nil, &out); err != nil {
			return err
		}
		if len(out.Problems) == 1 && out.Problems[0].Line == 4 {
			s.say("operator $", "claybot cron")
			s.say("", "%s:%d: %s", filepath.Base(filepath.Dir(out.Problems[0].File))+"/TASK.md", out.Problems[0].Line, out.Problems[0].Text)
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return errors.New("the broken file was not noticed")
		}
	}
}

// reminder shows a note that comes back.
func (s *stage) reminder(ctx context.Context) error {
	if _, err := s.tell(ctx, "remind me of the tea in two seconds", 1); err != nil {
		return err
	}
	return s.hears(ctx, "Your tea is ready!")
}
