package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// sweptAtOnce bounds the agents of flows that one sweep removes.
const sweptAtOnce = 5000

// sweepFlows removes the agents of flows whose runs the store keeps no longer, with their subagents: each
// was made for one run. So it does with threads that no run has used since. Where runs are kept forever,
// so are the agents.
func (d *daemon) sweepFlows(ctx context.Context, at time.Time) error {
	keep := d.config.Load().Retention.Runs
	if keep == 0 {
		return nil
	}
	for _, kind := range []claybot.AgentType{claybot.AgentFlow, claybot.AgentSubagent} {
		if err := d.sweepOld(ctx, kind, claybot.At(at.Add(-keep))); err != nil {
			return err
		}
	}
	return nil
}

// sweepOld removes the agents of flows of one kind that are older than a time and have no run.
func (d *daemon) sweepOld(ctx context.Context, kind claybot.AgentType, before claybot.Time) error {
	removed := 0
	for q := (storage.AgentQuery{Type: kind, Limit: 500}); ; {
		page, err := d.stores.db.AgentPage(ctx, q)
		if err != nil {
			return fmt.Errorf("list the agents of flows: %w", err)
		}
		for _, e := range page {
			if e.Busy || e.CreatedAt >= before || kind == claybot.AgentSubagent && !e.Descriptor.IsThread() {
				continue
			}
			_, err := d.stores.db.LastRun(ctx, e.ID)
			if err == nil {
				continue
			}
			if !errors.Is(err, storage.ErrNotFound) {
				return fmt.Errorf("look for runs of %s: %w", e.ID, err)
			}
			if err := d.sweepAgent(ctx, e.ID); err != nil {
				return err
			}
			if removed++; removed >= sweptAtOnce {
				return nil
			}
		}
		if len(page) < q.Limit {
			return nil
		}
		q.After = page[len(page)-1].ID
	}
}

// sweepAgent removes an agent with those below it.
func (d *daemon) sweepAgent(ctx context.Context, id claybot.AgentID) error {
	for {
		children, err := d.stores.db.AgentPage(ctx, storage.AgentQuery{Parent: id})
		if err != nil {
			return fmt.Errorf("list the subagents of %s: %w", id, err)
		}
		for _, child := range children {
			if err := d.sweepAgent(ctx, child.ID); err != nil {
				return err
			}
		}
		if len(children) == 0 {
			break
		}
	}
	err := d.system.Control.Delete(ctx, id)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("remove the agent %s: %w", id, err)
	}
	d.tooling.workspaces.forget(ctx, id)
	return storage.Ignore(d.stores.agents.EraseDeleted(ctx, id), storage.ErrNotFound)
}
