package main

import (
	"slices"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/jsonlines"
	"github.com/claybot/claybot/runs/webhook"
)

// newRelay builds the one publisher of events to the sinks outside that the
// configuration names.
func (d *daemon) newRelay(c configs.Config) *runs.Relay {
	sinks := make(map[string]runs.Sink, len(c.Telemetry.Relay))
	for _, s := range c.Telemetry.Relay {
		var sink runs.Sink = jsonlines.New(s.File)
		if s.File == "" {
			sink = webhook.New(webhook.Config{Name: s.Name, URL: s.URL, Secret: s.Secret.Value()})
		}
		sinks[s.Name] = switchedSink{sink, func() bool {
			return slices.ContainsFunc(d.config.Load().Telemetry.Relay, func(now configs.Sink) bool { return now.Name == s.Name })
		}}
	}
	relay := &runs.Relay{Store: d.db, Hub: d.hub, Sinks: sinks, Log: d.log}
	if d.shared != nil {
		relay.Turn = d.system.Turn
	}
	return relay
}
