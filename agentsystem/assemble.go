package agentsystem

import (
	"context"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/worker"
)

// An assembly is an AgentSystem under construction. Parts that others call up to are made
// first and filled in later.
type assembly struct {
	Config
	system      *AgentSystem
	agents      *storage.Bounded
	inboxes     *inbox.Inboxes
	work        *runs.AtWork
	intake      *intake
	preparer    *preparer
	orders      *orders
	accepting   *accepting
	secrets     secretRule
	parking     *parking
	overhearing *overhearing
	results     *results
	pending     *pendingCalls
	hooks       *runs.HookCaller
}

// New returns an AgentSystem that does nothing before Run. Engines are added with Handle.
func New(cfg Config) *AgentSystem {
	cfg = cfg.withDefaults()
	a := &assembly{
		Config: cfg, system: new(AgentSystem), agents: storage.NewBounded(cfg.Agents),
		inboxes: inbox.New(inbox.Config{Store: cfg.Inbox, Node: cfg.Members.Node, Elsewhere: cfg.Members.Elsewhere, TTL: cfg.Lease}),
		work:    new(runs.AtWork), secrets: secretRule(cfg.UserSecrets), intake: new(intake), preparer: new(preparer), orders: new(orders), accepting: new(accepting), parking: new(parking), pending: new(pendingCalls),
		results: &results{store: cfg.Inbox, log: cfg.Log}, hooks: runs.NewHookCaller(cfg.Hooks, cfg.Log),
	}
	s := a.system
	s.follower = &follower{changed: new(inbox.Signal), freed: new(inbox.Signal)}
	s.follower.windows = &windows{
		members: a.Members, changed: s.follower.changed, index: a.Index, runs: a.Runs, receipts: a.Inbox, hub: a.Hub, work: a.work, log: a.Log,
		opening: make(map[string]opening),
	}
	a.makePeople()
	a.makeAgents()
	a.makeOverview()
	a.makeIntake()
	a.makeControl()
	a.makeLoops()
	return s
}

// connector returns the connector of a name, also one that is stopped; nil where none is
// configured.
func (a *assembly) connector(name string) connectors.Connector {
	return a.system.supervisor.connector(name)
}

// active returns a connectors.StandIn for a connector that is stopped.
func (a *assembly) active(name string) connectors.Connector { return a.system.supervisor.active(name) }

// deadMarks is where the marks of dead routes are kept; nil: in memory alone.
func (a *assembly) deadMarks() delivery.Marks {
	if a.Marks == nil {
		return nil
	}
	return a.Marks
}

// quota is that of the files that people send.
func (a *assembly) quota() *people.Quota {
	return &people.Quota{Files: a.Agents, Index: a.Index, Directory: a.system.People, Limit: a.FilesPerOwner, Log: a.Log}
}

// makePeople makes what knows users and sends to them.
func (a *assembly) makePeople() {
	s := a.system
	gate := people.NewGate(a.Access, a.Access, a.Admission, a.Moves)
	s.deliverer = delivery.New(delivery.Config{
		Outbox: a.Outbox, Reader: a.Outbox, Files: a.Agents, Members: a.Members, Connector: a.connector, Active: a.active, Allowed: gate.MayReceive,
		Voice: func(ctx context.Context, o claybot.Outgoing) texts.Voice { return s.People.VoiceOf(ctx, o) },
		Marks: a.deadMarks(), Elsewhere: func(ctx context.Context, o claybot.Outgoing) (claybot.Route, bool) { return s.People.Elsewhere(ctx, o) },
		Repeats: func(ctx context.Context, o claybot.Outgoing) (bool, error) {
			return repeating{a.Index, s.People}.offered(ctx, o)
		},
		Moves: a.Moves, Meter: a.Meter, Log: a.Log,
	})
	s.People = people.New(people.Config{
		Gate: gate, Index: a.Index, Receipts: a.Inbox, Agents: a.agents, Sender: s.deliverer, Reachable: s.deliverer.Routes.Reachable,
		Identities: func(owner string) []string {
			if all := a.Society().Identities; all != nil {
				return all(owner)
			}
			return nil
		},
		AllOwners: func() bool { return a.Society().AllOwners }, Operators: a.Operators, Instances: a.Instances,
		Language: a.Language, Zone: a.Zone, Replaced: a.Replaced, Marks: a.Marks, Connector: a.connector, Log: a.Log,
	})
}

