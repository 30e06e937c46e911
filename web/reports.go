package web

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// System reports on the whole installation.
type System interface {
	// Status returns the health of the installation.
	Status(ctx context.Context) (overview.Status, error)
	// Nodes lists the cluster members of the last day, the newest first.
	Members(ctx context.Context) ([]storage.Member, error)
	// WorksOn returns the name of the member that works on an agent now; empty for
	// none, and for a cluster of one.
	WorksOn(ctx context.Context, id claybot.AgentID) (string, error)
	// Why traces the messages that ref names, the oldest first. ref is a platform's
	// link to a message, or the id of a message, a run or an outgoing message.
	Why(ctx context.Context, ref string) ([]overview.Story, error)
	// Shapes returns the engines that are graphs, by name.
	Shapes() map[string]runs.Shape
	// Changed returns a channel that is closed by the next change of stored data.
	Changed() <-chan struct{}
}

// A NodeList is the processes that share the store.
type NodeList struct {
	Nodes []NodeView `json:"nodes" doc:"Those of the last day, the newest first."`
}

// A NodeView is one process that shares the store.
type NodeView struct {
	ID           string              `json:"id" doc:"New for every process."`
	Name         string              `json:"name" doc:"Stays across restarts."`
	Addr         string              `json:"addr,omitempty" doc:"Of its web page."`
	State        storage.MemberState `json:"state" doc:"live; draining: it takes no more work and leaves soon; gone: it has left in order; lost: it has not been heard of."`
	Version      string              `json:"version"`
	Started      claybot.Time        `json:"startedAt"`
	Seen         claybot.Time        `json:"seenAt,omitempty" doc:"Its last beat, by the clock of the store; left out where it has the store for itself."`
	Working      int                 `json:"working" doc:"Agents that it worked on at its last beat."`
	MaxRuns      int                 `json:"maxRuns" doc:"Agents that it works on at the same time, at most."`
	Skew         int64               `json:"skewMs" doc:"Milliseconds that its clock is ahead of the store's."`
	Lease        int64               `json:"leaseMs,omitempty" doc:"Milliseconds after which others take over from it when it is not heard of; left out where it has the store for itself."`
	Doubt        string              `json:"doubt,omitempty" doc:"What is wrong with how it is set up beside the others: a name that another node has, another lease."`
	Claims       []string            `json:"claims" doc:"What it alone does now: connections to platforms, sinks of events, mending."`
	Destinations int                 `json:"destinations" doc:"How many destinations it alone sends to now."`
}

// A UsageReport is token usage and cost by the columns asked for.
type UsageReport struct {
	Usage []storage.Spent `json:"usage"`
	More  bool            `json:"more,omitempty" doc:"There are further rows: the days, or the columns, are too many for one answer."`
}

// A LatencyReport is how long runs and model calls took, by day.
type LatencyReport struct {
	Latency []storage.Latency `json:"latency" doc:"In milliseconds; off by at most 10 %."`
}

// A ReceiptList is what became of messages.
type ReceiptList struct {
	Receipts []ReceiptView `json:"receipts" doc:"The oldest first."`
}

// A ReceiptView is what became of a message.
type ReceiptView struct {
	Message claybot.MessageID   `json:"messageId"`
	Type    claybot.MessageType `json:"type"`
	Kind    claybot.SystemKind  `json:"kind,omitempty"`
	Agent   claybot.AgentID     `json:"agentId"`
	From    claybot.Sender      `json:"from,omitzero"`
	Text    string              `json:"text" doc:"Shortened."`
	Stored  claybot.Time        `json:"stored"`
	Skipped string              `json:"skipped,omitempty" doc:"Why no run took it."`
	Due     claybot.Time        `json:"due,omitempty" doc:"When its agent begins, while it waits."`
	Behind  claybot.RunID       `json:"behind,omitempty" doc:"The run that it waits for."`
	Ahead   int                 `json:"ahead,omitempty" doc:"How many messages wait before it."`
	Run     *RunView            `json:"run,omitempty"`
	Replies []OutgoingView      `json:"replies"`
	Steps   []overview.Step     `json:"steps" doc:"What happened, the oldest first, in words."`
	Silence string              `json:"silence,omitempty" doc:"Why there is no reply."`
	Verdict overview.Verdict    `json:"verdict" doc:"What became of it: an outcome for programs, and a text for people."`
}
