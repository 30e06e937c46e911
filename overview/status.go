package overview

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// Status is how the daemon is doing, as `claybot status --json` prints it.
type Status struct {
	Version string `json:"version"`
	Uptime  string `json:"uptime"`
	StoreStatus
	Connectors []ConnectorStatus `json:"connectors"`
	Access     AccessStatus      `json:"access"`
	Start      *StartStatus      `json:"start,omitempty"` // while claybot comes back after it died
	Node       *NodeStatus       `json:"node,omitempty"`  // that says all this
	OutsideStatus
	FaultStatus
}

// StoreStatus is what the store counts.
type StoreStatus struct {
	Agents     int                       `json:"agents"`
	Inbox      InboxStatus               `json:"inbox"`
	Runs       map[claybot.RunState]int  `json:"runs"`
	Outbox     map[claybot.SendState]int `json:"outbox"`
	Duplicates int64                     `json:"duplicates"` // repeats that were dropped since the start
	Ambiguous  int64                     `json:"ambiguous"`  // sends whose fate was unknown at first
	// AsOf is when all this was read: set when it is not of this moment, because the
	// store does not answer.
	AsOf claybot.Time `json:"figuresAsOf,omitempty"`
	// Unknown says that it was never read: all is zero then and means nothing.
	Unknown bool `json:"figuresUnknown,omitempty"`
}

// OutsideStatus is how the parts outside of the system are doing.
type OutsideStatus struct {
	Model  ModelStatus       `json:"model"`
	Disk   *DiskStatus       `json:"disk,omitempty"`
	Limits LimitStatus       `json:"limits"`
	Sinks  []runs.SinkHealth `json:"sinks,omitempty"` // see runs.Relay
	// Checks are the results of the newest checks of the data directory, by name:
	// database, histories, copy.
	Checks map[string]CheckStatus `json:"checks,omitempty"`
	// Settings are those that were not understood.
	Settings []SettingStatus `json:"settings,omitempty"`
	// Servers are the MCP servers whose tools agents may use.
	Servers []ServerStatus `json:"mcpServers,omitempty"`
}

// FaultStatus is what cannot be used at present, and what waits for that.
type FaultStatus struct {
	// Unwell is why this member takes less work and is not ready: descriptors, memory
	// or I/O. Empty when it is well.
	Unwell string `json:"unwell,omitempty"`
	// Faulty is how many agents this member cannot use at present. Parked are the
	// messages that wait for such agents, of all members.
	Faulty int           `json:"faultyAgents,omitempty"`
	Faults []AgentFault  `json:"faults,omitempty"` // of those agents, the first few
	Parked *ParkedStatus `json:"parked,omitempty"`
}

// CheckStatus is the result of a check of the data directory.
type CheckStatus struct {
	At      claybot.Time `json:"at"`                // when it ended
	Text    string       `json:"text"`              // what it found, in a sentence
	Problem bool         `json:"problem,omitempty"` // an operator needs to look at it
}

// ServerStatus is how one MCP server is doing.
type ServerStatus struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"` // connected: agents have its tools
	State string `json:"state"`
	Err   string `json:"error,omitempty"`
}

// DiskStatus is the space of the file system with the data directory, in bytes.
type DiskStatus struct {
	Free  int64 `json:"free"`
	Total int64 `json:"total"`
}

// NodeStatus is the node that says all this, among those that share the store.
// What is counted since the start is of this node alone. While Err is set, the
// figures of the store are the last that were read (Status.AsOf), or not known.
type NodeStatus struct {
	ID    string `json:"id,omitempty"` // empty while it is none
	Name  string `json:"name"`
	Nodes int    `json:"nodes"` // that are there, this one included
	OK    bool   `json:"ok"`    // the store answers
	Err   string `json:"error,omitempty"`
}

// InboxStatus counts the messages that no run has taken yet.
type InboxStatus struct {
	Waiting int          `json:"waiting"`
	Oldest  claybot.Time `json:"oldest,omitempty"` // arrival of the one that waits longest
}

