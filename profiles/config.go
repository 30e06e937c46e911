package profiles

import (
	"context"
	"log/slog"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Index finds agents and keeps their settings; see storage.Index and storage.Settings.
type Index interface {
	storage.Settings
	IndexedAgentByID(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error)
}

// Agents reads an agent; see storage.Agents.
type Agents interface {
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
}

// Config is what New needs. Models, Tools, Forbids and CheckPrompt may be nil.
type Config struct {
	Index  Index
	Agents Agents
	// Profile is read at every decision, so that a change counts at once.
	Profile func(claybot.Descriptor) Profile
	// Models and Tools list what the settings of an agent may name; nil for nothing.
	Models func(claybot.Agent) []string
	Tools  func(claybot.Agent) []string
	// Forbids returns what permissions say against the tools of an agent; empty: nothing. If it
	// is nil, only the names of tools count.
	Forbids func(a claybot.Agent, p claybot.Permissions) func(tool string) string
	// Engines are the names of the engines that an agent may have.
	Engines func() []string
	// CheckPrompt returns what is wrong with a system prompt that is set for an agent.
	CheckPrompt func(string) error
	// Refresh brings what is kept in memory up to date with what other members changed.
	Refresh func(context.Context) error
	// Changed is called after the settings of an agent have changed: they apply to the
	// messages that wait as well.
	Changed func(ctx context.Context, id claybot.AgentID) error
	Log     *slog.Logger
}

// Profiles knows how each agent behaves. Its methods are safe for concurrent use.
type Profiles struct {
	Config
	settings ownSettings
}

// New returns Profiles. Load reads the settings of agents.
func New(cfg Config) *Profiles { return &Profiles{Config: cfg} }
