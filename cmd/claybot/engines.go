package main

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/chromium"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/explore"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/shell"
)

// engines choose how an agent runs: its model, prompt, tools, rules and limits.
type engines struct {
	config     *settings
	log        *slog.Logger
	system     *agentsystem.AgentSystem
	models     *models
	prompts    *prompter
	box        *toolbox
	workspaces *workspaces
	limiter    *budgets.Limiter
	library    *library
	callbacks  *callbackDesk
	device     devices.Open // that is explored; nil: a browser
}

func newEngines(d *daemon) *engines {
	return &engines{
		config: d.config, log: d.log, system: d.system, models: d.models, box: d.tooling.box, workspaces: d.tooling.workspaces, limiter: d.limiter, library: d.library, callbacks: d.callbacks,
		prompts: &prompter{config: d.config, log: d.log, stores: d.stores, system: d.system, models: d.models, box: d.tooling.box},
	}
}

// register gives the system its engines.
func (e *engines) register(system *agentsystem.AgentSystem) {
	loop := &react.Loop{
		Model:     e.models.choose,
		ModelName: func(a claybot.Agent) string { return e.models.model(a).ID() },
		Window:    func(a claybot.Agent) int64 { return e.config.profile(a).ContextWindow },
		Prompt:    e.prompts.loop,
		Parts:     e.prompts.sizes,
		Index:     e.prompts.index,
		MaxSteps: func(a claybot.Agent) int {
			return cmp.Or(system.Profiles.OwnSettings(a.ID).MaxSteps, e.config.profile(a).MaxSteps)
		},
		RequireTool: func(a claybot.Agent) int { return e.config.profile(a).RequireTool },
		Tools:       e.box.of,
		Ready:       e.box.tooling.servers.manager.Ready,
		Approve:     e.rules,
		Limits:      e.limits,
		Place:       e.place,
		Dry:         e.dry,
		People:      e.people,
		Budgets:     e.limiter,
		Log:         e.log,
	}
	system.Handle(claybot.EngineReact, loop)
	system.Handle(claybot.EngineFlow, e.flowEngine(e.library, loop.Settle))
	planning := plan.Config{
		Model: e.models.choose, Tools: e.box.of, Ready: e.box.tooling.servers.manager.Ready, Prompt: e.prompts.prompt, Log: e.log,
		Rules: e.rules, Limits: e.limits, Place: e.place, Dry: e.dry,
		Policy:  func(a claybot.Agent) plan.Policy { return policyOf(e.config.profile(a)) },
		Intents: func(a claybot.Agent) []plan.Intent { return intentsOf(e.config.profile(a)) },
		People:  e.people,
		Zone: func(a claybot.Agent) *time.Location {
			return system.People.VoiceAt(context.Background(), a.Descriptor, a.Descriptor.Route()).Zone
		},
		Guard: tools.NewGuard(e.rate),
	}
	system.Handle(claybot.EnginePlan, plan.New(planning))
	system.Handle(claybot.EngineUndo, plan.NewUndo(planning))
	system.Handle(claybot.EngineExplore, explore.New(explore.Config{
		Open: e.open, Model: e.models.explorer, Log: e.log,
		Settings: func(t *runs.Turn) explore.Settings {
			s := exploreOf(e.config.profile(t.Agent))
			if p, err := e.box.permissions(t.Agent); err != nil || p.Offline() {
				s.Forbidden = texts.NoWeb
			}
			return s
		},
	}))
}

// rules says which calls of an agent's tools need approval. Commands on this machine do
// unless the operator allowed them.
func (e *engines) rules(a claybot.Agent) tools.Rules {
	p := e.config.profile(a)
	r := rulesOf(p, e.system.Profiles.OwnSettings(a.ID).Approved)
	if p.Workspace.Provider == configs.WorkspaceLocal {
		for _, name := range shell.Commanding {
			r.Confirm = append(r.Confirm, tools.Confirming{Tools: name, When: tools.ConfirmUnlessAllowed})
		}
	}
	return r
}

// place describes where the tools of an agent act. Approvals are bound to it.
func (e *engines) place(a claybot.Agent) string {
	name := e.workspaces.name(a)
	if p, err := e.box.permissions(a); err == nil && name != "" && p.WorkingDir != "" { // without permissions, nothing runs
		name += ", directory " + p.WorkingDir
	}
	return name
}

func (e *engines) limits(a claybot.Agent) tools.Limits { return limitsOf(e.config.profile(a)) }

// dry reports whether an agent only says what it would do.
func (e *engines) dry(a claybot.Agent) bool { return e.config.profile(a).Care.DryRun }

// people returns all IDs of the user who has one.
func (e *engines) people(id string) []string { return e.config.Load().Identities(id) }

// open opens the device to explore: a browser, or what a scene of the demo brings along.
func (e *engines) open(ctx context.Context, s devices.Spec) (devices.Device, error) {
	if e.device != nil {
		return e.device(ctx, s)
	}
	return chromium.Browser{Log: e.log}.Open(ctx, s)
}

// rate returns how often a tool may be called for one user: the strictest rate of all
// profiles, since a rate belongs to the tool and not to its caller.
func (e *engines) rate(tool string) (least tools.Rate) {
	for _, p := range e.config.Load().Agents.Profiles {
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

// policyOf returns the policy of a profile for plans.
func policyOf(p configs.Profile) plan.Policy {
	c := p.Engine.Plan
	if c == nil {
		c = new(configs.Plan)
	}
	policy := plan.Policy{
		Mode: plan.Mode(c.Mode), Allow: c.Tools, Deny: c.Deny, Scopes: c.Scopes, Approve: p.Care.Approve,
		Budget: c.BudgetMicroUSD, Approvals: c.Approvals, Approvers: c.Approvers, ContinueOnError: c.ContinueOnError,
	}
	// Settings for all calls apply where the plan has none of its own.
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

func exploreOf(p configs.Profile) explore.Settings {
	c := p.Engine.Explore
	if c == nil {
		return explore.Settings{}
	}
	return explore.Settings{
		URL: c.URL, Hosts: c.Hosts, Goal: c.Goal, MaxIterations: c.MaxIterations, NoProgress: c.NoProgress, Screens: c.Screens,
	}
}
