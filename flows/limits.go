package flows

import (
	"cmp"

	"github.com/claybot/claybot"
)

// A Concurrency bounds the runs of a flow at work.
type Concurrency struct {
	// Max is how many runs work at the same time on a member, without those that wait; 0: no limit.
	Max int `key:"max" limits:"1..1000"`
	// Key is a template: runs whose keys are equal have one agent and run one after another. Busy says
	// what a message does that finds a run of its key.
	Key   string `key:"key"`
	Busy  string `key:"busy" words:"queue,skip,cancel"`
	Lines Lines
}

// Limits are how many unfinished runs a flow may have, on all members together: beyond them, no message starts
// one; and what models may take for a run.
type Limits struct {
	// Open are those at work or waiting for their turn; 0: DefaultOpen. Waiting are those that wait for a
	// person, a time, a program or an agent; 0: DefaultWaiting.
	Open    int `key:"open" limits:"1..100000"`
	Waiting int `key:"waiting" limits:"1..1000000"`
	// MicroUSD and Tokens bound what models may take for one run, with the agents and flows that it
	// starts; 0: no bound.
	MicroUSD int64 `key:"budget" kind:"micro-USD" limits:"0.000001..1000000"`
	Tokens   int64 `key:"tokens" limits:"1..1000000000000"`
}

// Budgets is what models may take for a run of the flow, for the message that starts it.
func (f *Flow) Budgets() []claybot.RunBudget {
	if f.Limits.MicroUSD == 0 && f.Limits.Tokens == 0 {
		return nil
	}
	return []claybot.RunBudget{{Flow: f.Name, MicroUSD: f.Limits.MicroUSD, Tokens: f.Limits.Tokens}}
}

// MaxOpen is Open, or its default.
func (l Limits) MaxOpen() int { return cmp.Or(l.Open, DefaultOpen) }

// MaxWaiting is Waiting, or its default.
func (l Limits) MaxWaiting() int { return cmp.Or(l.Waiting, DefaultWaiting) }

// priced adds a fault where the budget of a run refuses each call of a node's model.
func (c *checker) priced(n *Node, model string) {
	if c.flow.Limits.MicroUSD == 0 || c.world.Unpriced == nil {
		return
	}
	if name := c.world.Unpriced(c.flow.Profile, model); name != "" {
		c.add(c.flow.Lines["limits"], "limits.budget", "claybot knows no price of %.64q, the model of the node %.64q, so each run fails there with the code budget; set model.prices, or use limits.tokens", name, n.Name)
	}
}
