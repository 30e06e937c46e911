package questions

import (
	"context"
	"log/slog"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// Agents reads agents and their histories; see storage.Agents.
type Agents interface {
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
	Records(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error)
}

// Lookup finds an agent for a source that waits; see storage.Bounded.
type Lookup interface {
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
}

// Index finds agents; see storage.Index.
type Index interface {
	IndexedAgentByID(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error)
}

// Runs loads runs; see storage.Runs.
type Runs interface {
	Run(ctx context.Context, id claybot.RunID) (claybot.Run, error)
}

// Receipts returns what happened to messages; see storage.Inbox.
type Receipts interface {
	Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error)
	LastReceipt(ctx context.Context, agent claybot.AgentID) (storage.Receipt, error)
}

// Outbox finds what was sent; see storage.Outbox.
type Outbox interface {
	OutgoingByID(ctx context.Context, id string) (claybot.Outgoing, error)
}

// An Inbox takes answers, which are messages; see inbox.Inboxes.
type Inbox interface {
	Post(ctx context.Context, p storage.Posting) (storage.Posted, error)
}

// A Sender sends notices; see delivery.Deliverer.
type Sender interface {
	Compose(o claybot.Outgoing, text string) []claybot.Outgoing
	Send(ctx context.Context, out ...claybot.Outgoing) (int, error)
	SendOnce(ctx context.Context, o claybot.Outgoing, key, text string) error
}

// Intake accepts messages of people. A text answer takes the same path as any message.
type Intake struct {
	// Complete prepares a message for the inbox of an agent.
	Complete func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posting, error)
	// Accepted notifies the waiters of a message that it is durable.
	Accepted func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage, done storage.Posted)
	// CarryOut executes a stored command. It is idempotent.
	CarryOut func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) error
}

// Config is what New needs; only CheckEdit may be nil.
type Config struct {
	Asked    storage.Questions
	Agents   Agents
	Lookup   Lookup
	Index    Index
	Runs     Runs
	Receipts Receipts
	Outbox   Outbox
	Inbox    Inbox
	Sender   Sender
	People   *people.Directory
	Work     *runs.AtWork
	Intake   Intake
	// Zone is where the people are, for the times that they say.
	Zone func() *time.Location
	// CheckEdit says why a person may not approve a call with the arguments that they
	// gave it. nil: no arguments are edited.
	CheckEdit func(claybot.Agent, claybot.ToolCall) error
	Log       *slog.Logger
}

// Questions are the questions of all runs. Its methods are safe for concurrent use.
type Questions struct{ Config }

// New returns Questions.
func New(cfg Config) *Questions { return &Questions{cfg} }
