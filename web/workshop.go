package web

import (
	"context"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A Workshop is what agents work with, as those who look after it see it: tools,
// workspaces, servers of tools, skills and notes. Methods that name something
// return storage.ErrNotFound when it is not there, and a Refusal when what was
// asked is not to be done.
type Workshop interface {
	// Tools are those of an agent, or with no agent those of the default profile.
	Tools(ctx context.Context, agent claybot.AgentID) ([]ToolView, error)

	Workspaces(ctx context.Context) ([]WorkspaceView, error)
	// RemoveWorkspace takes one away, with its data if that is said.
	RemoveWorkspace(ctx context.Context, key string, data bool) error

	// Servers are the configured servers of tools.
	Servers(ctx context.Context) ([]ServerView, error)
	// AllowServer accepts what has changed of a tool, or with no tool of all tools
	// of a server.
	// hash is the OffHash of what was seen; another one is a Refusal.
	AllowServer(ctx context.Context, server, tool, hash, by string) error

	Skills(ctx context.Context) ([]SkillView, error)
	// AllowSkill lets agents use a skill as it was shown; a Refusal when it has
	// changed since.
	AllowSkill(ctx context.Context, name, hash, by string) error
	ForbidSkill(ctx context.Context, name, by string) error

	// Notes lists what is remembered in a scope: agent/<id>, owner/<owner>, global.
	Notes(ctx context.Context, scope string) ([]storage.Memory, error)
	Note(ctx context.Context, scope, path string) (storage.Memory, error)
	SaveNote(ctx context.Context, scope, path, text, by string) error
	DropNote(ctx context.Context, scope, path, by string) error
	FindNotes(ctx context.Context, scope, query string) ([]storage.FoundMemory, error)
	// NoteVersions are the newest first, with an empty path those of the scope.
	NoteVersions(ctx context.Context, scope, path string) ([]storage.MemoryVersion, error)
	// RevertNote makes a note what it was in a version.
	RevertNote(ctx context.Context, scope string, version int64, by string) error
}

// A Skilled workshop knows which skills an agent has; where it does not, all that
// are allowed are shown for each.
type Skilled interface {
	// AgentSkills names those that an agent may use when they are allowed, nil for
	// all; storage.ErrNotFound.
	AgentSkills(ctx context.Context, agent claybot.AgentID) ([]string, error)
}

// A ToolView is one tool.
type ToolView struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Source      string `json:"source"` // claybot, or mcp:<server>
	Effect      string `json:"effect"`
	Class       string `json:"class"`
	// Asks says when a person is asked before a call: always, never, unless
	// allowed, or after reading texts of strangers.
	Asks      string        `json:"asks"`
	Timeout   time.Duration `json:"timeoutNs"` // of one call, in nanoseconds
	Parameter []string      `json:"parameters,omitempty"`
}

// A WorkspaceView is one workspace.
type WorkspaceView struct {
	Key      string          `json:"key"`
	Agent    claybot.AgentID `json:"agentId,omitempty"`
	Provider string          `json:"provider"`
	ID       string          `json:"id,omitempty"`
	Image    string          `json:"image,omitempty"`
	Platform string          `json:"platform,omitempty"`
	State    string          `json:"state"`
	Made     claybot.Time    `json:"madeAt,omitempty"`
	LastUsed claybot.Time    `json:"lastUsedAt,omitempty"`
	Expires  claybot.Time    `json:"expiresAt,omitempty"` // 0: never
	Problem  string          `json:"problem,omitempty"`
}

// A ServerView is one server of tools.
type ServerView struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport"`
	State     string   `json:"state"`
	Problem   string   `json:"problem,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	// Off are the tools that an operator must accept, with why.
	Off map[string]string `json:"off,omitempty"`
	// OffHash stands for all of Off, and has to be given to accept any of it.
	OffHash  string `json:"offHash,omitempty"`
	Restarts int    `json:"restarts,omitempty"`
	Login    string `json:"login,omitempty"` // what to do about a missing login
}

// A SkillView is one skill.
type SkillView struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	State       string       `json:"state"` // allowed, new, changed, broken
	Problem     string       `json:"problem,omitempty"`
	Hash        string       `json:"hash,omitempty"`
	Tools       []string     `json:"tools,omitempty"`
	AllowedBy   string       `json:"allowedBy,omitempty"`
	AllowedAt   claybot.Time `json:"allowedAt,omitempty"`
	// What is different from what was allowed, or all of it.
	Added    []string `json:"added,omitempty"`
	Changed  []string `json:"changed,omitempty"`
	Removed  []string `json:"removed,omitempty"`
	NewTools []string `json:"newTools,omitempty"`
}
