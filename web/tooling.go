package web

import (
	"context"
	"time"

	"github.com/claybot/claybot"
)

// Tools lists the tools of agents.
type Tools interface {
	// Tools returns those of an agent, or of the default profile when agent is empty.
	Tools(ctx context.Context, agent claybot.AgentID) ([]ToolView, error)
}

// Workspaces lists and removes workspaces.
type Workspaces interface {
	Workspaces(ctx context.Context) ([]WorkspaceView, error)
	// RemoveWorkspace removes a workspace and, if data is set, its files.
	RemoveWorkspace(ctx context.Context, key string, data bool) error
}

// Servers lists MCP servers and accepts changes of their tools.
type Servers interface {
	// Servers returns the configured MCP servers.
	Servers(ctx context.Context) ([]ServerView, error)
	// AllowServer accepts the changes of a tool, or of all tools of a server if tool is
	// empty. hash is the OffHash of the reviewed changes; AllowServer returns a Refusal if
	// they have changed since.
	AllowServer(ctx context.Context, server, tool, hash, by string) error
}

// Skills lists skills and decides which ones agents may use.
type Skills interface {
	Skills(ctx context.Context) ([]SkillView, error)
	// AgentSkills names the skills that an agent may use once they are allowed; nil
	// means all. It returns storage.ErrNotFound for an unknown agent.
	AgentSkills(ctx context.Context, agent claybot.AgentID) ([]string, error)
	// AllowSkill allows a skill with the given hash. It returns a Refusal when the
	// skill has changed since.
	AllowSkill(ctx context.Context, name, hash, by string) error
	ForbidSkill(ctx context.Context, name, by string) error
}

// A ToolList is the tools of an agent.
type ToolList struct {
	Tools []ToolView `json:"tools"`
}

// A WorkspaceList is all workspaces.
type WorkspaceList struct {
	Workspaces []WorkspaceView `json:"workspaces"`
}

// A ServerList is the configured MCP servers.
type ServerList struct {
	Servers []ServerView `json:"servers"`
}

// A ServerAllow accepts changed tools of an MCP server.
type ServerAllow struct {
	Tool string `json:"tool,omitempty" doc:"One tool. Default: all tools of the server."`
	Hash string `json:"hash" doc:"The offHash of the server as you saw it; if it has changed, nothing is accepted."`
}

// A SkillList is all skills.
type SkillList struct {
	Skills []SkillView `json:"skills"`
}

// A SkillAllow allows a skill in the reviewed version.
type SkillAllow struct {
	Hash string `json:"hash" doc:"The hash of the skill as you saw it; if it has changed, the request is refused."`
}

// A ToolView is one tool.
type ToolView struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Source      string `json:"source"` // claybot, or mcp:<server>
	// Group is what find_tools adds the tool with; empty: the tool is in every request.
	Group string `json:"group,omitempty"`
	// InRequest is the size of its declaration in the next request of the agent, in bytes;
	// 0: it is not declared until its group is added.
	InRequest int `json:"inRequestBytes"`
	// Cost is what that declaration costs in a request, in millionths of a US dollar, if it
	// is not read from the provider's cache; absent if the price is unknown.
	Cost   int64  `json:"costMicroUSD,omitempty"`
	Effect string `json:"effect"`
	Class  string `json:"class"`
	// Asks is when a call needs approval: always, never, unless allowed, or after reading
	// untrusted content.
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

// A ServerView is one MCP server.
type ServerView struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport"`
	State     string   `json:"state"`
	Problem   string   `json:"problem,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	// Off maps the tools that an operator must accept to the reason.
	Off map[string]string `json:"off,omitempty"`
	// OffHash identifies all of Off; accepting any of it requires the hash.
	OffHash  string `json:"offHash,omitempty"`
	Restarts int    `json:"restarts,omitempty"`
	Login    string `json:"login,omitempty"` // how to complete a missing login
}

// A SkillView is one skill.
type SkillView struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	State       string       `json:"state"` // allowed, new, changed, broken
	Problem     string       `json:"problem,omitempty"`
	Hash        string       `json:"hash,omitempty"`
	Tools       []string     `json:"tools,omitempty"`
	Command     string       `json:"command,omitempty"` // the chat command that uses it, without the slash
	AllowedBy   string       `json:"allowedBy,omitempty"`
	AllowedAt   claybot.Time `json:"allowedAt,omitempty"`
	// The difference from the allowed version, or all of it.
	Added    []string `json:"added,omitempty"`
	Changed  []string `json:"changed,omitempty"`
	Removed  []string `json:"removed,omitempty"`
	NewTools []string `json:"newTools,omitempty"`
}
