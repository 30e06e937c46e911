package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// WaitingRuns implements web.FlowRuns.
func (d flowDesk) WaitingRuns(ctx context.Context, name string) (out web.FlowUpgrade, err error) {
	f := d.library.Named(name)
	if f == nil {
		return out, storage.ErrNotFound
	}
	out = web.FlowUpgrade{Flow: name, Version: f.Hash, Text: f.Text, Texts: make(map[string]string), Runs: []web.FlowWaiting{}}
	for q := (storage.RunQuery{State: claybot.RunAwaiting, Limit: 500}); ; {
		page, err := d.system.Overview.RunPage(ctx, q)
		if err != nil {
			return out, err
		}
		for _, run := range page {
			of, version, ok := flow.SplitName(run.Engine)
			if !ok || of != name || version == f.Hash {
				continue
			}
			w := web.FlowWaiting{Run: run.ID, Version: version, Since: run.Started}
			old, err := d.library.version(ctx, name, version)
			switch {
			case err == nil:
				out.Texts[version] = old.Text
			case ctx.Err() != nil:
				return out, err
			}
			if w.Node, err = d.waitsAt(ctx, run); err != nil {
				return out, err
			}
			w.Why = stays(old, f, w.Node)
			out.Runs = append(out.Runs, w)
		}
		if len(page) < q.Limit {
			return out, nil
		}
		q.Before = page[len(page)-1].ID
	}
}

// waitsAt returns the node in which a run of a flow waits.
func (d flowDesk) waitsAt(ctx context.Context, run claybot.Run) (node string, err error) {
	records, err := d.system.Overview.RunRecords(ctx, run)
	for _, r := range records {
		if r.Type == claybot.RecordNode {
			node = r.Next
		}
	}
	return node, err
}

// stays returns why a run that waits in a node of one version cannot go on with another one; empty if it
// can. old is nil where it is not known.
func stays(old, now *flows.Flow, node string) string {
	n := now.Node(node)
	switch {
	case node == "":
		return "it is not known in which node it waits"
	case n == nil:
		return fmt.Sprintf("it waits in the node %s, which version %s does not have", node, now.Hash)
	case old != nil && old.Node(node) != nil && old.Node(node).Kind != n.Kind:
		return fmt.Sprintf("it waits in the node %s, which is of the kind %s in version %s and not %s", node, n.Kind, now.Hash, old.Node(node).Kind)
	case old != nil && old.Node(node) != nil && branchesElse(old.Node(node).Spec, n.Spec):
		return fmt.Sprintf("it waits in the node %s, which has other branches in version %s", node, now.Hash)
	case old != nil && old.Node(node) != nil && endsElse(old.Node(node).Spec, n.Spec):
		return fmt.Sprintf("it waits in the node %s, which ends in another way in version %s: by its event, join or on_error", node, now.Hash)
	case old != nil && old.Node(node) != nil && asksElse(old.Node(node).Spec, n.Spec):
		return fmt.Sprintf("it waits in the node %s, whose question version %s asks in another way: its type, its options or who may answer", node, now.Hash)
	}
	return ""
}

// branchesElse reports whether two nodes have other branches, by their names and kinds.
func branchesElse(old, now any) bool {
	a, ok := old.(*flows.Parallel)
	b, also := now.(*flows.Parallel)
	return ok && also && !slices.EqualFunc(a.Branches, b.Branches, func(x, y flows.Node) bool { return x.Name == y.Name && x.Kind == y.Kind })
}

// endsElse reports whether other events, or other ends of what they started, end two nodes.
func endsElse(old, now any) bool {
	switch a := old.(type) {
	case *flows.Wait:
		b, ok := now.(*flows.Wait)
		return !ok || a.Event != b.Event
	case *flows.Parallel:
		b, ok := now.(*flows.Parallel)
		return !ok || a.Need() != b.Need() || cmp.Or(a.OnError, flows.OnErrorStop) != cmp.Or(b.OnError, flows.OnErrorStop)
	case *flows.Each:
		b, ok := now.(*flows.Each)
		return !ok || cmp.Or(a.OnError, flows.OnErrorStop) != cmp.Or(b.OnError, flows.OnErrorStop)
	}
	return false
}

// asksElse reports whether an answer to what one node asks is none to what the other one asks.
func asksElse(old, now any) bool {
	switch a := old.(type) {
	case *flows.Ask:
		b, ok := now.(*flows.Ask)
		return !ok || a.Type != b.Type || !slices.Equal(a.Options, b.Options) || !slices.Equal(a.By, b.By)
	case *flows.Tool:
		b, ok := now.(*flows.Tool)
		return !ok || a.Tool != b.Tool
	}
	return false
}

// UpgradeRuns implements web.FlowRuns.
func (d flowDesk) UpgradeRuns(ctx context.Context, name, version, by string) (out web.FlowUpgraded, err error) {
	plan, err := d.WaitingRuns(ctx, name)
	if err != nil {
		return out, err
	}
	if plan.Version != version {
		return out, web.Refusal(fmt.Sprintf("the version %.64q of the workflow %s is not the one in force, which is %s; look at the difference again", version, name, plan.Version))
	}
	out = web.FlowUpgraded{Moved: []claybot.RunID{}, Kept: []web.FlowWaiting{}}
	for _, w := range plan.Runs {
		if w.Why == "" {
			from, to := flow.NameOf(name, w.Version), flow.NameOf(name, version)
			err := d.stores.db.SwitchEngine(ctx, w.Run, from, to, runs.Switched(w.Run, from, to, "upgrade by "+by))
			switch {
			case errors.Is(err, storage.ErrState) || errors.Is(err, storage.ErrNotFound):
				w.Why = "it went on meanwhile"
			case err != nil:
				return out, err
			default:
				d.log.Info("moved a waiting run to another version of its flow", "run", w.Run, "from", from, "to", to, "by", by)
				out.Moved = append(out.Moved, w.Run)
				continue
			}
		}
		out.Kept = append(out.Kept, w)
	}
	return out, nil
}
