package main

import (
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/jsonlines"
	"github.com/claybot/claybot/runs/webhook"
)

// newRelay builds the one publisher of events to the sinks outside that the
// configuration names.
func (d *daemon) newRelay(c configs.Config) *runs.Relay {
	sinks := make(map[string]runs.Sink, len(c.Relay))
	for _, s := range c.Relay {
		if s.File != "" {
			sinks[s.Name] = jsonlines.New(s.File)
		} else {
			sinks[s.Name] = webhook.New(webhook.Config{Name: s.Name, URL: s.URL, Secret: s.Secret.Value()})
		}
	}
	relay := &runs.Relay{Store: d.db, Hub: d.hub, Sinks: sinks, Log: d.log}
	if d.shared != nil {
		relay.Turn = d.system.Turn
	}
	return relay
}
