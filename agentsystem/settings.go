package agentsystem

import (
	"context"
	"fmt"
	"time"

	"github.com/claybot/claybot"
)

// Reschedule computes the due times of waiting messages anew. Call it after
// the profiles changed.
func (s *AgentSystem) Reschedule(ctx context.Context) error {
	err := s.Inbox.Reschedule(ctx, "", s.Profiles.WaitOf)
	if err != nil {
		return fmt.Errorf("reschedule: %w", err)
	}
	s.boxes.Wake()
	return nil
}

// rescheduled lets the changed settings of an agent count for what waits for it.
func (s *AgentSystem) rescheduled(ctx context.Context, id claybot.AgentID) error {
	if err := s.Inbox.Reschedule(ctx, id, s.Profiles.WaitOf); err != nil {
		return fmt.Errorf("reschedule %s: %w", id, err)
	}
	s.boxes.Wake()
	return nil
}

// zone is where the people are.
func (s *AgentSystem) zone() *time.Location {
	if s.Zone != nil {
		if z := s.Zone(); z != nil {
			return z
		}
	}
	return time.UTC
}
