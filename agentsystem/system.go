// Package agentsystem routes messages to agents and keeps every agent busy
// with at most one run. It owns the way from an accepted message to the outbox
// and from the outbox to the platform.
//
// It guarantees what the store and the connectors together allow: a message
// that Post accepted ends in a reply, a recorded reason, or one notice; one
// agent never has two runs at a time; different agents never wait for each
// other; a destination gets its messages in order.
//
// Goroutines: Run starts one per connector, the dispatcher, the deliverer, one
// for reminders, one for parked messages, and one or two that mend what a crash left behind; where several nodes share the store one that follows who
// is there, and one that looks for what others left unsent; the dispatcher starts one worker per held agent, which has one more for typing
// and drafts; the deliverer starts one lane per destination with something to
// send. Run waits for all of them.
//
// The package must not import an implementation of anything.
package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/worker"
)

// The parts of the store that the system still takes whole.
type (
	// Agents is who agents are, what they remember, and their files.
	Agents interface {
		storage.Agents
		storage.Histories
		storage.Files
	}
	// Index finds and lists agents, and has their settings.
	Index interface {
		storage.Index
		storage.AgentReader
		storage.Settings
	}
	// Inbox is what waits, who works on it, and what became of it.
	Inbox interface {
		storage.Inbox
		storage.Leases
		storage.Receipts
	}
	// Runs writes and reads runs.
	Runs interface {
		storage.Runs
		storage.RunReader
	}
	// Outbox is what is sent, and what an operator does with it.
	Outbox interface {
		storage.Outbox
		storage.OutboxReader
		storage.OutboxControl
	}
)

// Stores are the durable parts that a System stands on.
type Stores struct {
	Agents Agents
	Index  Index
	Inbox  Inbox
	Runs   Runs
	Outbox Outbox
	Access storage.Access
	Counts storage.StatsReader
	Later  storage.Reminders
	Texts  storage.Documents
	Asked  storage.Questions
	// Marks keep how often a run has failed or killed the process; nil: no run is
	// given up for that.
	Marks storage.Checkpoints
	// Parking keeps messages whose agent cannot be used.
	Parking storage.Parking
	// Shared is of a store that several nodes share; nil: the process has the store
	// for itself.
	Shared storage.Versions
}

