package storage

import (
	"context"

	"github.com/claybot/claybot"
)

// Memories stores the notes of agents, by scope and path. A scope is
// "agent/<id>", which is deleted with the agent, "owner/<owner>" or "global".
// Every change is stored as a version, so that it can be inspected and undone.
type Memories interface {
	// Memory reads a note; ErrNotFound.
	Memory(ctx context.Context, scope, path string) (Memory, error)
	// Memories lists the notes of scopes in the order in which these are named, those
	// of a scope in the order of their paths, without their texts.
	Memories(ctx context.Context, scopes ...string) ([]Memory, error)
	// SaveMemory adds or replaces a note, with a version. ErrTooMany if the
	// scope would exceed limit bytes or MaxMemories notes. A repeat of the same
	// call with the same text changes nothing.
	SaveMemory(ctx context.Context, scope string, m Memory, limit int64) error
	// ChangeMemory atomically replaces a note by the result of change, with a
	// version and the limits of SaveMemory. No concurrent write is lost. change
	// may be called more than once, so it must have no side effects; its error is
	// returned wrapped. A change of by.Run and by.Call that is among the versions
	// of this path is not repeated, whatever was written since.
	ChangeMemory(ctx context.Context, scope, path string, by MemoryChange, limit int64, change func(old Memory, found bool) (text string, tainted bool, err error)) error
	// DropMemory removes a note and stores a version that records it;
	// ErrNotFound.
	DropMemory(ctx context.Context, scope, path string, by MemoryChange) error
	// FindMemories finds notes that contain all words of a query, best match
	// first. The query has no syntax.
	FindMemories(ctx context.Context, scopes []string, query string, limit int) ([]FoundMemory, error)
}

// MemoryHistory reads the versions of notes.
type MemoryHistory interface {
	// MemoryVersions lists the versions of a note or, with an empty path, of a
	// scope, newest first.
	MemoryVersions(ctx context.Context, scope, path string, limit int) ([]MemoryVersion, error)
	// MemoryVersion is one of them; ErrNotFound.
	MemoryVersion(ctx context.Context, scope string, version int64) (MemoryVersion, error)
}

// MaxMemories is the maximum number of notes of a scope.
const MaxMemories = 2000

// MaxMemoryVersions is how many versions of a note are stored.
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

// A MemoryChange is the origin of a change.
type MemoryChange struct {
	Agent claybot.AgentID `json:"agentId,omitempty"`
	Run   claybot.RunID   `json:"runId,omitempty"`
	Call  string          `json:"callId,omitempty"`
	By    string          `json:"by,omitempty"` // operator, if a person made it
	// Tainted means that a tainted run made the change.
	Tainted bool         `json:"tainted,omitempty"`
	At      claybot.Time `json:"at"`
}

// A FoundMemory is a note with the excerpt that matches a query.
type FoundMemory struct {
	Scope   string `json:"scope"`
	Memory         // without its text
	Excerpt string `json:"excerpt"`
}

// A MemoryVersion is a note after a change.
type MemoryVersion struct {
	Version int64 `json:"version"`
	Memory
	Gone bool `json:"gone,omitempty"` // the change removed the note
}