// flow returns the flow in force with a name; nil for none.
func (a *assembly) flow(name string) *flows.Flow {
	if a.Flows == nil {
		return nil
	}
	return a.Flows.Named(name)
}

// reschedule lets the dispatcher look at an agent again.
func (a *assembly) reschedule(ctx context.Context, id claybot.AgentID) error {
	return a.system.dispatcher.reschedule(ctx, id)
}

// makeAgents makes what runs agents and what agents deal with.
func (a *assembly) makeAgents() {
	s := a.system
	s.Profiles = profiles.New(profiles.Config{
		Index: a.Index, Agents: a.Agents, Profile: a.Profile, Models: a.Models, Tools: a.Tools, Forbids: a.Forbids, Engines: func() []string { return s.Worker.Engines() },
		CheckPrompt: a.CheckPrompt, Refresh: s.follower.refresh,
		Changed: a.reschedule, Log: a.Log,
	})
	s.Questions = questions.New(questions.Config{
		Stores: questions.Stores{Asked: a.Asked, Agents: a.Agents, Lookup: a.agents, Index: a.Index, Runs: a.Runs, Receipts: a.Inbox, Outbox: a.Outbox},
		Inbox:  a.inboxes, Sender: s.deliverer, Routes: s.deliverer.Routes, People: s.People, Readers: s.People, Work: a.work,
		Intake: questions.Intake{Complete: a.preparer.complete, Accepted: a.accepting.accepted, CarryOut: a.orders.carryOut, Masked: a.secrets.masked},
		Zone:   a.Zone, CheckEdit: a.CheckEdit, Log: a.Log,
	})
	s.Subagents = subagents.New(subagents.Config{
		Stores: subagents.Stores{Agents: a.Agents, Index: a.Index, Inbox: a.Inbox, Runs: a.Runs, Later: a.Later},
		Poster: a.inboxes,
		Intake: subagents.Intake{
			Accept: a.intake.acceptFor, Complete: a.preparer.complete,
			Dropped: func(agent claybot.AgentID, ids ...claybot.MessageID) {
				a.results.reject(agent, inbox.ErrDropped, ids...)
			},
		},
		People: s.People, Audiences: s.People, Work: a.work, Clock: a.Members, Limits: a.Society, Permissions: s.Profiles.Permissions,
		Profile: func(d claybot.Descriptor) string { return a.Profile(d).Name }, Flow: a.flow, Log: a.Log,
	})
	a.overhearing = &overhearing{a.Chatter, a.Profile, s.People, a.secrets.masked, a.Log}
	s.Chats = &Chats{a.work, a.connector, a.overhearing, a.secrets.masked, a.Log}
	s.Worker = worker.New(worker.Config{
		Stores: worker.Stores{
			Agents: a.Agents, Histories: a.Agents, Files: a.Agents, Index: a.Index, Leases: a.Inbox, Receipts: a.Inbox,
			Runs: a.Runs, Reader: a.Runs, Outbox: a.Outbox, Texts: a.Texts, Counts: a.Counts, Marks: a.Marks, Boots: a.Boots,
		},
		Parts: worker.Parts{
			Boxes: a.inboxes, Waiters: &a.results.waiters, Deliverer: s.deliverer, People: s.People, Profiles: s.Profiles, Questions: s.Questions,
			Subagents: s.Subagents.Supervisor, Hub: a.Hub, AtWork: a.work, Connector: a.connector, Active: a.active, Complete: a.preparer.complete, DropDoomed: a.results.dropDoomed,
			Queued:  func(id claybot.AgentID) <-chan struct{} { return s.dispatcher.queue.Over(id) },
			Stopped: a.Stopped, Reschedule: a.reschedule,
			First: s.follower.windows.shown.first, Said: s.Chats.read, Quota: a.quota(), Flows: a.Flows,
		},
		Members: a.Members, Meter: a.Meter, Hooks: a.hooks, Transcribe: a.Transcribe, Speak: a.Speak, Log: a.Log,
	})
	s.dispatcher = &dispatcher{
		inboxes: a.inboxes, store: a.Inbox, worker: s.Worker, profiles: s.Profiles, members: a.Members, limits: a.Limits, log: a.Log,
		slots: make(chan struct{}, a.slots()),
	}
	s.dispatcher.queue = &queue{
		receipts: a.Inbox, active: a.active, full: s.dispatcher.full, log: a.Log,
		dead: func(r claybot.Route) bool { _, dead := s.deliverer.Routes.Dead(r); return dead },
	}
	a.makeSupervisor()
	s.Output = &Output{files: a.Agents, sender: s.deliverer, outbox: a.Outbox, people: s.People, profiles: s.Profiles, index: a.Index, readers: s.Subagents.Directory.Readers, work: a.work, connector: a.connector, active: a.active, log: a.Log}
}

