package worker

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	// unwellFor is how long a member reports itself unhealthy after its last error
	// of storage.ClassMember.
	unwellFor = 30 * time.Second
	// HealthCheckEvery is the interval at which a limited member checks whether it may take
	// more agents.
	HealthCheckEvery = 100 * time.Millisecond
)

// An Health knows whether this member has met errors that are not of one agent:
// descriptors, memory, I/O. While it meets them it takes fewer agents: half as many
// with each further agent that meets one, twice as many with each pass that succeeds,
// and all of them after unwellFor without one. A single agent that meets them again
// and again costs the others nothing, and leaves the member ready. It also knows whether
// a write found the disk full, which it writes into the boot record. The zero value is well.
type Health struct {
	boot *BootRecord // nil: no record is kept

	mu     sync.Mutex
	last   time.Time
	cause  string
	agent  string               // that met the last one, by the key of its descriptor; empty: no agent
	of     map[string]time.Time // when each met its last one, at most unwellFor ago
	limit  int                  // of agents at work; 0: none
	busy   int                  // agents at work when that was last asked for
	paused int                  // agents that wait for their next try
	full   time.Time            // when a write last found no space; zero: one has worked since
	filled time.Time            // when a write first found no space, the last time that this happened
	open   bool                 // no write has worked since filled
}

// keep has the boot record kept, and goes on from that of the process before.
func (u *Health) keep(r *BootRecord) {
	if r.boots == nil {
		return
	}
	last := r.boots.Last()
	u.boot, u.filled, u.open = r, last.Filled.Time(), last.Full
}

// Met notes an error of storage.ClassMember that the agent with a key met; the key is
// empty for an error that is of no agent.
func (u *Health) Met(agent string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	further := time.Since(u.last) < unwellFor && agent != u.agent
	u.last, u.cause, u.agent = time.Now(), causeUnwell(err), agent
	if u.of == nil {
		u.of = make(map[string]time.Time)
	}
	u.forget()
	u.of[agent] = u.last
	if !further {
		return
	}
	if u.limit == 0 {
		u.limit = u.busy
	}
	u.limit = max(1, u.limit/2)
}

// passed notes that a pass succeeded.
func (u *Health) passed() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit *= 2
}

// Stored notes how a write ended. A full or read-only disk makes the member unwell
// until a write works, or for unwellFor if none is tried. That it became full, or is no
// longer, is in the boot record before Stored returns, unless that takes nothing at all.
func (u *Health) Stored(err error) {
	if u.stored(err) && u.boot != nil {
		u.boot.Record(true, func(b *storage.Boot) {
			u.mu.Lock()
			defer u.mu.Unlock()
			b.Filled, b.Full = claybot.At(u.filled), u.open
		})
	}
}

// stored reports whether the disk became full, or has room again.
func (u *Health) stored(err error) (changed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil:
		changed = u.open
		u.open, u.full = false, time.Time{}
	case diskFull(err):
		changed = !u.open
		u.open, u.full = true, time.Now()
		if changed {
			u.filled = u.full
		}
	}
	return changed
}

// Filled returns when the disk was last found full or read-only, after it was not, by this
// process or an earlier one in the same data directory; zero for never.
func (u *Health) Filled() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.filled
}

// diskFull reports whether err says that there is no space or no right to write.
func diskFull(err error) bool {
	return slices.ContainsFunc([]error{storage.ErrFull, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS}, func(full error) bool { return errors.Is(err, full) })
}

// pause counts an agent that waits for its next try, until the end is called.
func (u *Health) pause() (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paused++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.paused--
	}
}

// Room is how many of free agents may be taken while busy ones are at work.
func (u *Health) Room(free, busy int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = busy
	if u.limit == 0 || u.limit >= free+busy || time.Since(u.last) >= unwellFor {
		u.limit = 0
		return free
	}
	return max(0, min(free, u.limit-busy-u.paused))
}

// Says is why this member is unwell, in a sentence; empty when it is well.
func (u *Health) Says() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case time.Since(u.full) < unwellFor:
		return "claybot cannot store anything: the disk of the database or the data directory is full or read-only; make room there"
	case time.Since(u.last) < unwellFor:
		return u.cause
	}
	return ""
}

// Full reports whether this member is unwell because the disk is full or read-only.
func (u *Health) Full() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Since(u.full) < unwellFor
}

// Open reports whether no write has worked since the disk was last found full or read-only, in this process or before.
func (u *Health) Open() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open
}

// Spread reports whether this member is unwell beyond one agent: the disk is full, or two
// agents, or what is of no agent, met an error within unwellFor.
func (u *Health) Spread() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forget()
	_, ofNone := u.of[""]
	return ofNone || len(u.of) > 1 || time.Since(u.full) < unwellFor
}

// forget removes who met no error for unwellFor. It needs mu.
func (u *Health) forget() {
	maps.DeleteFunc(u.of, func(_ string, at time.Time) bool { return time.Since(at) >= unwellFor })
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
