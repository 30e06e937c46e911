package relational

import (
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A journal collects what one transaction does that others are told of after
// its commit. It is made anew for every try.
type journal struct {
	commit       storage.Commit
	notification storage.Notification
	changed      bool      // something was written that is worth a look
	sinks        *[]string // named by this transaction; nil: as before
}

// joined notes the ids that were reserved for runs and whose messages went to
// run.
func (j *journal) joined(run claybot.RunID, reserved []claybot.RunID) {
	for _, id := range reserved {
		if id != run {
			j.commit.Joined = append(j.commit.Joined, id)
		}
	}
}

// Done is what a transaction did that others are told of once it is durable.
type Done struct {
	Commit storage.Commit
	// Hint is for other nodes; its Node is not set.
	Notification storage.Notification
	// Worth says that Commit is to be told although it may be empty: something
	// changed.
	Worth bool
	// Sinks are those that are told of events from now on; nil: as before.
	Sinks *[]string
}

// Done returns what the transaction did. Call it after the commit.
func (c *Conn) Done() Done {
	j := &c.journal
	h := j.notification
	for _, e := range j.commit.Events {
		if n := len(h.Runs); n == 0 || h.Runs[n-1] != e.Run {
			h.Runs = append(h.Runs, e.Run)
		}
	}
	h.Runs = append(h.Runs, j.commit.Joined...)
	slices.Sort(h.Dests)
	h.Dests = slices.Compact(h.Dests)
	return Done{
		Commit: j.commit, Notification: h, Sinks: j.sinks,
		Worth: j.changed || len(j.commit.Events) > 0 || len(j.commit.Joined) > 0,
	}
}
