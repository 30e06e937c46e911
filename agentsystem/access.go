package agentsystem

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// Revoke takes a grant back: waiting messages are dropped, the runs of the
// person and of his helpers end, his tasks do not run, and nothing more is sent
// there.
func (s *AgentSystem) Revoke(ctx context.Context, connector, id string) error {
	if err := s.People.Revoke(ctx, connector, id); err != nil {
		return err
	}
	if err := s.revokeParked(ctx, connector); err != nil {
		return err
	}
	for e, err := range s.Index.IndexedAgents(ctx) {
		if err != nil {
			return fmt.Errorf("list agents: %w", err)
		}
		d := e.Descriptor
		if d.Type == claybot.AgentCron && d.Owner == connector+"/"+id {
			s.Subagents.Halt(ctx, e, "owner")
			s.Subagents.HaltBelow(ctx, e.ID, "parent")
			continue
		}
		if d.Connector != connector || d.UserID != id && d.ChannelID != id {
			continue
		}
		if d.ChannelID != id && s.People.Knows(connector, d.ChannelID) {
			continue // he writes there as a member of a group that may
		}
		dropped, err := s.Inbox.Drop(ctx, e.ID, inbox.SkippedRevoked)
		if err != nil {
			return fmt.Errorf("drop messages of %s: %w", e.ID, err)
		}
		s.reject(e.ID, inbox.ErrDropped, dropped...)
		s.Subagents.Halt(ctx, e, people.Operator)
		s.Subagents.HaltBelow(ctx, e.ID, "parent")
	}
	return nil
}

// revokeParked ends the parked messages of a connector whose senders have no access any
// more, whether their agents can be used or not.
func (s *AgentSystem) revokeParked(ctx context.Context, connector string) error {
	agents, err := s.Parking.ParkedAgents(ctx, storage.MaxParked)
	if err != nil {
		return err
	}
	for _, a := range agents {
		_, err := s.dropParked(ctx, a.Key, inbox.SkippedRevoked, func(p storage.Parked) bool {
			return p.To.Connector == connector && !s.People.Allowed(p.To, p.Message.Context.Group)
		})
		if err != nil {
			return fmt.Errorf("drop parked messages: %w", err)
		}
	}
	return nil
}
