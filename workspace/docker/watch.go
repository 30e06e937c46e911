package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/claybot/claybot/workspace"
)

// Whatever runs in a container is watched, whether a command of claybot waits for it or
// a command left it behind: its space, and its processes, which are counted from outside
// and so also when there is none left to count them. A container in which only its own
// two processes are left needs no watch; the next command begins one.

// ownTasks is what a container has of its own: the init process and the one that waits.
const ownTasks = 2

// The number of looks in a row that fail to measure the space until a container is
// stopped: since its processes are used up, or since something keeps ending the measuring.
// A command gets more than what was left behind: it may be about to end by itself.
const (
	blindAlone   = 2
	blindCommand = 5
)

// attend has the container watched from now on, while a command runs in it and as long as
// something is left of it. end ends the command. leave says that it has ended after
// it ran for some time.
func (w *Workspace) attend(end context.CancelCauseFunc) (leave func(took time.Duration)) {
	s := w.slot
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk.settle()
	entry := &end
	if s.commands == nil {
		s.commands = make(map[*context.CancelCauseFunc]bool)
	}
	s.commands[entry] = true
	if s.watched != w.box.id && w.p.begin() {
		s.watched = w.box.id
		go w.stilled().watch()
	}
	return func(took time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.commands, entry)
		s.disk.stale = s.disk.stale || took >= measureAfter
	}
}

// alone reports that no command of claybot runs in the workspace.
func (s *slot) alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.commands) == 0
}

// watch looks again and again until nothing is left to watch. A provider that is closed
// stops what it would leave without a watch.
func (w *Workspace) watch() {
	defer w.p.work.Done()
	next := time.NewTimer(measureFirst)
	defer next.Stop()
	for {
		select {
		case <-w.p.ctx.Done():
			w.p.log.Info("stopped a workspace in which something still ran", "key", w.want.key)
			w.kill(context.Background())
			return
		case <-next.C:
		}
		began := time.Now()
		if !w.look() {
			return
		}
		// A large workspace is not measured all the time.
		next.Reset(min(max(measureEvery, 10*time.Since(began)), measureSeldom))
	}
}

// look looks once, and reports whether there is more to watch.
func (w *Workspace) look() bool {
	s := w.slot
	n, _, err := w.e.tasks(w.p.ctx, w.box.id)
	if err != nil && !errdefs.IsNotFound(err) {
		return true // the engine is away
	}
	ended := err != nil || n == 0 && !w.runs()
	s.mu.Lock()
	if ended || n > 0 && n <= ownTasks {
		if ended {
			s.disk.failed = 0
		}
		if (ended || !s.disk.stale) && len(s.commands) == 0 {
			if s.watched == w.box.id {
				s.watched = ""
			}
			s.mu.Unlock()
			return false
		}
	} else {
		s.disk.stale = true
	}
	s.mu.Unlock()
	if ended {
		return true // its command has not noticed yet
	}
	select {
	case <-w.p.ctx.Done():
		return true
	case <-w.gauge():
	}
	if why := w.trouble(n); why != nil {
		w.stop(why)
	}
	return true
}

// trouble says why what runs must end; nil when it need not.
func (w *Workspace) trouble(n int64) *workspace.Error {
	s := w.slot
	s.mu.Lock()
	defer s.mu.Unlock()
	blind := blindCommand
	if len(s.commands) == 0 {
		blind = blindAlone
	}
	switch d := &s.disk; {
	case d.failed >= blind:
		d.failed = 0
		what := "could not be measured"
		if n > w.want.PIDs/2 {
			what = fmt.Sprintf("could not be measured, as %d processes run of %d that may", n, w.want.PIDs)
		}
		return &workspace.Error{Code: workspace.DiskLimit, Text: "the space of the workspace " + what + ", and the command was ended; start fewer processes, or leave none behind"}
	case !d.at.IsZero() && w.grown(d.base, d.used):
		return w.fullError(d.used, "the command was ended")
	}
	return nil
}

// stop ends the commands that run, or the whole container where what runs is nobody's.
func (w *Workspace) stop(why *workspace.Error) {
	w.slot.mu.Lock()
	ends := make([]context.CancelCauseFunc, 0, len(w.slot.commands))
	for end := range w.slot.commands {
		ends = append(ends, *end)
	}
	w.slot.mu.Unlock()
	for _, end := range ends {
		end(why)
	}
	if len(ends) == 0 {
		w.p.log.Warn("stopped a workspace for what a command left running in it", "key", w.want.key, "container", w.box.id, "why", why.Text)
		w.kill(context.Background())
	}
}

// relieve reports whether a command could not begin since the container has hardly a
// process left, and stops the container then. Whatever ran in it ends; the next try
// starts it again, and its files stay.
func (w *Workspace) relieve(ctx context.Context) bool {
	n, limit, err := w.e.tasks(ctx, w.box.id)
	if err != nil || limit <= 0 || n <= ownTasks || n < limit-limit/8-beginTasks {
		return false
	}
	w.p.log.Warn("stopped a workspace that had no processes left for a command", "key", w.want.key, "container", w.box.id, "processes", n, "limit", limit)
	w.kill(ctx)
	return true
}

// beginTasks is how many tasks the engine needs for a moment to begin a command.
const beginTasks = 16

func (w *Workspace) runs() bool {
	call, cancel := context.WithTimeout(w.p.ctx, callTimeout)
	defer cancel()
	got, err := w.e.api.ContainerInspect(call, w.box.id)
	return err != nil && !errdefs.IsNotFound(err) || err == nil && got.State != nil && got.State.Running
}

// tasks is how many tasks a container has and may have, counted by the kernel. 0: it does
// not run, or its runtime does not say.
func (e *engine) tasks(ctx context.Context, id string) (n, limit int64, err error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := e.api.ContainerStatsOneShot(call, id)
	if err != nil {
		return 0, 0, err
	}
	defer got.Body.Close()
	var s container.StatsResponse
	if err := json.NewDecoder(got.Body).Decode(&s); err != nil {
		return 0, 0, err
	}
	return int64(min(s.PidsStats.Current, 1<<40)), int64(min(s.PidsStats.Limit, 1<<40)), nil
}
