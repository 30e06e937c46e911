package storage

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

// Agents keeps who agents are.
type Agents interface {
	// AgentFor finds the agent of d or creates it with a start record. Any
	// number of concurrent first calls for equal descriptors make one agent.
	// The Name and Owner of a known background agent become those of d.
	AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error)
	// NewAgent is AgentFor for an agent that, when it is made now, begins with
	// these background settings.
	NewAgent(ctx context.Context, d claybot.Descriptor, b claybot.Background) (claybot.Agent, error)
	// Agent loads one agent; ErrNotFound when there is none.
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
	// SaveState replaces the mutable part of an agent as a whole.
	SaveState(ctx context.Context, l Lease, s claybot.AgentState) error
	// MoveChannel renames a channel of a connector in the descriptors of its
	// agents; their ids and histories stay. A second call changes nothing.
	MoveChannel(ctx context.Context, connector, from, to string) error
	// Delete takes an agent away: its files move to the quarantine, what waits
	// for it is dropped, its unfinished run fails. The next AgentFor makes a
	// new agent. ErrNotFound when there is none.
	Delete(ctx context.Context, id claybot.AgentID) error
}

// Histories keeps what agents remember.
type Histories interface {
	// OpenHistory opens the history of the leased agent for its worker.
	OpenHistory(ctx context.Context, l Lease) (History, error)
	// Records reads what an agent remembers without writing anything.
	Records(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error)
}

// Files keeps what was sent to agents, and long results of their tools.
type Files interface {
	// SaveResult keeps a tool result that is too long for history, and returns
	// the path of its file below the data directory. The same call may save
	// again.
	SaveResult(ctx context.Context, id claybot.AgentID, call, text string) (path string, err error)
	// SaveFile keeps the bytes of a file that was sent to an agent, whole or
	// not at all, and returns its reference: f with a cleaned name and all that
	// the bytes say. ErrTooMany when there are more than limit bytes. An f with an
	// ID gets it: when a file of that ID is kept already, content is not read.
	SaveFile(ctx context.Context, id claybot.AgentID, f claybot.FileReference, content io.Reader, limit int64) (claybot.FileReference, error)
	// OpenFile opens what SaveFile kept, by its id; ErrNotFound.
	OpenFile(ctx context.Context, id claybot.AgentID, file string) (claybot.FileReference, io.ReadCloser, error)
}

// A History is one agent's records while a worker works on it. It is used by
// one goroutine.
type History interface {
	// Records returns what follows the most recent start or reset, appended
	// ones included. Records that a summary stands for are left out. The caller
	// must not change it.
	Records() []claybot.Record
	// Marker is the most recent start or reset; a zero Record when there is
	// none, or when a summary is newer.
	Marker() claybot.Record
	// Append adds records; they and all buffered ones are durable when it
	// returns.
	Append(ctx context.Context, r ...claybot.Record) error
	// Buffer adds records that a crash may lose. Only for what can be made
	// again from the inbox: the messages of an unfinished run. It may take them
	// although the lease has ended; they are not saved then.
	Buffer(ctx context.Context, r ...claybot.Record) error
	Close() error
}

// What is the same in every implementation of Agents.

const (
	// TextLimit is the longest text file that is kept as a text, in bytes.
	TextLimit = 64 << 10
	// fileNameLimit is the longest name of a file, in bytes.
	fileNameLimit = 120
)

// DefaultEngine is the engine of an agent that names none.
const DefaultEngine = "react"

// CheckDescriptor refuses what could not be found again: an empty id, or one
// that JSON would change.
func CheckDescriptor(d claybot.Descriptor) error {
	user, sub := d.Type == claybot.AgentUser, d.Type == claybot.AgentSubagent
	parts := []struct {
		name, value string
		needed      bool
	}{
		{"type", string(d.Type), true},
		{"connector", d.Connector, user},
		{"channelId", d.ChannelID, user},
		{"userId", d.UserID, user},
		{"uid", d.UID, sub || d.Type == claybot.AgentCron},
		{"parent", string(d.Parent), sub},
		{"name", d.Name, false},
		{"owner", d.Owner, false},
		{"root", string(d.Root), false},
		{"profile", d.Profile, false},
	}
	for _, p := range parts {
		if p.value == "" && p.needed {
			return fmt.Errorf("descriptor: %s is empty", p.name)
		}
		if !utf8.ValidString(p.value) {
			return fmt.Errorf("descriptor: %s %.80q is not UTF-8", p.name, p.value)
		}
	}
	return nil
}

