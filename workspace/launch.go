package workspace

import (
	"context"
	"fmt"
	"io"
	"maps"
	"sync"
)

// A Launcher is a Workspace that runs commands beside its calls. The workspaces of a Manager
// are.
type Launcher interface {
	// Launch starts a command that goes on after the call: until it ends, its Process is
	// closed, or the workspace or the Manager ends. What it writes to its output is dropped.
	// The error is why it did not start; an id that runs is one.
	Launch(ctx context.Context, id string, c Command) error
	// Launched are the commands that run, by id. After a restart of claybot there are none.
	Launched() map[string]Process
}

var (
	_ Launcher = (*handle)(nil)
	_ Launcher = (*confined)(nil)
)

// Launch implements Launcher. What runs is no use of the workspace: it ends with it.
func (h *handle) Launch(ctx context.Context, id string, c Command) error {
	ws, done, err := h.enter(ctx)
	if err != nil {
		return err
	}
	defer func() { done(err) }()
	s := h.slot
	s.mu.Lock()
	_, taken := s.launched[id]
	s.mu.Unlock()
	if taken {
		return &Error{Code: Refused, Text: fmt.Sprintf("%.80q runs already", id)}
	}
	life, end := context.WithCancel(h.m.life)
	p, err := ws.Pipe(life, c)
	if err != nil {
		end()
		return err
	}
	s.mu.Lock()
	if s.launched == nil {
		s.launched = make(map[string]Process)
	}
	s.launched[id] = p
	s.mu.Unlock()
	h.m.background.Go(func() {
		defer end()
		_, _ = io.Copy(io.Discard, p)
		_, _ = p.Wait(life)
		_ = p.Close()
		s.mu.Lock()
		delete(s.launched, id)
		s.mu.Unlock()
	})
	return nil
}

// Launched implements Launcher.
func (h *handle) Launched() map[string]Process { return h.slot.running() }

// running are the launched commands of a slot.
func (s *slot) running() map[string]Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.launched)
}

// halt ends the launched commands of a slot.
func (s *slot) halt() {
	var all sync.WaitGroup
	for _, p := range s.running() {
		all.Go(func() { _ = p.Close() })
	}
	all.Wait()
}

// Close ends all launched commands. It returns when they have ended.
func (m *Manager) Close() {
	m.end()
	m.background.Wait()
}

// Launch implements Launcher. Like Exec, it is not limited to the directories.
func (c *confined) Launch(ctx context.Context, id string, cmd Command) error {
	l, ok := c.Workspace.(Launcher)
	if !ok {
		return &Error{Code: Failed, Text: "this workspace cannot run commands in the background"}
	}
	if cmd.Dir == "" {
		cmd.Dir = c.may.WorkingDir
	}
	return l.Launch(ctx, id, cmd)
}

// Launched implements Launcher.
func (c *confined) Launched() map[string]Process {
	if l, ok := c.Workspace.(Launcher); ok {
		return l.Launched()
	}
	return nil
}
