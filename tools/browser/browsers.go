package browser

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
)

// Browsers are those that are open. It is safe for concurrent use; calls for one
// browser wait for each other.
type Browsers struct {
	cfg Config

	mu       sync.Mutex
	sessions map[string]*session
	closed   bool
	closing  sync.WaitGroup // of what the clock closes
}

// Codes of the faults of these tools.
const (
	faultBrowser     = "browser"     // the page or the browser does not do it
	faultCrashed     = "crashed"     // the browser is gone
	faultUnavailable = "unavailable" // there is no browser
	faultBusy        = "busy"        // too many are open
)

// spare is for how long a browser must not have been used to make room for
// another.
const spare = time.Minute

func invalid(format string, args ...any) error {
	return &tools.Fault{Code: tools.FaultArguments, Text: fmt.Sprintf(format, args...)}
}

func (b *Browsers) find(key string) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[key]
}

// with uses the browser of a call. An address opens one where there is none;
// without it, that is an error. A browser that is gone is closed, so that the next
// opening starts anew.
func (b *Browsers) with(ctx context.Context, env tools.Env, address string, use func(*session) (tools.Result, error)) (tools.Result, error) {
	s, err := b.enter(ctx, b.cfg.Key(env), address != "")
	if err != nil {
		return tools.Result{}, err
	}
	defer s.leave()
	fresh := s.device == nil
	if fresh {
		if err := s.start(ctx, env, address); err != nil {
			s.drop()
			return tools.Result{}, fault(ctx, err)
		}
		r, err := s.shown(ctx, fmt.Sprintf(texts.DidOpenPage, subject(address)), nil)
		return r, s.judge(ctx, err)
	}
	r, err := use(s)
	return r, s.judge(ctx, err)
}

// judge is what a call says about an error. After a crash the browser is closed.
func (s *session) judge(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if crashed(err) {
		s.b.cfg.Log.Warn("browser exited", "key", s.key, "err", err, "cause", errors.Unwrap(err))
		s.drop()
	}
	return fault(ctx, err)
}

func fault(ctx context.Context, err error) error {
	e, ok := errors.AsType[*devices.Error](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !ok:
		return tools.WorkspaceFault(err)
	case e.Crash:
		return &tools.Fault{Code: faultCrashed, Text: e.Text + "; it is closed now, with what it remembered. Open the page again with browser_open"}
	}
	return &tools.Fault{Code: faultBrowser, Text: e.Text}
}

func (b *Browsers) enter(ctx context.Context, key string, fresh bool) (*session, error) {
	for {
		s, spared, err := b.slot(key, fresh)
		if err != nil {
			return nil, err
		}
		if spared != nil {
			_, _ = b.forgetSession(ctx, spared) // what does not end in time is left to its device
			continue
		}
		if err := s.turn.Take(ctx); err != nil {
			return nil, err
		}
		if b.find(key) == s {
			s.mu.Lock()
			if s.idle != nil {
				s.idle.Stop()
			}
			s.mu.Unlock()
			return s, nil
		}
		s.turn.Give() // it was closed while we waited
	}
}

// slot finds the session of a key, or makes room for one. spared is one that must
// be closed before.
func (b *Browsers) slot(key string, fresh bool) (s, spared *session, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, nil, &tools.Fault{Code: faultUnavailable, Text: "claybot is stopping"}
	case b.sessions[key] != nil:
		return b.sessions[key], nil, nil
	case !fresh:
		return nil, nil, &tools.Fault{Code: faultBrowser, Text: "no page is open; open one with browser_open"}
	}
	if len(b.sessions) >= b.cfg.Most {
		if spared = b.longestIdle(); spared == nil {
			return nil, nil, &tools.Fault{
				Code: faultBusy, Retriable: true, After: spare,
				Text: fmt.Sprintf("%d browsers are open, which is the most; try again in some minutes", len(b.sessions)),
			}
		}
		return nil, spared, nil
	}
	s = &session{b: b, key: key, turn: workspace.NewTurn(), used: time.Now()}
	b.sessions[key] = s
	return s, nil, nil
}

// longestIdle is the session that was not used for the longest time, if no call uses
// it and that was long enough. The lock is held.
func (b *Browsers) longestIdle() (found *session) {
	oldest := time.Now().Add(-min(spare, b.cfg.Idle))
	for _, s := range b.sessions {
		s.mu.Lock()
		used := s.used
		s.mu.Unlock()
		if len(s.turn) == 0 && used.Before(oldest) {
			found, oldest = s, used
		}
	}
	return found
}

func (s *session) leave() {
	s.mu.Lock()
	s.used = time.Now()
	if s.device != nil {
		if s.idle == nil {
			s.idle = time.AfterFunc(s.b.cfg.Idle, s.expire)
		} else {
			s.idle.Reset(s.b.cfg.Idle)
		}
	}
	s.mu.Unlock()
	s.turn.Give()
}

func (s *session) expire() {
	s.b.mu.Lock()
	if s.b.closed {
		s.b.mu.Unlock()
		return
	}
	s.b.closing.Add(1)
	s.b.mu.Unlock()
	defer s.b.closing.Done()
	if !s.turn.Try() {
		return // it is used; its end sets the clock
	}
	defer s.turn.Give()
	s.mu.Lock()
	late := time.Since(s.used) >= s.b.cfg.Idle
	s.mu.Unlock()
	if late {
		s.drop()
	}
}

func (s *session) start(ctx context.Context, env tools.Env, address string) error {
	d, err := s.b.cfg.Open(ctx, env, devices.Spec{URL: address})
	if err != nil {
		return err
	}
	s.device = d
	start := d.Starter()
	for _, step := range []func(context.Context) error{start.Ensure, start.Provision, start.Launch} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// drop closes the browser and forgets the session. The turn is held.
func (s *session) drop() {
	if s.device != nil {
		if err := s.device.Close(); err != nil {
			s.b.cfg.Log.Warn("failed to close browser", "key", s.key, "err", err)
		}
		s.device = nil
	}
	s.mu.Lock()
	if s.idle != nil {
		s.idle.Stop()
	}
	s.mu.Unlock()
	s.b.mu.Lock()
	if s.b.sessions[s.key] == s {
		delete(s.b.sessions, s.key)
	}
	s.b.mu.Unlock()
}

// Forget closes the browser of a key, as when its workspace goes. It waits for a
// call that uses it.
func (b *Browsers) Forget(ctx context.Context, key string) error {
	_, err := b.forget(ctx, key)
	return err
}

func (b *Browsers) forget(ctx context.Context, key string) (closed bool, err error) {
	s := b.find(key)
	if s == nil {
		return false, nil
	}
	return b.forgetSession(ctx, s)
}

func (b *Browsers) forgetSession(ctx context.Context, s *session) (closed bool, err error) {
	if err := s.turn.Take(ctx); err != nil {
		return false, err
	}
	defer s.turn.Give()
	closed = s.device != nil
	s.drop()
	return closed, nil
}

// Close closes all browsers and waits for that. Calls that come later are errors.
func (b *Browsers) Close() error {
	b.mu.Lock()
	b.closed = true
	var all []*session
	for _, s := range b.sessions {
		all = append(all, s)
	}
	b.mu.Unlock()
	for _, s := range all {
		_, _ = b.forgetSession(context.Background(), s) // it has no end
	}
	b.closing.Wait()
	return nil
}
