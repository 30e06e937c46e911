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

// Agents stores the identity and state of agents.
type Agents interface {
	// AgentFor finds the agent of d or creates it with a start record.
	// Concurrent first calls for equal descriptors create one agent. The Name
	// and Owner of a known background agent become those of d.
	AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error)
	// NewAgent is like AgentFor, and gives a new agent these background
	// settings.
	NewAgent(ctx context.Context, d claybot.Descriptor, b claybot.Background) (claybot.Agent, error)
	// Agent loads one agent; ErrNotFound if it does not exist.
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
	// SaveState replaces the mutable part of an agent as a whole.
	SaveState(ctx context.Context, l Lease, s claybot.AgentState) error
	// MoveChannel renames a channel of a connector in the descriptors of its
	// agents; their ids and histories stay. A second call changes nothing.
	MoveChannel(ctx context.Context, connector, from, to string) error
	// Delete deletes an agent: its files move to the quarantine, its pending
	// messages are dropped, its unfinished run fails. The next AgentFor creates
	// a new agent. ErrNotFound if it does not exist.
	Delete(ctx context.Context, id claybot.AgentID) error
}

// Histories stores the histories of agents.
type Histories interface {
	// OpenHistory opens the history of the leased agent for its worker.
	OpenHistory(ctx context.Context, l Lease) (History, error)
	// Records reads the history of an agent and writes nothing.
	Records(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error)
	// Past calls fn with all records of an agent that are stored, the newest first, until it
	// returns false: also those before a reset, and those that a summary replaces. Damaged
	// records are left out. It writes nothing.
	Past(ctx context.Context, id claybot.AgentID, fn func(claybot.Record) bool) error
}

// A HistoryPruner removes old records of histories.
type HistoryPruner interface {
	// PruneHistories removes the records before a time that precede the newest summary,
	// start or reset of their history, and the long tool results that they name. Of an agent
	// that has nothing to do and whose newest record is older, it removes all: a reset by
	// "retention" takes their place. What the next run of an agent would read otherwise stays.
	// It may be cut short at any time: the next call goes on.
	PruneHistories(ctx context.Context, before claybot.Time) error
}

// Expired is the record that takes the place of a history that was removed.
func Expired(at claybot.Time) claybot.Record {
	return claybot.Record{Type: claybot.RecordReset, At: at, By: "retention"}
}

// SavedResult returns the name of the file in which the agent's long tool result is that r
// names; "" if it names none.
func SavedResult(id claybot.AgentID, r claybot.Record) string {
	name, ok := strings.CutPrefix(r.Saved, "agents/"+string(id)+"/results/")
	if !ok || strings.Contains(name, "/") {
		return ""
	}
	return name
}

// Files stores files sent to agents, and long tool results.
type Files interface {
	// SaveResult stores a tool result that is too long for the history, and
	// returns the path of its file below the data directory. A second save of
	// the same call replaces it.
	SaveResult(ctx context.Context, id claybot.AgentID, call, text string) (path string, err error)
	// SaveFile atomically stores a file sent to an agent and returns its
	// reference: f with a sanitized name and the properties derived from the
	// content. ErrTooMany if the file has more than limit bytes. If f has an ID
	// that is stored already, SaveFile does not read content.
	SaveFile(ctx context.Context, id claybot.AgentID, f claybot.FileReference, content io.Reader, limit int64) (claybot.FileReference, error)
	// OpenFile opens a file that SaveFile stored, by its id; ErrNotFound.
	OpenFile(ctx context.Context, id claybot.AgentID, file string) (claybot.FileReference, io.ReadCloser, error)
	// SentBytes returns the size of all stored files of agents that are marked Sent, in
	// bytes. Agents that do not exist count 0, and so does what cannot be read of an agent,
	// which is logged. It counts what is stored, so it is right after every crash.
	SentBytes(ctx context.Context, ids ...claybot.AgentID) (int64, error)
}

