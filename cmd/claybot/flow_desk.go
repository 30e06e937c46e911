package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A flowDesk implements web.Flows and web.FlowRuns.
type flowDesk struct{ *daemon }

var (
	_ web.Flows    = flowDesk{}
	_ web.FlowRuns = flowDesk{}
)

// Flows implements web.Flows.
func (d flowDesk) Flows(context.Context) (web.FlowList, error) {
	out := web.FlowList{Flows: []web.FlowView{}}
	for _, f := range d.library.all() {
		out.Flows = append(out.Flows, viewFlow(f))
	}
	d.library.mu.Lock()
	defer d.library.mu.Unlock()
	out.Faults = shownFaults(d.library.faults)
	return out, nil
}

func shownFaults(faults []fileFault) (all []web.FlowFault) {
	for _, f := range faults {
		all = append(all, web.FlowFault{File: f.File, Line: f.Line, Key: f.Key, Text: f.Text, Near: f.Near})
	}
	return all
}

// CheckFlows implements web.Flows.
func (d flowDesk) CheckFlows(_ context.Context, files map[string]string) ([]web.FlowFault, error) {
	texts := make(map[string][]byte, len(files))
	for name, text := range files {
		if strings.ContainsAny(name, `/\`) || !strings.HasSuffix(name, ".yaml") {
			return nil, web.Refusal(fmt.Sprintf("%.80q is not the name of a file such as refund.yaml", name))
		}
		texts[name] = []byte(text)
	}
	world := d.flowWorld()
	world.Unpriced = unpricedIn(d.config.Load())
	_, faults := checkFlows("", texts, world)
	return shownFaults(faults), nil
}

// saved returns the flow in force with a name; the files are read again for one that is not: it may have
// been saved just now. storage.ErrNotFound.
func (d flowDesk) saved(ctx context.Context, name string) (*flows.Flow, error) {
	if f := d.library.Named(name); f != nil {
		return f, nil
	}
	if err := d.library.look(ctx, false); err != nil {
		return nil, err
	}
	if f := d.library.Named(name); f != nil {
		return f, nil
	}
	if why := d.library.faultsByFlow()[name]; why != "" {
		return nil, web.Refusal(fmt.Sprintf("the flow %s is not in force: %s", name, why))
	}
	return nil, storage.ErrNotFound
}

// StartFlow implements web.Flows.
func (d flowDesk) StartFlow(ctx context.Context, id claybot.MessageID, name string, from claybot.Sender, in web.FlowStart) (none agentsystem.Accepted, err error) {
	f, err := d.saved(ctx, name)
	if err != nil {
		return none, err
	}
	by := flows.Trigger{Name: in.Trigger}
	if len(f.Triggers) > 0 && in.Trigger == "" {
		by = f.Triggers[0]
	}
	for _, t := range f.Triggers {
		if t.Name == in.Trigger {
			by = t
		}
	}
	if in.Trigger != "" && by.On == "" && by.Cron == "" {
		return none, web.Refusal(fmt.Sprintf("the flow %s has no trigger %.64q", name, in.Trigger))
	}
	m := claybot.AgentMessage{ID: id, Text: claybot.Clean(in.Text), Payload: in.Payload, From: from, At: claybot.Now(), Route: &claybot.Route{}}
	to, m := d.library.begin(f, by, f.Owner, claybot.Descriptor{Connector: claybot.ConnectorAPI}, m)
	if in.Dry {
		m.Flow.Dry, to = true, soloAgent(to, m, claybot.FlowDryRun)
	}
	return d.post(ctx, to, m)
}

// soloAgent is an agent for one message alone, which waits for no other, with a word about it in its name.
func soloAgent(to claybot.Descriptor, m claybot.AgentMessage, word string) claybot.Descriptor {
	to.UID = connectors.FileID("flow", m.Flow.Name, "message\x00"+string(m.ID))
	to.Name += " (" + word + ")"
	return to
}

// post posts the message with which a flow begins, once.
func (d flowDesk) post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (agentsystem.Accepted, error) {
	address := agentsystem.Address{Descriptor: &to}
	if got, known, err := d.system.Control.Known(ctx, address, m); known || err != nil {
		return got, err
	}
	return d.system.Control.StartRun(ctx, address, m)
}

// Replied implements web.Flows.
func (d flowDesk) Replied(ctx context.Context, run claybot.Run, records []claybot.Record) (string, error) {
	name, version, ok := flow.SplitName(run.Engine)
	if !ok || len(records) == 0 {
		return "", nil
	}
	f, err := d.library.version(ctx, name, version)
	if err != nil {
		return "", context.Cause(ctx) // its version cannot be read any more
	}
	return flow.LastReply(f, run.ID, records), nil
}
