package dashboard_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/prompts"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/web"
)

type (
	webFlows    = web.Flows
	webFlowRuns = web.FlowRuns
)

// A shelf is a rig with one workflow in force, on the engine of workflows. It implements
// agentsystem.Flows, web.Flows and web.FlowRuns.
type shelf struct {
	*rig
	webFlows // what the pages do not call, as webFlowRuns
	webFlowRuns
	flow     *flows.Flow
	inner    *flows.Flow            // that flow may start; nil for none
	kept     map[string]*flows.Flow // by version
	faults   []web.FlowFault
	replayed []web.FlowReplay
	tries    chan struct{} // nodes wait for it before they try again
}

// orderFlow has a node of several kinds. Its texts try to be markup.
const orderFlow = `description: "Takes orders <img src=x onerror=window.hacked=1>"
owner: web/operator
triggers:
  chat: {on: web, match: "^order <b>"}
  shop: {on: web, channel: shop}
start: what
nodes:
  what: {kind: template, value: "{{ trigger.text }}", next: ask}
  # Asks before it buys.
  ask:
    kind: ask
    text: "Order {{ what.output }}?"
    by: [web/operator]
    denied: sorry

    next: clock
  clock: {kind: tool, tool: current_time, args: {zone: UTC}, next: thanks, error: sorry}
  thanks: {kind: agent, prompt: "Thank for {{ what.output }}", next: done}
  done: {kind: reply, text: "{{ thanks.output }}", next: END}
  sorry: {kind: reply, text: "Not ordered <script>window.hacked=1</script>", next: END}
`

// newShelf makes the rig, not started.
func newShelf(t *testing.T) *shelf {
	s := &shelf{rig: newRig(t), kept: make(map[string]*flows.Flow), tries: make(chan struct{})}
	s.put("order", orderFlow)
	s.engines = map[string]runs.Engine{claybot.EngineFlow: flow.New(flow.Config{
		Flow: func(_ context.Context, _, hash string) (*flows.Flow, error) {
			if f := s.kept[hash]; f != nil {
				return f, nil
			}
			return nil, storage.ErrNotFound
		},
		Fill: fillNodes,
		Uses: func(text string) (all []flows.Use, err error) {
			template, err := prompts.Parse("", text)
			if err != nil {
				return nil, err
			}
			for _, u := range template.Uses() {
				all = append(all, flows.Use(u))
			}
			return all, nil
		},
		Settle: (&react.Loop{Tools: func(claybot.Agent) *tools.Set { return s.set }, Model: func(claybot.Agent) llm.Model { return s.mind }}).Settle,
		Rules:  func(claybot.Agent) tools.Rules { return tools.Rules{} },
		Effect: func(_ claybot.Agent, tool string) tools.Effect { return s.set.Effect(tool) },
		Spawn: func(ctx context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) (tools.Result, error) {
			return s.system.Subagents.Spawn(ctx, env, tasks, how)
		},
		Start: func(ctx context.Context, env tools.Env, task tools.Subagent) (claybot.AgentID, error) {
			return s.system.Subagents.StartSubagent(ctx, env, task)
		},
		Send: func(ctx context.Context, t *runs.Turn, to claybot.Route, key, text string) error {
			return s.system.Output.Reply(ctx, t.Agent, t.Run.ID, to, key, text)
		},
		Sleep: func(ctx context.Context, _ time.Duration) {
			select {
			case <-s.tries:
			case <-ctx.Done():
			}
		},
		Notify: func(context.Context, claybot.Agent, string, func(texts.Voice) string) {},
		Route:  func(string) (claybot.Route, error) { return claybot.Route{}, nil },
	})}
	s.workflows, s.desk = s, func(b *web.Backend) { b.Flows, b.FlowRuns = s, s }
	return s
}

// put puts a text in force.
func (s *shelf) put(name, text string) {
	s.Helper()
	f, faults := configs.ReadFlow(name+".yaml", []byte(text))
	if len(faults) > 0 {
		s.Fatal(faults)
	}
	s.flow, s.kept[f.Hash] = &f, &f
}

func fillNodes(t *runs.Turn, text string, names flow.Names) (any, error) {
	template, err := prompts.Parse("", text)
	if err != nil || template.Plain() {
		return text, err
	}
	v, _, err := template.Value(prompts.Data{Trigger: prompts.Trigger{Text: t.Messages[0].Text}, Nodes: names.Nodes, Names: names.More}, prompts.Options{Strict: true})
	return v, err
}

// Engine implements worker.Flows.
func (s *shelf) Engine(start claybot.FlowStart) string {
	return flow.NameOf(start.Name, s.Named(start.Name).Hash)
}

