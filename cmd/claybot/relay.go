package main

import (
	"context"
	"reflect"

	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/jsonlines"
	"github.com/claybot/claybot/runs/webhook"
)

// A relay is the publisher of events, with the sinks of the configured relays as they were made.
type relay struct {
	*runs.Relay
	made map[string]madeSink // by name; of the reload that is at work
	// files are all sinks that write files, by path, also of relays that are gone: one that comes for the same file
	// has the same sink, which ends the last batch of the other one first.
	files map[string]*jsonlines.Sink
}

// A madeSink is a sink with the settings that it was made of; those of offSink are zero.
type madeSink struct {
	of   configs.Relay
	sink runs.Sink
}

// newRelay builds the publisher of events to the configured sinks.
func newRelay(c configs.Config, s *stores, system *agentsystem.AgentSystem) *relay {
	r := &relay{Relay: &runs.Relay{Store: s.db, Hub: s.hub, Partial: c.RelayPartial(), Log: s.log, Stopped: s.relayStopped}, files: make(map[string]*jsonlines.Sink)}
	r.Sinks = r.sinks(c)
	r.Nodes = nodes.NewSet(nodes.Kind[runs.Sink]{Work: r.Work, Alone: true})
	if s.shared != nil {
		r.Turn, r.Yield = system.Turn, system.YieldTurn
	}
	return r
}

// apply puts the sinks of a configuration in force.
func (r *relay) apply(ctx context.Context, c configs.Config) {
	r.Replace(ctx, r.sinks(c), c.RelayPartial())
}

// sinks returns the sinks of a configuration: those whose settings are as before are the same ones. While one may be
// missing whose settings are invalid, those that were there before take no events.
func (r *relay) sinks(c configs.Config) map[string]runs.Sink {
	next := make(map[string]madeSink)
	for _, x := range c.Telemetry.Relay {
		is, made := r.made[x.Name]
		if !made || !reflect.DeepEqual(is.of, x) {
			is = madeSink{x, r.newSink(x)}
		}
		next[x.Name] = is
	}
	for name, was := range r.made {
		if _, there := next[name]; there || !c.RelayPartial() {
			continue
		}
		if was.of.Name != "" {
			was = madeSink{sink: offSink}
		}
		next[name] = was
	}
	r.made = next
	all := make(map[string]runs.Sink, len(next))
	for name, x := range next {
		all[name] = x.sink
	}
	return all
}

// newSink makes a sink of its settings.
func (r *relay) newSink(x configs.Relay) runs.Sink {
	if x.File != "" {
		if r.files[x.File] == nil {
			r.files[x.File] = jsonlines.New(x.File)
		}
		return r.files[x.File]
	}
	return webhook.New(webhook.Config{Name: x.Name, URL: x.URL, Secret: x.Secret.Value()})
}

// offSink has the place of a sink whose settings are invalid.
const offSink = runs.OffSink("its settings are invalid or gone since the last reload; run `claybot status` for details")
