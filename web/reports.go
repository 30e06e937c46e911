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
	// Members lists the cluster members of the last day, the newest first.
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

// A MemberList is the processes that share the store.
type MemberList struct {
	Members []MemberView `json:"members" doc:"Members seen in the last day, newest first."`
}

// A MemberView is one process that shares the store.
type MemberView struct {
	ID           string              `json:"id" doc:"New for each process."`
	Name         string              `json:"name" doc:"Stable across restarts."`
	Addr         string              `json:"addr,omitempty" doc:"Address of its web page."`
	State        storage.MemberState `json:"state" doc:"live; draining: accepts no more work and leaves soon; gone: left after an orderly shutdown; lost: its lease expired."`
	Version      string              `json:"version"`
	Started      claybot.Time        `json:"startedAt"`
	Seen         claybot.Time        `json:"seenAt,omitempty" doc:"Its last lease renewal, by the clock of the database; omitted if it does not share a database."`
	Working      int                 `json:"working" doc:"Number of active agents at its last lease renewal."`
	MaxRuns      int                 `json:"maxRuns" doc:"Maximum number of concurrently active agents."`
	Skew         int64               `json:"skewMs" doc:"How far its clock is ahead of the database's, in milliseconds."`
	Lease        int64               `json:"leaseMs,omitempty" doc:"Milliseconds without a renewal after which the others take over; omitted if it does not share a database."`
	Doubt        string              `json:"doubt,omitempty" doc:"A conflict with the configuration of the other members, such as a duplicate name or a different lease."`
	Claims       []string            `json:"claims" doc:"What only this member does now: connections to platforms, relays, repairs."`
	Destinations int                 `json:"destinations" doc:"Number of destinations that only this member sends to now."`
}

// A UsageReport is token usage and cost by the columns asked for.
type UsageReport struct {
	Usage []storage.Spent `json:"usage"`
	More  bool            `json:"more,omitempty" doc:"The rows are truncated: request fewer days or fewer columns."`
}

// A LatencyReport is how long runs and model calls took, by day.
type LatencyReport struct {
	Latency []storage.Latency `json:"latency" doc:"In milliseconds, accurate to 10 %."`
}

// A ReceiptList lists receipts of messages.
type ReceiptList struct {
	Receipts []ReceiptView `json:"receipts" doc:"Oldest first."`
}

// A ReceiptView is the receipt of a message.
type ReceiptView struct {
	Message claybot.MessageID   `json:"messageId"`
	Type    claybot.MessageType `json:"type"`
	Kind    claybot.SystemKind  `json:"kind,omitempty"`
	Agent   claybot.AgentID     `json:"agentId"`
	From    claybot.Sender      `json:"from,omitzero"`
	Text    string              `json:"text" doc:"Truncated."`
	Stored  claybot.Time        `json:"stored"`
	Skipped string              `json:"skipped,omitempty" doc:"Why no run processed it."`
	Due     claybot.Time        `json:"due,omitempty" doc:"When its agent starts, while the message waits."`
	Behind  claybot.RunID       `json:"behind,omitempty" doc:"The run it waits for."`
	Ahead   int                 `json:"ahead,omitempty" doc:"Number of messages ahead of it."`
	Run     *RunView            `json:"run,omitempty"`
	Replies []OutgoingView      `json:"replies"`
	Steps   []overview.Step     `json:"steps" doc:"The stages of the message in words, oldest first."`
	Silence string              `json:"silence,omitempty" doc:"Why there is no reply."`
	Verdict overview.Verdict    `json:"verdict" doc:"The outcome: a code for programs, a text for people."`
}
