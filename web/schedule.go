package web

import (
	"context"

	"github.com/claybot/claybot/connectors"
)

// Tasks are the tasks of cron as people see and change them. A task is named by its
// slug or its uid. Errors are sentences for whoever asked.
type Tasks interface {
	// Tasks lists all, by slug, with the files that could not be read.
	Tasks(ctx context.Context) ([]connectors.Task, []connectors.Problem, error)
	// Add creates a task, whose Slug and UID it chooses; dry checks it alone, and
	// finds out its next five instants.
	Add(ctx context.Context, t connectors.TaskSpec, dry bool) (connectors.Task, error)
	// Change replaces what is set in t. The ledger stays.
	Change(ctx context.Context, ref string, t connectors.TaskChange) (connectors.Task, error)
	// Remove deletes a task; its folder goes to .done.
	Remove(ctx context.Context, ref string) error
	// RunNow fires a task once, outside its schedule; key makes repeats of the call
	// harmless.
	RunNow(ctx context.Context, ref, key string) (connectors.Task, error)
	// Ledger returns the newest limit firings of a task.
	Ledger(ctx context.Context, ref string, limit int) ([]connectors.Firing, error)
}

// Beats are the tasks of the heartbeat as people see and change them. Errors are
// sentences for whoever asked.
type Beats interface {
	// Beats lists all tasks in the order in which they beat.
	Beats(ctx context.Context) ([]connectors.Beat, []connectors.Problem, error)
	// AddBeat creates a task, or replaces the one with this id.
	AddBeat(ctx context.Context, b connectors.Beat) (connectors.Beat, error)
	// RemoveBeat deletes a task.
	RemoveBeat(ctx context.Context, id string) error
	// Beat runs the tasks named, or all, as one run in the background, and
	// returns how many; key makes repeats of the call harmless.
	Beat(ctx context.Context, key string, ids ...string) (int, error)
}
