package overview

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// ParkedStatus counts the messages to unusable agents.
type ParkedStatus struct {
	storage.ParkedTotals
	// Full: no more messages are parked; those of unusable agents wait at their source.
	Full bool `json:"full,omitempty"`
}

// A ParkedAgent is an unusable agent and its waiting messages. The agent may not exist
// yet, so its name is connector:channel:user; that of a subagent is its id.
type ParkedAgent struct {
	Agent    string            `json:"agent"`
	Messages int               `json:"messages"` // parked ones; if there are none, those in its inbox and run
	First    claybot.MessageID `json:"first"`    // the oldest message
	Since    claybot.Time      `json:"since"`
	Cause    string            `json:"cause"` // why the agent was unusable then
}

// ParkedName returns the name of the agent with a key, for operators.
func ParkedName(key string) string {
	d := claybot.DescriptorOf(key)
	if d == (claybot.Descriptor{}) {
		return key
	}
	return strings.Join([]string{d.Connector, d.ChannelID, d.UserID}, ":")
}

// ParkedAgents lists up to limit unusable agents for operators: first those with parked
// messages, by their oldest message, then those with waiting accepted messages, as far as
// this member knows.
func (o *Monitor) ParkedAgents(ctx context.Context, limit int) ([]ParkedAgent, error) {
	agents, err := o.Parking.ParkedAgents(ctx, limit)
	if err != nil {
		return nil, err
	}
	all := make([]ParkedAgent, 0, len(agents))
	parked := make(map[string]bool)
	for _, a := range agents {
		list, err := o.Parking.ParkedOf(ctx, a.Key, 1)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 || list[0].Cause == storage.ParkedUnapproved {
			continue // delivered concurrently, or of an unknown user
		}
		parked[ParkedName(a.Key)] = true
		p := list[0]
		all = append(all, ParkedAgent{Agent: ParkedName(a.Key), Messages: a.Messages, First: p.Message.ID, Since: p.At, Cause: p.Cause})
	}
	for _, x := range o.faults() {
		if parked[x.Agent] || len(all) >= limit {
			continue
		}
		p := ParkedAgent{Agent: x.Agent, Since: x.Since, Cause: x.Cause}
		if v, err := o.listings.InboxOf(ctx, x.ID); err == nil { // otherwise only the number of waiting messages is unknown
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

// shownFaults is how many unusable agents Status names.
const shownFaults = 5

func (o *Monitor) faultStatus() FaultStatus {
	all := o.faults()
	st := FaultStatus{DeadRoutes: o.DeadRoutes(), Unwell: o.Worker.Health.Says(), Faulty: len(all), Faults: all[:min(len(all), shownFaults)]}
	if totals, full := o.Parked.Totals(); totals.Messages > 0 {
		st.Parked = &ParkedStatus{ParkedTotals: totals, Full: full}
	}
	return st
}

// An AgentFault is why an agent is unusable.
type AgentFault struct {
	Agent string          `json:"agent"` // connector:channel:user, or the id of a subagent
	ID    claybot.AgentID `json:"agentId,omitempty"`
	Since claybot.Time    `json:"since"`
	Cause string          `json:"cause"`
}

// faults returns the agents that this member cannot use, the longest fault first.
func (o *Monitor) faults() []AgentFault {
	var all []AgentFault
	for _, x := range o.Worker.Faults.List() {
		name := ParkedName(x.Key)
		if name == x.Key {
			name = cmp.Or(string(x.Agent), x.Key)
		}
		all = append(all, AgentFault{Agent: name, ID: x.Agent, Since: claybot.At(x.Since), Cause: x.Cause})
	}
	slices.SortFunc(all, func(a, b AgentFault) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Agent, b.Agent)) })
	return all
}