// Renamed is the descriptor of an agent that has had old and is now asked for
// as d: a background agent takes over the name and owner, a moved one the
// identity. What a subagent was born with stays.
func Renamed(old, d claybot.Descriptor) claybot.Descriptor {
	r := d.Identity()
	r.Name, r.Owner, r.Root, r.Depth, r.Profile = old.Name, old.Owner, old.Root, old.Depth, old.Profile
	if !d.Foreground() {
		r.Name, r.Owner = d.Name, d.Owner
	}
	return r
}

// NewState is the state of an agent made at created.
func NewState(created claybot.Time) claybot.AgentState {
	now := claybot.Now()
	if created == 0 {
		created = now
	}
	return claybot.AgentState{Engine: DefaultEngine, CreatedAt: created, UpdatedAt: now}
}

// Summarized is what is remembered of records once summary is appended to them.
func Summarized(records []claybot.Record, summary claybot.Record) []claybot.Record {
	kept := slices.DeleteFunc(slices.Clone(records), func(r claybot.Record) bool { return r.Type == claybot.RecordSummary })
	kept = kept[len(kept)-min(max(summary.Keep, 0), len(kept)):]
	return append(slices.Clone(kept), summary) // a copy: the folded ones are let go
}

// nameLimit is the longest call that is a file name as it is.
const nameLimit = 64

// ResultName is the file name for a call id, which a model made up. One that
// is not a plain word gets its hash; the dot keeps the two kinds apart.
func ResultName(call string) string {
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return -1
	}, call)
	if plain == call && plain != "" && len(plain) <= nameLimit {
		return plain + ".txt"
	}
	if plain == "" {
		plain = "call"
	}
	return fmt.Sprintf("%s.%x.txt", plain[:min(len(plain), nameLimit/2)], sha256.Sum256([]byte(call)))
}

// FileName makes a name harmless that somebody else gave: no folders, no
// control characters, no leading dots, at most fileNameLimit bytes.
func FileName(name string) string {
	name = strings.ToValidUTF8(name, "")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) { // also those that turn the direction of writing
			return -1
		}
		return c
	}, name)
	name = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(name), "."))
	for len(name) > fileNameLimit {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name == "" {
		return "file"
	}
	return name
}

// PlainText reports text that a model can read.
func PlainText(data []byte) bool {
	if !utf8.Valid(data) {
		return false
	}
	for _, c := range string(data) {
		if unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return len(data) > 0
}

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

// Ended counts the work that was unfinished when a store went back in time, and that has
// ended for that reason.
type Ended struct {
	Messages int // that waited for a run
	Parked   int // that waited for their agent
	Runs     int
	Sends    int
	// Reminders were due by then, so they may have come already.
	Reminders int
}

// A Checkpoint is a small fact that is kept under a key, see Checkpoints. The zero
// Checkpoint is none.
type Checkpoint struct{ Key, Value string }

// An Ending is a History that does not commit together with runs and messages, and so
// must be told from a shorter copy of itself. Optional.
type Ending interface {
	// End returns the checkpoint of where the durable history ends. It belongs into the
	// transaction that ends the work on the agent: a history that is shorter than its
	// mark when it is opened again is reported as damaged.
	End(ctx context.Context) Checkpoint
}

// EndOf returns the checkpoint of the end of h; the zero Checkpoint where it needs none.
func EndOf(ctx context.Context, h History) Checkpoint {
	if e, ok := h.(Ending); ok {
		return e.End(ctx)
	}
	return Checkpoint{}
}
