package main

import (
	"cmp"
	"context"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/chromium"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/explore"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/tools"
)

// handle gives the system its engines.
func (d *daemon) handle() {
	approved := func(a claybot.Agent) []string { return d.system.OwnSettings(a.ID).Approved }
	d.system.Handle(claybot.EngineReact, &react.Loop{
		Model:     d.chooseModel,
		ModelName: func(a claybot.Agent) string { return d.model(a).ID() },
		Window:    func(a claybot.Agent) int64 { return d.settings(a).ContextWindow },
		Prompt:    d.prompt,
		MaxSteps:  func(a claybot.Agent) int { return cmp.Or(d.system.OwnSettings(a.ID).MaxSteps, d.settings(a).MaxSteps) },
		Tools:     d.box.of,
		Approve:   func(a claybot.Agent) react.Rules { return react.Rules{Ask: d.settings(a).Approve, Always: approved(a)} },
		Log:       d.log,
	})
	planning := plan.Config{
		Model: d.chooseModel, Tools: d.box.of, Prompt: d.prompt, Approved: approved, Log: d.log,
		Policy:  func(a claybot.Agent) plan.Policy { return policyOf(d.settings(a)) },
		Intents: func(a claybot.Agent) []plan.Intent { return intentsOf(d.settings(a)) },
		People:  func(owner string) []string { return d.config.Load().Identities(owner) },
		Zone:    func(claybot.Agent) *time.Location { return d.config.Load().Cron.Zone },
		Guard:   tools.NewGuard(d.rate),
	}
	d.system.Handle(claybot.EnginePlan, plan.New(planning))
	d.system.Handle(claybot.EngineUndo, plan.NewUndo(planning))
	d.system.Handle(claybot.EngineExplore, explore.New(explore.Config{
		Open: d.open, Model: d.explorer, Log: d.log,
		Settings: func(t *runs.Turn) explore.Settings { return walkOf(d.settings(t.Agent)) },
	}))
}

func (d *daemon) chooseModel(a claybot.Agent) llm.Model { return d.models.of(d.model(a)) }

// explorer is the model that chooses where to go. The one of the demo knows
// nothing of screens, so there a rule does.
func (d *daemon) explorer(a claybot.Agent) llm.Model {
	if d.model(a).Demo() {
		return nil
	}
	return d.chooseModel(a)
}

// open opens what is explored: a browser, or what a scene of the demo brings
// along.
func (d *daemon) open(ctx context.Context, s devices.Spec) (devices.Device, error) {
	if d.device != nil {
		return d.device(ctx, s)
	}
	return chromium.Browser{Log: d.log}.Open(ctx, s)
}

// rate is how often a tool may be called for one user, by the strictest of all
// profiles that say so: a rate belongs to the tool, not to who asks for it.
func (d *daemon) rate(tool string) (least tools.Rate) {
	for _, p := range d.config.Load().Profiles {
		if p.Plan == nil || p.Plan.Rates[tool] == "" {
			continue
		}
		r, err := tools.ParseRate(p.Plan.Rates[tool])
		if err != nil {
			continue // the configuration has refused it
		}
		if least.N == 0 || float64(r.N)/r.Per.Seconds() < float64(least.N)/least.Per.Seconds() {
			least = r
		}
	}
	return least
}

// policyOf is what a profile says about plans.
func policyOf(p configs.Profile) plan.Policy {
	c := p.Plan
	if c == nil {
		return plan.Policy{Approve: p.Approve}
	}
	policy := plan.Policy{
		Mode: plan.Mode(c.Mode), Allow: c.Tools, Deny: c.Deny, Scopes: c.Scopes, Approve: p.Approve,
		Budget: c.BudgetMicroUSD, Approvals: c.Approvals, Approvers: c.Approvers, ContinueOnError: c.ContinueOnError,
	}
	if c.Retries != nil {
		policy.Retries = *c.Retries
		if policy.Retries == 0 {
			policy.Retries = -1 // never
		}
	}
	if q := c.Quiet; q != nil {
		policy.Quiet = &plan.Quiet{From: int(q.From / time.Minute), To: int(q.To / time.Minute), What: q.What}
	}
	return policy
}

func intentsOf(p configs.Profile) []plan.Intent {
	if p.Plan == nil {
		return nil
	}
	all := make([]plan.Intent, len(p.Plan.Intents))
	for i, in := range p.Plan.Intents {
		all[i] = plan.Intent{Name: in.Name, Description: in.Description, Inputs: in.Inputs, Tools: in.Tools}
	}
	return all
}

func walkOf(p configs.Profile) explore.Settings {
	c := p.Explore
	if c == nil {
		return explore.Settings{}
	}
	return explore.Settings{
		URL: c.URL, Hosts: c.Hosts, Goal: c.Goal, MaxIterations: c.MaxIterations, NoProgress: c.NoProgress, Screens: c.Screens,
	}
}
