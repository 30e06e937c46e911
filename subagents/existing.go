package subagents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// checkExisting validates a task for an agent that is there: it has its own settings.
func checkExisting(t tools.Subagent) error {
	if t.Name != "" || t.Model != "" || t.Prompt != "" || t.Tools != nil || t.Engine != "" || t.Deep != nil || t.Thread != "" {
		return errors.New("an existing agent has a name, a model, a prompt, tools and an engine of its own; leave them out, or start a new agent")
	}
	return nil
}

// askExisting gives the i-th task of a call to an agent that is there. An agent that cannot be asked is
// an error entry of the call, which goes on with the others.
func (s *Starter) askExisting(ctx context.Context, env tools.Env, i int, t tools.Subagent) (started, error) {
	msg, err := s.messenger.asked(ctx, env, i, t.Agent, t.Task, t.Timeout)
	switch {
	case err != nil && ctx.Err() != nil:
		return started{}, err
	case err != nil:
		return started{id: claybot.AgentID(t.Agent), refused: err.Error()}, nil
	}
	return started{id: claybot.AgentID(t.Agent), deadline: msg.Deadline}, nil
}

// begunBefore reports whether an earlier pass of a call has begun with its tasks.
func (s *Starter) begunBefore(ctx context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) (bool, error) {
	for i, t := range tasks {
		own, n := how.Of(env, i)
		id := taskID(own.UID(n))
		if t.Agent != "" {
			id = questionID(own, n)
		}
		_, err := s.inbox.Receipt(ctx, id)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, storage.ErrNotFound) {
			return false, fmt.Errorf("look for the subagents: %w", err)
		}
	}
	return false, nil
}

// fresh is how many of the tasks need a new agent.
func fresh(tasks []tools.Subagent) (n int) {
	for _, t := range tasks {
		if t.Agent == "" {
			n++
		}
	}
	return n
}

// checkEngine validates the engine of a new subagent. Flows name those that their file has.
func (s *Starter) checkEngine(env tools.Env, t tools.Subagent) error {
	if t.Engine == "" || env.Agent.Descriptor.Type == claybot.AgentFlow {
		return nil
	}
	var engines []string
	if list := s.limits().Engines; list != nil {
		engines = list(env.Agent)
	}
	if !slices.Contains(engines, t.Engine) {
		return fmt.Errorf("engine %.40q cannot be given to a subagent of yours; leave it out, or choose one of: %s", t.Engine, strings.Join(engines, ", "))
	}
	return nil
}
