package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/storage"
)

// The keys of the checkpoints of flows in a cluster, and of versions that are not in force: when a sweep
// first saw that.
const (
	flowMembers = "flow/member/"
	flowUnused  = "flow/unused/"
)

// compareEvery is how often members compare their flows.
const compareEvery = 10 * time.Second

// flowMembersOf returns the name of this member, and those of the others that are there.
func (d *daemon) flowMembersOf() (self string, others []string) {
	self = d.stores.members.Name()
	for _, n := range d.stores.members.Alive() {
		if n.Name != self && !slices.Contains(others, n.Name) {
			others = append(others, n.Name)
		}
	}
	slices.Sort(others)
	return self, others
}

// hashes are the versions of the flows in force, by name.
func (l *library) hashes() map[string]string {
	all := make(map[string]string)
	for _, f := range l.all() {
		all[f.Name] = f.Hash
	}
	return all
}

// compare learns which flows the other members have, and tells them those of this one.
func (l *library) compare(ctx context.Context, now time.Time) error {
	if l.members == nil || now.Sub(l.compared) < compareEvery {
		return nil
	}
	self, names := l.members()
	others := make(map[string]map[string]string)
	if len(names) > 0 {
		own, err := json.Marshal(l.hashes())
		if err != nil {
			return err
		}
		known, err := l.store.ListCheckpoints(ctx, flowMembers)
		if err != nil {
			return fmt.Errorf("read the flows of other members: %w", err)
		}
		told := false
		for _, c := range known {
			name := strings.TrimPrefix(c.Key, flowMembers)
			told = told || name == self && c.Value == string(own)
			var theirs map[string]string
			if slices.Contains(names, name) && json.Unmarshal([]byte(c.Value), &theirs) == nil {
				others[name] = theirs
			}
		}
		if !told {
			if err := l.store.SetCheckpoint(ctx, flowMembers+self, string(own)); err != nil {
				return fmt.Errorf("store which flows are in force: %w", err)
			}
		}
	}
	l.compared = now
	l.mu.Lock()
	defer l.mu.Unlock()
	l.others = others
	return nil
}

// differing says which members have other flows than this one, and how.
func (l *library) differing() (all []overview.SettingStatus) {
	own := l.hashes()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, member := range slices.Sorted(maps.Keys(l.others)) {
		theirs := l.others[member]
		names := make(map[string]bool)
		for name := range own {
			names[name] = true
		}
		for name := range theirs {
			names[name] = true
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(names)) {
			switch here, there := own[name], theirs[name]; {
			case here == there:
			case here == "":
				parts = append(parts, name+" (only there)")
			case there == "":
				parts = append(parts, name+" (only here)")
			default:
				parts = append(parts, name+" (another version)")
			}
		}
		if len(parts) > 0 {
			all = append(all, overview.SettingStatus{
				Text: fmt.Sprintf("the cluster member %s has other workflows: %s", member, strings.Join(parts, ", ")), Next: nextOf("workflows-differ"),
			})
		}
	}
	return all
}

