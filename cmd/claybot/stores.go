package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/s3"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/workspace"
)

// A database is what is stored beside the agents themselves.
type database interface {
	storage.Index
	storage.AgentReader
	storage.Settings
	storage.Inbox
	storage.Leases
	storage.Receipts
	storage.Parking
	storage.Runs
	storage.RunReader
	storage.Outbox
	storage.OutboxReader
	storage.OutboxControl
	storage.Access
	storage.Checkpoints
	storage.StatsReader
	storage.Ledger
	storage.Reminders
	storage.Documents
	storage.Memories
	storage.MemoryHistory
	storage.Relays
	storage.Usages
	storage.Questions
	storage.Budgets
	storage.Members
	storage.Claims
	storage.Pruner
	workspace.Ledger
}

// stores are all durable parts of a daemon: those of the data directory, or a
// database that nodes share.
type stores struct {
	db      database
	agents  agentsystem.Agents
	members *cluster.Membership
	// Of a database that nodes share; nil of a data directory.
	shared *postgres.DB
	tree   *storage.Mirror
	close  []io.Closer // in this order
}

// openStores opens what the configuration names. The data directory is locked.
func (d *daemon) openStores(ctx context.Context, c configs.Config) error {
	if c.Storage.Shared() {
		return d.openShared(ctx, c)
	}
	broken := make(chan error, 1)
	db, err := openDatabase(ctx, c.DataDir, sqlite.Config{
		Log: d.log, Committed: d.hub.Committed, Damaged: func(err error) { broken <- err },
	})
	if err != nil {
		return err
	}
	all := &revocable{DB: db, dir: c.DataDir, log: d.log}
	d.db, d.stores.close = all, []io.Closer{db}
	agents, err := files.Open(files.Config{
		Dir: c.DataDir, Index: db, Log: d.log, OnDamage: d.onDamage, InForce: d.inForce, OnSettings: d.onSettings,
	})
	if err != nil {
		return err
	}
	all.agents = agents
	if err := all.withdrawFromAgents(ctx); err != nil {
		d.log.Warn("failed to compare the rules of agents with revoked.json", "err", err)
	}
	d.keeper = &keeper{d: d, db: db, agents: agents, broken: broken}
	d.agents, d.stores.close = agents, []io.Closer{d.keeper, agents, db}
	self := d.self(c)
	self.ID = nodeID(c)
	d.members = cluster.Alone(self)
	_, err = db.RenewMember(ctx, self, time.Hour) // which the store only remembers
	return err
}

// openShared opens the database that nodes share.
func (d *daemon) openShared(ctx context.Context, c configs.Config) error {
	address := c.Storage.URL.Value()
	if address == "" {
		return configError{fmt.Errorf("the storage URL is named (%s) and cannot be read: give it a value, or leave storage.url out to use the data directory", c.Storage.URL)}
	}
	blobs, err := openBlobs(ctx, c.Storage.Files)
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, postgres.Config{
		URL: address, Log: d.log, Committed: d.hub.Committed, OnNotification: d.deliver,
		Pooler: c.Storage.Pooler, NoListen: !c.Storage.Listen, Conns: c.Storage.Connections,
		Blobs: blobs, MaxInline: c.Storage.Files.MaxInline,
	})
	if setup := (*postgres.SetupError)(nil); errors.As(err, &setup) {
		return configError{err}
	}
	if err != nil {
		return err
	}
	d.db, d.agents, d.shared, d.stores.close = db, db.Agents, db, []io.Closer{db}
	d.tree = storage.NewMirror(db.Tree())
	d.members = cluster.New(cluster.Config{
		Store: db, Claims: db, Hints: db, Self: d.self(c), TTL: c.Node.Lease, Log: d.log,
		NewID:   func() string { return nodeID(c) },
		Working: func() int { return d.system.Working() },
	})
	return nil
}

// openBlobs opens the store of files, if there is one, and looks whether it can be
// used.
func openBlobs(ctx context.Context, c configs.Files) (storage.Blobs, error) {
	if c.Fault != "" {
		return nil, configError{errors.New(c.Fault)}
	}
	if !c.Wanted() {
		return nil, nil
	}
	blobs, err := s3.New(s3.Config{
		Bucket: c.Bucket, Prefix: c.Prefix, Endpoint: c.Endpoint, Region: c.Region, Addressing: c.Addressing,
		AccessKey: c.AccessKey.Value(), SecretKey: c.SecretKey.Value(), SessionToken: c.SessionToken.Value(),
	})
	if err == nil {
		err = blobs.Check(ctx)
	}
	if err != nil {
		return nil, configError{err}
	}
	return blobs, nil
}

// self is this process as other nodes see it.
func (d *daemon) self(c configs.Config) storage.Member {
	return storage.Member{Name: c.Node.Name, Version: version, Started: claybot.Now(), MaxRuns: d.bounds.MaxRuns}
}

// newHub makes what wakes the watchers of runs, on other nodes as well.
func (d *daemon) newHub(c configs.Config) *runs.Hub {
	if !c.Storage.Shared() {
		return runs.NewHub()
	}
	return runs.NewSharedHub(func(h storage.Notification) {
		if d.built.Load() {
			d.members.Notify(h)
		}
	})
}

// heard spreads the hints of other nodes. Until the system is built nobody needs
// them.
func (d *daemon) deliver(h storage.Notification) {
	if d.built.Load() {
		d.system.Heard(h)
	}
}

// pruneClaim is the claim of the cluster member that removes expired rows.
const pruneClaim = "prune"

// prune removes what is old. Of several nodes one does.
func (d *daemon) prune(ctx context.Context, at time.Time) error {
	hold, err := d.members.Claim(ctx, pruneClaim)
	if errors.Is(err, storage.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, free := hold.Context(ctx)
	defer func() {
		free()
		if err := hold.Yield(context.WithoutCancel(ctx), false); err != nil {
			d.log.Debug("failed to release claim; it expires with the lease", "claim", pruneClaim, "err", err)
		}
	}()
	err = d.db.Prune(ctx, at)
	if d.shared != nil {
		err = errors.Join(err, d.shared.Agents.PruneFiles(ctx, at))
	}
	return err
}

// lookLost is how often a page that is open looks for what other nodes have sent to
// it and no hint has told of: what docs/scaling.md promises of a hint that is lost.
const lookLost = 2 * time.Second

// lookEvery is the interval at which pages poll; 0 if no other member sends to them.
func (d *daemon) lookEvery() time.Duration {
	if d.shared == nil {
		return 0
	}
	return lookLost
}

// mates counts the nodes that share the store, this one included; 0 while that is not
// known. nil for a store that one process has for itself.
func (d *daemon) mates() func() int {
	if d.shared == nil {
		return nil
	}
	return func() int { return len(d.members.Alive()) }
}
