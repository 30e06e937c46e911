package workspace

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// The times of the sweep.
const (
	sweepFirst  = 5 * time.Second // after the start
	sweepEvery  = 5 * time.Minute
	sweepAtOnce = 5 // removals
	recordsKept = 14 * 24 * time.Hour
)

// Run removes workspaces whose time has passed, until ctx is done. It begins by
// finding those that a killed process has left: they are taken over, or removed
// with their data when their agent is gone.
func (m *Manager) Run(ctx context.Context) error {
	next := time.NewTimer(sweepFirst)
	defer next.Stop()
	found := make(map[string]bool) // providers that were asked for what was left
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next.C:
		case <-m.wake:
		}
		for name, p := range m.providers {
			if !found[name] {
				found[name] = m.adopt(ctx, p)
			}
		}
		next.Reset(m.sweep(ctx))
	}
}

// again lets Run look for removals to try again.
func (m *Manager) again() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// adopt compares what a provider has with the ledger, and reports whether it
// could. An engine that is down is asked again by the next sweep.
func (m *Manager) adopt(ctx context.Context, p Provider) bool {
	infos, err := p.List(ctx)
	if err != nil {
		m.unlisted(ctx, p, err)
		return false
	}
	whole := true
	there := make(map[Key]bool)
	for _, i := range infos {
		there[i.Key] = true
		if err := m.adoptOne(ctx, p, i); err != nil {
			m.log.Warn("failed to take over an abandoned workspace", "provider", p.Name(), "key", i.Key, "err", err)
			whole = false
		}
	}
	entries, err := m.cfg.Ledger.WorkspaceEntries(ctx, m.cfg.Node)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Provider != p.Name() || there[e.Key] {
			continue
		}
		if err := m.settle(ctx, e); err != nil {
			m.log.Warn("failed to correct a workspace entry", "provider", p.Name(), "key", e.Key, "err", err)
			whole = false
		}
	}
	return whole
}

// unlisted tells the operator that what a provider has is unknown. Where no engine can
// be used, and none has had a workspace, that is no fault: it is how most machines
// without Docker run.
func (m *Manager) unlisted(ctx context.Context, p Provider, err error) {
	if ctx.Err() != nil {
		return
	}
	level := slog.LevelWarn
	if Is(err, Unavailable) {
		entries, lerr := m.cfg.Ledger.WorkspaceEntries(ctx, m.cfg.Node)
		known := slices.ContainsFunc(entries, func(e Entry) bool { return e.Provider == p.Name() && e.State != Removed })
		if lerr == nil && !known {
			level = slog.LevelDebug
		}
	}
	m.log.Log(ctx, level, "workspaces that were left cannot be looked for", "provider", p.Name(), "err", err)
}

func (m *Manager) settle(ctx context.Context, e Entry) error {
	s := m.slot(e.Provider, e.Key)
	if !s.turn.Try() {
		return nil // it is opened or removed right now, which writes the entry
	}
	defer s.turn.Give()
	switch {
	case e.State == Removed:
		return nil
	case m.orphan(ctx, e.Key):
		_, _, err := m.claim(ctx, e, true) // its data is left; the sweep takes that
		return err
	case e.State != Running || s.opened():
		return nil // opened since the provider was asked
	}
	e.State, e.Changed = Idle, time.Now().UTC()
	_, err := m.cfg.Ledger.SaveWorkspaceEntry(ctx, e) // not saved: it was written since
	return err
}

func (m *Manager) orphan(ctx context.Context, key Key) bool {
	id := key.Agent()
	if id == "" || m.cfg.Exists == nil {
		return false
	}
	exists, err := m.cfg.Exists(ctx, id)
	if err != nil {
		m.log.Warn("failed to look up the agent of a workspace; keeping it", "key", key, "err", err)
	}
	return err == nil && !exists
}

