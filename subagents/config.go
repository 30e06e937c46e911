package subagents

import (
	"context"
	"log/slog"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Agents creates and reads agents; see storage.Agents.
type Agents interface {
	NewAgent(ctx context.Context, d claybot.Descriptor, b claybot.Background) (claybot.Agent, error)
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
	Records(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error)
	Past(ctx context.Context, id claybot.AgentID, fn func(claybot.Record) bool) error
}

// Index finds agents; see storage.Index and storage.AgentReader.
type Index interface {
	IndexedAgentByID(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error)
	IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error)
	AgentPage(ctx context.Context, q storage.AgentQuery) ([]storage.IndexEntry, error)
	Children(ctx context.Context, id claybot.AgentID) ([]storage.IndexEntry, error)
	Started(ctx context.Context, root claybot.AgentID, since claybot.Time) (int, error)
}

// Inbox reads and drops what waits for an agent; see storage.Inbox and storage.Receipts.
type Inbox interface {
	Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error)
	Waiting(ctx context.Context, agent claybot.AgentID, limit int) ([]claybot.AgentMessage, error)
	Drop(ctx context.Context, agent claybot.AgentID, reason string, ids ...claybot.MessageID) ([]claybot.MessageID, error)
}

// Runs loads runs; see storage.Runs.
type Runs interface {
	Run(ctx context.Context, id claybot.RunID) (claybot.Run, error)
	LastRun(ctx context.Context, agent claybot.AgentID) (claybot.Run, error)
}

// Poster puts messages into inboxes and wakes their agents; see inbox.Inboxes.
type Poster interface {
	Post(ctx context.Context, p storage.Posting) (storage.Posted, error)
	Wake()
}

// People knows who people are and where they read; see people.Directory.
type People interface {
	Recent(ctx context.Context, d claybot.Descriptor, except claybot.AgentID) (storage.IndexEntry, error)
	Reaches(from, to claybot.Descriptor) bool
	Reach(from claybot.Descriptor) (owners []string)
	// NameOf returns how a platform calls a person or a channel, connector/id; empty if unknown.
	NameOf(ctx context.Context, id string) string
	MayWrite(d claybot.Descriptor) bool
	TellOwner(ctx context.Context, a claybot.Agent, key string, say func(texts.Voice) string)
}

// Audiences knows who reads what; see people.Directory.
type Audiences interface {
	AudienceOf(d claybot.Descriptor, r claybot.Route) claybot.Audience
	Discloses(source, sink claybot.Audience) bool
}

// Clock says when another member of a cluster may have changed the store; see
// nodes.Membership.
type Clock interface {
	Elsewhere(d time.Duration) <-chan time.Time
}

// Intake accepts messages to agents.
type Intake struct {
	// Accept stores a message for a known agent.
	Accept func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posted, error)
	// Complete prepares a message for the inbox of an agent.
	Complete func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posting, error)
	// Dropped settles those who wait for messages that will not run.
	Dropped func(agent claybot.AgentID, ids ...claybot.MessageID)
}

// Stores are what Subagents read and write.
type Stores struct {
	Agents Agents
	Index  Index
	Inbox  Inbox
	Runs   Runs
	Later  storage.Reminders
}

// Config is what New needs; no field may be nil.
type Config struct {
	Stores
	Poster    Poster
	Intake    Intake
	People    People
	Audiences Audiences
	Work      *runs.AtWork
	Clock     Clock
	// Limits is read at every decision.
	Limits func() Limits
	// Permissions are what an agent may do now; see profiles.Profiles.
	Permissions func(ctx context.Context, a claybot.Agent) (claybot.Permissions, error)
	// Profile is the name of the profile of an agent.
	Profile func(claybot.Descriptor) string
	// Flow returns the flow in force with a name; nil for none.
	Flow func(name string) *flows.Flow
	Log  *slog.Logger
}
