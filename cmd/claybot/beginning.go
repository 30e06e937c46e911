package main

import (
	"context"

	"github.com/claybot/claybot/configs"
)

// settled returns the value of a default that depends on the version with which this
// installation began, kept under a mark of the database. The first start on an empty database
// decides for fresh; an installation from before this default keeps the behaviour old.
// Members that start at once decide the same.
func (s *stores) settled(ctx context.Context, mark, fresh, old string) (string, error) {
	value, err := s.db.Checkpoint(ctx, mark)
	if err != nil || value != "" {
		return value, err
	}
	used, err := s.db.Checkpoint(ctx, markInstallation) // that of every earlier start on a data directory
	if err != nil {
		return "", err
	}
	stats, err := s.db.Stats(ctx)
	if err != nil {
		return "", err
	}
	value = fresh
	if used != "" || stats.Agents > 0 {
		value = old
	}
	return value, s.db.SetCheckpoint(ctx, mark, value)
}

// markThreads is the mark of the database that has what threads are where the configuration
// does not say it.
const markThreads = "sessions/threads"

// ownThreads reports whether each thread is a conversation of its own.
func (d *daemon) ownThreads() bool {
	said := d.config.Load().Sessions.Threads
	if said == "" {
		said = d.stores.threads
	}
	return said == configs.ThreadsOwn
}
