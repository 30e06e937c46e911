package docker

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/workspace"
)

// The space of a workspace is that of a volume, which an engine of every age
// cannot bound. So a single file is bounded by the kernel (fsize), and the sum is
// measured for as long as anything runs; see watch. A workspace that is over its limit
// runs commands, so that files can be removed, as long as it does not grow.
const (
	measureFirst  = time.Second // after the begin of a command
	measureEvery  = 3 * time.Second
	measureSeldom = 30 * time.Second // where measuring takes long
	measureTime   = time.Minute
	measureAfter  = 500 * time.Millisecond // how long a command ran that is worth it
	measureLinger = 5 * time.Second        // how long an opening waits for the end of one
)

// disk is what is known of the space of a workspace.
type disk struct {
	used   space         // as measured last
	at     time.Time     // zero: used is not what there is now
	base   space         // beyond the limit, more than this is growth
	based  bool          // base is known; otherwise the next measuring makes it known
	stale  bool          // something may have written since the last measuring
	failed int           // how often in a row the measuring failed
	busy   chan struct{} // closed when a measuring has ended; nil when none goes on
}

// settle makes what is there now the base of what comes.
func (d *disk) settle() { d.base, d.based = d.used, !d.at.IsZero() }

// maxEntries is how many files and folders a workspace may have: each takes
// something of the host's disk, however empty.
const maxEntries = 500_000

type space struct{ bytes, entries int64 }

func (w *Workspace) full(s space) bool { return s.bytes > w.want.Disk || s.entries > w.p.entries }

func (w *Workspace) grown(before, now space) bool {
	return now.bytes > w.want.Disk && now.bytes > before.bytes || now.entries > w.p.entries && now.entries > before.entries
}

const measureScript = `du -sk ` + home + ` 2>/dev/null | tail -n 1
find ` + home + ` 2>/dev/null | wc -l`

func (w *Workspace) measure(ctx context.Context) (space, error) {
	call, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	out, _, err := w.stilled().script(call, measureScript, nil, 256)
	if err != nil {
		return space{}, err
	}
	size, count, _ := strings.Cut(string(out), "\n")
	n, err := strconv.ParseInt(strings.Fields(size + " x")[0], 10, 64)
	if err != nil {
		return space{}, fmt.Errorf("du answers %.40q", out)
	}
	used := space{bytes: n << 10}
	if used.entries, err = strconv.ParseInt(strings.TrimSpace(count), 10, 64); err != nil {
		return space{}, fmt.Errorf("find answers %.40q", count)
	}
	w.slot.mu.Lock()
	defer w.slot.mu.Unlock()
	d := &w.slot.disk
	d.used, d.at, d.failed, d.stale = used, time.Now(), 0, false
	if !d.based {
		d.settle()
	}
	return used, nil
}

// room refuses to write a file into a workspace that is over its limit, after
// looking again.
func (w *Workspace) room(ctx context.Context) error {
	w.slot.mu.Lock()
	used := w.slot.disk.used
	w.slot.mu.Unlock()
	if !w.full(used) {
		return nil
	}
	used, err := w.measure(ctx)
	if err != nil || !w.full(used) {
		return nil // it is not known to be full
	}
	return w.fullError(used, "nothing was written")
}

// gauge begins to measure, unless that goes on, and returns what is closed at its
// end. After Close that never is.
func (w *Workspace) gauge() <-chan struct{} {
	if !w.p.begin() {
		return nil
	}
	s := w.slot
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disk.busy != nil {
		w.p.work.Done()
		return s.disk.busy
	}
	done := make(chan struct{})
	s.disk.busy = done
	go func() {
		defer w.p.work.Done()
		_, err := w.measure(w.p.ctx)
		if err != nil && w.p.ctx.Err() == nil {
			w.p.log.Debug("failed to measure workspace disk usage", "key", w.want.key, "err", err)
		}
		s.mu.Lock()
		if err != nil && !workspace.Is(err, workspace.Unavailable) { // that is the engine's doing
			s.disk.failed++
		}
		s.disk.busy = nil
		s.mu.Unlock()
		close(done)
	}()
	return done
}

func (s *slot) measured(ctx context.Context) {
	s.mu.Lock()
	busy := s.disk.busy
	s.mu.Unlock()
	if busy == nil {
		return
	}
	t := time.NewTimer(measureLinger)
	defer t.Stop()
	select {
	case <-busy:
	case <-t.C:
	case <-ctx.Done():
	}
}

func (w *Workspace) fullError(used space, what string) *workspace.Error {
	limit := fmt.Sprintf("has used up its space of %d MiB", w.want.Disk>>20)
	if used.bytes <= w.want.Disk {
		limit = fmt.Sprintf("has more than %d files and folders", w.p.entries)
	}
	return &workspace.Error{Code: workspace.DiskLimit, Text: "the workspace " + limit + ", and " + what + "; remove files first"}
}

// settle measures after a command that was ended for its space: what it wrote up to
// its end must not count as what the next one does. Where that does not work, as in
// a container that was stopped, nothing is known.
func (w *Workspace) settle(ctx context.Context) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), measureLinger)
	defer cancel()
	_, err := w.measure(call)
	w.slot.mu.Lock()
	defer w.slot.mu.Unlock()
	if err != nil {
		w.slot.disk.at = time.Time{}
	}
	w.slot.disk.settle()
}
