package overview

import (
	"context"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
)

// Status is the status of the daemon, as `claybot status --json` prints it.
type Status struct {
	Version string `json:"version"`
	Uptime  string `json:"uptime"`
	StoreStatus
	Connectors []ConnectorStatus `json:"connectors"`
	Access     AccessStatus      `json:"access"`
	Start      *StartStatus      `json:"start,omitempty"` // while claybot recovers from a crash
	Node       *NodeStatus       `json:"node,omitempty"`  // the reporting member
	OutsideStatus
	FaultStatus
	// Findings are what does not work, with the cause and the next step.
	Findings []Finding `json:"findings,omitempty"`
}

// StoreStatus has the store's counts.
type StoreStatus struct {
	Agents     int                       `json:"agents"`
	Inbox      InboxStatus               `json:"inbox"`
	Runs       map[claybot.RunState]int  `json:"runs"`
	Outbox     map[claybot.SendState]int `json:"outbox"`
	Duplicates int64                     `json:"duplicates"` // duplicates dropped since the start
	Ambiguous  int64                     `json:"ambiguous"`  // sends with an initially unknown outcome
	// AsOf is the time of these counts if they are old because the store does not answer.
	AsOf claybot.Time `json:"figuresAsOf,omitempty"`
	// Unknown means that the counts were never read and are all zero.
	Unknown bool `json:"figuresUnknown,omitempty"`
}

// OutsideStatus is the status of parts outside of the system.
type OutsideStatus struct {
	Model  ModelStatus       `json:"model"`
	Disk   *DiskStatus       `json:"disk,omitempty"`
	Limits LimitStatus       `json:"limits"`
	Sinks  []runs.SinkHealth `json:"sinks,omitempty"` // see runs.Relay
	// Checks are the results of the newest checks of the data directory, by name: database,
	// histories, copy.
	Checks map[string]CheckStatus `json:"checks,omitempty"`
	// Settings are the invalid ones.
	Settings []SettingStatus `json:"settings,omitempty"`
	// Servers are the MCP servers whose tools agents may use.
	Servers []ServerStatus `json:"mcpServers,omitempty"`
}

// FaultStatus counts what is unusable at present and the messages that wait for it.
type FaultStatus struct {
	// Unwell is why this member accepts less work and is not ready: descriptors, memory or
	// I/O. Empty if it is healthy.
	Unwell string `json:"unwell,omitempty"`
	// Faulty is the number of agents that this member cannot use at present. Parked counts
	// the messages to such agents, of all members.
	Faulty int           `json:"faultyAgents,omitempty"`
	Faults []AgentFault  `json:"faults,omitempty"` // the first few of those agents
	Parked *ParkedStatus `json:"parked,omitempty"`
	// DeadRoutes are the channels that their platform refuses; nothing is sent there.
	DeadRoutes []delivery.DeadRoute `json:"deadRoutes,omitempty"`
}

// CheckStatus is the result of a check of the data directory.
type CheckStatus struct {
	At      claybot.Time `json:"at"`                // when it ended
	Text    string       `json:"text"`              // its result, in a sentence
	Problem bool         `json:"problem,omitempty"` // needs an operator's attention
	// Code is what the doctor calls the problem; empty: it finds no such one.
	Code string `json:"code,omitempty"`
}

// ServerStatus is the status of an MCP server.
type ServerStatus struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"` // connected, so that agents have its tools, or stopped by an operator
	State string `json:"state"`
	Err   string `json:"error,omitempty"`
}

// DiskStatus is the space of the file system with the data directory, in bytes.
type DiskStatus struct {
	Free  int64 `json:"free"`
	Total int64 `json:"total"`
}

// NearlyFull reports whether little space is left, and Full whether so little that messages may soon not be stored.
func (d DiskStatus) NearlyFull() bool { return d.Free < 1<<30 }

// Full is below NearlyFull.
func (d DiskStatus) Full() bool { return d.Free < 100<<20 }

// NodeStatus is the member that reports this status. Counts since the start are of this
// member alone. While Err is set, the store's counts are old (Status.AsOf) or unknown.
type NodeStatus struct {
	ID    string `json:"id,omitempty"` // empty before it joins
	Name  string `json:"name"`
	Nodes int    `json:"nodes"` // live members, including this one
	OK    bool   `json:"ok"`    // the store answers
	Err   string `json:"error,omitempty"`
}

// InboxStatus counts the messages that no run has taken yet.
type InboxStatus struct {
	Waiting int          `json:"waiting"`
	Oldest  claybot.Time `json:"oldest,omitempty"` // arrival of the oldest one
}

// ConnectorStatus is the health of one connector.
type ConnectorStatus struct {
	Name string `json:"name"`
	connectors.Health
	// Held is why nothing arrives through it, whatever its state, and what happens to the
	// messages meanwhile; empty if it is not blocked.
	Held string `json:"held,omitempty"`
	// Address is where it takes requests, without secrets; empty for one that does not.
	Address string `json:"address,omitempty"`
	// Refused are the requests whose senders did not prove who they are; nil for none.
	Refused *connectors.Refusals `json:"refused,omitempty"`
}

