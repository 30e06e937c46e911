package agentsystem

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/worker"
)

// The stores that New hands to several parts, each of which takes what it needs.
type (
	// Agents stores agents, their histories and their files.
	Agents interface {
		storage.Agents
		storage.Histories
		storage.Files
	}
	// Index finds and lists agents, and stores their settings.
	Index interface {
		storage.Index
		storage.AgentReader
		storage.Settings
	}
	// Inbox stores waiting messages, leases, and what became of messages.
	Inbox interface {
		storage.Inbox
		storage.Leases
		storage.Receipts
	}
	// Runs writes and reads runs.
	Runs interface {
		storage.Runs
		storage.RunReader
		storage.Ratings
	}
	// Outbox stores outgoing messages.
	Outbox interface {
		storage.Outbox
		storage.OutboxReader
		storage.OutboxControl
	}
	// Access stores who may use claybot, and their roles.
	Access interface {
		storage.Access
		storage.Roles
	}
	// Parking stores and lists parked messages.
	Parking interface {
		storage.Parking
		storage.ParkedReader
	}
)

// Stores are the durable parts that an AgentSystem stands on. Only Marks and Chatter may be
// nil: without Marks, no run is given up because it failed or killed the process too often;
// without Chatter, nothing is kept of groups.
type Stores struct {
	Agents  Agents
	Index   Index
	Inbox   Inbox
	Runs    Runs
	Outbox  Outbox
	Access  Access
	Counts  storage.StatsReader
	Later   storage.Reminders
	Texts   storage.Documents
	Asked   storage.Questions
	Marks   storage.CheckpointSet
	Chatter storage.Chatter
	Parking Parking
}

// Settings say how agents behave. They are read at every decision, so that a change applies at
// once, and so are those of people and of messages. Only Profile must be set.
type Settings struct {
	Profile func(claybot.Descriptor) profiles.Profile
	// Society bounds how agents deal with other agents; nil: subagents.DefaultLimits.
	Society func() subagents.Limits
	// Flows are the workflows; nil: there are none.
	Flows Flows
	// SwitchedOff returns the error that every run of an agent ends with while a setting
	// is bad; nil while none is.
	SwitchedOff func(context.Context, claybot.Agent) *runs.Error
	// Stopped returns why an operator has stopped an agent, or what it works with; empty: none has.
	// What comes for it waits then, until it is empty and Reschedule was called; runs that have begun go on.
	Stopped func(claybot.Agent) string
	// Models and Tools list what the settings of an agent may name; nil for nothing.
	Models, Tools func(claybot.Agent) []string
	// Forbids returns what permissions say against the tools of an agent; see profiles.Config.
	Forbids func(a claybot.Agent, p claybot.Permissions) func(tool string) string
	// Skills lists the commands that the skills which an agent may use declare, by the names of
	// the skills; nil: none.
	Skills func(context.Context, claybot.Agent) ([]connectors.Command, error)
	// CheckPrompt says what is wrong with the system prompt that a user sets for an agent.
	CheckPrompt func(string) error
	// CheckEdit says why a person may not approve a call with the arguments that they
	// gave it; see tools.Set.Editable. nil: no arguments are edited.
	CheckEdit func(claybot.Agent, claybot.ToolCall) error
}

// PeopleSettings say who people are, what they may, and how claybot speaks to them. Only
// Admission must be set.
type PeopleSettings struct {
	Admission func() people.Access
	// Operators are the people who run this claybot, besides those on the web page and
	// the terminal, as "connector/userId".
	Operators func() []string
	// People are the people of the configuration: their ids, as "connector/userId", by their
	// names; nil: none.
	People func() map[string][]string
	// Named lists the chats that the settings name, as connector:id: operators hear of those
	// that have a new id; nil: none.
	Named func() []string
	// Instances returns the platforms of the connectors that are not named as theirs; nil: there
	// are none.
	Instances func() platforms.Instances
	// ParseAllowed reads a person or a channel as /allow names it, connector:id; nil: any
	// connector and any id. An error says in words what is wrong.
	ParseAllowed func(string) (connector, subject string, err error)
	// Zone is where the people are, for the times that they read; nil, or a nil result,
	// is UTC.
	Zone func() *time.Location
	// Language is that of people whose own one is unknown; nil: English.
	Language func() texts.Language
	// Replaced are texts of the operator in place of those of the catalogue; nil: none.
	Replaced func() texts.Replaced
}

