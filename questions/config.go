package questions

import (
	"context"
	"log/slog"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
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
	ChannelAgents(ctx context.Context, connector, channel string) ([]storage.IndexEntry, error)
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
	SentAs(ctx context.Context, dest, receipt string) ([]claybot.Outgoing, error)
	Unsent(ctx context.Context, dest string, after int64, limit int) ([]claybot.Outgoing, error)
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

// Routes know which routes are dead; see delivery.Routes.
type Routes interface {
	Revive(ctx context.Context, connector, channel string) (revived bool, err error)
}

// People knows who people are; see people.Directory.
type People interface {
	Identities(owner string) []string
	IsOperator(owner string) bool
	MayWrite(d claybot.Descriptor) bool
	KnowsOutsider(connector, user string) bool
}

// Readers knows where people read, and in which language; see people.Directory.
type Readers interface {
	PlaceOf(ctx context.Context, owner string) (storage.IndexEntry, error)
	LastContext(ctx context.Context, id claybot.AgentID) (claybot.MessageContext, error)
	VoiceAt(ctx context.Context, d claybot.Descriptor, r claybot.Route) texts.Voice
	VoiceOf(ctx context.Context, o claybot.Outgoing) texts.Voice
}

// Intake accepts messages of people. A text answer takes the same path as any message.
type Intake struct {
	// Complete prepares a message for the inbox of an agent.
	Complete func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posting, error)
	// Accepted notifies the waiters of a message that it is durable.
	Accepted func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage, done storage.Posted)
	// CarryOut executes a stored command. It is idempotent.
	CarryOut func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) error
	// Masked is a text of a person as it may be stored.
	Masked func(text string) string
}

// Stores are what Questions read and write.
type Stores struct {
	Asked    storage.Questions
	Agents   Agents
	Lookup   Lookup
	Index    Index
	Runs     Runs
	Receipts Receipts
	Outbox   Outbox
}

// Config is what New needs; only CheckEdit may be nil.
type Config struct {
	Stores
	Inbox   Inbox
	Sender  Sender
	Routes  Routes
	People  People
	Readers Readers
	Work    *runs.AtWork
	Intake  Intake
	// Zone is where the people are, for the times that they say.
	Zone func() *time.Location
	// CheckEdit says why a person may not approve a call with the arguments that they
	// gave it. nil: no arguments are edited.
	CheckEdit func(claybot.Agent, claybot.ToolCall) error
	Log       *slog.Logger
}

// Questions are the parts that deal with the questions of all runs. Their methods are
// safe for concurrent use.
type Questions struct {
	Respondents Respondents  // who may answer
	Ledger      *Ledger      // what is asked and answered
	Asker       *Asker       // asks for a run
	Notices     *Notices     // the messages that ask, and what replaces them
	Answers     *Answers     // the answers of the API, the page and the parts below
	Buttons     *Buttons     // the answers by button or form
	Commands    *Commands    // the answers by /approve and /deny
	Texts       *TextAnswers // the answers that people write as messages
}

// New returns Questions.
func New(cfg Config) *Questions {
	who := Respondents{cfg.People}
	ledger := &Ledger{asked: cfg.Asked, receipts: cfg.Receipts, inbox: cfg.Inbox, index: cfg.Index, runs: cfg.Runs, zone: cfg.Zone}
	notices := &Notices{ledger: ledger, respondents: who, readers: cfg.Readers, outbox: cfg.Outbox, sender: cfg.Sender, log: cfg.Log}
	answers := &Answers{
		ledger: ledger, respondents: who, notices: notices, agents: cfg.Agents, lookup: cfg.Lookup, intake: cfg.Intake,
		zone: cfg.Zone, log: cfg.Log, CheckEdit: cfg.CheckEdit,
	}
	return &Questions{
		Respondents: who,
		Ledger:      ledger,
		Asker:       &Asker{ledger: ledger, readers: cfg.Readers, work: cfg.Work},
		Notices:     notices,
		Answers:     answers,
		Buttons:     &Buttons{answers: answers, people: cfg.People, routes: cfg.Routes, log: cfg.Log},
		Commands:    &Commands{answers: answers, ledger: ledger, respondents: who, notices: notices, agents: cfg.Agents, log: cfg.Log},
		Texts: &TextAnswers{
			ledger: ledger, respondents: who, notices: notices, agents: cfg.Agents, outbox: cfg.Outbox, sender: cfg.Sender,
			intake: cfg.Intake, zone: cfg.Zone, log: cfg.Log,
		},
	}
}
