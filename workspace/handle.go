package workspace

import (
	"context"
	"sync"
	"time"
)

// A handle is a Workspace of a Manager. Each of its calls is one use.
type handle struct {
	m     *Manager
	want  Want
	slot  *slot
	place string
}

var (
	_ Workspace = (*handle)(nil)
	_ Remover   = (*handle)(nil)
)

func (h *handle) enter(ctx context.Context) (Workspace, func(error), error) {
	ws, err := h.m.enter(ctx, h.slot, h.want)
	if err != nil {
		return nil, nil, err
	}
	return ws, func(err error) { h.leave(ctx, ws, err) }, nil
}

func (h *handle) leave(ctx context.Context, ws Workspace, err error) {
	s := h.slot
	s.mu.Lock()
	s.users--
	if s.ws == ws && Is(err, Gone) {
		s.ws = nil
	}
	late := s.ws != nil && time.Since(s.entry.LastUsed) >= touchEvery
	s.mu.Unlock()
	if late {
		h.touch(ctx)
	}
}

// touch writes the end of a long use. When that fails, or another user is at the
// workspace, the next use writes its own beginning.
func (h *handle) touch(ctx context.Context) {
	s := h.slot
	if !s.turn.Try() {
		return
	}
	defer s.turn.Give()
	s.mu.Lock()
	e := s.entry
	s.mu.Unlock()
	if e.State != Running {
		return
	}
	e.LastUsed = time.Now().UTC()
	// The use has ended well, though its context may have ended with it.
	saved, err := h.m.cfg.Ledger.SaveWorkspaceEntry(context.WithoutCancel(ctx), e)
	if err != nil {
		h.m.log.Warn("failed to record the use of a workspace", "key", e.Key, "err", err)
	}
	if err != nil || !saved {
		return
	}
	e.Version++
	s.mu.Lock()
	s.entry = e
	s.mu.Unlock()
}

func (h *handle) Place() string { return h.place }

// use does something with the workspace, as one use.
func use[T any](ctx context.Context, h *handle, do func(Workspace) (T, error)) (v T, err error) {
	ws, done, err := h.enter(ctx)
	if err != nil {
		return v, err
	}
	v, err = do(ws)
	done(err)
	return v, err
}

func (h *handle) Exec(ctx context.Context, c Command) (Result, error) {
	return use(ctx, h, func(w Workspace) (Result, error) { return w.Exec(ctx, c) })
}

func (h *handle) ReadFile(ctx context.Context, path string, max int64) ([]byte, error) {
	return use(ctx, h, func(w Workspace) ([]byte, error) { return w.ReadFile(ctx, path, max) })
}

func (h *handle) WriteFile(ctx context.Context, path string, content []byte) error {
	_, err := use(ctx, h, func(w Workspace) (struct{}, error) { return struct{}{}, w.WriteFile(ctx, path, content) })
	return err
}

// Remove implements Remover.
func (h *handle) Remove(ctx context.Context, path string) error {
	_, err := use(ctx, h, func(w Workspace) (struct{}, error) { return struct{}{}, remove(ctx, w, path) })
	return err
}

// remove deletes a file of a workspace that can do so.
func remove(ctx context.Context, w Workspace, path string) error {
	r, ok := w.(Remover)
	if !ok {
		return &Error{Code: Failed, Text: "this workspace cannot delete files; use a command"}
	}
	return r.Remove(ctx, path)
}

func (h *handle) List(ctx context.Context, dir string, max int) (files []File, more bool, err error) {
	files, err = use(ctx, h, func(w Workspace) (list []File, err error) {
		list, more, err = w.List(ctx, dir, max)
		return list, err
	})
	return files, more, err
}

// Pipe implements Workspace. The workspace is in use until the process is closed,
// or ctx has ended.
func (h *handle) Pipe(ctx context.Context, c Command) (Process, error) {
	ws, done, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	p, err := ws.Pipe(ctx, c)
	if err != nil {
		done(err)
		return nil, err
	}
	end := sync.OnceFunc(func() { done(nil) })
	stop := context.AfterFunc(ctx, end)
	return &heldProcess{Process: p, end: func() { stop(); end() }}, nil
}

type heldProcess struct {
	Process
	end func()
}

func (p *heldProcess) Close() error {
	err := p.Process.Close()
	p.end()
	return err
}

func (p *heldProcess) Wait(ctx context.Context) (int, error) {
	code, err := p.Process.Wait(ctx)
	if ctx.Err() == nil {
		p.end()
	}
	return code, err
}
