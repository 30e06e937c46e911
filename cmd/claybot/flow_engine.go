package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/llm/prompts"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/web"
)

// flowEngine returns the engine of flows. Calls are made as those of models are, by settle.
func (e *engines) flowEngine(lib *library, settle flow.Settle) *flow.Engine {
	return flow.New(flow.Config{
		Flow:   lib.version,
		Fill:   fillTurn,
		Uses:   namesIn,
		Settle: settle,
		Rules:  e.rules,
		Effect: func(a claybot.Agent, tool string) tools.Effect { return e.box.of(a).Effect(tool) },
		Schema: func(a claybot.Agent, tool string) string {
			for _, t := range e.box.of(a).Tools() {
				if t.Name == tool {
					return schemaOf(t.Parameters)
				}
			}
			return ""
		},
		Outside: func(a claybot.Agent, tool string) bool {
			spec, known := e.box.of(a).Spec(tool)
			return known && spec.Source != "" || slices.Contains(web.RequestTools, tool)
		},
		Spawn: func(ctx context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) (tools.Result, error) {
			return e.system.Subagents.Spawn(ctx, env, tasks, how)
		},
		Start: func(ctx context.Context, env tools.Env, task tools.Subagent) (claybot.AgentID, error) {
			return e.system.Subagents.StartSubagent(ctx, env, task)
		},
		Send: func(ctx context.Context, t *runs.Turn, to claybot.Route, key, text string) error {
			return e.system.Output.Reply(ctx, t.Agent, t.Run.ID, to, key, text)
		},
		Sent: func(ctx context.Context, run claybot.RunID, key string) (*claybot.Route, error) {
			return e.system.Output.Replied(ctx, run, key)
		},
		Kept: func() time.Duration { return e.config.Load().Retention.Outgoing },
		Discloses: func(ctx context.Context, t *runs.Turn, to claybot.Route) *tools.Disclosure {
			return e.system.Output.ReplyDiscloses(ctx, tools.Env{Agent: t.Agent, Run: t.Run.ID, Route: t.Route(), Place: t.Place()}, to)
		},
		Recorded: func(ctx context.Context, run claybot.RunID) ([]claybot.Record, error) {
			r, err := e.system.Overview.RunByID(ctx, run)
			if err != nil {
				return nil, err
			}
			return e.system.Overview.RunRecords(ctx, r)
		},
		Callback: func(ctx context.Context, t *runs.Turn, wait string, closed bool) (*claybot.Result, error) {
			return e.system.Control.Called(ctx, t.Run, flow.CallbackID(t.Run.ID, wait), closed)
		},
		Address: e.callbacks.address,
		Notify:  e.system.People.TellOwner,
		People:  e.people,
		Route: func(v string) (claybot.Route, error) {
			place, err := e.config.Load().ParseRoute(v)
			connector, channel, _ := strings.Cut(place, "/")
			return claybot.Route{Connector: connector, ChannelID: channel}, err
		},
	})
}

// trigger returns the message that started the run of a turn; that of an album has the files of all parts, and
// the caption.
func trigger(t *runs.Turn) (m claybot.AgentMessage) {
	for _, part := range t.Messages {
		switch {
		case part.Flow == nil:
		case m.Flow == nil:
			m = part
		default:
			m.Text, m.Files = cmp.Or(m.Text, part.Text), append(slices.Clip(m.Files), part.Files...)
		}
	}
	return m
}

// fillTurn fills a template of a flow in a run.
func fillTurn(t *runs.Turn, text string, names flow.Names) (any, error) {
	return fillFlow(t, trigger(t), text, names)
}

// fillFlow fills a template of a flow. A name that is not defined is an error. t may be nil.
func fillFlow(t *runs.Turn, m claybot.AgentMessage, text string, names flow.Names) (any, error) {
	template, err := prompts.Parse("", text)
	if err != nil || template.Plain() {
		return text, err
	}
	start := cmp.Or(m.Flow, &claybot.FlowStart{})
	person := prompts.User{ID: m.From.UserID, Name: m.From.Name}
	data := prompts.Data{
		Trigger: prompts.Trigger{
			Name: start.Trigger, Text: m.Text, Event: m.Event, Files: m.Files, User: person,
			Channel: start.ChannelID, Connector: start.Connector, At: m.At.Time(),
		},
		User: person, Nodes: names.Nodes, Names: names.More,
	}
	data.Trigger.Payload = payloadOf(m)
	if t != nil {
		data.Now = t.Run.Started.Time()
	}
	value, _, err := template.Value(data, prompts.Options{Strict: true})
	return value, err
}

