package web

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
)

// Inboxes shows and drops messages that no run has taken.
type Inboxes interface {
	Inbox(ctx context.Context, id claybot.AgentID) (overview.InboxView, error)
	// Drop removes waiting messages from an inbox, all when ids is empty, and
	// returns those it removed.
	Drop(ctx context.Context, id claybot.AgentID, ids ...claybot.MessageID) ([]claybot.MessageID, error)
	// ParkedAgents lists up to limit agents that cannot be used: those with parked
	// messages first, in the order of their oldest ones.
	ParkedAgents(ctx context.Context, limit int) ([]overview.ParkedAgent, error)
	// DropParked drops the parked messages of the agent with a name of that list, and
	// returns them.
	DropParked(ctx context.Context, agent string) ([]claybot.MessageID, error)
}

// A WaitingView is a message that no run has taken.
type WaitingView struct {
	ID     claybot.MessageID   `json:"id"`
	Type   claybot.MessageType `json:"type"`
	Kind   claybot.SystemKind  `json:"kind,omitempty"`
	From   claybot.Sender      `json:"from,omitzero"`
	Text   string              `json:"text" doc:"Truncated."`
	At     claybot.Time        `json:"at"`
	Silent bool                `json:"silent,omitempty" doc:"The message starts no run."`
}

// A WorkView is the unfinished run of an agent.
type WorkView struct {
	ID       claybot.RunID    `json:"id"`
	State    claybot.RunState `json:"state"`
	Started  claybot.Time     `json:"started"`
	Awaiting *AwaitingView    `json:"awaiting,omitempty"`
}

// An InboxView is what waits for an agent and what it works on.
type InboxView struct {
	Waiting []WaitingView `json:"waiting"`
	Run     *WorkView     `json:"run,omitempty"`
	Stopped string        `json:"stopped,omitempty" doc:"What an operator has stopped that the agent needs, by whom, and how it is started. The messages wait until then."`
}

// A Dropped lists the messages that were removed.
type Dropped struct {
	Dropped []claybot.MessageID `json:"dropped"`
}

// A ParkedList is the agents that cannot be used, with what is parked for them.
type ParkedList struct {
	Parked []overview.ParkedAgent `json:"parked"`
}
