package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/web"
)

// subagentsScene shows an agent that starts subagents, waits for them, and hears
// of one that fails.
func subagentsScene() scene {
	return scene{
		name:  "subagents",
		about: "one agent, three helpers that it waits for, and one that fails in the background",
		model: subagentsModel,
		play: func(ctx context.Context, s *stage) error {
			for _, act := range []func(context.Context) error{s.friend, s.threeHelpers, s.failingHelper} {
				if err := act(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// helperTasks are the tasks of the three subagents; the second one fails.
var helperTasks = []string{"find a train", "find a hotel", "find a museum"}

// subagentsModel is the scripted model of the scene, for the agent and for its
// helpers.
func subagentsModel(r openaitest.Request) openaitest.Reply {
	last := r.Messages[len(r.Messages)-1]
	text := r.LastUser()
	switch {
	case last.Role == llm.RoleTool && strings.Contains(text, "plan a trip"):
		return openaitest.Reply{Text: tripReport(last.Content)}
	case last.Role == llm.RoleTool:
		return openaitest.Reply{Text: "I have put a subagent on it."}
	case strings.Contains(text, "plan a trip"):
		return openaitest.Reply{Calls: []claybot.ToolCall{{ID: "call_1", Name: "spawn_and_wait", Args: spawnArgs()}}}
	case strings.Contains(text, "in the background"):
		args := `{"task":"find a hotel","name":"hotel","report":true}`
		return openaitest.Reply{Calls: []claybot.ToolCall{{ID: "call_1", Name: "start_subagent", Args: args}}}
	case strings.Contains(text, "failed in run"):
		return openaitest.Reply{Text: "My helper could not find a hotel. Shall I try again?"}
	case strings.Contains(text, "find a hotel"):
		return openaitest.Reply{Fault: openaitest.FaultBadRequest}
	case strings.Contains(text, "find a train"):
		return openaitest.Reply{Text: "a train at 9:04"}
	case strings.Contains(text, "find a museum"):
		return openaitest.Reply{Text: "the museum of clay"}
	}
	return openaitest.Reply{Text: "You said: " + text}
}

func spawnArgs() string {
	type task struct {
		Task string `json:"task"`
		Name string `json:"name"`
	}
	var in struct {
		Tasks []task `json:"tasks"`
	}
	for _, t := range helperTasks {
		in.Tasks = append(in.Tasks, task{t, strings.TrimPrefix(t, "find a ")})
	}
	b, _ := json.Marshal(in) // strings always marshal
	return string(b)
}

// tripReport is what the agent makes of the results of its helpers.
func tripReport(results string) string {
	var answers []claybot.Result
	if err := json.Unmarshal([]byte(results), &answers); err != nil {
		return "I cannot read the results: " + results
	}
	lines := []string{fmt.Sprintf("%d results:", len(answers))}
	for i, a := range answers {
		line := fmt.Sprintf("%d. %s: ", i+1, helperTasks[i])
		if a.OK {
			line += a.Output
		} else {
			line += "failed"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// friend lets the person on Telegram in without ceremony.
func (s *stage) friend(ctx context.Context) error {
	s.say("operator $", "claybot pair allow telegram:%d", telegramPerson)
	in := map[string]any{"connector": "telegram", "subject": fmt.Sprint(telegramPerson)}
	return s.client.call(ctx, "POST", "/pairing", in, nil)
}

// threeHelpers shows a run that pauses until three subagents have ended.
func (s *stage) threeHelpers(ctx context.Context) error {
	got, err := s.tell(ctx, "plan a trip for me", 1)
	if err != nil {
		return err
	}
	want := "3 results:\n\n1. find a train: a train at 9:04\n2. find a hotel: failed\n3. find a museum: the museum of clay"
	if got[0].Text != want {
		return fmt.Errorf("the answer is %q, want %q", got[0].Text, want)
	}
	return s.showAgents(ctx, 4)
}

// failingHelper shows the one notice of a subagent that fails in the background.
func (s *stage) failingHelper(ctx context.Context) error {
	if _, err := s.tell(ctx, "look for a hotel in the background", 2); err != nil {
		return err
	}
	if err := s.showAgents(ctx, 5); err != nil {
		return err
	}
	notices := 0
	err := s.records(ctx, func(r claybot.Record) {
		if r.Type == claybot.RecordSystem && r.Kind == claybot.KindFailure {
			notices++
			s.say("system message", "%s", r.Text)
		}
	})
	if err != nil {
		return err
	}
	if notices != 1 {
		return fmt.Errorf("the agent has %d notices, want 1", notices)
	}
	s.say("bot", "3 results, 1 notice")
	return nil
}

// records shows a look what the agent on Telegram remembers.
func (s *stage) records(ctx context.Context, look func(claybot.Record)) error {
	person := fmt.Sprint(telegramPerson)
	id, err := s.daemon.stores.db.IndexedAgent(ctx, claybot.User("telegram", person, person))
	if err != nil {
		return err
	}
	all, err := s.daemon.stores.agents.Records(ctx, id)
	for _, r := range all {
		look(r)
	}
	return err
}

// showAgents prints the tree that an operator sees, once no agent is at work any
// more.
func (s *stage) showAgents(ctx context.Context, n int) error {
	for {
		var list web.AgentList
		if err := s.client.call(ctx, "GET", "/agents", nil, &list); err != nil {
			return err
		}
		unfinished := slices.ContainsFunc(list.Agents, works)
		if !unfinished && len(list.Agents) != n {
			return fmt.Errorf("%d agents, want %d", len(list.Agents), n)
		}
		if !unfinished {
			s.say("operator $", "claybot agents")
			for _, b := range tree(list.Agents) {
				s.say("", "%s%s  %s %s, %s", b.lines, b.ID, b.Type, whose(b.AgentView), activity(b.AgentView))
			}
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