// A History is the history of one agent, opened by the worker that holds its
// lease. It must be used by one goroutine.
type History interface {
	// Records returns the records after the most recent start or reset,
	// including appended ones and excluding those that a summary replaces. The
	// caller must not change it. Nothing else does: a result with the same backing
	// array as an earlier one begins with its records.
	Records() []claybot.Record
	// Marker returns the most recent start or reset; the zero Record if there
	// is none, or a summary is newer.
	Marker() claybot.Record
	// Append adds records. They and all buffered ones are durable when it
	// returns nil.
	Append(ctx context.Context, r ...claybot.Record) error
	// Buffer adds records that a crash may lose. Use it only for records that
	// can be made again: the messages of an unfinished run, and the last answer of
	// a run whose end stores it, see Deferring. After the lease has ended, it may
	// accept records without saving them.
	Buffer(ctx context.Context, r ...claybot.Record) error
	Close() error
}

// What is the same in every implementation of Agents.

const (
	// TextLimit is the maximum size of a file that is stored as text, in bytes.
	TextLimit = 64 << 10
	// fileNameLimit is the maximum length of a file name, in bytes.
	fileNameLimit = 120
)

// DefaultEngine is the engine of agents without an engine setting.
const DefaultEngine = "react"

// CheckDescriptor returns an error for ids that cannot be looked up again:
// empty ones, and ones that JSON would change.
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
		{"threadId", d.ThreadID, false},
		{"uid", d.UID, sub || d.Type == claybot.AgentCron || d.Type == claybot.AgentFlow},
		{"parent", string(d.Parent), sub && !d.IsThread()},
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

// Renamed returns the new descriptor of an agent with descriptor old that is
// requested as d: a background agent takes the name and owner of d, a moved one
// its identity. The creation settings of a subagent stay; a thread takes the profile of d.
func Renamed(old, d claybot.Descriptor) claybot.Descriptor {
	r := d.Identity()
	r.Name, r.Owner, r.Root, r.Depth, r.Profile = old.Name, old.Owner, old.Root, old.Depth, old.Profile
	if !d.Foreground() {
		r.Name, r.Owner = d.Name, d.Owner
	}
	if d.IsThread() {
		r.Profile = d.Profile
	}
	return r
}

// NewState returns the state of an agent created at created.
func NewState(created claybot.Time) claybot.AgentState {
	now := claybot.Now()
	if created == 0 {
		created = now
	}
	return claybot.AgentState{Engine: DefaultEngine, CreatedAt: created, UpdatedAt: now}
}

// Summarized returns the records that remain in use after summary is appended.
func Summarized(records []claybot.Record, summary claybot.Record) []claybot.Record {
	kept := slices.DeleteFunc(slices.Clone(records), func(r claybot.Record) bool { return r.Type == claybot.RecordSummary })
	kept = kept[len(kept)-min(max(summary.Keep, 0), len(kept)):]
	return append(slices.Clone(kept), summary) // a copy, so that the compacted records can be freed
}

// nameLimit is the maximum length of a call id that is used as a file name
// unchanged.
const nameLimit = 64

// ResultName returns the file name for a call id, which is untrusted model
// output. An id that is not a plain word is hashed; a dot distinguishes hashes
// from plain ids.
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

// FileName sanitizes an untrusted name: no folders, no control characters, no
// leading dots, at most fileNameLimit bytes.
func FileName(name string) string {
	name = strings.ToValidUTF8(name, "")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) { // including bidirectional controls
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

// PlainText reports whether data is text that a model can read.
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
	// IndexedDescriptor returns the copy of an agent's descriptor; ErrNotFound.
	IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error)
	// IndexedAgentByID returns the entry of one agent; ErrNotFound.
	IndexedAgentByID(ctx context.Context, id claybot.AgentID) (IndexEntry, error)
	// IndexAgents adds agents, or gives known ids a new descriptor.
	IndexAgents(ctx context.Context, agents ...claybot.Agent) error
	// UnindexAgent removes an agent whose directory is gone.
	UnindexAgent(ctx context.Context, id claybot.AgentID) error
	// IndexedAgents yields all entries, in no particular order.
	IndexedAgents(ctx context.Context) iter.Seq2[IndexEntry, error]
}

