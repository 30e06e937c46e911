package cron

import (
	"context"
	"log/slog"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Name is the name of the connector.
const Name = "cron"

// Config configures a Cron. Dir, Tree, Claims, Node, Ledger and Index are
// required.
type Config struct {
	// Dir is the directory of gate commands, which run in the folder files of
	// their task's folder.
	Dir string
	// Tree has the tasks. All members of a cluster share it. If it needs Run, the
	// caller must run it.
	Tree *storage.Mirror
	// TaskDir is the directory of the tasks as agents see it; empty if it differs
	// between members.
	TaskDir string
	// Claims let only one member run a gate at a time. Node returns the current id
	// of this member.
	Claims storage.Claims
	Node   func() string

	Zone   func() *time.Location // of tasks without one; nil: UTC
	Ledger Ledger
	// Index finds the agents that tasks name; storage.Index has it.
	Index interface {
		IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error)
	}
	// Limits returns what agents may create for one person; nil: the defaults.
	Limits func() Limits
	// Person names the person of an owner, who may have several ids; nil: each is a person.
	Person func(owner string) string
	// Gates allows gate commands on this machine.
	Gates bool
	// Known reports whether a connector is configured; nil: all are.
	Known func(connector string) bool
	// Notice sends a sentence to the owner of a task or, without an owner, to the
	// user who wrote last; once for each key. nil: it is only logged.
	Notice func(ctx context.Context, owner, key string, say func(texts.Voice) string) error
	// Flow completes the message with which a task starts a flow, and the agent of its run; nil:
	// both stay as they are.
	Flow func(claybot.Descriptor, claybot.AgentMessage) (claybot.Descriptor, claybot.AgentMessage)
	// Unusable reports whether the agent of a descriptor cannot be used at present,
	// which the ledger records for its unfinished run; nil: unknown.
	Unusable func(claybot.Descriptor) bool
	// Dead says why nothing can be sent on a route, and since when; empty if that is
	// possible. Tasks that answer there pause until it is. nil: it always is.
	Dead func(claybot.Route) (why string, since claybot.Time)
	Log  *slog.Logger // nil: no log
	// Gate stops the tasks while a setting switches them off.
	Gate connectors.Gate

	// Poll is the time between two looks at the files; 0 means 2 s.
	Poll time.Duration
	// Now is the wall clock, for tests of a clock that jumps; nil: time.Now.
	Now func() time.Time
}

// A Ledger stores the runs of tasks, and when the store was restored.
type Ledger interface {
	storage.Ledger
	storage.Checkpoints
}

// A Cron runs tasks on schedule. It is safe for concurrent use.
type Cron struct {
	cfg    *Config
	sched  *schedule.Scheduler
	table  *table
	folder *dir
	quota  *quota
	runner *runner
	loop   *loop
}

var (
	_ connectors.Connector = (*Cron)(nil)
	_ connectors.Follower  = (*Cron)(nil)
	_ connectors.Idler     = (*Cron)(nil)
)

// New returns a Cron. It does nothing before Run.
func New(cfg Config) *Cron {
	s := schedule.New(schedule.Config{
		Name: Name, What: "task", Claims: cfg.Claims, Node: cfg.Node, Poll: cfg.Poll, Now: cfg.Now, Log: cfg.Log,
	})
	t := &table{cfg: &cfg, sched: s, facts: &facts{tree: cfg.Tree, sched: s}}
	d := &dir{path: cfg.Dir, tree: cfg.Tree, now: s.Now}
	r := &runner{cfg: &cfg, sched: s, table: t, folder: d}
	t.start = r.run
	return &Cron{cfg: &cfg, sched: s, table: t, folder: d, quota: &quota{&cfg, t, cfg.Tree}, runner: r, loop: &loop{cfg: &cfg, sched: s, table: t, folder: d}}
}

// Name implements connectors.Connector.
func (c *Cron) Name() string { return Name }

// Health implements connectors.Connector.
func (c *Cron) Health() connectors.Health { return c.cfg.Gate.Health(c.sched.Health()) }

// Run implements connectors.Connector. It may be called again after it has
// returned.
func (c *Cron) Run(ctx context.Context, h connectors.Handler) error {
	return c.cfg.Gate.Run(ctx, func(ctx context.Context) error { return c.sched.Run(ctx, h, c.loop) })
}

// Idle implements connectors.Idler: tasks can be listed, created and changed, and none runs.
func (c *Cron) Idle(ctx context.Context) error {
	return c.cfg.Gate.Run(ctx, func(ctx context.Context) error { return c.sched.Idle(ctx, c.loop) })
}

// Ended implements connectors.Follower.
func (c *Cron) Ended(_ claybot.Descriptor, run claybot.Run) { c.table.runEnded(run) }
