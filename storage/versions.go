package storage

import "context"

// Versions tells cheaply whether something was changed that processes keep in
// memory. Only stores that several nodes share need it.
type Versions interface {
	// Versions is one small query. Each number grows with every change of what it
	// stands for, in the same transaction; a process that reads the numbers first
	// and then what they stand for misses nothing.
	Versions(ctx context.Context) (Version, error)
}

// A Version says how often what processes keep in memory was changed.
type Version struct {
	Access   int64 // Access.Grants
	Settings int64 // Settings.AgentSettings; the end of an agent does not count
}