func (m *Manager) adoptOne(ctx context.Context, p Provider, i Info) error {
	s := m.slot(p.Name(), i.Key)
	if !s.turn.Try() {
		return nil // it is opened or removed right now, which writes the entry
	}
	defer s.turn.Give()
	e, ok, err := m.cfg.Ledger.WorkspaceEntry(ctx, m.cfg.Node, p.Name(), i.Key)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	if !ok || e.State == Removed {
		e = Entry{
			Node: m.cfg.Node, Provider: p.Name(), Key: i.Key, Agent: i.Key.Agent(), Image: i.Image, Platform: i.Platform,
			LastUsed: now, TTL: m.cfg.TTL, Version: e.Version,
		}
	}
	switch {
	case m.orphan(ctx, i.Key):
		_, _, err := m.claim(ctx, e, true) // the sweep removes it
		return err
	case e.State == Running, e.State == Terminating, e.State == Idle && i.State == string(Idle):
		return nil
	}
	e.State, e.Changed = Running, now
	if _, err := m.cfg.Ledger.SaveWorkspaceEntry(ctx, e); err != nil { // not saved: it is in use already
		return err
	}
	m.log.Info("took over an abandoned workspace", "provider", p.Name(), "key", i.Key)
	return nil
}

func (m *Manager) sweep(ctx context.Context) time.Duration {
	if err := m.cfg.Ledger.DropWorkspaceEntries(ctx, time.Now().Add(-recordsKept)); err != nil && ctx.Err() == nil {
		m.log.Warn("failed to remove old workspace entries", "err", err)
	}
	entries, err := m.cfg.Ledger.WorkspaceEntries(ctx, m.cfg.Node)
	if err != nil {
		if ctx.Err() == nil {
			m.log.Warn("failed to sweep workspaces", "err", err)
		}
		return sweepEvery
	}
	now := time.Now()
	var wg sync.WaitGroup
	places := make(chan struct{}, sweepAtOnce)
	for _, e := range entries {
		if !m.due(e, now) {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			m.expire(ctx, e)
		})
	}
	wg.Wait()
	return m.nextTry(ctx)
}

func (m *Manager) due(e Entry, now time.Time) bool {
	if m.providers[e.Provider] == nil {
		return false // switched off: it is looked at when it is back
	}
	switch e.State {
	case Running:
		return e.TTL > 0 && !e.LastUsed.Add(e.TTL).After(now)
	case Terminating:
		return !e.NextTry.After(now)
	}
	return false
}

func (m *Manager) expire(ctx context.Context, e Entry) {
	s := m.slot(e.Provider, e.Key)
	if !s.turn.Try() {
		return // it is opened or removed right now
	}
	defer s.turn.Give()
	if m.users(e) > 0 {
		return
	}
	e, claimed, err := m.claim(ctx, e, false)
	if err != nil {
		if ctx.Err() == nil {
			m.log.Warn("failed to remove workspace", "key", e.Key, "err", err)
		}
		return
	}
	if !claimed {
		return // used since, or removed by another
	}
	if _, err := m.remove(ctx, s, e); err == nil {
		m.log.Info("workspace removed", "key", e.Key, "provider", e.Provider, "data", e.Data)
	}
}

// Renew ends the workspaces of a provider in which nothing runs now; their files stay, and their next use opens
// them again. It returns whether workspaces can be opened, as Check.
func (m *Manager) Renew(ctx context.Context, provider string) error {
	entries, err := m.cfg.Ledger.WorkspaceEntries(ctx, m.cfg.Node)
	if err != nil {
		return fmt.Errorf("renew workspaces: %w", err)
	}
	for _, e := range entries {
		if e.Provider == provider && e.State == Running && len(m.slot(provider, e.Key).running()) == 0 {
			m.expire(ctx, e)
		}
	}
	m.again() // for what could not be ended
	return m.Check(ctx, provider)
}

// nextTry is how long to wait for the next sweep: not longer than for a removal
// that is to be tried again.
func (m *Manager) nextTry(ctx context.Context) time.Duration {
	wait := sweepEvery
	entries, err := m.cfg.Ledger.WorkspaceEntries(ctx, m.cfg.Node)
	if err != nil {
		return wait
	}
	for _, e := range entries {
		if e.State == Terminating && m.providers[e.Provider] != nil {
			wait = min(wait, max(time.Until(e.NextTry), time.Second))
		}
	}
	return wait
}
