package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/service"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/web"
)

// A daemon is all parts of a running claybot, wired together.
type daemon struct {
	config    *settings
	log       *slog.Logger
	lock      *files.DirLock
	bounds    overview.LimitStatus
	stores    *stores
	boots     *files.Boots
	models    *models
	tooling   *tooling
	system    *agentsystem.AgentSystem
	limiter   *budgets.Limiter
	engines   *engines
	library   *library
	callbacks *callbackDesk
	listeners *listeners
	traffic   *traffic
	roster    roster
	instances map[string]instance // that were made, by name; of the reload that is at work
	bots      connectors.Bots
	// greet shows a text to the person at the terminal; nil without one.
	greet     func(text string)
	env       *env           // that the configuration is read by; nil: the page and the API do not change it
	stopping  chan struct{}  // gets a value when an operator has asked for the end
	reloads   chan reloading // that an operator has asked for
	settled   chan struct{}  // closed when no reload can begin any more
	ending    chan struct{}  // closed when run is about to end
	replacing chan struct{}  // holds a value while replace works
	patience  time.Duration  // how long connectors may ask their platforms before they are replaced
	probes    probes
	tests     failedTests
}

// openDaemon takes the data directory and builds every part. Nothing works before run.
// link gets the login links, one per line, whenever the web page has come up. It refuses a
// configuration that would let anyone run commands on this machine.
func openDaemon(ctx context.Context, c configs.Config, log *slog.Logger, link func(web.LoginLink)) (_ *daemon, err error) {
	d := &daemon{log: log, config: newSettings(c, log), stopping: make(chan struct{}, 1), reloads: make(chan reloading), settled: make(chan struct{}), ending: make(chan struct{}), patience: verifyTime, replacing: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			d.close()
		}
		if full := postgres.Crowded(err); full != nil { // the database granted only the first connection
			err = configError{full}
		}
	}()
	if err := c.CheckLocal(); err != nil {
		return nil, configError{err}
	}
	if d.lock, err = lockDirectory(c.DataDir); err != nil {
		return nil, err
	}
	d.bounds = readLimits().apply(log, c.Node.MaxRuns)
	var built atomic.Pointer[agentsystem.AgentSystem]
	if d.stores, err = openStores(ctx, d.config, log, d.bounds.MaxRuns, built.Load); err != nil {
		return nil, err
	}
	d.config.moves.Store(people.NewMoves(d.stores.db))
	d.models = &models{config: d.config, log: log, system: built.Load}
	d.listeners = newListeners(d, link)
	d.traffic = newTraffic(d.listeners.metrics)
	if d.tooling, err = newTooling(ctx, d.config, d.stores, built.Load, d.listeners.addr); err != nil {
		return nil, err
	}
	d.boots = openBoots(ctx, c.DataDir, log, d.stores.keeper)
	d.stores.boots = d.boots
	d.stores.endPrevious(ctx, c)
	d.library = newLibrary(d.config, d.stores.db, d.flowWorld, log)
	d.library.members = d.flowMembersOf
	d.system = agentsystem.New(d.systemConfig(c))
	built.Store(d.system)
	d.limiter = agentsystem.NewLimiter(d.system, budgets.Config{Store: d.stores.db, Rules: d.budgetRules, Operators: d.system.People.Operators})
	d.models.limiter = d.limiter
	if d.stores.shared == nil { // a cluster recovers the reservations of each member that is gone
		if err := d.limiter.Recover(ctx); err != nil {
			return nil, err
		}
	}
	d.listeners.relay = newRelay(c, d.stores, d.system)
	d.callbacks = &callbackDesk{daemon: d}
	d.engines = newEngines(d)
	d.engines.register(d.system)
	warnPrompts(c, log)
	d.tooling.workspaces.warn()
	d.roster.order = d.orderOf
	d.roster.add(d.listeners.page, d.listeners.terminal)
	d.addSchedules(c)
	d.connect(ctx, c)
	if err := d.library.open(ctx); err != nil {
		return nil, err
	}
	return d, d.listeners.open(d, c)
}

// openBoots begins the boot record of this process. Without one the daemon works as after
// a clean shutdown.
func openBoots(ctx context.Context, dir string, log *slog.Logger, k *keeper) *files.Boots {
	boots, err := files.OpenBoots(dir)
	if err != nil {
		log.Warn("invalid boot record; resuming runs as after a clean shutdown", "err", err)
	}
	k.begin(ctx, boots)
	return boots
}

