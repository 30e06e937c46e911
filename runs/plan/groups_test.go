package plan_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/tools"
)

// A shelf is a set of 30 tools in groups, and of one that is in every request.
func shelf(t *testing.T, h *hand) *tools.Set {
	t.Helper()
	var more []tools.Tool
	for _, group := range []string{"web", "files", "shell"} {
		for i := range 10 {
			s := spec(fmt.Sprintf("%s_%d", group, i), tools.Idempotent)
			s.Scopes, s.Description = []string{group}, strings.Repeat("A long description. ", 10)
			more = append(more, tools.New(s, h.act(s.Name, tools.Idempotent, nil)))
		}
	}
	finder := tools.Finder(func(claybot.Agent) *tools.Set { return nil })
	return h.set(t, append(more, finder)...)
}

// planning returns the tasks of the planner, without the conversation.
func (b *brain) planning() (tasks []string) {
	for _, r := range b.requests {
		if m := r.Messages[len(r.Messages)-1]; r.Messages[0].ID == llm.PlanRequest {
			_, task, _ := strings.Cut(m.Content, "\n\nTools:\n")
			if len(r.Messages) > 1 {
				task = m.Content
			}
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// A script answers the requests of the planner one after the other.
type script struct {
	*brain
	plans []string
}

func (s *script) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	resp, err := s.brain.Chat(ctx, r)
	if r.Messages[0].ID == llm.PlanRequest && len(s.plans) > 0 {
		resp, err = llm.Response{Text: s.plans[0], Stop: llm.StopEnd, Model: "m"}, nil
		s.plans = s.plans[1:]
	}
	return resp, err
}

// The planner saw the tools of all groups in each request: 24 kB for a "hello". It sees
// those that a conversation declares, asks for groups of others, and may use what it was not
// shown.
func TestPlannerSeesGroups(t *testing.T) {
	const most = 2500
	bad := `{"id": "step-01", "tool": "shell_3", "args": {"word": 5}}`
	for _, tt := range []struct {
		name  string
		plans []string
		shown []string // a tool of each request, the first on
		ran   []string
	}{
		{"needs no group", []string{steps(step("step-01", "put", "a"))}, []string{"put ("}, []string{"put a"}},
		{
			"asks for groups",
			[]string{`{"groups": ["web"]}`, "I look: \n```\n{\"groups\": [\"shell\", \"none\"]}\n```", steps(step("step-01", "web_1", "a"), step("step-02", "shell_2", "b"))},
			[]string{"put (", "web_1 (", "shell_2 ("},
			[]string{"web_1 a", "shell_2 b"},
		},
		{"knows a tool that it was not shown", []string{steps(step("step-01", "shell_3", "c"))}, []string{"put ("}, []string{"shell_3 c"}},
		{
			"does not know its arguments",
			[]string{steps(bad), steps(step("step-01", "shell_3", "d"))},
			[]string{"put (", "\nThe arguments of shell_3: {"},
			[]string{"shell_3 d"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHand()
			b := &script{brain: thinks(""), plans: slices.Clone(tt.plans)}
			if err := newDesk("do it").run(t, plan.New(config(b, shelf(t, h), plan.Policy{})), yes); err != nil {
				t.Fatal(err)
			}
			tasks := b.planning()
			if len(tasks) != len(tt.shown) {
				t.Fatalf("%d requests, want %d: %q", len(tasks), len(tt.shown), tasks)
			}
			for i, part := range tt.shown {
				if !strings.Contains(tasks[i], part) || i == 0 && (len(tasks[i]) > most || strings.Contains(tasks[i], "web_1")) {
					t.Errorf("request %d has %d bytes, want %q in\n%.3000s", i, len(tasks[i]), part, tasks[i])
				}
			}
			slices.Sort(h.words)
			if slices.Sort(tt.ran); !slices.Equal(h.words, tt.ran) {
				t.Errorf("ran %q, want %q", h.words, tt.ran)
			}
		})
	}
}

// A model that asks for groups again and again is told once that it must plan.
func TestPlannerAsksForGroupsForever(t *testing.T) {
	h := newHand()
	b := &script{brain: thinks(""), plans: slices.Repeat([]string{`{"groups": ["web"]}`}, 20)}
	err := newDesk("do it").run(t, plan.New(config(b, shelf(t, h), plan.Policy{})), yes)
	if f := failure(t, err); !strings.Contains(f.Say, "cannot be read") || len(b.plans) != 17 || len(h.words) > 0 {
		t.Errorf("failed with %q after %d requests, ran %q", f.Say, 20-len(b.plans), h.words)
	}
}

// Groups of tools that the conversation has used are shown again, and those of an intent
// always.
func TestPlannerKnowsGroups(t *testing.T) {
	h := newHand()
	set := shelf(t, h)
	b := &script{brain: thinks(""), plans: []string{steps(step("step-01", "shell_3", "c"))}}
	d := newDesk("do it")
	if err := d.run(t, plan.New(config(b, set, plan.Policy{})), yes); err != nil {
		t.Fatal(err)
	}
	for i := range d.records {
		d.records[i].Run = "earlier"
	}
	next := newDesk("and now?")
	next.records[0].MessageID, next.messages[0].ID = "m2", "m2"
	next.records = append(d.records, next.records...)
	b = &script{brain: thinks(""), plans: []string{steps()}}
	if err := next.run(t, plan.New(config(b, set, plan.Policy{})), yes); err != nil {
		t.Fatal(err)
	}
	if task := b.planning()[0]; !strings.Contains(task, "shell_9 (") || strings.Contains(task, "web_1 (") {
		t.Errorf("after shell_3 the planner sees\n%.3000s", task)
	}
	c := config(b, set, plan.Policy{})
	c.Intents = func(claybot.Agent) []plan.Intent { return []plan.Intent{{Name: "work", Tools: []string{"web_*"}}} }
	b.plans, b.requests, b.replies[llm.ClassifyRequest] = []string{steps()}, nil, []string{`{"intent": "work"}`}
	if err := newDesk("work").run(t, plan.New(c), yes); err != nil {
		t.Fatal(err)
	}
	if task := b.planning()[0]; !strings.Contains(task, "web_9 (") || strings.Contains(task, "put (") || strings.Contains(task, "More tools") {
		t.Errorf("for an intent with tools the planner sees\n%.3000s", task)
	}
}
