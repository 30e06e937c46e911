package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

const (
	// trafficShown is how long the map shows what has just happened.
	trafficShown = 3 * time.Second
	// trafficLongest is how long it shows what has begun and of which no end is heard.
	trafficLongest = 10 * time.Minute
	trafficAgents  = 500
	trafficActs    = 64 // of one agent
)

// A traffic is a Meter that keeps what agents do now, for the map.
type traffic struct {
	agentsystem.Meter

	mu     sync.Mutex
	life   time.Duration                      // how long what has just happened is shown
	acts   map[claybot.AgentID]map[string]act // by trafficMessage, trafficModel, or the name of a tool
	pruned time.Time                          // last
}

// What an agent does, besides the tools that it calls. No tool has these names.
const (
	trafficMessage = ""
	trafficModel   = " model"
)

// An act is the last time that an agent did something.
type act struct {
	at   time.Time
	open bool // it goes on
}

// newTraffic returns a traffic that reports to a Meter what it observes.
func newTraffic(to agentsystem.Meter) *traffic {
	return &traffic{Meter: to, life: trafficShown, acts: make(map[claybot.AgentID]map[string]act)}
}

// Event implements agentsystem.Meter.
func (t *traffic) Event(agent claybot.AgentID, e claybot.Event) {
	t.Meter.Event(agent, e)
	var x struct{ Node, Tool string }
	switch e.Type {
	case claybot.EventRunStarted, claybot.EventRunResumed, claybot.EventMessagesInjected:
		t.saw(agent, trafficMessage, false)
	case claybot.EventNodeStarted:
		if json.Unmarshal(e.Data, &x) == nil && x.Node == "model" {
			t.saw(agent, trafficModel, true)
		}
	case claybot.EventAssistantMessage, claybot.EventModelCallFailed:
		t.saw(agent, trafficModel, false)
	case claybot.EventToolCalled, claybot.EventToolSucceeded, claybot.EventToolFailed, claybot.EventToolWaiting:
		if json.Unmarshal(e.Data, &x) == nil {
			t.saw(agent, x.Tool, e.Type == claybot.EventToolCalled)
		}
	default:
	}
	if e.Type.Ends() {
		t.ended(agent)
	}
}

func (t *traffic) saw(agent claybot.AgentID, what string, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	acts := t.acts[agent]
	_, known := acts[what]
	full := func() bool { return acts == nil && len(t.acts) >= trafficAgents || !known && len(acts) >= trafficActs }
	if full() && time.Since(t.pruned) >= trafficShown { // before that, little has ended
		t.prune()
		acts = t.acts[agent]
	}
	if full() { // the map shows enough
		return
	}
	if acts == nil {
		acts = make(map[string]act)
		t.acts[agent] = acts
	}
	acts[what] = act{time.Now(), open}
}

// ended ends all that an agent does: the reply of its run goes out.
func (t *traffic) ended(agent claybot.AgentID) {
	t.saw(agent, trafficMessage, false)
	t.mu.Lock()
	defer t.mu.Unlock()
	for what, a := range t.acts[agent] {
		if a.open {
			t.acts[agent][what] = act{at: time.Now()}
		}
	}
}

// prune forgets what is not shown any more. The caller holds the lock.
func (t *traffic) prune() {
	now := time.Now()
	t.pruned = now
	for agent, acts := range t.acts {
		for what, a := range acts {
			if age := now.Sub(a.at); age >= trafficLongest || age >= t.life && !a.open {
				delete(acts, what)
			}
		}
		if len(acts) == 0 {
			delete(t.acts, agent)
		}
	}
}

// forget forgets what is not shown any more.
func (t *traffic) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune()
}

// now returns what agents do now.
func (t *traffic) now() map[claybot.AgentID][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune()
	all := make(map[claybot.AgentID][]string, len(t.acts))
	for agent, acts := range t.acts {
		for what := range acts {
			all[agent] = append(all[agent], what)
		}
	}
	return all
}

// NodeTraffic implements web.Nodes.
func (d nodeDesk) NodeTraffic(ctx context.Context) (all []web.NodeLink, err error) {
	c := d.config.Load()
	for id, acts := range d.traffic.now() {
		of, err := d.stores.db.IndexedDescriptor(ctx, id)
		if err != nil { // it went just now
			continue
		}
		profile := nodes.Key{Kind: nodes.Profile, Name: c.Profile(of).Name}
		for _, what := range acts {
			switch what {
			case trafficMessage:
				start := startOf(of)
				all = append(all, web.NodeLink{From: start, To: profile})
				if trigger, only := d.onlyTrigger(start); only {
					all = append(all, web.NodeLink{From: trigger, To: start})
				}
			case trafficModel:
				for _, k := range modelNodesOf(c, d.models.model(claybot.Agent{ID: id, Descriptor: of})) {
					all = append(all, web.NodeLink{From: profile, To: k})
				}
			default:
				for _, k := range d.toolTraffic(of, what) {
					all = append(all, web.NodeLink{From: profile, To: k})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b web.NodeLink) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
	})
	return slices.Compact(all), nil
}

// startOf is the node that the messages of an agent come from.
func startOf(of claybot.Descriptor) nodes.Key {
	switch of.Type {
	case claybot.AgentCron, claybot.AgentHeartbeat:
		return keyOfConnector(string(of.Type))
	case claybot.AgentFlow:
		return nodes.Key{Kind: nodes.Flow, Name: of.FlowName()}
	}
	return keyOfConnector(of.Connector) // of a subagent, none
}

// onlyTrigger is the node that starts a workflow, if it is the only trigger: of several, the run does not say which it was.
func (d nodeDesk) onlyTrigger(k nodes.Key) (from nodes.Key, only bool) {
	for _, f := range d.library.all() {
		if k.Kind == nodes.Flow && f.Name == k.Name && len(f.Triggers) == 1 {
			return keyOfConnector(cmp.Or(f.Triggers[0].On, string(claybot.AgentCron))), true
		}
	}
	return from, false
}

// toolTraffic are the nodes that a tool of an agent is of.
func (d nodeDesk) toolTraffic(of claybot.Descriptor, name string) (keys []nodes.Key) {
	spec, known := d.tooling.box.set(of, nil, d.stores.skills().Exists()).Spec(name)
	if !known {
		return nil
	}
	if server, is := strings.CutPrefix(spec.Source, "mcp:"); is {
		return []nodes.Key{{Kind: nodes.MCP, Name: server}}
	}
	if k := toolNode(spec); k != (nodes.Key{}) {
		keys = append(keys, k)
	}
	if strings.HasPrefix(name, "memory_") {
		keys = append(keys, notesNode)
	}
	return keys
}

var _ agentsystem.Meter = (*traffic)(nil)