// Named implements agentsystem.Flows.
func (s *shelf) Named(name string) *flows.Flow {
	if s.inner != nil && s.inner.Name == name {
		return s.inner
	}
	return s.flow
}

// Max implements worker.Flows.
func (s *shelf) Max(string) int { return 0 }

// Shapes implements worker.Flows.
func (s *shelf) Shapes() map[string]runs.Shape {
	return map[string]runs.Shape{s.Engine(claybot.FlowStart{Name: s.flow.Name}): {Name: s.flow.Name, Start: s.flow.Start, Edges: s.flow.Names()}}
}

// Take implements agentsystem.Flows. No message starts one.
func (*shelf) Take(to claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, claybot.AgentMessage, bool) {
	return to, m, false
}

// Flows implements web.Flows.
func (s *shelf) Flows(context.Context) (web.FlowList, error) {
	return web.FlowList{Flows: []web.FlowView{s.view(s.flow)}, Faults: s.faults}, nil
}

func (s *shelf) view(f *flows.Flow) web.FlowView {
	v := web.FlowView{Name: f.Name, Description: f.Description, Version: f.Hash, Owner: f.Owner, Nodes: len(f.Nodes)}
	for _, t := range f.Triggers {
		v.Triggers = append(v.Triggers, web.FlowTrigger{Name: t.Name, What: t.String()})
	}
	return v
}

// Flow implements web.Flows. The text of a node ends where the next one begins.
func (s *shelf) Flow(_ context.Context, name, version string) (web.FlowDetail, error) {
	f := s.Named(name)
	if version != "" {
		f = s.kept[version]
	}
	if f == nil || f.Name != name {
		return web.FlowDetail{}, storage.ErrNotFound
	}
	v := web.FlowDetail{FlowView: s.view(f), Start: f.Start}
	lines := strings.Split(strings.TrimSpace(f.Text), "\n")
	for i, n := range f.Nodes {
		line, end := n.Lines[""], len(lines)
		if i+1 < len(f.Nodes) {
			end = f.Nodes[i+1].Lines[""] - 1
		}
		text := strings.TrimSpace(strings.ReplaceAll("\n"+strings.Join(lines[line-1:end], "\n"), "\n  ", "\n"))
		v.Steps = append(v.Steps, web.FlowNode{Name: n.Name, Kind: n.Kind, Next: f.Names()[n.Name], Parts: n.Parts(), Line: line, Text: text})
	}
	return v, nil
}

// CheckFlows implements web.Flows.
func (*shelf) CheckFlows(context.Context, map[string]string) ([]web.FlowFault, error) {
	return nil, nil
}

// ReplayFlow implements web.FlowRuns. It starts the flow anew, dry unless it is live.
func (s *shelf) ReplayFlow(ctx context.Context, id claybot.MessageID, run claybot.RunID, from claybot.Sender, in web.FlowReplay) (agentsystem.Accepted, error) {
	if _, err := s.system.Overview.RunByID(ctx, run); err != nil {
		return agentsystem.Accepted{}, err
	}
	s.replayed = append(s.replayed, in)
	word := claybot.FlowDryReplay
	if in.Live {
		word = claybot.FlowLive
	}
	return s.startAs(ctx, id, s.flow.Name, word, from, web.FlowStart{Text: "again", Dry: !in.Live})
}

// StartFlow implements web.FlowRuns.
func (s *shelf) StartFlow(ctx context.Context, id claybot.MessageID, name string, from claybot.Sender, in web.FlowStart) (agentsystem.Accepted, error) {
	word := ""
	if in.Dry {
		word = claybot.FlowDryRun
	}
	return s.startAs(ctx, id, name, word, from, in)
}

// startAs starts a flow in an agent with a word behind its name.
func (s *shelf) startAs(ctx context.Context, id claybot.MessageID, name, word string, from claybot.Sender, in web.FlowStart) (agentsystem.Accepted, error) {
	if name != s.flow.Name {
		return agentsystem.Accepted{}, storage.ErrNotFound
	}
	m := claybot.AgentMessage{
		ID: id, Type: claybot.MessageSystem, Kind: claybot.KindTrigger, Text: in.Text, Payload: json.RawMessage(in.Payload), From: from, At: claybot.Now(), Alone: true,
		Route: &claybot.Route{}, Flow: &claybot.FlowStart{Name: name, Trigger: in.Trigger},
	}
	to := claybot.Descriptor{Type: claybot.AgentFlow, UID: string(id), Name: name, Owner: s.flow.Owner}
	m.Flow.Dry = in.Dry
	if word != "" {
		to.Name += " (" + word + ")"
	}
	return s.system.Control.StartRun(ctx, agentsystem.Address{Descriptor: &to}, m)
}
