package agentsystem

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// ParkedStatus counts the messages whose agents cannot be used.
type ParkedStatus struct {
	storage.ParkedTotals
	// Full: no more are taken, and messages of such agents wait at their source.
	Full bool `json:"full,omitempty"`
}

// status is what is parked, as far as this member knows; nil for nothing.
func (l *parkingLot) status() *ParkedStatus {
	t := l.totals.Load()
	if t == nil || t.Messages == 0 {
		return nil
	}
	return &ParkedStatus{ParkedTotals: *t, Full: l.full.Load()}
}

// A ParkedAgent is an agent that cannot be used, and what is parked for it. It may not
// exist yet, so it has the name connector:channel:user.
type ParkedAgent struct {
	Agent    string            `json:"agent"`
	Messages int               `json:"messages"`
	First    claybot.MessageID `json:"first"` // the oldest message
	Since    claybot.Time      `json:"since"`
	Cause    string            `json:"cause"` // why the agent could not be used then
}

// descriptorOf is the descriptor that has a key; zero for a key that is damaged.
func descriptorOf(key string) claybot.Descriptor {
	var parts []string
	if err := json.Unmarshal([]byte(key), &parts); err != nil || len(parts) != 4 {
		return claybot.Descriptor{}
	}
	return claybot.Descriptor{Type: claybot.AgentType(parts[0]), Connector: parts[1], ChannelID: parts[2], UserID: parts[3]}
}

// parkedName names the agent with a key for operators.
func parkedName(key string) string {
	d := descriptorOf(key)
	if d == (claybot.Descriptor{}) {
		return key
	}
	return strings.Join([]string{d.Connector, d.ChannelID, d.UserID}, ":")
}

// ParkedAgents lists up to limit agents with parked messages, in the order of their
// oldest ones. It is for operators.
func (s *AgentSystem) ParkedAgents(ctx context.Context, limit int) ([]ParkedAgent, error) {
	agents, err := s.Parking.ParkedAgents(ctx, limit)
	if err != nil {
		return nil, err
	}
	all := make([]ParkedAgent, 0, len(agents))
	for _, a := range agents {
		list, err := s.Parking.ParkedOf(ctx, a.Key, 1)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			continue // taken in the meantime
		}
		p := list[0]
		all = append(all, ParkedAgent{Agent: parkedName(a.Key), Messages: a.Messages, First: p.Message.ID, Since: p.At, Cause: p.Cause})
	}
	return all, nil
}

// DropParked ends all parked messages of the agent with a name, as ParkedAgents has it,
// and returns them; storage.ErrNotFound when it has none. It is for operators.
func (s *AgentSystem) DropParked(ctx context.Context, agent string) ([]claybot.MessageID, error) {
	agents, err := s.Parking.ParkedAgents(ctx, storage.MaxParked)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		if parkedName(a.Key) != agent {
			continue
		}
		dropped, err := s.dropParked(ctx, a.Key, operatorName, func(storage.Parked) bool { return true })
		if err != nil {
			return dropped, err
		}
		_, err = s.countParked(ctx)
		return dropped, err
	}
	return nil, fmt.Errorf("parked messages of %s: %w", agent, storage.ErrNotFound)
}
