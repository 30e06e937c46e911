package storage

import "github.com/claybot/claybot"

// A Boot is what one process of claybot leaves for the next one in the same data
// directory: whether it ended in order, and what it was trying when it did not.
type Boot struct {
	// Unclean counts the starts in a row, up to this one, that followed a process
	// that died. A process that has lived long enough sets it to 0.
	Unclean int          `json:"unclean"`
	Started claybot.Time `json:"started"`
	// Closed is set by an orderly end.
	Closed bool `json:"closed,omitempty"`
	// Testing are the agents whose runs were not yet known to be harmless, and
	// Peak is the most that were at work at once. Both are kept only after an
	// unclean start.
	Testing []claybot.AgentID `json:"testing,omitempty"`
	Peak    int               `json:"peak,omitempty"`
	// Alone is set while the first of Testing started alone; the others came
	// when it had been at work for a while. Since says from when on it was, and Beat
	// when the process was last seen alive.
	Alone bool         `json:"alone,omitempty"`
	Since claybot.Time `json:"since,omitempty"`
	Beat  claybot.Time `json:"beat,omitempty"`
	// Parked are those that were kept waiting because the process may have died of
	// them before.
	Parked []claybot.AgentID `json:"parked,omitempty"`
	// Starting is the connector that was started by itself and had not yet proven
	// itself, and Blamed how many processes in a row have died so.
	Starting string `json:"starting,omitempty"`
	Blamed   int    `json:"blamed,omitempty"`
	// Held counts the processes that died while connectors were held back, less those
	// that let them start.
	Held int `json:"held,omitempty"`
	// Store is the database that the process worked with, and stays from one process
	// to the next.
	Store StoreMark `json:"store,omitzero"`
}

// A StoreMark says which database belongs to a data directory, and how far it had come.
// The boot record has the mark of the database as it was, so a database that was lost,
// replaced or set back is noticed: its own mark is missing, or another, or behind.
type StoreMark struct {
	ID string `json:"id,omitempty"` // of the database, for good; empty: not known
	// N grows with each start, each orderly end and each copy, in the database first.
	N  int64        `json:"n,omitempty"`
	At claybot.Time `json:"at,omitempty"` // when it grew
	// Log is set in the boot record while a process works: until its orderly end the
	// database has a log beside it.
	Log bool `json:"log,omitempty"`
}

// Boots keeps the Boot of this process. A record that cannot be written costs
// precision only: the caller logs the error and goes on.
type Boots interface {
	// Last is what the process before this one left; the zero Boot after none.
	Last() Boot
	// Update changes the record of this process and writes it before it returns.
	// It survives the death of the process; with sync a power cut as well. Calls
	// are made one after another, in any goroutine.
	Update(sync bool, change func(*Boot)) error
}
