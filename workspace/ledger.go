package workspace

import (
	"context"
	"strings"
	"time"

	"github.com/claybot/claybot"
)

// State is where the life of a workspace is.
type State string

// The states of workspaces in a Ledger.
const (
	Running     State = "running"     // it was made, and may be used
	Terminating State = "terminating" // being removed
	Idle        State = "idle"        // it is removed; its data is there
	Removed     State = "removed"     // nothing is left of it
)

// An Entry is what is durably known of one workspace. Node, Provider and Key
// together are its identity.
type Entry struct {
	Node     string          `json:"node"`
	Provider string          `json:"provider"`
	Key      Key             `json:"key"`
	Agent    claybot.AgentID `json:"agent,omitempty"` // whose it is; empty: of no single agent
	State    State           `json:"state"`
	Image    string          `json:"image,omitempty"`
	Platform string          `json:"platform,omitempty"`
	LastUsed time.Time       `json:"lastUsed"`
	// TTL is how long it lives after LastUsed; 0: until it is removed.
	TTL time.Duration `json:"ttl"`
	// Data: the removal that is going on takes the data as well.
	Data bool `json:"data,omitempty"`
	// Tries counts removals that failed, NextTry is when the next one may begin,
	// and Problem why the last one failed.
	Tries   int       `json:"tries,omitempty"`
	NextTry time.Time `json:"nextTry,omitzero"`
	Problem string    `json:"problem,omitempty"`
	// Changed is when State became what it is.
	Changed time.Time `json:"changed"`
	// Version counts the writes of this entry; 0: it was never written.
	Version int64 `json:"version"`
}

// A Ledger keeps entries durably. It is safe for concurrent use, also by several
// processes.
type Ledger interface {
	// WorkspaceEntry finds an entry by its identity; ok is false when there is none.
	WorkspaceEntry(ctx context.Context, node, provider string, key Key) (e Entry, ok bool, err error)
	// WorkspaceEntries are all entries of a node, or of all nodes when it is empty,
	// in the order of their identities.
	WorkspaceEntries(ctx context.Context, node string) ([]Entry, error)
	// SaveWorkspaceEntry writes e with the next version if the entry has the version
	// of e, and reports whether it had.
	SaveWorkspaceEntry(ctx context.Context, e Entry) (saved bool, err error)
	// DropWorkspaceEntries forgets the removed ones whose State changed before a
	// time.
	DropWorkspaceEntries(ctx context.Context, before time.Time) error
}

// Agent is whose workspace k is; empty where it belongs to no single agent.
func (k Key) Agent() claybot.AgentID {
	kind, rest, _ := strings.Cut(string(k), "/")
	switch kind {
	case "agent", "thread", "browser":
		id, _, _ := strings.Cut(rest, "/")
		return claybot.AgentID(id)
	}
	return ""
}
