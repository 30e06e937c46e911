package agentsystem

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// Stop ends what an agent and all below it do, on behalf of an operator. It
// returns how many were at work.
func (s *AgentSystem) Stop(ctx context.Context, id claybot.AgentID) (int, error) {
	e, err := s.Index.IndexedAgentByID(ctx, id)
	if err != nil {
		return 0, err
	}
	n := s.Subagents.HaltBelow(ctx, id, people.Operator)
	if e.Descriptor.Type == claybot.AgentSubagent { // its tasks, too: nobody else is asked
		if s.Subagents.Halt(ctx, e, people.Operator) {
			n++
		}
		return n, nil
	}
	done, err := s.boxes.Post(ctx, storage.Posting{To: e.ID, By: people.Operator, Message: claybot.AgentMessage{
		ID: claybot.MessageID("stop/" + runs.NewID()), Type: claybot.MessageCancel, At: claybot.Now(),
		From: claybot.Sender{Name: people.Operator},
	}})
	if err != nil {
		return n, fmt.Errorf("stop %s: %w", id, err)
	}
	if done.Canceled != "" {
		n++
	}
	return n, nil
}

// Reset begins a new context for an agent, on behalf of an operator. Its person
// hears nothing.
func (s *AgentSystem) Reset(ctx context.Context, id claybot.AgentID) error {
	if _, err := s.Index.IndexedAgentByID(ctx, id); err != nil {
		return err
	}
	agent, err := s.Agents.Agent(ctx, id)
	if err != nil {
		return fmt.Errorf("reset %s: %w", id, err)
	}
	_, err = s.acceptFor(ctx, agent, claybot.AgentMessage{
		ID: claybot.MessageID("reset/" + runs.NewID()), Type: claybot.MessageReset, From: claybot.Sender{Name: people.Operator},
	})
	return err
}

// Delete takes an agent away, on behalf of an operator: its run ends, its files
// move to the quarantine, its id is never used again. Its subagents go on; what
// they have to say goes to the most recent agent of their owner.
func (s *AgentSystem) Delete(ctx context.Context, id claybot.AgentID) error {
	e, err := s.Index.IndexedAgentByID(ctx, id)
	if err != nil {
		return err
	}
	waited := s.Subagents.Waited(ctx, e) // asked first: once its run ends, so does the wait for it
	dropped, err := s.Inbox.Drop(ctx, id, "agent_deleted")
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	s.reject(id, inbox.ErrDropped, dropped...)
	s.boxes.Cancel(id, "", people.Operator)
	if err := s.Agents.Delete(ctx, id); err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	s.Worker.Faults.Left(id)
	s.Worker.Faults.Over(e.Descriptor.Key())
	s.Profiles.Forget(id)
	s.boxes.Wake() // somebody may have waited for it
	if e.Run != "" && !waited {
		s.Subagents.TellLost(ctx, e, string(e.Run), claybot.RunError{Code: "deleted", Text: "the operator deleted the agent"})
	}
	return nil
}
