package subagents

import (
	"time"

	"github.com/claybot/claybot"
)

// Limits are what agents may do with each other.
type Limits struct {
	MaxDepth    int // of a chain of subagents below a root
	MaxChildren int // of one parent that are at work at the same time
	MaxStarts   int // of subagents below one root in an hour
	// AllOwners lets agents reach those of other people as well.
	AllOwners bool
	// Identities lists all owner ids of the person who has this one; nil means
	// that each stands for itself.
	Identities func(owner string) []string
	// Tools lists what an agent may use, and so what its subagents may be given;
	// nil means that only what the agent was given itself is known.
	Tools func(claybot.Agent) []string
	// Engines lists the engines that an agent may give a subagent; nil allows none.
	Engines func(claybot.Agent) []string
	// Models lists the model names that an agent may give a subagent; nil allows
	// none but its own.
	Models func(claybot.Agent) []string
}

// DefaultLimits are the limits where nothing is configured.
var DefaultLimits = Limits{MaxDepth: 3, MaxChildren: 8, MaxStarts: 30}

// archivedAfter is how long an idle subagent still accepts messages.
const archivedAfter = 7 * 24 * time.Hour
