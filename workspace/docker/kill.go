package docker

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/claybot/claybot/workspace"
)

const (
	askTime  = time.Second     // from TERM to KILL
	killTime = 5 * time.Second // for each of the engine's calls
)

// killed ends a command with all that it started: it is asked to end, then its
// processes are killed, and then, unless the workspace is to stay, the whole
// container is. The error is why inner ended.
func (r *run) killed(inner context.Context, ended <-chan struct{}, flush func()) error {
	why := context.Cause(inner)
	ctx, cancel := context.WithTimeout(context.Background(), 4*killTime)
	defer cancel()
	limit := workspace.Is(why, workspace.WallLimit) || workspace.Is(why, workspace.IdleLimit) || workspace.Is(why, workspace.DiskLimit)
	stopAll := limit && !r.w.want.KeepOnTimeout
	asked := make(chan struct{})
	go func() { // a workspace that has no process left for this must not hold it up
		defer close(asked)
		r.signal(ctx, "TERM")
	}()
	wait(ended, askTime)
	if !stopAll {
		left, patience := r.signal(ctx, "KILL"), askTime/2
		if left == none {
			patience = killTime // a busy engine says later that its output has ended
		}
		stopAll = left == unknown || !wait(ended, patience) || r.lives(ctx)
	}
	if stopAll {
		flush()
		r.w.kill(ctx)
		wait(ended, askTime)
	}
	r.stream.Close() // frames ends, whatever the engine does
	<-asked
	return why
}

// wait reports whether something ended in time.
func wait(ended <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ended:
		return true
	case <-t.C:
		return false
	}
}

// signalScript sends a signal $1 to all processes that have the mark $2 in their
// environment, and says how many there are. With them go processes that have no
// mark at all, no parent, and less than $3 hundredths of a second of age: they
// began as a child of a command and have taken off both. The process that waits has none
// either, and is known by its user $4. KILL is sent until there are none, as the children
// of those that it ends come to light by it.
const signalScript = `
read -r up _ </proc/uptime; up=${up%.*}${up#*.}
sig=$1 mark=$2 age=$3 init=$4 n=0
waits() { while read -r k v _; do [ "$k" != Uid: ] || { [ "$v" = "$init" ]; return; }; done <"$1/status"; }
orphan() { [ "$1" != Z ] && [ "$2" = 1 ] && [ $((up-${20})) -le $age ]; }
pass() {
	n=0
	for p in /proc/[0-9]*; do
		id=${p#/proc/}
		[ "$id" = 1 ] && continue
		if ! grep -qs "` + marker + `=$mark" "$p/environ"; then
			[ $age = 0 ] || grep -qs "` + marker + `=" "$p/environ" && continue
			{ read -r line <"$p/stat"; } 2>/dev/null || continue
			orphan ${line##*) } 2>/dev/null || continue
			waits "$p" 2>/dev/null && continue
		fi
		n=$((n+1)); kill -s $sig "$id" 2>/dev/null
	done
}
pass
i=0
while [ $sig = KILL ] && [ $n -gt 0 ] && [ $i -lt 5 ]; do pass; i=$((i+1)); done
echo $n`

// What signal says of processes that could not be counted, and where there are none.
const (
	unknown = "?"
	none    = "0\n"
)

// signal sends a signal to the processes of a command.
func (r *run) signal(ctx context.Context, name string) (left string) {
	const late = time.Second // until the script looks
	return r.w.signal(ctx, name, r.mark, time.Since(r.began)+late)
}

// signal sends a signal to the processes of a mark, and to those without one that
// are younger than an age. It says how many there were, or unknown: the script did
// not run, as in a workspace whose processes are at their limit.
func (w *Workspace) signal(ctx context.Context, name, mark string, age time.Duration) string {
	call, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	init, _, _ := strings.Cut(w.want.initUser(), ":")
	out, _, err := w.stilled().script(call, signalScript, nil, 64, name, mark, strconv.FormatInt(age.Milliseconds()/10, 10), init)
	if err != nil {
		return unknown
	}
	return string(out)
}

// lives reports whether a process of the command is left, or that is unknown.
func (r *run) lives(ctx context.Context) bool { return r.signal(ctx, "0") != none }

// kill ends the container at once. The next command starts it again; its files
// stay.
func (w *Workspace) kill(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	err := w.e.api.ContainerKill(call, w.box.id, "KILL")
	if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
		w.p.log.Warn("failed to stop workspace", "key", w.want.key, "container", w.box.id, "err", err)
	}
}

// lose remembers a command that may go on although no caller waits for it: the engine
// was not there to end it.
func (s *slot) lose(mark string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = append(s.lost, mark)
}

// endLost ends the commands that were lost. Those that cannot be ended now stay
// remembered.
func (w *Workspace) endLost(ctx context.Context) {
	w.slot.mu.Lock()
	lost := w.slot.lost
	w.slot.lost = nil
	w.slot.mu.Unlock()
	for _, mark := range lost {
		if w.signal(ctx, "KILL", mark, 0) == unknown {
			w.slot.lose(mark)
		}
	}
}