// MessageSettings say what becomes of the messages of people. All may be nil.
type MessageSettings struct {
	// UserSecrets is what happens to secrets in messages of people; nil: MaskSecrets.
	UserSecrets func() UserSecrets
	// RunsPerMinute is how many messages a person may write within a minute to start runs;
	// nil, and 0: any number.
	RunsPerMinute func() int
	// FilesPerOwner is how many bytes of files the owner of agents may have sent; nil, and 0:
	// any number.
	FilesPerOwner func() int64
	// OwnThreads says that each thread or topic of a channel is a conversation of its own,
	// with its own agent; nil: never. Otherwise a person has one agent per channel.
	OwnThreads func() bool
	// NoteEdits says that an agent is told when a person edits a message that it has read
	// already; nil: never.
	NoteEdits func() bool
}

// Flows are the workflows that messages start.
type Flows interface {
	worker.Flows
	// Named returns the flow in force with a name; nil for none.
	Named(name string) *flows.Flow
	// Take returns the message with which a flow begins, and its agent, if a trigger takes what a
	// person or a program wrote to the agent of to; otherwise taken is false.
	Take(to claybot.Descriptor, m claybot.AgentMessage) (flow claybot.Descriptor, start claybot.AgentMessage, taken bool)
}

// Limits bound the work of this member. Zero fields mean the defaults named.
type Limits struct {
	MaxRuns  int           // agents at work at the same time; 1,000
	Idle     bool          // messages are taken in, and wait: no agent works
	MaxBatch int           // the largest batch of any profile; inbox.DefaultMaxBatch
	Grace    time.Duration // for runs in flight at shutdown; 30 s
	HandOver time.Duration // the same, when other members are there to go on with them; 5 s
	Lease    time.Duration // of an agent; inbox.DefaultTTL
}

// slots is how many workers may start at the same time.
func (l Limits) slots() int {
	if l.Idle {
		return 0
	}
	return l.MaxRuns
}

