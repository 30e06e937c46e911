package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A recordedRun is a run of a flow that has ended, with what is kept of it.
type recordedRun struct {
	claybot.Run
	flow, version string
	message       claybot.AgentMessage // that started it
	owner         string
	records       []claybot.Record
}

// recorded loads a run of a flow that has ended. A Refusal says why it cannot be used.
func (d flowDesk) recorded(ctx context.Context, id claybot.RunID) (r recordedRun, err error) {
	if r.Run, err = d.system.Overview.RunByID(ctx, id); err != nil {
		return r, err
	}
	var ok bool
	if r.flow, r.version, ok = flow.SplitName(r.Engine); !ok {
		return r, web.Refusal(fmt.Sprintf("the run %s is of the engine %s, not of a workflow", r.ID, r.Engine))
	}
	if !r.State.Ended() {
		return r, web.Refusal(fmt.Sprintf("the run %s is %s; wait until it has ended, or cancel it", r.ID, r.State))
	}
	if r.message, err = d.startedBy(ctx, r.Run); err != nil {
		return r, err
	}
	if r.message.Flow.Dry {
		return r, web.Refusal(fmt.Sprintf("the run %s was a dry run: it has no results", r.ID))
	}
	gone := web.Refusal(fmt.Sprintf("the records of the run %s are not kept any more", r.ID))
	e, err := d.system.Overview.Agent(ctx, r.Agent)
	if errors.Is(err, storage.ErrNotFound) {
		return r, gone
	}
	if err != nil {
		return r, err
	}
	r.owner = e.Descriptor.Owner
	if r.records, err = d.system.Overview.RunRecords(ctx, r.Run); err == nil && len(r.records) == 0 {
		err = gone
	}
	return r, err
}

// startedBy returns the message that started a run of a flow.
func (d flowDesk) startedBy(ctx context.Context, run claybot.Run) (m claybot.AgentMessage, err error) {
	for _, id := range run.Messages {
		r, err := d.system.Overview.Receipt(ctx, id)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return m, err
		}
		if err == nil && r.Message.Flow != nil {
			return r.Message, nil
		}
	}
	return m, web.Refusal(fmt.Sprintf("the message that started the run %s is not kept any more", run.ID))
}

// versionFor returns the flow of a replay: the version in force, or the one with which the run began.
func (d flowDesk) versionFor(ctx context.Context, r recordedRun, asBegun bool) (*flows.Flow, error) {
	if !asBegun {
		if f := d.library.Named(r.flow); f != nil {
			return f, nil
		}
		return nil, web.Refusal(fmt.Sprintf("the workflow %s is not in force; its version with which the run began can be used (--as-begun)", r.flow))
	}
	f, err := d.library.version(ctx, r.flow, r.version)
	if err != nil && ctx.Err() == nil {
		return nil, web.Refusal(fmt.Sprintf("version %s of the workflow %s: %v", r.version, r.flow, err))
	}
	return f, err
}

// ReplayFlow implements web.Flows.
func (d flowDesk) ReplayFlow(ctx context.Context, id claybot.MessageID, run claybot.RunID, from claybot.Sender, in web.FlowReplay) (none agentsystem.Accepted, err error) {
	r, err := d.recorded(ctx, run)
	if err != nil {
		return none, err
	}
	if in.Live && r.message.Flow.Replay != nil { // it has no records of what it took over from that run
		return none, web.Refusal(fmt.Sprintf("the run %s is a replay; only the run %s can be replayed live", r.ID, r.message.Flow.Replay.Run))
	}
	f, err := d.versionFor(ctx, r, in.AsBegun)
	if err != nil {
		return none, err
	}
	if err := replayable(f, r, in); err != nil {
		return none, err
	}
	m := claybot.AgentMessage{
		ID: id, Type: claybot.MessageSystem, Kind: claybot.KindTrigger, Text: r.message.Text, Payload: r.message.Payload, Event: r.message.Event,
		At: r.message.At, From: r.message.From, Tainted: r.message.Tainted, Private: r.message.Private, Alone: true, Route: &claybot.Route{},
	}
	m.From.Program, m.From.NoRules = true, true // the caller is no person, even if a person wrote it first
	start := *r.message.Flow
	start.Version, start.Pinned, start.Dry, start.Replay = f.Hash, in.AsBegun, !in.Live, &claybot.FlowReplay{Run: r.ID, From: in.From, Again: in.Again}
	m.Flow, m.Budgets = &start, f.Budgets()
	if in.Live && r.message.Route != nil {
		m.Route = r.message.Route
		m.Place = r.message.Place
	}
	if f.Time > 0 {
		m.Deadline = claybot.At(time.Now().Add(f.Time))
	}
	word := claybot.FlowDryReplay
	if in.Live {
		word = claybot.FlowLive
	}
	d.log.Info("replaying a run", "run", r.ID, "flow", f.Name, "version", f.Hash, "live", in.Live, "by", from.Name)
	return d.post(ctx, soloAgent(claybot.Descriptor{Type: claybot.AgentFlow, Owner: r.owner, Name: f.Name, Profile: f.Profile}, m, word), m)
}

// recordTime is how long a run may take to become a test case.
const recordTime = 5 * time.Second

// RecordFlow implements web.Flows. One test case is made at a time.
func (d flowDesk) RecordFlow(ctx context.Context, run claybot.RunID) (out web.FlowCase, err error) {
	r, err := d.recorded(ctx, run)
	if err != nil {
		return out, err
	}
	if r.message.Flow.Replay != nil {
		return out, web.Refusal(fmt.Sprintf("the run %s is a replay; record the run %s", r.ID, r.message.Flow.Replay.Run))
	}
	f, err := d.versionFor(ctx, r, true)
	if err != nil {
		return out, err
	}
	if !d.library.recording.TryLock() {
		return out, web.Refusal("another test case is being made; try again when it is")
	}
	defer d.library.recording.Unlock()
	limited, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	c, err := testPlayer(f).Record(limited, flow.Recording{Run: r.Run, Message: r.message, Records: r.records})
	if err != nil && ctx.Err() == nil {
		if limited.Err() != nil {
			err = fmt.Errorf("making it takes longer than %s", recordTime)
		}
		return out, web.Refusal(fmt.Sprintf("the run %s cannot be a test case: %v", r.ID, err))
	}
	if err != nil {
		return out, err
	}
	out = web.FlowCase{Flow: r.flow, Version: r.version}
	out.Case, err = json.Marshal(c)
	return out, err
}

// replayable returns why a replay cannot be made with a version of a flow.
func replayable(f *flows.Flow, r recordedRun, in web.FlowReplay) error {
	if in.From != "" {
		if f.Node(in.From) == nil {
			return web.Refusal(fmt.Sprintf("the workflow %s has no node %.64q; it has %s", f.Name, in.From, strings.Join(nodesOf(f), ", ")))
		}
		if _, ok := flow.PastOf(r.ID, r.records).Before(f.Start, in.From, ""); !ok {
			return web.Refusal(fmt.Sprintf("the run %s did not come to the node %s", r.ID, in.From))
		}
	}
	for _, name := range in.Again {
		n := f.Node(name)
		if n == nil || !flow.Repeats(n) {
			return web.Refusal(fmt.Sprintf("%.64q is no node of the workflow %s that calls a tool, makes a request, or starts agents or workflows", name, f.Name))
		}
	}
	return nil
}

// nodesOf returns the names of the nodes of a flow, in order.
func nodesOf(f *flows.Flow) (names []string) {
	for _, n := range f.Nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}