// makeSupervisor makes what runs the connectors.
func (a *assembly) makeSupervisor() {
	s := a.system
	s.supervisor = &supervisor{
		alarms: &alarms{
			people: s.People, marks: a.Marks, log: a.Log,
			troubles: &troubles{
				people: s.People, marks: a.Marks, outbox: a.Outbox, index: a.Index, sender: s.deliverer, instances: a.Instances,
				filled: s.Worker.Health.Filled, named: a.Named, members: a.Members,
			},
			findings: &findings{
				people: s.People, marks: a.Marks, members: a.Members, log: a.Log,
				find: func(ctx context.Context) ([]overview.Finding, error) { return s.Overview.Findings(ctx) },
			},
			gaps: &gaps{people: s.People, marks: a.Marks},
		},
		standby:  &standby{members: a.Members, freed: s.follower.freed, holders: make(map[string]string)},
		holdback: &holdback{recovery: s.Worker.Recovery, boot: s.Worker.Boot, boots: a.Boots, log: a.Log, held: make(map[string]*holding)},
		pending:  a.pending, meter: a.Meter, log: a.Log,
		voice: func(ctx context.Context, d claybot.Descriptor) texts.Voice {
			return s.People.VoiceAt(ctx, d, d.Route())
		},
		handler: s, replacing: make(chan struct{}, 1), came: make(map[string]time.Time),
	}
	s.supervisor.nodes = nodes.NewSet(nodes.Kind[connectors.Connector]{Work: s.supervisor.work, Wait: replaceTime, Ended: s.supervisor.ended})
	s.follower.windows.connectors = s.supervisor.All
}

// makeOverview makes the read side.
func (a *assembly) makeOverview() {
	s := a.system
	counts := &parkingCounts{figures: a.Counts}
	a.parking.counts = counts
	s.Overview = overview.New(overview.Config{
		Stores: overview.Stores{
			Index: a.Index, Agents: a.Agents, Inbox: a.Inbox, Runs: a.Runs, Outbox: a.Outbox, Parking: a.Parking,
			Later: a.Later, Counts: a.Counts,
		},
		Parts: overview.Parts{
			People: s.People, Profiles: s.Profiles, Questions: s.Questions, Subagents: s.Subagents.Directory, Worker: s.Worker, Inboxes: a.inboxes,
			Connectors: s.supervisor, Standby: s.supervisor.standby, Held: s.supervisor.holdback.Held, Parked: counts, DeadRoutes: s.deliverer.Routes.AllDead, Quota: a.quota(), Membership: a.Members, Hub: a.Hub,
		},
		Reports: a.Reports, SwitchedOff: a.SwitchedOff, Stopped: a.Stopped, Skills: a.skillCommands, Access: a.Admission, Named: a.PeopleSettings.People, Zone: a.Zone, Version: a.Version, Log: a.Log,
	})
}