// Recordings turn what people say into text, and replies into speech.
type Recordings struct {
	// Transcribe transcribes a recording that came with a run; nil: recordings stay
	// files. It gets the files of one message one after another. An *llm.LimitError has
	// the words for the person.
	Transcribe func(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (llm.Speech, error)
	// Speak returns the recording of a reply of a run; nil: replies are text alone.
	Speak func(ctx context.Context, run claybot.Run, text string) (llm.Recording, error)
}

// Config is what New needs.
type Config struct {
	Stores
	Settings
	PeopleSettings
	MessageSettings
	Limits
	Recordings
	// Members is this process's membership in its cluster. Its Run begins before that of
	// the AgentSystem and ends after it.
	Members *cluster.Membership
	Version string
	// Hub receives the text of answers while it grows; nil: a new one. The store must be
	// opened with its Committed.
	Hub *runs.Hub
	// Moves are the chats with new ids, which the settings follow as well; nil: those of Marks.
	Moves *people.Moves
	// Boots is what this member knows of how it ended before. nil: always in order.
	Boots storage.Boots
	// Reports are what Status shows of other parts. The MaxRuns of its Limits is that of
	// Limits.
	Reports overview.Reports
	Meter   Meter // optional
	// Hooks hear of the nodes and edges of all runs of this member; optional.
	Hooks runs.Hooks
	Log   *slog.Logger
}

// withDefaults fills in what New does not need to be given.
func (cfg Config) withDefaults() Config {
	def := func(d *time.Duration, x time.Duration) {
		if *d == 0 {
			*d = x
		}
	}
	cfg.MaxRuns = cmp.Or(cfg.MaxRuns, 1000)
	cfg.Reports.Limits.MaxRuns = cfg.MaxRuns
	cfg.MaxBatch = cmp.Or(cfg.MaxBatch, inbox.DefaultMaxBatch)
	def(&cfg.Grace, 30*time.Second)
	def(&cfg.HandOver, 5*time.Second)
	if cfg.Meter == nil {
		cfg.Meter = noMeter{}
	}
	if cfg.Moves == nil {
		cfg.Moves = people.NewMoves(cfg.Marks)
	}
	if cfg.Hub == nil {
		cfg.Hub = runs.NewHub()
	}
	if cfg.Society == nil {
		cfg.Society = func() subagents.Limits { return subagents.DefaultLimits }
	}
	if cfg.SwitchedOff == nil {
		cfg.SwitchedOff = func(context.Context, claybot.Agent) *runs.Error { return nil }
	}
	if cfg.Stopped == nil {
		cfg.Stopped = func(claybot.Agent) string { return "" }
	}
	if cfg.Instances == nil {
		cfg.Instances = func() platforms.Instances { return nil }
	}
	if cfg.RunsPerMinute == nil {
		cfg.RunsPerMinute = func() int { return 0 }
	}
	if cfg.FilesPerOwner == nil {
		cfg.FilesPerOwner = func() int64 { return 0 }
	}
	never := func() bool { return false }
	if cfg.OwnThreads == nil {
		cfg.OwnThreads = never
	}
	if cfg.NoteEdits == nil {
		cfg.NoteEdits = never
	}
	if cfg.UserSecrets == nil {
		cfg.UserSecrets = func() UserSecrets { return MaskSecrets }
	}
	if cfg.ParseAllowed == nil {
		cfg.ParseAllowed = anySubject
	}
	cfg.Zone = orUTC(cfg.Zone)
	return cfg
}

// orUTC returns what a zone is, or UTC where there is none.
func orUTC(zone func() *time.Location) func() *time.Location {
	return func() *time.Location {
		if zone != nil {
			if z := zone(); z != nil {
				return z
			}
		}
		return time.UTC
	}
}

// anySubject reads connector:id, whatever both are.
func anySubject(who string) (connector, subject string, err error) {
	connector, subject, ok := strings.Cut(who, ":")
	if !ok || connector == "" || subject == "" {
		err = errors.New("want connector:id")
	}
	return connector, subject, err
}

// A Meter observes messages and runs. Its methods are called concurrently: they must be
// quick, must not block, must not panic and must not call the AgentSystem.
type Meter interface {
	delivery.Meter
	// Received observes what became of a message that a connector posted, one of the
	// Received constants, and how long that took. Tasks and the heartbeat have the type
	// of their agents in place of a connector.
	Received(connector, outcome string, took time.Duration)
	// Rated observes a feedback that a person gave by a reaction.
	Rated(connector string, vote claybot.Vote)
	// Event observes an event of a run of an agent after it is durable. Those of one run
	// come in order, each once; those from before a restart may be missing.
	Event(agent claybot.AgentID, e claybot.Event)
}

// What becomes of a message that a connector posted.
const (
	ReceivedAccepted  = "accepted"  // it is durable; commands count
	ReceivedDuplicate = "duplicate" // it was known
	ReceivedStranger  = "stranger"  // its sender has no access
	ReceivedUnheard   = "unheard"   // a message of a group that is not for an agent
	ReceivedRefused   = "refused"   // it will not run: too long, empty, the inbox is full, the agent is damaged
	ReceivedError     = "error"     // nothing was stored; its source keeps it
)

// noMeter measures nothing.
type noMeter struct{}

func (noMeter) Received(string, string, time.Duration)       {}
func (noMeter) Rated(string, claybot.Vote)                   {}
func (noMeter) Sent(claybot.Outgoing, string, time.Duration) {}
func (noMeter) Event(claybot.AgentID, claybot.Event)         {}
func (noMeter) Panicked(string)                              {}
