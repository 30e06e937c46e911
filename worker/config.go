package worker

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
)

// storeTime is the time limit of a write that must be attempted although its
// context is done.
const storeTime = 30 * time.Second

// Members is what a Worker needs of the cluster; see cluster.Membership.
type Members interface {
	// Others returns the number of other members that are live and not
	// draining.
	Others() int
	// Retries reports whether to retry a call to the store that failed with err.
	Retries(err error) bool
}

// A Meter observes runs; its methods must be quick, must not block and must not panic.
type Meter interface {
	// Event observes an event of a run of an agent after it is durable. Those of one run
	// come in order, each once.
	Event(agent claybot.AgentID, e claybot.Event)
	// Panicked observes a panic that was caught in the part with that name.
	Panicked(where string)
}

// Stores are the stores that a Worker uses. Marks and Boots may be nil: then no run is
// given up because it crashed the process.
type Stores struct {
	Agents    storage.Agents
	Histories storage.Histories
	Files     storage.Files
	Index     storage.Index
	Leases    storage.Leases
	Receipts  storage.Receipts
	Runs      storage.Runs
	Reader    storage.RunReader
	Outbox    storage.Outbox
	Texts     storage.Documents
	Counts    storage.StatsReader
	Marks     storage.Checkpoints
	Boots     storage.Boots
}

// Parts are the other parts of the system that a Worker calls.
type Parts struct {
	Boxes     *inbox.Inboxes
	Waiters   *inbox.Waiters
	Deliverer *delivery.Deliverer
	People    *people.Directory
	Profiles  *profiles.Profiles
	Questions *questions.Questions
	Subagents *subagents.Supervisor
	Hub       *runs.Hub
	AtWork    *runs.AtWork
	// Connector returns the connector of a name, also one that is stopped; nil where none is
	// configured.
	Connector func(name string) connectors.Connector
	// Active is Connector but for one that is stopped: for that it returns a connectors.StandIn.
	Active func(name string) connectors.Connector
	// Said returns what was said in the chat of an agent, see connectors.Historian. kept is
	// false where that is not known of any chat of the platform. The words of an error are for
	// the model. nil: no chat is read.
	Said func(ctx context.Context, agent claybot.Agent, s connectors.Span) (said []claybot.Said, more, kept bool, err error)
	// Complete prepares a message for the inbox of an agent.
	Complete func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posting, error)
	// Flows are the workflows; nil: there are none.
	Flows Flows
	// Quota bounds the files that people send.
	Quota *people.Quota
	// DropDoomed drops messages that must not run because a message of the same
	// call failed.
	DropDoomed func(agent claybot.AgentID, ids []claybot.MessageID) []claybot.MessageID
	// Queued returns when the run of an agent may show its status, if a status says that the
	// message waited; the run then clears it. nil: none does.
	Queued func(claybot.AgentID) <-chan struct{}
	// Stopped returns why an agent begins no run at present; empty: it does. Reschedule makes what
	// waits for it due when that has changed.
	Stopped    func(claybot.Agent) string
	Reschedule func(context.Context, claybot.AgentID) error
	// First reports whether an event was not shown yet on this member, and marks it as
	// shown.
	First func(claybot.Event) bool
}

// A Transcriber transcribes a recording of a run. The files of one message are transcribed
// in sequence. An *llm.LimitError has a text for the user.
type Transcriber func(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (llm.Speech, error)

// A Speaker returns the recording of a reply of a run.
type Speaker func(ctx context.Context, run claybot.Run, text string) (llm.Recording, error)

// Config is what New needs. Transcribe may be nil: then no recordings are transcribed; and so may
// Speak: then replies are text alone.
type Config struct {
	Stores     Stores
	Parts      Parts
	Members    Members
	Meter      Meter
	Hooks      *runs.HookCaller // nil: none
	Transcribe Transcriber
	Speak      Speaker
	Log        *slog.Logger
}

// A Worker takes held agents through their passes. Its methods are safe for concurrent
// use.
type Worker struct {
	// Faults and Health record which agents, and whether this member, cannot be used
	// at present.
	Faults Faults
	Health Health
	// Recovery resumes runs after a crash, based on the Boot record of the previous
	// process.
	Recovery *Recovery
	Boot     *BootRecord

	stores     Stores
	parts      Parts
	members    Members
	meter      Meter
	hooks      *runs.HookCaller
	transcribe Transcriber
	voice      voice
	log        *slog.Logger
	charges    chargeBook
	engines    engines
	places     *places       // nil: there are no workflows
	draining   chan struct{} // closed at the start of a shutdown
	leasesLost atomic.Int64
}

// New returns a Worker. Engines are added with Handle.
func New(cfg Config) *Worker {
	boot := &BootRecord{boots: cfg.Stores.Boots, log: cfg.Log}
	s := &Worker{
		Boot: boot, stores: cfg.Stores, parts: cfg.Parts, members: cfg.Members, meter: cfg.Meter, hooks: cfg.Hooks, transcribe: cfg.Transcribe, voice: voice{speak: cfg.Speak, log: cfg.Log}, log: cfg.Log,
		charges: chargeBook{cfg.Stores.Marks, cfg.Log}, engines: make(engines), draining: make(chan struct{}),
	}
	if cfg.Parts.Flows != nil {
		s.places = newPlaces(cfg.Parts.Flows.Max)
	}
	s.Health.keep(boot)
	s.Recovery = newRecovery(boot, cfg.Log, s.charges.survived)
	return s
}

// Handle registers an engine by name. It must be called before the first pass.
func (s *Worker) Handle(name string, e runs.Engine) { s.engines[name] = e }

// LeasesLost returns how many passes ended because the lease of their agent had.
func (s *Worker) LeasesLost() int64 { return s.leasesLost.Load() }

// Drain starts a shutdown: passes that wait for a store stop waiting. It must be called
// once.
func (s *Worker) Drain() { close(s.draining) }
