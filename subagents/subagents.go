// Package subagents lets agents deal with other agents: it starts subagents, asks them and
// waits for their answers, passes messages between agents, stops them with their parents,
// and keeps reminders.
//
// It guarantees that whatever a call creates has an id made of the run and the call, so a
// call that is repeated after a crash finds what it created; that the limits of depth,
// number and exchanges hold across concurrent calls; and that work which ends outside a
// run is reported once.
//
// The package must not import what runs agents or accepts messages; see Intake.
package subagents

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// Subagents are the agents that other agents deal with, as their tools see them. Its
// methods are safe for concurrent use, and so are those of its parts.
type Subagents struct {
	Directory  *Directory  // which agents an agent can reach
	Reminders  *Reminders  // what agents remind themselves of
	Supervisor *Supervisor // stops agents, and reports what ended outside a run

	starter   *Starter
	messenger *Messenger
}

var _ tools.Agents = (*Subagents)(nil)

// New returns Subagents.
func New(cfg Config) *Subagents {
	starting := new(sync.Mutex)
	supervisor := &Supervisor{
		index: cfg.Index, inbox: cfg.Inbox, runs: cfg.Runs, poster: cfg.Poster, people: cfg.People,
		accept: cfg.Intake.Accept, dropped: cfg.Intake.Dropped, log: cfg.Log,
	}
	directory := &Directory{agents: cfg.Agents, index: cfg.Index, inbox: cfg.Inbox, runs: cfg.Runs, people: cfg.People, audiences: cfg.Audiences, supervisor: supervisor, permissions: cfg.Permissions}
	messenger := &Messenger{
		directory: directory, index: cfg.Index, inbox: cfg.Inbox, runs: cfg.Runs, people: cfg.People, accept: cfg.Intake.Accept,
		work: cfg.Work, starting: starting,
	}
	return &Subagents{
		Directory:  directory,
		Supervisor: supervisor,
		Reminders: &Reminders{
			store: cfg.Later, index: cfg.Index, poster: cfg.Poster, complete: cfg.Intake.Complete, work: cfg.Work, clock: cfg.Clock,
			added: make(chan struct{}, 1), log: cfg.Log,
		},
		starter: &Starter{
			agents: cfg.Agents, index: cfg.Index, inbox: cfg.Inbox, messenger: messenger, accept: cfg.Intake.Accept, work: cfg.Work,
			limits: cfg.Limits, profile: cfg.Profile, flow: cfg.Flow, permissions: cfg.Permissions, starting: starting,
		},
		messenger: messenger,
	}
}

// StartSubagent implements tools.Agents.
func (s *Subagents) StartSubagent(ctx context.Context, env tools.Env, t tools.Subagent) (claybot.AgentID, error) {
	return s.starter.StartSubagent(ctx, env, t)
}

// SpawnAndWait implements tools.Agents.
func (s *Subagents) SpawnAndWait(ctx context.Context, env tools.Env, tasks []tools.Subagent) (tools.Result, error) {
	return s.starter.Spawn(ctx, env, tasks, tools.Spawning{})
}

// Spawn is SpawnAndWait for tasks that do not all have to run, or not all at once. The JSON of its result
// has null for each task that has not ended.
func (s *Subagents) Spawn(ctx context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) (tools.Result, error) {
	return s.starter.Spawn(ctx, env, tasks, how)
}

// AskAgent implements tools.Agents.
func (s *Subagents) AskAgent(ctx context.Context, env tools.Env, to, text string, timeout time.Duration) (tools.Result, error) {
	return s.messenger.AskAgent(ctx, env, to, text, timeout)
}

// SendAgentMessage implements tools.Agents.
func (s *Subagents) SendAgentMessage(ctx context.Context, env tools.Env, to, text string, silent bool) (claybot.AgentID, error) {
	return s.messenger.SendAgentMessage(ctx, env, to, text, silent)
}

// StopAgent implements tools.Agents.
func (s *Subagents) StopAgent(ctx context.Context, env tools.Env, id string) (int, error) {
	e, err := s.Directory.known(ctx, env.Agent, claybot.AgentID(id))
	if err != nil {
		return 0, err
	}
	below, err := s.Supervisor.descends(ctx, e.Descriptor, env.Agent.ID)
	if err != nil {
		return 0, err
	}
	if !below {
		return 0, fmt.Errorf("agent %s is not one of yours; only the agents that you or your subagents started can be stopped", e.ID)
	}
	n := s.Supervisor.HaltBelow(ctx, e.ID, ByParent)
	if s.Supervisor.Halt(ctx, e, ByParent) {
		n++
	}
	return n, nil
}
