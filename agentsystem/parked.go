package agentsystem

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// DropParked ends all parked messages of the agent with a name, as ParkedAgents has it,
// and returns them; storage.ErrNotFound when it has none. It is for operators.
func (s *AgentSystem) DropParked(ctx context.Context, agent string) ([]claybot.MessageID, error) {
	agents, err := s.Parking.ParkedAgents(ctx, storage.MaxParked)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		if overview.ParkedName(a.Key) != agent {
			continue
		}
		dropped, err := s.dropParked(ctx, a.Key, people.Operator, func(storage.Parked) bool { return true })
		if err != nil {
			return dropped, err
		}
		_, err = s.countParked(ctx)
		return dropped, err
	}
	return nil, fmt.Errorf("parked messages of %s: %w", agent, storage.ErrNotFound)
}