// Config is what New needs. Zero values mean the defaults named.
type Config struct {
	Stores
	Log     *slog.Logger
	Node    string // unique for every process; the id of Members when empty
	Version string
	// Members is the place of this process among those that share the store. Its
	// Run is to begin before that of the System and to end after it. nil: the
	// process has the store for itself.
	Members *cluster.Membership
	// Profile is read at every decision, so that a change counts at once.
	Profile func(claybot.Descriptor) profiles.Profile
	// Admission is read with every message.
	Admission func() people.Access
	// SwitchedOff returns the error that every run of an agent ends with while a
	// setting is bad; nil while none is. Optional.
	SwitchedOff func(context.Context, claybot.Agent) *runs.Error
	// Hub is told the text of answers while it grows; New makes one when there
	// is none. The store must be opened with its Committed.
	Hub *runs.Hub
	// Models and Tools list what the settings of an agent may name; nil for
	// nothing.
	Models func(claybot.Agent) []string
	Tools  func(claybot.Agent) []string
	// Zone is where the people are, for the times that they say; nil, or a nil
	// result, is UTC.
	Zone func() *time.Location
	// CheckPrompt says what is wrong with a system prompt that somebody sets for
	// an agent; optional.
	CheckPrompt func(string) error
	// CheckEdit says why a person may not approve a call with the arguments that he
	// gave it; see tools.Set.Editable. nil: no arguments are edited.
	CheckEdit func(claybot.Agent, claybot.ToolCall) error
	// Operators are the people who run this claybot, besides those on the web page and
	// the terminal, as "connector/userId"; optional.
	Operators func() []string
	// Reports are what Status shows of parts outside of the system. The MaxRuns of its
	// Limits goes by MaxRuns.
	Reports overview.Reports
	// Meter is told what happens; optional.
	Meter Meter
	// Transcribe writes down what is said in a recording that came with a run; nil:
	// nobody can. The files of one message are heard one after another. An
	// *llm.LimitError has the words for the person.
	Transcribe func(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (llm.Speech, error)
	// Boots is what this member knows of how it ended before. nil: it always counts as
	// ended in order.
	Boots storage.Boots
	// Settings for agents that deal with other agents; read at every decision.
	// nil means the defaults.
	Society func() subagents.Limits
	// Limits of the node; zero fields mean the defaults.
	MaxRuns  int           // agents at work at the same time; 1,000
	MaxBatch int           // the largest batch of any profile; inbox.DefaultMaxBatch
	Grace    time.Duration // for runs in flight at shutdown; 30 s
	HandOver time.Duration // the same, when other nodes are there to go on with them; 5 s
	Lease    time.Duration // of an agent; inbox.DefaultTTL
}

// storeTime bounds a piece of bookkeeping that must be tried although its own
// context is done.
const storeTime = 30 * time.Second

// drainTime is how long a shutdown waits for what can be sent still.
const drainTime = 5 * time.Second

// A AgentSystem routes messages and runs agents. Its methods are safe for
// concurrent use.
type AgentSystem struct {
	Config
	boxes     *inbox.Inboxes
	People    *people.Directory
	Profiles  *profiles.Profiles
	Worker    *worker.Worker
	Questions *questions.Questions
	Subagents *subagents.Subagents
	Overview  *overview.Overview
	deliverer *delivery.Deliverer
	waiters   inbox.Waiters
	parking   parkingLot
	lookup    *storage.Bounded
	intake    intake
	turns     runs.AtWork
	memory    memory
	holding   *holding // of connectors

	elsewhere inbox.Signal // another member has written something
	freed     inbox.Signal // another member has released a claim that is no destination, or may have
	shown     shown
	openings  openings

	mu         sync.Mutex
	connectors map[string]connectors.Connector
	running    bool // Run has said which connectors there are
}

// New makes a system that does nothing before Run. Engines are added with
// Handle.
func New(cfg Config) *AgentSystem {
	if cfg.MaxRuns == 0 {
		cfg.MaxRuns = 1000
	}
	cfg.Reports.Limits.MaxRuns = cfg.MaxRuns
	if cfg.MaxBatch == 0 {
		cfg.MaxBatch = inbox.DefaultMaxBatch
	}
	if cfg.Grace == 0 {
		cfg.Grace = 30 * time.Second
	}
	if cfg.HandOver == 0 {
		cfg.HandOver = 5 * time.Second
	}
	if cfg.Meter == nil {
		cfg.Meter = noMeter{}
	}
	if cfg.Members == nil {
		cfg.Members = cluster.Alone(storage.Member{ID: cfg.Node, Name: cfg.Node, Version: cfg.Version})
	}
	s := &AgentSystem{
		Config:     cfg,
		boxes:      newBoxes(cfg),
		lookup:     storage.NewBounded(cfg.Agents),
		connectors: make(map[string]connectors.Connector),
	}
	if s.Hub == nil {
		s.Hub = runs.NewHub()
	}
	if s.Society == nil {
		s.Society = func() subagents.Limits { return subagents.DefaultLimits }
	}
	s.holding = newHolding()
	s.assemble()
	return s
}

// Handle gives agents an engine by name. All calls come before Run.
func (s *AgentSystem) Handle(name string, e runs.Engine) { s.Worker.Handle(name, e) }

// Run works until ctx is done: it recovers what the last process left, then
// runs the connectors, the agents and the deliveries. It returns nil after an
// orderly end, and an error when the store fails for good. Runs in flight get
// the grace period and then stay unfinished: they go on at the next start.
func (s *AgentSystem) Run(ctx context.Context, cs ...connectors.Connector) error {
	s.mu.Lock()
	for _, c := range cs {
		s.connectors[c.Name()] = c
	}
	s.running = true
	s.mu.Unlock()
	if _, err := s.Members.Joined(ctx); err != nil {
		return nil // ended before it began
	}
	defer context.AfterFunc(ctx, s.Members.Drain)()
	if err := s.People.Load(ctx); err != nil {
		return err
	}
	if err := s.Profiles.Load(ctx); err != nil {
		return err
	}
	if err := s.deliverer.Begin(ctx); err != nil {
		return err
	}
	if err := s.Worker.BeginRamp(ctx); err != nil {
		s.deliverer.End(0, inbox.ErrShutdown)
		return err
	}
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error { s.Worker.Ramp.Run(working); return nil })
	if letIn := s.holdBack(cs); letIn != nil {
		group.Go(func() error { letIn(working); return nil })
	}
	for _, c := range cs {
		group.Go(func() error { s.supervise(working, c); return nil })
	}
	group.Go(func() error { return s.dispatch(working) })
	group.Go(func() error { s.Subagents.RemindAll(working); return nil })
	group.Go(func() error { s.retryParked(working); return nil })
	if s.Members.IsAlone() {
		group.Go(func() error { s.Subagents.StopOrphans(working); return nil })
		group.Go(func() error { s.Questions.TakeTyped(working); return nil })
	} else {
		group.Go(func() error { s.followNodes(working); return nil })
		group.Go(func() error { s.mendAll(working); return nil })
		group.Go(func() error { s.deliverer.Watch(working); return nil })
		group.Go(func() error { s.heed(working); return nil })
		group.Go(func() error { s.mirrorAll(working); return nil })
	}
	err := group.Wait() // the dispatcher has waited for its workers
	s.waiters.Shutdown()
	s.deliverer.End(drainTime, inbox.ErrShutdown)
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// dispatch gives every due agent a worker. It returns when ctx is done and all
// workers have ended, or with the store's error after three in a row.
func (s *AgentSystem) dispatch(ctx context.Context) error {
	workers := newCrew(s.MaxRuns)
	defer s.endWork(workers)
	failures := 0
	for {
		free, err := workers.room(ctx)
		if err != nil {
			return err
		}
		if !s.Members.IsAlone() {
			if free, err = s.Worker.Ramp.RoomFor(ctx, free); err != nil {
				return err
			}
		}
		if free = s.Worker.Unwell.Room(free, workers.busyNow()); free == 0 {
			claybot.Sleep(ctx, worker.LookUnwell)
			continue
		}
		boxes, err := s.boxes.Next(ctx, min(free, 64), s.MaxBatch)
		if err != nil || len(boxes) > 0 { // else nothing was written
			s.Worker.Unwell.Stored(err)
		}
		switch {
		case ctx.Err() != nil:
			for _, b := range boxes {
				workers.start(b, s.Worker.Work)
			}
			return context.Cause(ctx)
		case err != nil && !storage.Unavailable(err) && s.Members.IsAlone(): // else it may be the way to the store
			if failures++; failures == 3 {
				return fmt.Errorf("the store fails: %w", err)
			}
			fallthrough
		case err != nil:
			if storage.ClassOf(err) == storage.ClassMember {
				s.Worker.Unwell.Met("", err)
			}
			s.Log.Error("cannot look for work; trying again", "err", err)
			claybot.Sleep(ctx, time.Second)
			continue
		}
		failures = 0
		s.Worker.Line(ctx, boxes)
		for _, b := range boxes {
			workers.start(b, s.Worker.Work)
		}
	}
}

// endWork gives the workers their grace, then cuts them. It is short when others
// are there to go on: what is cut here is resumed there at once.
func (s *AgentSystem) endWork(workers *crew) {
	s.Worker.Drain()
	grace := s.Grace
	if s.Members.Others() > 0 {
		grace = min(grace, s.HandOver)
	}
	if !workers.wait(grace) {
		workers.end(inbox.ErrShutdown)
		workers.wait(0)
	}
}

func (s *AgentSystem) connector(name string) connectors.Connector {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connectors[name]
}