// ModelStatus is when the model last answered and what failed since, in a sentence with
// the next step.
type ModelStatus struct {
	Name   string    `json:"name"`
	LastOK time.Time `json:"lastOk,omitzero"`
	Err    string    `json:"error,omitempty"`
}

// A SettingStatus is an invalid setting: the problem, the value used instead, and the
// next step. It contains no secret.
type SettingStatus struct {
	Text string `json:"text"`
	Next string `json:"next,omitempty"`
	Off  bool   `json:"off"` // a feature is off until the setting is corrected
	Code string `json:"code,omitempty"`

	Key       string `json:"-"` // of the setting; empty: it is about the file
	Connector string `json:"-"` // that keeps its old settings; empty: it is about another part
}

// AccessStatus is how unknown users are handled.
type AccessStatus struct {
	Mode    people.AccessMode `json:"mode"`
	Granted int               `json:"granted"`
	Refused int64             `json:"refused"` // messages of unknown users since the start
}

// Status returns the status of the daemon.
func (o *Monitor) Status(ctx context.Context) (Status, error) {
	counts, err := o.figures(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("read figures: %w", err)
	}
	if !counts.old && !counts.unknown {
		if _, err := o.Parked.Count(ctx); err != nil {
			o.Log.Debug("failed to count parked messages, showing the last count", "err", err)
		}
	}
	st := Status{
		Version: o.Version, Uptime: time.Since(o.began).Round(time.Second).String(),
		StoreStatus: StoreStatus{
			Agents: counts.Agents, Inbox: InboxStatus{Waiting: counts.Waiting, Oldest: counts.OldestWaiting},
			Runs: counts.Runs, Outbox: counts.Outbox, Duplicates: counts.Duplicates, Ambiguous: counts.Ambiguous, Unknown: counts.unknown,
		},
		Connectors: o.health(), Access: o.accessStatus(), Start: o.startStatus(), Node: o.nodeStatus(),
		OutsideStatus: o.Reports.status(), FaultStatus: o.faultStatus(),
	}
	if counts.old {
		st.AsOf = counts.at
	}
	switch {
	case st.Node.Err != "":
		held(st.Connectors)
	case counts.unknown:
		st.Node.OK, st.Node.Err = false, noneRead
	case counts.old:
		st.Node.OK, st.Node.Err = false, oldFigures
	}
	if o.Reports.Findings != nil {
		st.Findings = faults(o.Reports.Findings(st))
	}
	return st, nil
}

// status queries the parts outside of the system.
func (r Reports) status() OutsideStatus {
	st := OutsideStatus{Limits: r.Limits}
	if r.Sinks != nil {
		st.Sinks = r.Sinks()
	}
	if r.Servers != nil {
		st.Servers = r.Servers()
	}
	if r.Disk != nil {
		if disk, err := r.Disk(); err == nil { // otherwise it is unknown
			st.Disk = &disk
		}
	}
	if r.Checks != nil {
		st.Checks = r.Checks()
	}
	if r.Settings != nil {
		st.Settings = r.Settings()
	}
	if r.Model != nil {
		st.Model = r.Model()
	}
	return st
}

func (o *Monitor) accessStatus() AccessStatus {
	granted, refused := o.People.Counts()
	return AccessStatus{Mode: o.Access().Mode, Granted: granted, Refused: refused}
}

func (o *Monitor) health() []ConnectorStatus {
	all := []ConnectorStatus{}
	for _, c := range o.Connectors.All() {
		health := c.Health()
		if stuck := o.Connectors.Stuck(c.Name()); stuck != "" {
			health.State, health.Err = connectors.StateFailing, stuck
		}
		if health.State == connectors.StateStandby && o.Standby.Vacant(c.Name()) {
			health.Err = vacant
		}
		status := ConnectorStatus{Name: c.Name(), Health: health, Held: o.Held(c.Name())}
		if x, stopped := c.(connectors.StandIn); stopped {
			c = x.Behind()
		}
		if c, ok := c.(connectors.Addressed); ok {
			status.Address = c.Address()
		}
		if c, ok := c.(connectors.Refusing); ok {
			if refused := c.Refused(); refused.Count > 0 {
				status.Refused = &refused
			}
		}
		all = append(all, status)
	}
	return all
}

// StartStatus is how claybot recovers from a crash.
type StartStatus struct {
	// Unclean counts the consecutive starts after a crash.
	Unclean int `json:"uncleanStarts"`
	// AtOnce limits the concurrent runs that may be the cause, and Waiting counts the agents
	// that wait for it.
	AtOnce  int `json:"atOnce"`
	Waiting int `json:"waiting"`
}

// startStatus returns nil after a clean shutdown or enough uptime.
func (o *Monitor) startStatus() *StartStatus {
	unclean, atOnce, waiting, active := o.Worker.Recovery.Status()
	if !active {
		return nil
	}
	return &StartStatus{Unclean: unclean, AtOnce: atOnce, Waiting: waiting}
}

// LimitStatus limits the concurrent work of this member.
type LimitStatus struct {
	MaxRuns int   `json:"maxRuns"`
	Memory  int64 `json:"memory,omitempty"` // bytes for the process; 0: no known limit
	Files   int64 `json:"files,omitempty"`  // descriptors, the same
}