// namesIn returns the names that a template reads.
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

// offlineWorld returns what flows are checked against without a daemon: what the configuration says.
func offlineWorld(c *configs.Config) flows.World {
	w := flows.World{
		Events: []string{},
		Uses:   namesIn, Near: configs.Nearest,
		Owner: func(v string) error { _, err := c.ParseOwner(v); return err },
		Route: func(v string) error { _, err := c.ParseRoute(v); return err },
		Cron:  cron.CheckSchedule,
		Zone:  func(v string) error { _, err := time.LoadLocation(v); return err },
		Pattern: func(v string) error {
			if _, err := regexp.Compile(v); err != nil {
				return fmt.Errorf("%.80q is no regular expression: %w", v, err)
			}
			return nil
		},
		Secret:  func(reference string) error { _, err := c.ReadSecret(reference, os.LookupEnv); return err },
		Secrets: func(text string) []string { _, kinds := platforms.MaskSecrets(text); return kinds },
	}
	for name := range c.Agents.Profiles {
		w.Profiles = append(w.Profiles, name)
	}
	for _, i := range c.Connectors.Instances() {
		w.Connectors = append(w.Connectors, i.Name)
		if i.Settings.Type() == platforms.Webhook {
			w.Events = append(w.Events, i.Name)
		}
	}
	w.Connectors = append(w.Connectors, operatorChats...)
	w.Connectors = append(w.Connectors, platforms.Telegram, platforms.Slack, platforms.Discord) // which may get their tokens later
	slices.Sort(w.Profiles)
	return w
}

// flowWorld is what flows are checked against: the configuration in force, and the tools and models
// that are there.
func (d *daemon) flowWorld() flows.World {
	w := offlineWorld(d.config.Load())
	agent := func(profile string) claybot.Agent {
		return claybot.Agent{Descriptor: claybot.Descriptor{Type: claybot.AgentFlow, Profile: profile}}
	}
	w.Models = func(profile string) []string { return d.models.names(agent(profile)) }
	w.Tools = func(profile string) map[string]flows.Params {
		all := make(map[string]flows.Params)
		for _, t := range d.tooling.box.given(agent(profile)).Tools() {
			if !slices.Contains(web.RequestTools, t.Name) {
				all[t.Name] = paramsOf(t.Parameters)
			}
		}
		return all
	}
	return w
}

// paramsOf returns the arguments that a schema names.
func paramsOf(schema json.RawMessage) flows.Params {
	var s struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		Required             []string                   `json:"required"`
		AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return flows.Params{Open: true}
	}
	p := flows.Params{Required: s.Required, Open: string(s.AdditionalProperties) != "false" && string(s.AdditionalProperties) != `{"not":{}}`}
	for name := range s.Properties {
		p.All = append(p.All, name)
	}
	slices.Sort(p.All)
	return p
}

// schemaOf names the schema of the arguments of a tool, without the words that describe them.
func schemaOf(schema json.RawMessage) string {
	var v any
	if err := json.Unmarshal(schema, &v); err != nil {
		return flows.HashOf(string(schema))
	}
	b, err := json.Marshal(undescribed(v, false))
	if err != nil {
		b = schema
	}
	return flows.HashOf(string(b))
}

// undescribed is a part of a schema without descriptions; of names: the properties of an object, by name.
func undescribed(v any, names bool) any {
	switch v := v.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, part := range v {
			if names || !slices.Contains([]string{"description", "title", "examples", "$comment"}, key) {
				all[key] = undescribed(part, key == "properties" && !names)
			}
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, part := range v {
			all[i] = undescribed(part, false)
		}
		return all
	}
	return v
}

// payloadOf returns the event of a message as templates see it.
func payloadOf(m claybot.AgentMessage) (v any) {
	if len(m.Payload) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(m.Payload))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil // the store keeps JSON as it was given
	}
	return v
}

// unpricedIn returns the check of prices for flows; see flows.World. What is in force keeps working without:
// prices are checked where a person asks for it.
func unpricedIn(c *configs.Config) func(profile, model string) string {
	return func(profile, name string) string {
		m := byName(c, c.Profile(claybot.Descriptor{Type: claybot.AgentFlow, Profile: profile}).Model, name)
		if _, known := pricesOf(m).For(m.ID()); known || m.Demo() {
			return ""
		}
		return m.ID()
	}
}