// sweepVersions removes the versions of flows that were not in force for as long as runs are kept, and
// that no run needs: none that has not ended began with them. Where runs are kept forever, so are they.
func (d *daemon) sweepVersions(ctx context.Context, at time.Time) error {
	keep := d.config.Load().Retention.Runs
	if keep == 0 {
		return nil
	}
	versions, err := d.stores.db.ListCheckpoints(ctx, flowVersions)
	if err != nil {
		return fmt.Errorf("list the versions of flows: %w", err)
	}
	needed, err := d.versionsInForce(ctx)
	if err != nil {
		return err
	}
	marks, err := d.stores.db.ListCheckpoints(ctx, flowUnused)
	if err != nil {
		return fmt.Errorf("list the versions of flows: %w", err)
	}
	since := make(map[string]string)
	for _, m := range marks {
		since[strings.TrimPrefix(m.Key, flowUnused)] = m.Value
	}
	changes := make(map[string]string)
	var old []string
	for _, v := range versions {
		key := strings.TrimPrefix(v.Key, flowVersions)
		first, err := strconv.ParseInt(since[key], 10, 64)
		switch {
		case needed[key] && since[key] != "":
			changes[flowUnused+key] = ""
		case needed[key]:
		case err != nil:
			changes[flowUnused+key] = strconv.FormatInt(at.UnixMilli(), 10)
		case first < at.Add(-keep).UnixMilli():
			old = append(old, key)
		}
	}
	if len(old) > 0 {
		busy, err := d.versionsAtWork(ctx)
		if err != nil {
			return err
		}
		for _, key := range old {
			if !busy[key] {
				changes[flowVersions+key], changes[flowUnused+key] = "", ""
			}
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if err := d.stores.db.SetCheckpoints(ctx, changes); err != nil {
		return fmt.Errorf("remove versions of flows: %w", err)
	}
	return nil
}

// versionsInForce are the versions that are in force here, at the last start, or on a member, as name/hash.
func (d *daemon) versionsInForce(ctx context.Context) (map[string]bool, error) {
	all := make(map[string]bool)
	add := func(text string) {
		var hashes map[string]string
		if json.Unmarshal([]byte(text), &hashes) == nil {
			for name, hash := range hashes {
				all[name+"/"+hash] = true
			}
		}
	}
	for name, hash := range d.library.hashes() {
		all[name+"/"+hash] = true
	}
	stored, err := d.stores.db.Checkpoint(ctx, flowsInForce)
	if err != nil {
		return nil, fmt.Errorf("read which flows are in force: %w", err)
	}
	add(stored)
	members, err := d.stores.db.ListCheckpoints(ctx, flowMembers)
	if err != nil {
		return nil, fmt.Errorf("read which flows are in force: %w", err)
	}
	for _, m := range members {
		add(m.Value)
	}
	return all, nil
}

// maxQueued bounds the messages of an agent that are looked at.
const maxQueued = 1000

// versionsQueued adds the versions that messages name which wait for their runs.
func (d *daemon) versionsQueued(ctx context.Context, all map[string]bool) error {
	for q := (storage.AgentQuery{Type: claybot.AgentFlow, Busy: true, Limit: 500}); ; {
		page, err := d.stores.db.AgentPage(ctx, q)
		if err != nil {
			return fmt.Errorf("list the agents of flows: %w", err)
		}
		for _, a := range page {
			waiting, err := d.stores.db.Waiting(ctx, a.ID, maxQueued)
			if err != nil {
				return fmt.Errorf("list what waits for %s: %w", a.ID, err)
			}
			for _, m := range waiting {
				if m.Flow != nil && m.Flow.Version != "" {
					all[m.Flow.Name+"/"+m.Flow.Version] = true
				}
			}
		}
		if len(page) < q.Limit {
			return nil
		}
		q.After = page[len(page)-1].ID
	}
}

// versionsAtWork are the versions with which runs began that have not ended, and those that messages name
// which wait for their runs, as name/hash.
func (d *daemon) versionsAtWork(ctx context.Context) (map[string]bool, error) {
	all := make(map[string]bool)
	if err := d.versionsQueued(ctx, all); err != nil { // first: what is not queued any more has a run
		return nil, err
	}
	// A run that begins to wait, or goes on, while these are listed is in one of the three lists.
	for _, state := range []claybot.RunState{claybot.RunAwaiting, claybot.RunRunning, claybot.RunAwaiting} {
		for q := (storage.RunQuery{State: state, Limit: 500}); ; {
			page, err := d.stores.db.RunPage(ctx, q)
			if err != nil {
				return nil, fmt.Errorf("list the runs of flows: %w", err)
			}
			for _, run := range page {
				if name, hash, ok := flow.SplitName(run.Engine); ok {
					all[name+"/"+hash] = true
				}
			}
			if len(page) < q.Limit {
				break
			}
			q.Before = page[len(page)-1].ID
		}
	}
	return all, nil
}
