package subagents

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// checkFlow validates the start of a flow.
func (s *Starter) checkFlow(env tools.Env, t tools.Subagent) error {
	var f *flows.Flow
	if s.flow != nil {
		f = s.flow(t.Flow)
	}
	switch {
	case f == nil:
		return fmt.Errorf("there is no flow %.64q", t.Flow)
	case !fromFlow(env) && !slices.Contains(f.Agents, s.profile(env.Agent.Descriptor)):
		return fmt.Errorf("the flow %.64q is not for agents of the profile %s", t.Flow, s.profile(env.Agent.Descriptor))
	case env.Agent.Descriptor.Depth >= flows.MaxDepth:
		return fmt.Errorf("flows may be nested %d deep at most", flows.MaxDepth)
	case len(t.Task) > inbox.MaxText:
		return fmt.Errorf("text has %d bytes; the limit is %d", len(t.Task), inbox.MaxText)
	case len(t.Payload) > flows.MaxOutput:
		return fmt.Errorf("payload has %d bytes; the limit is %d", len(t.Payload), flows.MaxOutput)
	case t.Timeout < 0 || t.Timeout > flows.MaxWait:
		return fmt.Errorf("timeout %v is not within 0 and %v", t.Timeout, flows.MaxWait)
	}
	return nil
}

// fromFlow reports whether a node of a flow makes the call: an operator wrote what it starts.
func fromFlow(env tools.Env) bool { return env.Agent.Descriptor.Type == claybot.AgentFlow }

// startFlow starts a flow in an agent of its own below the caller. It acts for the person of the run that
// starts it, under the profile of its file, and may do no more than the caller. It is idempotent.
func (s *Starter) startFlow(ctx context.Context, env tools.Env, i int, t tools.Subagent, awaited bool) (started, error) {
	known, ok, err := s.startedBefore(ctx, env, i)
	if err != nil {
		return started{}, err
	}
	work, f := s.work.Of(env.Run), s.flow(t.Flow)
	if ok {
		work.Tell(runs.Started(env.Run, known.id, t.Flow)) // a crash may have come before
		return known, nil
	}
	if f == nil {
		return started{}, fmt.Errorf("there is no flow %.64q", t.Flow)
	}
	if wrong := f.Refuses(t.Payload); wrong != nil {
		return started{refused: wrong.Error()}, nil
	}
	d := s.child(env, i, tools.Subagent{Name: f.Name})
	d.Type, d.Profile, d.Owner = claybot.AgentFlow, f.Profile, work.Owner()
	var b claybot.Background
	may, err := s.permissions(ctx, env.Agent)
	if err != nil {
		return started{}, err
	}
	if !may.IsZero() {
		b.Permissions = &may
	}
	by := work.Newest()
	m := s.first(env, i, t)
	m.Kind, m.Payload, m.Route, m.Alone = claybot.KindTrigger, t.Payload, &env.Route, true
	m.Budgets = append(m.Budgets, f.Budgets()...)
	m.From = by.From // the person whom its templates and questions mean
	m.From.Agent = env.Agent.ID
	m.Flow = &claybot.FlowStart{Name: f.Name, Dry: m.Dry, Version: f.Hash, Connector: env.Agent.Descriptor.Connector, ChannelID: env.Agent.Descriptor.ChannelID}
	if by.Flow != nil {
		m.Flow.Connector, m.Flow.ChannelID, m.Flow.Agent = by.Flow.Connector, by.Flow.ChannelID, by.Flow.Agent
	}
	if !fromFlow(env) {
		m.Flow.Agent, m.Private = true, true // a model wrote it that had read the conversation
	}
	most := f.Time
	if awaited {
		m.Awaited = &claybot.Awaited{Agent: env.Agent.ID, Run: env.Run, ID: answerID(env, i)}
		if t.Timeout == 0 {
			t.Timeout = flows.MaxWait
		}
		if most == 0 || t.Timeout < most {
			most = t.Timeout
		}
	}
	if most > 0 {
		m.Deadline = claybot.At(time.Now().Add(most))
	}
	return s.give(ctx, env, d, b, m)
}
