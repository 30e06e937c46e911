package sqlite

import (
	"runtime/debug"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A journal collects what one transaction does that others are told of after
// its commit. It is made anew for every try.
type journal struct {
	commit  storage.Commit
	changed bool      // something was written that is worth a look
	sinks   *[]string // named by this transaction; nil: as before
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

// tell is called after each commit. A hook that panics does not end the writer.
func (db *DB) tell(j journal) {
	if j.sinks != nil {
		db.sinks = *j.sinks
	}
	if db.committed == nil || !j.changed && len(j.commit.Events) == 0 && len(j.commit.Joined) == 0 {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			db.log.Error("panic in a watcher of the store", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	db.committed(j.commit)
}
