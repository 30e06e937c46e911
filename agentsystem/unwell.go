package agentsystem

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/claybot/claybot"
)

const (
	// unwellFor is how long a member reports itself unwell after the last error of
	// its class.
	unwellFor = 30 * time.Second
	// lookUnwell is how often a member that takes less looks whether it may take more.
	lookUnwell = 100 * time.Millisecond
)

// An unwell knows whether this member has met errors that are not of one agent:
// descriptors, memory, I/O. While it meets them it takes fewer agents: half as many
// with each further agent that meets one, twice as many with each pass that succeeds,
// and all of them after unwellFor without one. A single agent that meets them again
// and again makes it unwell, but costs the others nothing. The zero value is well.
type unwell struct {
	mu      sync.Mutex
	last    time.Time
	cause   string
	agent   claybot.AgentID // that met the last one
	limit   int             // of agents at work; 0: none
	busy    int             // agents at work when that was last asked for
	resting int             // agents that wait for their next try
}

// met notes an error of storage.ClassMember that agent met.
func (u *unwell) met(agent claybot.AgentID, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	further := time.Since(u.last) < unwellFor && agent != u.agent
	u.last, u.cause, u.agent = time.Now(), causeUnwell(err), agent
	if !further {
		return
	}
	if u.limit == 0 {
		u.limit = u.busy
	}
	u.limit = max(1, u.limit/2)
}

// passed notes that a pass succeeded.
func (u *unwell) passed() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit *= 2
}

// rest counts an agent that waits for its next try, until the end is called.
func (u *unwell) rest() (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.resting++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.resting--
	}
}

// room is how many of free agents may be taken while busy ones are at work.
func (u *unwell) room(free, busy int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = busy
	if u.limit == 0 || u.limit >= free+busy || time.Since(u.last) >= unwellFor {
		u.limit = 0
		return free
	}
	return max(0, min(free, u.limit-busy-u.resting))
}

// says is why this member is unwell, in a sentence; empty when it is well.
func (u *unwell) says() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cause == "" || time.Since(u.last) >= unwellFor {
		return ""
	}
	return u.cause
}

func causeUnwell(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "this process has run out of file descriptors; raise its limit (ulimit -n, or LimitNOFILE of its service)"
	case errors.Is(err, syscall.ENOMEM):
		return "this process has run out of memory; give it more, or lower node.max_runs"
	case errors.Is(err, syscall.EIO):
		return "the disk with the data directory reports I/O errors; look at the log of the kernel"
	}
	return "the database file or the data directory reports errors: " + err.Error()
}
