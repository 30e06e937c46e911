package storage

import (
	"context"

	"github.com/claybot/claybot"
)

// Memories keeps what agents want to know later: notes by path in scopes. A scope
// is "agent/<id>", which goes with the agent, "owner/<owner>" or "global". Every
// change is kept as a version, so that it can be looked at and taken back.
type Memories interface {
	// Memory reads a note; ErrNotFound.
	Memory(ctx context.Context, scope, path string) (Memory, error)
	// Memories lists the notes of scopes in the order in which these are named, those
	// of a scope in the order of their paths, without their texts.
	Memories(ctx context.Context, scopes ...string) ([]Memory, error)
	// SaveMemory adds or replaces a note, with a version. ErrTooMany when the
	// scope would hold more than limit bytes or more than MaxMemories notes. The
	// same text of the same call again changes nothing.
	SaveMemory(ctx context.Context, scope string, m Memory, limit int64) error
	// ChangeMemory makes of a note, or of none, what change makes of it, with a
	// version and the limits of SaveMemory. No other write comes between, so that
	// no change is lost. change may be called again; it must have no effects, and
	// its error comes back wrapped. A change of by.Run and by.Call that is among
	// the versions of this path is not made again, whatever was written since.
	ChangeMemory(ctx context.Context, scope, path string, by MemoryChange, limit int64, change func(old Memory, found bool) (text string, tainted bool, err error)) error
	// DropMemory takes a note away, with a version that says so; ErrNotFound.
	DropMemory(ctx context.Context, scope, path string, by MemoryChange) error
	// FindMemories finds notes of scopes that have all words of a query, the best
	// first. The query has no syntax.
	FindMemories(ctx context.Context, scopes []string, query string, limit int) ([]FoundMemory, error)
}

// MemoryHistory keeps the versions of notes.
type MemoryHistory interface {
	// MemoryVersions lists what became of a note, or with an empty path of a
	// scope, the newest first.
	MemoryVersions(ctx context.Context, scope, path string, limit int) ([]MemoryVersion, error)
	// MemoryVersion is one of them; ErrNotFound.
	MemoryVersion(ctx context.Context, scope string, version int64) (MemoryVersion, error)
}

// MaxMemories is how many notes a scope may have.
const MaxMemories = 2000

// MaxMemoryVersions is how many versions of one note are kept.
const MaxMemoryVersions = 20

// A Memory is one note.
type Memory struct {
	Scope string `json:"-"` // set by Memories alone
	Path  string `json:"path"`
	Title string `json:"title,omitempty"` // its first line, shortened
	Text  string `json:"text,omitempty"`
	Size  int64  `json:"size"` // bytes of the text
	MemoryChange
}

// A MemoryChange says where a change comes from.
type MemoryChange struct {
	Agent claybot.AgentID `json:"agentId,omitempty"`
	Run   claybot.RunID   `json:"runId,omitempty"`
	Call  string          `json:"callId,omitempty"`
	By    string          `json:"by,omitempty"` // the operator, where a person made it
	// Tainted: it was written by a run that had read texts of strangers.
	Tainted bool         `json:"tainted,omitempty"`
	At      claybot.Time `json:"at"`
}

// A FoundMemory is a note with the place that fits a query.
type FoundMemory struct {
	Scope   string `json:"scope"`
	Memory         // without its text
	Excerpt string `json:"excerpt"`
}

// A MemoryVersion is a note as a change left it.
type MemoryVersion struct {
	Version int64 `json:"version"`
	Memory
	Gone bool `json:"gone,omitempty"` // the change took it away
}