func (d *daemon) systemConfig(c configs.Config) agentsystem.Config {
	s, box := d.stores, d.tooling.box
	return agentsystem.Config{
		Stores: agentsystem.Stores{
			Agents: s.agents, Index: s.db, Inbox: s.db, Runs: s.db, Outbox: s.db, Access: s.db, Counts: s.db,
			Later: s.db, Texts: s.db, Asked: s.db, Marks: s.db, Chatter: s.db, Parking: s.db,
		},
		Settings: agentsystem.Settings{
			Profile: d.profile, Society: d.society, Flows: d.library, SwitchedOff: d.models.switchedOff, Stopped: d.agentStopped, Models: d.models.names,
			Tools: box.allowed, Forbids: box.forbids, Skills: box.skillCommands, CheckPrompt: checkPrompt,
			CheckEdit: func(a claybot.Agent, c claybot.ToolCall) error { return box.of(a).Editable(a, c) },
		},
		PeopleSettings: agentsystem.PeopleSettings{
			Admission: d.admission, Operators: d.operators, ParseAllowed: d.parseAllowed, Zone: d.zone, Language: d.language, Replaced: d.replaced,
			People:    func() map[string][]string { return d.config.Load().Access.People },
			Named:     func() []string { return d.config.Load().Chats() },
			Instances: func() platforms.Instances { return d.config.Load().Connectors.Platforms() },
		},
		MessageSettings: agentsystem.MessageSettings{
			OwnThreads:    d.ownThreads,
			NoteEdits:     func() bool { return d.config.Load().Sessions.Edits == configs.EditsNote },
			RunsPerMinute: func() int { return d.config.Load().Limits.RunsPerMinute },
			FilesPerOwner: func() int64 { return d.config.Load().Limits.FilesPerOwner },
			UserSecrets:   func() agentsystem.UserSecrets { return agentsystem.UserSecrets(d.config.Load().Privacy.UserSecrets) },
		},
		Limits:  agentsystem.Limits{Lease: c.Node.Lease, MaxRuns: d.bounds.MaxRuns, Idle: c.Node.MaxRuns == 0, MaxBatch: maxBatch(c), HandOver: c.Node.Handover},
		Moves:   d.config.moves.Load(),
		Members: s.members, Version: version, Hub: s.hub, Boots: d.boots, Meter: d.traffic, Log: d.log,
		Recordings: agentsystem.Recordings{
			Transcribe: newHearing(d.config, d.log, func() *budgets.Limiter { return d.limiter }),
			Speak:      newSpeaking(d.config, d.log, func() *budgets.Limiter { return d.limiter }),
		},
		Reports: overview.Reports{
			Sinks:   func() []runs.SinkHealth { return d.listeners.relay.Health() },
			Checks:  s.keeper.results,
			Servers: d.tooling.servers.status,
			Disk:    func() (overview.DiskStatus, error) { return diskOf(d.config.Load().DataDir) },
			Model:   func() overview.ModelStatus { return d.models.health(*d.config.Load()) },
			Settings: func() []overview.SettingStatus {
				return append(d.listeners.problems(d.config), d.library.status()...)
			},
			Limits:   d.bounds,
			Findings: d.findings,
			Spent:    s.db.Spent,
			Budgets: func(ctx context.Context, ids ...claybot.AgentID) (map[claybot.AgentID][]budgets.Standing, error) {
				return d.limiter.Standings(ctx, ids...)
			},
		},
	}
}

func (d *daemon) parseAllowed(who string) (connector, subject string, err error) {
	a, err := d.config.Load().ParseAllowed(who)
	return a.Connector, a.Subject, err
}

func (d *daemon) operators() []string { return d.config.Load().Access.Operators }

// society returns how agents may deal with each other.
func (d *daemon) society() subagents.Limits {
	c := d.config.Load()
	return subagents.Limits{
		MaxDepth: c.Agents.Subagents.MaxDepth, MaxChildren: c.Agents.Subagents.MaxChildren, MaxStarts: c.Agents.Subagents.MaxStartsPerHour,
		AllOwners: c.Agents.Scope == configs.ScopeAll, Identities: c.Identities, Models: d.models.names, Tools: d.tooling.box.names,
		Engines: d.subengines,
	}
}

