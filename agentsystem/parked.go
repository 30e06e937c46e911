package agentsystem

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
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

// A ParkedAgent is an agent that cannot be used, and what waits for it. It may not
// exist yet, so it has the name connector:channel:user; a background agent has its id.
type ParkedAgent struct {
	Agent    string            `json:"agent"`
	Messages int               `json:"messages"` // that are parked; where none is, those in its inbox and its run
	First    claybot.MessageID `json:"first"`    // the oldest message
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

// ParkedAgents lists up to limit agents that cannot be used: those with parked messages
// first, in the order of their oldest ones, then those for which accepted messages wait,
// as far as this member knows. It is for operators.
func (s *AgentSystem) ParkedAgents(ctx context.Context, limit int) ([]ParkedAgent, error) {
	agents, err := s.Parking.ParkedAgents(ctx, limit)
	if err != nil {
		return nil, err
	}
	all := make([]ParkedAgent, 0, len(agents))
	parked := make(map[string]bool)
	for _, a := range agents {
		parked[parkedName(a.Key)] = true
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
	for _, x := range s.agentsAtFault(limit) {
		if parked[x.Agent] || len(all) >= limit {
			continue
		}
		p := ParkedAgent{Agent: x.Agent, Since: x.Since, Cause: x.Cause}
		if v, err := s.InboxOf(ctx, x.ID); err == nil { // else only what waits is not known
			waiting := make([]claybot.MessageID, 0, len(v.Waiting))
			for _, m := range v.Waiting {
				waiting = append(waiting, m.ID)
			}
			if v.Run != nil {
				waiting = append(slices.Clone(v.Run.Messages), waiting...)
			}
			if p.Messages = len(waiting); p.Messages > 0 {
				p.First = waiting[0]
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// shownFaults is how many agents at fault Status names.
const shownFaults = 5

// faultStatus adds to st what cannot be used, and what waits for that.
func (s *AgentSystem) faultStatus(st *Status) {
	st.Unwell, st.Parked = s.Worker.Unwell.Says(), s.parking.status()
	st.Faulty, st.Faults = s.Worker.Faults.Count(), s.agentsAtFault(shownFaults)
}

// An AgentFault is why an agent cannot be used.
type AgentFault struct {
	Agent string          `json:"agent"` // connector:channel:user, or the id of a background agent
	ID    claybot.AgentID `json:"agentId,omitempty"`
	Since claybot.Time    `json:"since"`
	Cause string          `json:"cause"`
}

// agentsAtFault are up to limit agents that cannot be used, that of the longest fault first.
func (s *AgentSystem) agentsAtFault(limit int) []AgentFault {
	var all []AgentFault
	for _, x := range s.Worker.Faults.List(limit) {
		name := parkedName(x.Key)
		if name == x.Key {
			name = cmp.Or(string(x.Agent), x.Key)
		}
		all = append(all, AgentFault{Agent: name, ID: x.Agent, Since: claybot.At(x.Since), Cause: x.Cause})
	}
	return all
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
		dropped, err := s.dropParked(ctx, a.Key, people.Operator, func(storage.Parked) bool { return true })
		if err != nil {
			return dropped, err
		}
		_, err = s.countParked(ctx)
		return dropped, err
	}
	return nil, fmt.Errorf("parked messages of %s: %w", agent, storage.ErrNotFound)
}
