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
	d.system.Handle(claybot.EngineReact, &react.Loop{
		Model:     d.chooseModel,
		ModelName: func(a claybot.Agent) string { return d.model(a).ID() },
		Window:    func(a claybot.Agent) int64 { return d.settings(a).ContextWindow },
		Prompt:    d.prompt,
		MaxSteps: func(a claybot.Agent) int {
			return cmp.Or(d.system.Profiles.OwnSettings(a.ID).MaxSteps, d.settings(a).MaxSteps)
		},
		Tools:   d.box.of,
		Approve: d.rules,
		Limits:  d.limits,
		Place:   d.placeName,
		Dry:     d.dry,
		People:  d.people,
		Budgets: d.limiter,
		Log:     d.log,
	})
	planning := plan.Config{
		Model: d.chooseModel, Tools: d.box.of, Prompt: d.prompt, Log: d.log,
		Rules: d.rules, Limits: d.limits, Place: d.placeName, Dry: d.dry,
		Policy:  func(a claybot.Agent) plan.Policy { return policyOf(d.settings(a)) },
		Intents: func(a claybot.Agent) []plan.Intent { return intentsOf(d.settings(a)) },
		People:  d.people,
		Zone:    func(claybot.Agent) *time.Location { return d.config.Load().Schedule.Cron.Zone },
		Guard:   tools.NewGuard(d.rate),
	}
	d.system.Handle(claybot.EnginePlan, plan.New(planning))
	d.system.Handle(claybot.EngineUndo, plan.NewUndo(planning))
	d.system.Handle(claybot.EngineExplore, explore.New(explore.Config{
		Open: d.open, Model: d.explorer, Log: d.log,
		Settings: func(t *runs.Turn) explore.Settings { return walkOf(d.settings(t.Agent)) },
	}))
}

// rules are when calls of an agent's tools ask. Where nothing holds a command, it
// asks unless somebody has said otherwise.
func (d *daemon) rules(a claybot.Agent) tools.Rules {
	p := d.settings(a)
	r := rulesOf(p, d.system.Profiles.OwnSettings(a.ID).Approved)
	if p.Workspace.Provider == configs.WorkspaceLocal {
		r.Confirm = append(r.Confirm, tools.Confirming{Tools: "shell", When: tools.ConfirmUnlessAllowed})
	}
	return r
}

func (d *daemon) limits(a claybot.Agent) tools.Limits { return limitsOf(d.settings(a)) }

// dry reports whether an agent only says what it would do.
func (d *daemon) dry(a claybot.Agent) bool { return d.settings(a).Care.DryRun }

// people are all ids of the person who has one.
func (d *daemon) people(id string) []string { return d.config.Load().Identities(id) }

// chooseModel is the model of an agent: one that refuses every call, where a bad
// setting of its profile says so.
func (d *daemon) chooseModel(a claybot.Agent) llm.Model {
	if why := d.settings(a).Off(); why != "" {
		return offModel{why, true}
	}
	return d.models.of(d.model(a))
}

// explorer is the model that chooses where to go. The one of the demo knows
// nothing of screens, so there a rule does.
func (d *daemon) explorer(a claybot.Agent) llm.Model {
	if d.model(a).Demo() && d.settings(a).Off() == "" {
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
	for _, p := range d.config.Load().Agents.Profiles {
		if p.Engine.Plan == nil || p.Engine.Plan.Rates[tool] == "" {
			continue
		}
		r, err := tools.ParseRate(p.Engine.Plan.Rates[tool])
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
	c := p.Engine.Plan
	if c == nil {
		c = new(configs.Plan)
	}
	policy := plan.Policy{
		Mode: plan.Mode(c.Mode), Allow: c.Tools, Deny: c.Deny, Scopes: c.Scopes, Approve: p.Care.Approve,
		Budget: c.BudgetMicroUSD, Approvals: c.Approvals, Approvers: c.Approvers, ContinueOnError: c.ContinueOnError,
	}
	// What a profile says about all calls counts where the plan says nothing.
	if policy.Approvals == 0 && len(policy.Approvers) == 0 {
		policy.Approvals, policy.Approvers = p.Care.Quorum, p.Care.Approvers
	}
	if p.Care.NoApproval {
		policy.Approvals, policy.Approvers = unreachable(p.Care), p.Care.Approvers
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
	if p.Engine.Plan == nil {
		return nil
	}
	all := make([]plan.Intent, len(p.Engine.Plan.Intents))
	for i, in := range p.Engine.Plan.Intents {
		all[i] = plan.Intent{Name: in.Name, Description: in.Description, Inputs: in.Inputs, Tools: in.Tools}
	}
	return all
}

func walkOf(p configs.Profile) explore.Settings {
	c := p.Engine.Explore
	if c == nil {
		return explore.Settings{}
	}
	return explore.Settings{
		URL: c.URL, Hosts: c.Hosts, Goal: c.Goal, MaxIterations: c.MaxIterations, NoProgress: c.NoProgress, Screens: c.Screens,
	}
}