// ConnectorStatus is the health of one connector.
type ConnectorStatus struct {
	Name string `json:"name"`
	connectors.Health
	// Held is why nothing comes in through it, whatever its state, and what becomes
	// of that meanwhile; empty when nothing keeps it.
	Held string `json:"held,omitempty"`
}

// ModelStatus is how the model answers: when it last did, and what went wrong
// since, in a sentence with the next step.
type ModelStatus struct {
	Name   string    `json:"name"`
	LastOK time.Time `json:"lastOk,omitzero"`
	Err    string    `json:"error,omitempty"`
}

// A SettingStatus is a setting that was not understood: what is wrong with it and
// what holds instead, and the next step. It holds no secret.
type SettingStatus struct {
	Text string `json:"text"`
	Next string `json:"next,omitempty"`
	Off  bool   `json:"off"` // something is switched off until it is corrected
}

// AccessStatus says how strangers are met.
type AccessStatus struct {
	Mode    people.AccessMode `json:"mode"`
	Granted int               `json:"granted"`
	Refused int64             `json:"refused"` // messages of strangers since the start
}

// Status reads how the daemon is doing.
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
	return st, nil
}

// status asks the parts outside of the system.
func (r Reports) status() OutsideStatus {
	st := OutsideStatus{Limits: r.Limits}
	if r.Sinks != nil {
		st.Sinks = r.Sinks()
	}
	if r.Servers != nil {
		st.Servers = r.Servers()
	}
	if r.Disk != nil {
		if disk, err := r.Disk(); err == nil { // else it is not known
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
		all = append(all, ConnectorStatus{Name: c.Name(), Health: health, Held: o.Connectors.Held(c.Name())})
	}
	return all
}

// Ready reports whether every connector has had its first success or stands by, and
// none waits long for a message to be stored, the store answers, this member is well
// and the parking table has room; if not, what is missing. Before Run nothing is ready.
// One agent that cannot be used does not count, whatever the class of its fault: the
// others are served, and Status tells of it.
func (o *Monitor) Ready() (bool, string) {
	_, full := o.Parked.Totals()
	switch {
	case !o.Connectors.Running(): // no connector is known yet, and none is missing
		return false, "the start is under way"
	case o.Membership.Answering() != nil:
		return false, noDatabase
	case o.Worker.Health.Spread():
		return false, o.Worker.Health.Says()
	case full:
		return false, texts.ParkingFull
	}
	for _, c := range o.health() {
		if c.Held != "" {
			return false, "connector " + c.Name + " is " + c.Held
		}
		if stuck := o.Connectors.Stuck(c.Name); stuck != "" {
			return false, "connector " + c.Name + ": " + stuck
		}
		if c.LastOK.IsZero() && c.State != connectors.StateStandby {
			return false, strings.TrimSpace(fmt.Sprintf("connector %s is %s %s", c.Name, c.State, c.Err))
		}
	}
	return true, ""
}

// StartStatus says how claybot comes back after it died.
type StartStatus struct {
	// Unclean counts the starts in a row that followed a process that died.
	Unclean int `json:"uncleanStarts"`
	// AtOnce is how many runs are let in at once that may be the cause, and Waiting how
	// many agents wait for that.
	AtOnce  int `json:"atOnce"`
	Waiting int `json:"waiting"`
}

// startStatus returns nil after an orderly end, and once the process has lived long enough.
func (o *Monitor) startStatus() *StartStatus {
	unclean, atOnce, waiting, active := o.Worker.Recovery.Status()
	if !active {
		return nil
	}
	return &StartStatus{Unclean: unclean, AtOnce: atOnce, Waiting: waiting}
}

// LimitStatus is what bounds the work of this member at once.
type LimitStatus struct {
	MaxRuns int   `json:"maxRuns"`
	Memory  int64 `json:"memory,omitempty"` // bytes that the process may have; 0: no limit is known
	Files   int64 `json:"files,omitempty"`  // descriptors, the same
}
