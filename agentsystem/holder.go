package agentsystem

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// WorksOn is the name of the node that works on an agent now, where several share the
// store; empty for none, for one that is not known, and for a process that has the
// store for itself.
func (s *AgentSystem) WorksOn(ctx context.Context, id claybot.AgentID) (string, error) {
	if s.Members.IsAlone() {
		return "", nil
	}
	if s.boxes.Busy(id) && s.Members.Trusted() == nil {
		return s.Members.Name(), nil
	}
	holders, ok := s.Stores.Nodes.(storage.Holders)
	if !ok {
		return "", nil
	}
	node, err := holders.HeldBy(ctx, id)
	if err != nil {
		return "", fmt.Errorf("holder of agent %s: %w", id, err)
	}
	return s.Members.NameOf(node), nil
}

// where adds to a story which node works on the message now, or on what it waits for.
func (t *Story) where(node string) {
	switch {
	case node == "":
	case t.Run != nil:
		t.Steps = append(t.Steps, Step{What: "node", Text: "node " + node + " works on it now", Run: t.Run.ID})
	default:
		t.Steps = append(t.Steps, Step{What: "node", Text: "node " + node + " has its agent now"})
	}
}

// open reports whether some node may work on the message, or on its agent, now.
func (t *Story) open() bool {
	if t.Run != nil {
		return !t.Run.State.Ended()
	}
	return t.Skipped == "" && t.Parked == ""
}
