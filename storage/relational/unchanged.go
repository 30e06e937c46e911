package relational

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/claybot/claybot/storage"
)

// Where only this process uses the store, what each message or run reads of tables that
// seldom change is kept until a transaction changes them.

// A touch is which of these groups of tables a call has changed.
type touch struct {
	notes    bool // memories
	arrivals bool // parked, questions
}

// unchanged is what was read since the last change. A change counts before its caller
// learns of its commit, and what was read before it is not kept.
type unchanged struct {
	notes    atomic.Int64 // changes
	arrivals atomic.Int64 // changes
	quiet    atomic.Int64 // 1 + arrivals, when nothing was parked and no question was open

	mu    sync.Mutex
	at    int64 // notes, of lists
	lists map[string][]storage.Memory
	size  int // of lists
}

// maxListed bounds the lists of notes that are kept, in notes and lists.
const maxListed = 4096

func (u *unchanged) changed(t touch) {
	if t.notes {
		u.notes.Add(1)
	}
	if t.arrivals {
		u.arrivals.Add(1)
	}
}

// listed returns the notes of scopes as they were read before, and the number of changes
// that keep wants of what is read now instead.
func (u *unchanged) listed(scopes []string) (list []storage.Memory, at int64, ok bool) {
	at = u.notes.Load()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at == at {
		list, ok = u.lists[strings.Join(scopes, "\n")]
	}
	return slices.Clone(list), at, ok
}

// keep keeps what was read of the notes of scopes.
func (u *unchanged) keep(scopes []string, list []storage.Memory, at int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if at != u.notes.Load() {
		return
	}
	if u.lists == nil || u.at != at || u.size > maxListed {
		u.lists, u.size, u.at = make(map[string][]storage.Memory), 0, at
	}
	u.lists[strings.Join(scopes, "\n")] = slices.Clone(list)
	u.size += 1 + len(list)
}