// subengines lists the engines that an agent may give a subagent: what plans by a policy cannot be left.
func (d *daemon) subengines(a claybot.Agent) []string {
	if d.config.Load().Profile(a.Descriptor).Engine.Name == claybot.EnginePlan {
		return []string{claybot.EnginePlan}
	}
	return d.system.Worker.Engines()
}

func (d *daemon) profile(desc claybot.Descriptor) profiles.Profile {
	c := d.config.Load()
	p := c.Profile(desc)
	return profiles.Profile{
		Name: p.Name, Off: p.Off(), Engine: p.Engine.Name, Model: modelName(p.Model), Models: p.Models, SendTo: p.SendTo, Address: p.Model.AddressKey(), Prompt: p.Prompt, MaxSteps: p.MaxSteps, Forget: !p.Memory, Progress: p.Progress, Unsent: !p.AutoSend, VoiceReplies: p.VoiceReplies, Respond: p.Respond, Context: p.Context,
		Shared: cmp.Or(p.Group, c.Sessions.Group) == configs.GroupShared, Acknowledge: profiles.Acknowledge(p.Acknowledge), Reactions: profiles.Reactions(p.Reactions),
		Policy: inbox.Policy{
			Debounce: p.Inbox.Debounce, DebounceMax: p.Inbox.DebounceMax, MaxBatch: p.Inbox.MaxBatch,
			WhenBusy: inbox.WhenBusy(p.Inbox.WhenBusy), ProcessBuffer: inbox.ProcessBuffer(p.Inbox.ProcessBuffer),
		},
	}
}

// operatorChats are the chats that only an operator can open.
var operatorChats = []string{"web", "terminal"}

func (d *daemon) admission() people.Access { return admissionOf(*d.config.Load()) }

// admissionOf returns who has access by a configuration.
func admissionOf(c configs.Config) people.Access {
	a := people.Access{Mode: people.AccessMode(c.Access.Mode), Trusted: append(slices.Clone(operatorChats), claybot.ConnectorAPI)}
	for _, i := range c.Connectors.Instances() {
		if i.Settings.Type() == platforms.Webhook { // the secret is the access
			a.Trusted = append(a.Trusted, i.Name)
		}
	}
	for _, x := range c.Access.Allow {
		a.Allow = append(a.Allow, x.Connector+":"+x.Subject)
	}
	return a
}

func (d *daemon) budgetRules() []budgets.Rule {
	c := d.config.Load()
	all := c.Agents.Budgets
	rules := make([]budgets.Rule, len(all))
	for i, b := range all {
		rules[i] = budgets.Rule{
			Per: b.Per, Every: b.Every, Unit: storage.UnitMicroUSD, Limit: b.MicroUSD, Hard: b.OnLimit != configs.LimitWarn, Match: b.Match, Fault: b.Fault,
		}
		if b.Tokens > 0 {
			rules[i].Unit, rules[i].Limit = storage.UnitTokens, b.Tokens
		}
	}
	rules = withDefault(rules, *c, d.stores.ownerTokens)
	if d.listeners.web == nil { // no token can have asked for anything yet
		return rules
	}
	for _, b := range d.listeners.web.TokenBudgets() {
		rules = append(rules, budgets.Rule{Per: budgets.PerToken, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: b.Limit, Hard: true, Token: b.Token})
	}
	return rules
}

func maxBatch(c configs.Config) int {
	n := inbox.DefaultMaxBatch
	for _, p := range c.Agents.Profiles {
		n = max(n, p.Inbox.MaxBatch)
	}
	return n
}

