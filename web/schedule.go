package web

import (
	"context"
	"time"

	"github.com/claybot/claybot/connectors"
)

// A HeartbeatList lists the tasks of the heartbeat.
type HeartbeatList struct {
	Heartbeats []connectors.HeartbeatTask `json:"beats"`
	Problems   []connectors.Problem       `json:"problems" doc:"Files that cannot be read."`
}

// A HeartbeatRequest names the heartbeat tasks to run now.
type HeartbeatRequest struct {
	IDs []string `json:"ids,omitempty" doc:"The tasks to run. Default: all."`
}

// HeartbeatResult has the number under a name that the command line reads as well.
type HeartbeatResult struct {
	Ran   int `json:"ran" doc:"Number of tasks that run now."`
	Tasks int `json:"tasks" doc:"The same as ran."`
}

// A HeartbeatSpec creates a heartbeat task.
type HeartbeatSpec struct {
	ID          string `json:"id,omitempty" doc:"The id of a task to replace."`
	Title       string `json:"title"`
	Every       string `json:"every,omitempty" doc:"A duration. Default: the configured one."`
	ActiveHours string `json:"activeHours,omitempty"`
	Enabled     *bool  `json:"enabled,omitempty" doc:"Default: true."`
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
	DryRun bool `json:"dry_run,omitempty" doc:"Save nothing and return only the next times."`
}

// A TaskPreview is when a task would run.
type TaskPreview struct {
	Next []time.Time `json:"next"`
}

// A LedgerPage is the past firings of a task.
type LedgerPage struct {
	Firings []connectors.Firing `json:"firings" doc:"Newest first."`
}

// A TaskChange is a connectors.TaskChange with the names that the fields have
// in a task.
type TaskChange struct {
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	Schedule    *string `json:"schedule,omitempty" doc:"To change the kind of schedule, set the others of schedule, every and at to an empty string."`
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

// Tasks manages the cron tasks. A task is named by its slug or its uid. Errors are
// sentences for the caller.
type Tasks interface {
	// Tasks lists all, by slug, and the files that cannot be read.
	Tasks(ctx context.Context) ([]connectors.Task, []connectors.Problem, error)
	// Add creates a task and chooses its Slug and UID. With dry it only validates the task
	// and returns its next five instants.
	Add(ctx context.Context, t connectors.TaskSpec, dry bool) (connectors.Task, error)
	// Change replaces what is set in t. The ledger stays.
	Change(ctx context.Context, ref string, t connectors.TaskChange) (connectors.Task, error)
	// Remove deletes a task and moves its folder to .done.
	Remove(ctx context.Context, ref string) error
	// RunNow fires a task once, outside its schedule. Repeating the call with the same key
	// has no further effect.
	RunNow(ctx context.Context, ref, key string) (connectors.Task, error)
	// Ledger returns the newest limit firings of a task.
	Ledger(ctx context.Context, ref string, limit int) ([]connectors.Firing, error)
}

// Heartbeats manages the heartbeat tasks. Errors are sentences for the caller.
type Heartbeats interface {
	// Heartbeats lists all tasks in the order in which they run.
	Heartbeats(ctx context.Context) ([]connectors.HeartbeatTask, []connectors.Problem, error)
	// AddHeartbeat creates a task, or replaces the one with this id.
	AddHeartbeat(ctx context.Context, b connectors.HeartbeatTask) (connectors.HeartbeatTask, error)
	// RemoveHeartbeat deletes a task.
	RemoveHeartbeat(ctx context.Context, id string) error
	// RunHeartbeats runs the given tasks, or all, as one run in the background and returns their
	// number. Repeating the call with the same key has no further effect.
	RunHeartbeats(ctx context.Context, key string, ids ...string) (int, error)
}
