package storage

import "github.com/claybot/claybot"

// A Boot is the record that one claybot process leaves for the next one in the
// same data directory: whether it shut down cleanly, and what it was doing if it
// did not.
type Boot struct {
	// Unclean counts the consecutive starts, including this one, that followed a
	// crash. A process that has run long enough resets it to 0.
	Unclean int          `json:"unclean"`
	Started claybot.Time `json:"started"`
	// Closed is set by a clean shutdown.
	Closed bool `json:"closed,omitempty"`
	// Forced is set where an operator ended the process at once, by a second signal: it did not shut
	// down, and is no crash.
	Forced bool `json:"forced,omitempty"`
	// Testing are the agents whose runs were not yet known to be harmless, and
	// Peak is the maximum number of concurrent ones. Both are recorded only
	// after an unclean start.
	Testing []claybot.AgentID `json:"testing,omitempty"`
	Peak    int               `json:"peak,omitempty"`
	// Alone is set if the first of Testing was started alone and the others only
	// after it had run for a while. Since is when it started, and LastAlive when the
	// process was last known to be alive.
	Alone     bool         `json:"alone,omitempty"`
	Since     claybot.Time `json:"since,omitempty"`
	LastAlive claybot.Time `json:"beat,omitempty"`
	// Parked are the agents that were not started because they may have caused
	// earlier crashes.
	Parked []claybot.AgentID `json:"parked,omitempty"`
	// Starting is the connector that was started alone and not yet known to be
	// harmless. Blamed counts the consecutive processes that crashed in that
	// state.
	Starting string `json:"starting,omitempty"`
	Blamed   int    `json:"blamed,omitempty"`
	// Held counts the processes that crashed while connectors were held back, minus
	// those that started them.
	Held int `json:"held,omitempty"`
	// Filled is when a write last found the disk full or read-only, after it was not, and Full
	// is set until one works. They are carried over from process to process, because operators
	// may still have to read of it.
	Filled claybot.Time `json:"filled,omitempty"`
	Full   bool         `json:"full,omitempty"`
	// Member is the id under which the process is, or was last, a member of a cluster;
	// empty for none.
	Member string `json:"member,omitempty"`
	// Store identifies the database of the process. It is carried over from process
	// to process.
	Store StoreMark `json:"store,omitzero"`
}

// UncleanNext returns Unclean for the process after this one. An end that an operator forced adds nothing.
func (b Boot) UncleanNext() int {
	switch {
	case b.Started == 0 || b.Closed:
		return 0
	case b.Forced:
		return b.Unclean
	}
	return b.Unclean + 1
}

// A StoreMark identifies the database of a data directory and its last state. The boot
// record has a copy of it, so a database that was lost, replaced or restored is
// detected: its own mark is missing, different or behind.
type StoreMark struct {
	ID string `json:"id,omitempty"` // permanent id of the database; empty: unknown
	// N grows with each start, clean shutdown and copy, first in the database.
	N  int64        `json:"n,omitempty"`
	At claybot.Time `json:"at,omitempty"` // when it grew
	// Log is set in the boot record while a process runs: until a clean shutdown the
	// database has a write-ahead log.
	Log bool `json:"log,omitempty"`
}

// Boots stores the Boot of this process. A failed write only costs precision:
// the caller logs the error and continues.
type Boots interface {
	// Last returns the record of the previous process; the zero Boot if there
	// is none.
	Last() Boot
	// Update changes the record of this process and writes it before it returns.
	// The record survives a crash of the process, and with sync also a power
	// loss. Calls must not overlap; they may come from any goroutine.
	Update(sync bool, change func(*Boot)) error
}