// makeIntake makes the way of a message into its inbox.
func (a *assembly) makeIntake() {
	s := a.system
	*a.accepting = accepting{results: a.results, sender: s.deliverer, people: s.People, connector: a.connector, most: a.RunsPerMinute, log: a.Log}
	*a.orders = orders{
		inboxes: a.inboxes, sender: s.deliverer, people: s.People, profiles: s.Profiles, questions: s.Questions, accepting: a.accepting, subject: a.ParseAllowed, log: a.Log,
		undo: &Undo{agents: a.agents, index: a.Index, runs: a.Runs, receipts: a.Inbox, people: s.People, accept: a.intake.acceptFor},
	}
	room := flowRoom{a.flow, a.Counts, a.Inbox}
	*a.preparer = preparer{
		agents: a.agents, sender: s.deliverer, people: s.People, profiles: s.Profiles, subagents: s.Subagents.Supervisor, room: room,
		flows:   begunFlows{a.Index, a.Runs, a.Inbox, s.People, s.Subagents.Supervisor},
		repeats: repeating{a.Index, s.People}, secrets: a.secrets, command: s.Overview.Answer, noteEdits: a.NoteEdits,
	}
	*a.intake = intake{
		agents: a.agents, deliver: s.dispatcher.post, people: s.People, questions: s.Questions, preparer: a.preparer, orders: a.orders, accepting: a.accepting,
		secrets: a.secrets, room: room, unwell: &s.Worker.Health, skills: a.skillCommands, log: a.Log,
		floods: floods{directory: s.People, most: a.RunsPerMinute, people: flood{window: floodWindow}, bots: flood{window: botWindow}},
	}
	follow := &moves{agents: a.agents, index: a.Index, outbox: a.Outbox, parked: a.Parking, named: a.Named, people: s.People, sender: s.deliverer, worker: s.Worker, members: a.Members, overhearing: a.overhearing, pending: a.pending, log: a.Log}
	*a.parking = parking{
		flows: a.Flows, marks: a.Marks,
		moves: follow, store: a.Parking, index: a.Index, receipts: a.Inbox, inboxes: a.inboxes, intake: a.intake, people: s.People, sender: s.deliverer, worker: s.Worker,
		members: a.Members, meter: a.Meter, log: a.Log, counts: a.parking.counts,
	}
	spelled := spelling{s.People, a.connector}
	s.receiver = &receiver{
		index: a.Index, people: s.People, places: conversations{a.OwnThreads, a.Profile, a.Index, a.Runs, s.People, a.Inbox, spelled, a.Marks}, buttons: s.Questions.Buttons, parking: a.parking, worker: s.Worker, sender: s.deliverer, pending: a.pending, overhearing: a.overhearing,
		moves:     follow,
		reactions: reactions{a.Profile, a.Index, a.Runs, a.Outbox, a.Inbox, spelled, a.Log}, meter: a.Meter, log: a.Log,
		notices: &notices{index: a.Index, people: s.People, sender: s.deliverer, gaps: s.supervisor.alarms.gaps, members: a.Members, log: a.Log},
	}
}

// makeControl makes what the API and operators use.
func (a *assembly) makeControl() {
	s := a.system
	files := &Attachments{agents: a.agents, index: a.Index, files: a.Agents, quota: a.quota()}
	s.Control = &Control{
		Undo: a.orders.undo, Attachments: files,
		budgets: budgets.Config{
			Former: a.Moves.Former,
			Agents: a.Index, Questions: a.Asked, Members: a.Members, Runs: limitedRuns{a.work, s.Questions.Ledger, a.Runs, a.Inbox, a.Index}, People: s.People,
			Profile: func(d claybot.Descriptor) string { return a.Profile(d).Name }, Consoles: people.OperatorConsoles, Zone: a.Zone,
			Stopped: s.supervisor.alarms.troubles.spent, NewID: runs.NewID, Log: a.Log,
		},
		Starter: &Starter{
			inboxes: a.inboxes, intake: a.intake, parking: a.parking, files: files, index: a.Index, receipts: a.Inbox, answers: s.Questions.Answers, results: a.results,
			work: a.work, members: a.Members, changed: s.follower.changed, profile: a.Profile, log: a.Log,
		},
		Admin: &Admin{
			agents: a.Agents, index: a.Index, inbox: a.Inbox, runs: a.Runs, inboxes: a.inboxes, intake: a.intake, parking: a.parking,
			results: a.results, people: s.People, profiles: s.Profiles, subagents: s.Subagents.Supervisor, faults: &s.Worker.Faults, overhearing: a.overhearing,
		},
		Deliveries: &Deliveries{outbox: a.Outbox, sender: s.deliverer, log: a.Log},
	}
}

// makeLoops makes what works besides the connectors and the dispatcher.
func (a *assembly) makeLoops() {
	s := a.system
	f := s.follower
	f.members, f.hub, f.inboxes, f.deliverer, f.people, f.profiles = a.Members, a.Hub, a.inboxes, s.deliverer, s.People, s.Profiles
	f.subagents, f.questions, f.log = s.Subagents.Supervisor, s.Questions, a.Log
	s.loops = []func(context.Context){
		s.Subagents.Reminders.RemindAll, a.parking.retryAll, f.followTerms, f.repairAll, f.refreshAll, s.deliverer.Watch, s.follower.windows.follow, s.supervisor.alarms.watch, a.overhearing.sweepAll, a.hooks.Run, s.dispatcher.resume,
	}
}