// AgentReader lists agents of the Index.
type AgentReader interface {
	// AgentPage lists agents by their last user message, latest first, then by
	// creation, newest first. ErrNotFound if After is gone.
	AgentPage(ctx context.Context, q AgentQuery) ([]IndexEntry, error)
	// Foreground yields the user agents with at least one user message, ordered
	// by the newest, latest first; ties are ordered by acceptance. It yields
	// only agents of owners (OwnerID), or all if owners is nil.
	Foreground(ctx context.Context, owners []string) iter.Seq2[IndexEntry, error]
	// Children lists the subagents that parent created, oldest first.
	Children(ctx context.Context, parent claybot.AgentID) ([]IndexEntry, error)
	// Started counts the subagents below root that were created at or after
	// since.
	Started(ctx context.Context, root claybot.AgentID, since claybot.Time) (int, error)
	// OwnedAgents lists the agents of every type that work for an owner (OwnerID), in no
	// particular order. It omits damaged entries.
	OwnedAgents(ctx context.Context, owner string) ([]IndexEntry, error)
	// ChannelAgents lists the user agents of a channel of a connector, in no particular
	// order. It omits damaged entries.
	ChannelAgents(ctx context.Context, connector, channel string) ([]IndexEntry, error)
}

// Settings stores the settings of single agents, which are deleted with their
// agent.
type Settings interface {
	// AgentSettings returns the settings of all agents that have some.
	AgentSettings(ctx context.Context) (map[claybot.AgentID]claybot.Settings, error)
	// SaveAgentSettings replaces the settings of an agent; empty settings
	// remove them. ErrNotFound.
	SaveAgentSettings(ctx context.Context, id claybot.AgentID, s claybot.Settings) error
}

// An IndexEntry is one agent in the index, with the values that change with
// every message and are therefore stored there.
type IndexEntry struct {
	ID         claybot.AgentID
	Descriptor claybot.Descriptor
	LastUserAt claybot.Time
	Usage      claybot.Usage
	Waiting    int
	CreatedAt  claybot.Time
	Run        claybot.RunID // the unfinished run, if any
	Busy       bool          // it has a run, or something that will start one
	// PlaceName and PersonName are how the platform calls the group or channel, and the
	// person, of a user agent. Unverified. The store leaves them empty.
	PlaceName, PersonName string
	// Stopped is what an operator has stopped that the agent needs, by whom, and how it is started; empty:
	// nothing. The store leaves it empty.
	Stopped string
	// Off is why each run of the agent fails: a setting of its profile is bad; empty: none is. The
	// store leaves it empty.
	Off string
}

// An AgentQuery picks agents; empty fields pick all.
type AgentQuery struct {
	Type   claybot.AgentType
	Owner  string // as OwnerID
	Parent claybot.AgentID
	Busy   bool            // only agents with an unfinished run or pending messages
	After  claybot.AgentID // the last one of the page before
	Limit  int             // at most; 0: 50
}

// Ended counts unfinished work that was ended because the store was restored to an
// earlier state.
type Ended struct {
	Messages int // that waited for a run
	Parked   int // that waited for their agent
	Runs     int
	Sends    int
	// Reminders that were due, so they may have been delivered already.
	Reminders int
}

// A Checkpoint is a small value with a key, see Checkpoints. The zero Checkpoint
// means none.
type Checkpoint struct{ Key, Value string }

// An Ending is a History that does not commit together with runs and messages, so
// truncation must be detected. Optional.
type Ending interface {
	// End returns a checkpoint of the end of the durable history. It must be committed
	// with the end of the work on the agent: a history that is shorter than its
	// checkpoint when it is opened again is reported as damaged.
	End(ctx context.Context) Checkpoint
}

// A Deferring is a History that commits together with runs and messages: its buffered
// records can be stored in the transaction that ends the run. Optional.
type Deferring interface {
	// Deferred returns the buffered records.
	Deferred() Deferred
	// Settle tells the history that these records are stored, the first that it buffers.
	Settle(d Deferred)
}

// Deferred are records that follow the first After records of a history.
type Deferred struct {
	After   int64
	Records []claybot.Record
}

// EndOf returns the checkpoint of the end of h; the zero Checkpoint if it needs none.
func EndOf(ctx context.Context, h History) Checkpoint {
	if e, ok := h.(Ending); ok {
		return e.End(ctx)
	}
	return Checkpoint{}
}
