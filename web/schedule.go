package web

import (
	"time"

	"github.com/claybot/claybot/connectors"
)

// A BeatList is the tasks of the heartbeat.
type BeatList struct {
	Beats    []connectors.Beat    `json:"beats"`
	Problems []connectors.Problem `json:"problems" doc:"Files that cannot be read."`
}

// A BeatRequest names the heartbeat tasks to run now.
type BeatRequest struct {
	IDs []string `json:"ids,omitempty" doc:"The tasks; all when none is named."`
}

// BeatDone has the number under the name that the command line reads, too.
type BeatDone struct {
	Ran   int `json:"ran" doc:"How many tasks run now."`
	Tasks int `json:"tasks" doc:"The same as ran."`
}

// A BeatSpec makes a task of the heartbeat.
type BeatSpec struct {
	ID          string `json:"id,omitempty" doc:"Of a task to replace."`
	Title       string `json:"title"`
	Every       string `json:"every,omitempty" doc:"A duration; as configured when left out."`
	ActiveHours string `json:"activeHours,omitempty"`
	Enabled     *bool  `json:"enabled,omitempty" doc:"true when left out."`
	Prompt      string `json:"prompt"`
}

// A TaskList is the cron tasks.
type TaskList struct {
	Tasks    []connectors.Task    `json:"tasks"`
	Problems []connectors.Problem `json:"problems" doc:"Files that cannot be read."`
}

// A TaskRequest creates a cron task.
type TaskRequest struct {
	connectors.TaskSpec
	DryRun bool `json:"dry_run,omitempty" doc:"Save nothing, and answer with the next times alone."`
}

// A TaskPreview is when a task would run.
type TaskPreview struct {
	Next []time.Time `json:"next"`
}

// A LedgerPage is the past firings of a task.
type LedgerPage struct {
	Firings []connectors.Firing `json:"firings" doc:"The newest first."`
}

// A TaskChange is a connectors.TaskChange with the names that the fields have
// in a task.
type TaskChange struct {
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	Schedule    *string `json:"schedule,omitempty" doc:"Set the others of schedule, every and at to an empty string."`
	Every       *string `json:"every,omitempty"`
	At          *string `json:"at,omitempty"`
	Timezone    *string `json:"timezone,omitempty"`
	Prompt      *string `json:"prompt,omitempty"`
	Misfire     *string `json:"misfire,omitempty"`
	Route       *string `json:"route,omitempty"`
	Enabled     *bool   `json:"enabled,omitempty"`
	Once        *bool   `json:"once,omitempty"`
	Retries     *int    `json:"retries,omitempty"`
}