// run works until ctx is done and everything has ended in order.
func (d *daemon) run(life context.Context) error {
	life, end := context.WithCancelCause(life)
	defer end(nil)
	context.AfterFunc(life, func() { close(d.ending) })
	d.config.warn()
	d.tooling.workspaces.endLeftovers(life)
	if err := d.limiter.Recheck(life); err != nil { // before messages come: a run that may go on holds none back
		d.log.Warn("failed to check the runs that wait for a budget; retrying in ten minutes", "err", err)
	}
	group, ctx := errgroup.WithContext(life)
	// The listeners close last, so that users see the answers of the last runs, which call
	// their tools until then.
	serving, closeListeners := context.WithCancel(context.WithoutCancel(life))
	until := func(ctx context.Context, run func(context.Context) error) {
		group.Go(func() error {
			if err := run(ctx); ctx.Err() == nil {
				return err
			}
			return nil // the end that was asked for
		})
	}
	group.Go(func() error {
		defer closeListeners()
		return d.system.Run(ctx, d.roster.all()...)
	})
	group.Go(func() error { return d.stores.members.Run(serving) }) // until the last claim is released
	if d.stores.shared != nil {
		until(ctx, d.limiter.Follow)
		until(serving, d.stores.tree.Run)
	}
	until(serving, d.listeners.web.Run)
	until(ctx, func(ctx context.Context) error {
		select { // a platform that cannot be reached keeps no service manager waiting
		case <-d.listeners.web.Up():
			tell(d.log, service.Ready)
		case <-ctx.Done():
		}
		return nil
	})
	if d.listeners.scrapes != nil {
		until(serving, d.listeners.scrapes.Run)
	}
	until(ctx, d.limiter.Watch)
	group.Go(func() error { return d.listeners.relay.Run(ctx) })
	until(serving, d.listeners.metrics.Run) // it counts the last runs as well
	until(ctx, d.tooling.workspaces.manager.Run)
	until(serving, d.tooling.servers.manager.Run)
	for _, run := range []func(context.Context){d.tooling.servers.clear, d.announce, d.welcome, d.followOrders, d.library.watch, d.maintain, d.trim} {
		group.Go(func() error { run(ctx); return nil })
	}
	group.Go(func() error { return d.stores.keeper.run(ctx) })
	group.Go(func() error {
		select {
		case <-ctx.Done():
		case <-d.stopping:
			d.log.Info("shutting down, as an operator asked; waiting for active runs")
			end(errSignal)
		}
		return nil
	})
	err := group.Wait()
	if life.Err() != nil && errors.Is(err, context.Cause(life)) {
		return nil // the end that was asked for
	}
	return err
}

// close releases everything. What run started has ended by then.
func (d *daemon) close() {
	if d.tooling != nil {
		d.tooling.close()
	}
	if d.stores != nil {
		d.stores.close()
	}
	var all []io.Closer
	if d.boots != nil {
		all = append(all, d.boots)
	}
	if d.lock != nil {
		all = append(all, d.lock)
	}
	for _, c := range all {
		if err := c.Close(); err != nil {
			d.log.Warn("failed to close the data directory", "err", err)
		}
	}
}

// announce logs that the daemon is ready: each connector has had its first success or has
// given up.
func (d *daemon) announce(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	settled, failing := d.roster.settled(d.listeners.page)
	for ; !settled; settled, failing = d.roster.settled(d.listeners.page) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	attrs := []any{"version", version, "model", modelName(d.config.Load().Model), "http", d.listeners.addr()}
	if len(failing) > 0 {
		attrs = append(attrs, "failing", strings.Join(failing, "; "))
	}
	d.log.Info("ready", attrs...)
}

// pruneEvery is how often expired rows are removed.
const pruneEvery = time.Hour

// maintain notifies users of damage to their agents' files, removes expired rows, and
// keeps the lock of the data directory.
func (d *daemon) maintain(ctx context.Context) {
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	look := time.NewTicker(lookPlace)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-d.stores.damaged:
			if err := d.system.Tell(ctx, x.agent, func(v texts.Voice) string { return v.In(x.sentence) }); err != nil {
				d.log.Warn("failed to notify users of damage", "agent", x.agent, "err", err)
			}
		case <-look.C:
			if err := d.lock.Renew(); err != nil {
				d.log.Error("failed to recreate claybot.lock after its removal; an older claybot may start in the data directory", "err", err)
			}
		case now := <-prune.C:
			if err := d.stores.prune(ctx, now); err != nil {
				d.log.Warn("failed to remove old data", "err", err)
			}
			if err := d.sweepFlows(ctx, now); err != nil {
				d.log.Warn("failed to remove old agents of workflows", "err", err)
			}
			if err := d.sweepVersions(ctx, now); err != nil {
				d.log.Warn("failed to remove old versions of workflows", "err", err)
			}
		}
	}
}
