package agentsystem_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/prompts"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Named implements agentsystem.Flows.
func (s shelf) Named(name string) *flows.Flow { return s[name] }

// workflows gives the rig workflows, by their names, on the engine of workflows.
func (r *rig) workflows(texts map[string]string) {
	r.Helper()
	all := make(shelf)
	for name, text := range texts {
		f, faults := configs.ReadFlow(name+".yaml", []byte(text))
		if len(faults) == 0 {
			faults = flows.Check(&f, flows.World{Uses: namesIn})
		}
		for _, fault := range faults {
			r.Fatal(name, fault)
		}
		all[name] = &f
	}
	r.flows = all
	r.engines = map[string]runs.Engine{claybot.EngineFlow: r.flowEngine(all)}
}

// keptReplies is how long the rig keeps what workflows have sent.
const keptReplies = 7 * 24 * time.Hour

func (r *rig) flowEngine(all shelf) *flow.Engine {
	set := r.bench.set(r.T)
	return flow.New(flow.Config{
		Flow: func(_ context.Context, name, _ string) (*flows.Flow, error) {
			if f := all[name]; f != nil {
				return f, nil
			}
			return nil, errors.New("is not stored")
		},
		Fill: fillNames, Uses: namesIn,
		Settle: (&react.Loop{Tools: func(claybot.Agent) *tools.Set { return set }, Model: func(claybot.Agent) llm.Model { return r.mind }}).Settle,
		Rules:  func(claybot.Agent) tools.Rules { return tools.Rules{} },
		Effect: func(_ claybot.Agent, tool string) tools.Effect { return set.Effect(tool) },
		Spawn: func(ctx context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) (tools.Result, error) {
			return r.system.Subagents.Spawn(ctx, env, tasks, how)
		},
		Start: func(ctx context.Context, env tools.Env, task tools.Subagent) (claybot.AgentID, error) {
			return r.system.Subagents.StartSubagent(ctx, env, task)
		},
		Send: func(ctx context.Context, t *runs.Turn, to claybot.Route, key, text string) error {
			return r.system.Output.Reply(ctx, t.Agent, t.Run.ID, to, key, text)
		},
		Sent: func(ctx context.Context, run claybot.RunID, key string) (*claybot.Route, error) {
			return r.system.Output.Replied(ctx, run, key)
		},
		Kept: func() time.Duration { return keptReplies },
		Recorded: func(ctx context.Context, run claybot.RunID) ([]claybot.Record, error) {
			x, err := r.system.Overview.RunByID(ctx, run)
			if err != nil {
				return nil, err
			}
			return r.system.Overview.RunRecords(ctx, x)
		},
		Callback: func(ctx context.Context, t *runs.Turn, wait string, closed bool) (*claybot.Result, error) {
			return r.system.Control.Called(ctx, t.Run, flow.CallbackID(t.Run.ID, wait), closed)
		},
		Notify: func(ctx context.Context, a claybot.Agent, key string, say func(texts.Voice) string) {
			r.system.People.TellOwner(ctx, a, key, say)
		},
		Discloses: func(context.Context, *runs.Turn, claybot.Route) *tools.Disclosure {
			return &tools.Disclosure{Text: "others read it"}
		},
		Route: func(v string) (claybot.Route, error) {
			connector, channel, _ := strings.Cut(v, "/")
			return claybot.Route{Connector: connector, ChannelID: channel}, nil
		},
	})
}

func namesIn(text string) (all []flows.Use, err error) {
	template, err := prompts.Parse("", text)
	if err != nil {
		return nil, err
	}
	for _, u := range template.Uses() {
		all = append(all, flows.Use(u))
	}
	return all, nil
}

func fillNames(t *runs.Turn, text string, names flow.Names) (any, error) {
	template, err := prompts.Parse("", text)
	if err != nil || template.Plain() {
		return text, err
	}
	m := t.Messages[0]
	data := prompts.Data{Nodes: names.Nodes, Names: names.More}
	data.Trigger = prompts.Trigger{Text: m.Text, User: prompts.User{ID: m.From.UserID, Name: m.From.Name}, Channel: m.Flow.ChannelID, Connector: m.Flow.Connector}
	if len(m.Payload) > 0 {
		if err := json.Unmarshal(m.Payload, &data.Trigger.Payload); err != nil {
			return nil, err
		}
	}
	v, _, err := template.Value(data, prompts.Options{Strict: true})
	return v, err
}
