package main

import (
	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/subagents"
)

// What the parts of the daemon ask of the configuration.

// society is how agents may deal with each other, as configured now.
func (d *daemon) society() subagents.Limits {
	c := d.config.Load()
	return subagents.Limits{
		MaxDepth: c.Agents.Subagents.MaxDepth, MaxChildren: c.Agents.Subagents.MaxChildren, MaxStarts: c.Agents.Subagents.MaxStartsPerHour,
		AllOwners: c.Agents.Scope == configs.ScopeAll, Identities: c.Identities, Models: d.modelsOf, Tools: d.box.names,
	}
}

func (d *daemon) profile(desc claybot.Descriptor) profiles.Profile {
	p := d.config.Load().Profile(desc)
	return profiles.Profile{
		Name: p.Name, Engine: p.Engine.Name, Model: modelName(p.Model), Address: p.Model.AddressKey(), Prompt: p.Prompt, MaxSteps: p.MaxSteps, Forget: !p.Memory, Progress: p.Progress,
		Policy: inbox.Policy{
			Debounce: p.Inbox.Debounce, DebounceMax: p.Inbox.DebounceMax, MaxBatch: p.Inbox.MaxBatch,
			WhenBusy: inbox.WhenBusy(p.Inbox.WhenBusy), ProcessBuffer: inbox.ProcessBuffer(p.Inbox.ProcessBuffer),
		},
	}
}

func (d *daemon) admission() people.Access {
	c := d.config.Load()
	a := people.Access{Mode: people.AccessMode(c.Access.Mode), Trusted: append(operatorChats, claybot.ConnectorAPI)}
	for _, x := range c.Access.Allow {
		a.Allow = append(a.Allow, x.Connector+":"+x.Subject)
	}
	return a
}
