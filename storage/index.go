package storage

import (
	"context"
	"iter"

	"github.com/claybot/claybot"
)

// Index is the identity copy of all agents in the message store. It finds an
// agent without reading its directory.
type Index interface {
	// IndexedAgent finds an agent by its descriptor's key; ErrNotFound.
	IndexedAgent(ctx context.Context, d claybot.Descriptor) (claybot.AgentID, error)
	// IndexedDescriptor is the copy of an agent's descriptor; ErrNotFound.
	IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error)
	// IndexedAgentByID is the entry of one agent; ErrNotFound.
	IndexedAgentByID(ctx context.Context, id claybot.AgentID) (IndexEntry, error)
	// IndexAgents adds agents, or gives known ids a new descriptor.
	IndexAgents(ctx context.Context, agents ...claybot.Agent) error
	// UnindexAgent removes an agent whose directory is gone.
	UnindexAgent(ctx context.Context, id claybot.AgentID) error
	// IndexedAgents yields all, in no particular order.
	IndexedAgents(ctx context.Context) iter.Seq2[IndexEntry, error]
}

// AgentReader lists agents of the Index.
type AgentReader interface {
	// AgentPage lists agents, those that a person wrote to last first, then the
	// newest. ErrNotFound when After is gone.
	AgentPage(ctx context.Context, q AgentQuery) ([]IndexEntry, error)
	// Foreground yields the user agents that a person has written to, the one
	// with the newest user message first; at a tie, the one whose message was
	// accepted later. Only those of the owners named (OwnerID), or all when
	// owners is nil.
	Foreground(ctx context.Context, owners []string) iter.Seq2[IndexEntry, error]
	// Children lists the subagents that parent made, oldest first.
	Children(ctx context.Context, parent claybot.AgentID) ([]IndexEntry, error)
	// Started counts the subagents below root that were made at since or later.
	Started(ctx context.Context, root claybot.AgentID, since claybot.Time) (int, error)
}

// Settings keeps what an operator changed for one agent; it goes with the agent.
type Settings interface {
	// AgentSettings returns all agents that have settings of their own.
	AgentSettings(ctx context.Context) (map[claybot.AgentID]claybot.Settings, error)
	// SaveAgentSettings replaces the settings of an agent; ErrNotFound. Empty
	// ones are removed.
	SaveAgentSettings(ctx context.Context, id claybot.AgentID, s claybot.Settings) error
}

// An IndexEntry is one agent in the index, with the figures that change with
// every message and are therefore kept there.
type IndexEntry struct {
	ID         claybot.AgentID
	Descriptor claybot.Descriptor
	LastUserAt claybot.Time
	Usage      claybot.Usage
	Waiting    int
	CreatedAt  claybot.Time
	Run        claybot.RunID // the unfinished one, if there is one
	Busy       bool          // it has a run, or something that will start one
}

// An AgentQuery picks agents; empty fields pick all.
type AgentQuery struct {
	Type   claybot.AgentType
	Owner  string // as OwnerID
	Parent claybot.AgentID
	Busy   bool            // only those with an unfinished run or something that waits
	After  claybot.AgentID // the last one of the page before
	Limit  int             // at most; 0: 50
}
