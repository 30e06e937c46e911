package overview

import (
	"context"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/worker"
)

// Index finds and lists agents; see storage.Index and storage.AgentReader.
type Index interface {
	IndexedAgent(ctx context.Context, d claybot.Descriptor) (claybot.AgentID, error)
	IndexedAgentByID(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error)
	AgentPage(ctx context.Context, q storage.AgentQuery) ([]storage.IndexEntry, error)
	Foreground(ctx context.Context, owners []string) iter.Seq2[storage.IndexEntry, error]
	Children(ctx context.Context, parent claybot.AgentID) ([]storage.IndexEntry, error)
}

// Histories reads agents and their histories; see storage.Agents and storage.Histories.
type Histories interface {
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
	Records(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error)
	Past(ctx context.Context, id claybot.AgentID, fn func(claybot.Record) bool) error
}

// Inbox reads waiting messages and receipts; see storage.Inbox and storage.Receipts.
type Inbox interface {
	Waiting(ctx context.Context, agent claybot.AgentID, limit int) ([]claybot.AgentMessage, error)
	Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error)
	LastReceipt(ctx context.Context, agent claybot.AgentID) (storage.Receipt, error)
	FindMessages(ctx context.Context, ref string) ([]claybot.MessageID, error)
}

// Runs reads runs; see storage.Runs and storage.RunReader.
type Runs interface {
	runs.Store
	RunPage(ctx context.Context, q storage.RunQuery) ([]claybot.Run, error)
}

// Outbox reads outgoing messages; see storage.OutboxReader.
type Outbox interface {
	OutgoingByID(ctx context.Context, id string) (claybot.Outgoing, error)
	OutgoingPage(ctx context.Context, q storage.OutgoingQuery) ([]claybot.Outgoing, error)
	SentAfter(ctx context.Context, dest string, n int64, limit int) ([]claybot.Outgoing, error)
	LastN(ctx context.Context, dest string) (int64, error)
	Transcript(ctx context.Context, agent claybot.AgentID, dest string, limit int) ([]storage.Entry, error)
}

// Parking lists parked messages; see storage.ParkedReader.
type Parking interface {
	ParkedAgents(ctx context.Context, limit int) ([]storage.ParkedAgent, error)
	ParkedOf(ctx context.Context, key string, limit int) ([]storage.Parked, error)
}

// Reminders lists the reminders of an agent; see storage.Reminders.
type Reminders interface {
	Reminders(ctx context.Context, agent claybot.AgentID) ([]storage.Reminder, error)
}

// Stores are what an Overview reads.
type Stores struct {
	Index   Index
	Agents  Histories
	Inbox   Inbox
	Runs    Runs
	Outbox  Outbox
	Parking Parking
	Later   Reminders
	Counts  storage.StatsReader
}

// Connectors are the connectors that this member runs.
type Connectors interface {
	// Running reports whether the set of connectors is known.
	Running() bool
	// All lists them by name.
	All() []connectors.Connector
	// Stuck returns a sentence that reports how long a connector has waited for one message
	// to be stored, if that is too long, or that it waits for a former connector to end; or "".
	Stuck(name string) string
	// Fresh reports whether a connector came less than connectors.LiveWithin ago, not with the
	// start, and not in the place of one that did not work.
	Fresh(name string) bool
}

// Standby knows for which connectors this member stands by.
type Standby interface {
	// Vacant reports whether this member stands by for a connector that no live member runs.
	Vacant(name string) bool
	// Elsewhere reports whether a live member runs a connector for which this one stands by, or
	// that has stopped on this one and has worked there for a while.
	Elsewhere(name string) bool
}

// Parked counts parked messages.
type Parked interface {
	Count(ctx context.Context) (storage.ParkedTotals, error)
	// Totals returns the newest count and whether parking is full.
	Totals() (totals storage.ParkedTotals, full bool)
}

// Parts are the parts of the system that an Overview asks.
type Parts struct {
	People     *people.Directory
	Profiles   *profiles.Profiles
	Questions  *questions.Questions
	Subagents  *subagents.Directory
	Worker     *worker.Worker
	Inboxes    *inbox.Inboxes
	Connectors Connectors
	Standby    Standby
	Held       func(connector string) string // why it receives nothing, or ""
	Parked     Parked
	DeadRoutes func() []delivery.DeadRoute
	Quota      *people.Quota
	Membership *cluster.Membership
	Hub        *runs.Hub
}

// Reports are sections of Status from outside of the system; see the fields of Status.
// Nil ones are omitted.
type Reports struct {
	Settings func() []SettingStatus
	Model    func() ModelStatus
	Sinks    func() []runs.SinkHealth
	Servers  func() []ServerStatus
	Disk     func() (DiskStatus, error)
	Checks   func() map[string]CheckStatus
	Limits   LimitStatus
	// Findings are what Status shows of all parts, and of those that work.
	Findings func(Status) []Finding
	// Spent and Budgets are what /usage and lists of people show, not Status; see storage.Usages
	// and budgets.Limiter.Standings.
	Spent   func(ctx context.Context, q storage.SpentQuery) ([]storage.Spent, error)
	Budgets func(ctx context.Context, ids ...claybot.AgentID) (map[claybot.AgentID][]budgets.Standing, error)
}

// Config is what New needs; only fields of Reports may be nil.
type Config struct {
	Stores
	Parts
	Reports Reports
	// SwitchedOff returns the error that every run of an agent ends with because of an
	// invalid setting, or nil.
	SwitchedOff func(ctx context.Context, agent claybot.Agent) *runs.Error
	// Stopped returns why an operator has stopped an agent, or what it works with; empty: none has.
	Stopped func(agent claybot.Agent) string
	// Skills lists the commands that the skills of an agent declare.
	Skills func(context.Context, claybot.Agent) ([]connectors.Command, error)
	// Access is read for every Status.
	Access func() people.Access
	// Named are the people of the configuration: their ids by their names; nil: none.
	Named func() map[string][]string
	// Zone is the users' time zone, for the times in texts.
	Zone    func() *time.Location
	Version string
	Log     *slog.Logger
}

// An Overview shows what the system does and has done. It is safe for concurrent use and
// changes nothing.
type Overview struct {
	*Listings
	*Monitor
	*Stories
	*Answers
}

// Listings list agents, inboxes, runs and outgoing messages.
type Listings struct{ Config }

// A Monitor reports the status of the system.
type Monitor struct {
	Config
	listings *Listings
	began    time.Time
	counted  atomic.Pointer[figures] // the last ones
}

// Stories trace messages.
type Stories struct{ Config }

// Answers answer the chat commands that change nothing.
type Answers struct {
	Config
	monitor *Monitor
}

// New returns an Overview of a process that starts now.
func New(cfg Config) *Overview {
	listings := &Listings{cfg}
	monitor := &Monitor{Config: cfg, listings: listings, began: time.Now()}
	return &Overview{Listings: listings, Monitor: monitor, Stories: &Stories{cfg}, Answers: &Answers{cfg, monitor}}
}
