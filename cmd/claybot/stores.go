package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/s3"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/tools/skills"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/workspace"
)

// A database is everything that is stored except the agents' own files.
type database interface {
	storage.Index
	storage.AgentReader
	storage.Settings
	storage.Inbox
	storage.Leases
	storage.Receipts
	storage.Parking
	storage.ParkedReader
	storage.Runs
	storage.RunReader
	storage.Ratings
	storage.RunControl
	storage.Outbox
	storage.OutboxReader
	storage.OutboxControl
	storage.Access
	storage.Roles
	storage.CheckpointSet
	storage.Chatter
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
	storage.Eraser
	workspace.Ledger
}

// An agentStore keeps the agents' own files.
type agentStore interface {
	agentsystem.Agents
	storage.HistoryPruner
	storage.DeletedAgents
	// Release drops most of what is in memory for speed alone.
	Release()
}

// stores are the durable parts of a daemon: those of the data directory, or a database
// that cluster members share.
type stores struct {
	config  *settings
	log     *slog.Logger
	system  func() *agentsystem.AgentSystem // nil until it is built
	db      database
	agents  agentStore
	members *cluster.Membership
	orders  *nodes.Orders
	hub     *runs.Hub    // wakes the watchers of runs
	keeper  *keeper      // of a data directory; nil in a cluster
	boots   *files.Boots // the record of this process; nil until it is begun
	damaged chan damage
	// ownerTokens is the default budget of each person, in tokens a day; 0: none.
	ownerTokens int64
	threads     string // what threads are by default: configs.ThreadsOwn or ThreadsShared
	// Of a database that cluster members share; nil for a data directory.
	shared *postgres.DB
	tree   *storage.Mirror

	pruned time.Time // when old records of histories were removed; for prune alone

	shelf  func() *skills.Shelf // of a cluster
	closer []io.Closer          // in this order
}

// A damage is damage that was found in an agent's files.
type damage struct {
	agent    claybot.AgentID
	sentence string
}

// openStores opens the stores that the configuration names. The caller holds the lock of
// the data directory.
func openStores(ctx context.Context, config *settings, log *slog.Logger, maxRuns int, system func() *agentsystem.AgentSystem) (_ *stores, err error) {
	s := &stores{config: config, log: log, system: system, damaged: make(chan damage, 64)}
	s.shelf = sync.OnceValue(func() *skills.Shelf { return skills.NewShelf(s.tree) })
	c := config.began
	self := storage.Member{Name: c.Node.Name, Version: version, Started: claybot.Now(), MaxRuns: maxRuns}
	if c.Storage.Shared() {
		err = s.openShared(ctx, c, self)
	} else {
		err = s.openDirectory(ctx, c, self)
	}
	if err == nil {
		s.ownerTokens, err = s.defaultBudget(ctx)
	}
	if err == nil {
		s.threads, err = s.settled(ctx, markThreads, configs.ThreadsOwn, configs.ThreadsShared)
	}
	if err == nil {
		s.orders, err = nodes.NewOrders(ctx, s.db)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stores) openDirectory(ctx context.Context, c configs.Config, self storage.Member) error {
	s.hub = runs.NewHub()
	broken := make(chan error, 1)
	db, err := openDatabase(ctx, c.DataDir, sqlite.Config{
		Log: s.log, Committed: s.hub.Committed, Damaged: func(err error) { broken <- err },
	})
	if err != nil {
		return err
	}
	all := &revocable{DB: db, dir: c.DataDir, log: s.log}
	s.db, s.closer = all, []io.Closer{db}
	agents, err := files.Open(files.Config{
		Dir: c.DataDir, Index: db, Log: s.log, OnDamage: s.onDamage, InForce: s.inForce, OnSettings: s.onSettings,
	})
	if err != nil {
		return err
	}
	all.agents = agents
	if err := all.withdrawFromAgents(ctx); err != nil {
		s.log.Warn("failed to compare the rules of agents with revoked.json", "err", err)
	}
	s.keeper = &keeper{config: s.config, log: s.log, system: s.system, db: db, agents: agents, broken: broken}
	s.agents, s.closer = agents, []io.Closer{s.keeper, agents, db}
	self.ID = memberID(c)
	s.members = cluster.Alone(self)
	_, err = db.RenewMember(ctx, self, time.Hour) // the store only remembers it
	return err
}

// openShared opens the database that cluster members share.
func (s *stores) openShared(ctx context.Context, c configs.Config, self storage.Member) error {
	s.hub = runs.NewSharedHub(func(h storage.Notification) {
		if s.system() != nil {
			s.members.Notify(h)
		}
	})
	config, err := databaseConfig(ctx, c)
	if err != nil {
		return err
	}
	config.Log, config.Committed, config.NoListen, config.Conns = s.log, s.hub.Committed, !c.Storage.Listen, c.Storage.Connections
	config.OnNotification = func(h storage.Notification) {
		if system := s.system(); system != nil {
			system.Heard(h)
		}
	}
	db, err := postgres.Open(ctx, config)
	if err != nil {
		return databaseError(err)
	}
	s.db, s.agents, s.shared, s.closer = db, db.Agents, db, []io.Closer{db}
	s.tree = storage.NewMirror(db.Tree())
	s.members = cluster.New(cluster.Config{
		Store: db, Claims: db, Hints: db, Versions: db, Self: self, TTL: c.Node.Lease, Log: s.log,
		NewID:   func() string { return s.newMember(c) },
		Working: func() int { return s.system().Working() },
	})
	return nil
}

// newMember returns the id of the next term, and records it for the next process in the
// data directory.
func (s *stores) newMember(c configs.Config) string {
	id := memberID(c)
	if s.boots == nil {
		return id
	}
	if err := s.boots.Update(false, func(b *storage.Boot) { b.Member = id }); err != nil {
		s.log.Warn("failed to record the membership; after a crash, other members wait until it expires", "err", err)
	}
	return id
}

// endPrevious ends the membership of the previous process in the data directory, if that
// did not leave in order. This process has its lock, so it is dead.
func (s *stores) endPrevious(ctx context.Context, c configs.Config) {
	last := s.boots.Last()
	if s.shared == nil || last.Member == "" || last.Closed {
		return
	}
	if err := s.db.EndMember(ctx, last.Member, c.Node.Name); err != nil {
		s.log.Warn("failed to end the membership of the previous process; it expires", "member", last.Member, "err", err)
	}
}

// memberID is unique for every process and every term of it, so that a process never takes
// a lease of an earlier one for its own.
func memberID(c configs.Config) string {
	return fmt.Sprintf("%s/%d/%s", c.Node.Name, os.Getpid(), rand.Text()[:8])
}

// databaseConfig returns how to reach the configured database.
func databaseConfig(ctx context.Context, c configs.Config) (postgres.Config, error) {
	address := c.Storage.URL.Value()
	if address == "" {
		return postgres.Config{}, configError{fmt.Errorf("the storage URL is set to %s, which cannot be read: give it a value, or remove storage.url to use the data directory", c.Storage.URL)}
	}
	blobs, err := openBlobs(ctx, c.Storage.Files)
	return postgres.Config{URL: address, Pooler: c.Storage.Pooler, Blobs: blobs, MaxInline: c.Storage.Files.MaxInline}, err
}

// openBlobs opens the object store, if one is configured, and checks that it can be used.
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

func (s *stores) close() {
	for _, c := range s.closer {
		if err := c.Close(); err != nil {
			s.log.Warn("failed to close the store", "err", err)
		}
	}
}

func (s *stores) onDamage(id claybot.AgentID, sentence string) {
	select {
	case s.damaged <- damage{id, sentence}:
	default: // more than a user would read; all of it is in the log
	}
}

// inForce returns the state of an agent with the settings that apply to it now.
func (s *stores) inForce(a claybot.Agent, own claybot.Settings) claybot.AgentState {
	system := s.system()
	if system == nil {
		return a.State
	}
	return system.Profiles.InForce(a, own)
}

// onSettings reads settings that were found in the file of an agent. The system reads
// them itself when it starts.
func (s *stores) onSettings() {
	system := s.system()
	if system == nil {
		return
	}
	if err := system.Profiles.Load(context.Background()); err != nil {
		s.log.Warn("failed to read agent settings", "err", err)
	}
}

// folder returns where a connector has its tasks: in the shared database, or in a folder
// of the data directory, whose path agents may see.
func (s *stores) folder(l storage.Layout) (tree *storage.Mirror, dir string) {
	if s.tree != nil {
		return s.tree, ""
	}
	dir = filepath.Join(s.config.began.DataDir, l.Folder)
	return storage.MirrorFolder(files.OpenTree(files.TreeConfig{Dir: dir, Layout: l, Marks: s.db})), dir
}

// logins returns where web logins are stored, and the suffix of the cookie's name.
func (s *stores) logins() (tree *storage.Mirror, cookie string) {
	if s.tree != nil {
		return s.tree, "nodes"
	}
	return storage.MirrorAlone(files.OpenNamed(s.config.began.DataDir, web.Names(), web.Load(s.log.With("part", "web")))), ""
}

// secrets returns where secrets that claybot got itself are stored, in a folder for each kind: in the
// shared database, or in files that only their owner can read.
func (s *stores) secrets(folder string) storage.Secrets {
	if s.tree != nil {
		return storage.NewTreeSecrets(s.tree, folder)
	}
	return fileSecrets(s.config.began.DataDir, folder)
}

// fileSecrets stores secrets in a folder of a data directory.
func fileSecrets(dataDir, folder string) storage.Secrets {
	return files.NewSecrets(filepath.Join(dataDir, folder))
}

// skills returns the skills of this installation. A cluster has them in its database,
// unless the configuration names a folder, which every member then needs.
func (s *stores) skills() skills.Library {
	c := s.config.Load()
	dir := c.Agents.Skills
	if dir == "" && s.tree != nil {
		return skills.Library{Pins: s.db, Shelf: s.shelf()}
	}
	if dir == "" {
		dir = filepath.Join(c.DataDir, "skills")
	}
	return skills.Library{Dir: dir, Pins: s.db}
}

// pruneHistoriesEvery is how often old records of histories are removed: that reads the
// beginning of every history.
const pruneHistoriesEvery = 24 * time.Hour

// pruneClaim is the claim of the cluster member that removes expired rows.
const pruneClaim = "prune"

// prune removes expired rows. Only one cluster member does it.
func (s *stores) prune(ctx context.Context, at time.Time) error {
	hold, err := s.members.Claim(ctx, pruneClaim)
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
			s.log.Debug("failed to release claim; it expires with the lease", "claim", pruneClaim, "err", err)
		}
	}()
	keep := s.config.Load().Retention
	err = s.db.Prune(ctx, at, retention(keep))
	if keep.Histories > 0 && at.Sub(s.pruned) >= pruneHistoriesEvery {
		pruned := s.agents.PruneHistories(ctx, claybot.At(at.Add(-keep.Histories)))
		if pruned == nil {
			s.pruned = at
		}
		err = errors.Join(err, pruned)
	}
	if s.shared != nil {
		err = errors.Join(err, s.shared.Agents.PruneFiles(ctx, at))
	}
	return err
}

// retention is what the configuration says for the store.
func retention(c configs.Retention) storage.Retention {
	return storage.Retention{Events: c.Events, Runs: c.Runs, Outgoing: c.Outgoing, Ledger: c.Tasks, Usage: c.Usage}
}

// pageInterval is how often an open page looks for messages that other members sent to it
// if a hint was lost, as docs/scaling.md promises.
const pageInterval = 2 * time.Second

// poll is the interval at which pages poll; 0 if no other member sends to them.
func (s *stores) poll() time.Duration {
	if s.shared == nil {
		return 0
	}
	return pageInterval
}

// memberCount returns a function that counts the cluster members, 0 while that is unknown;
// nil without a cluster.
func (s *stores) memberCount() func() int {
	if s.shared == nil {
		return nil
	}
	return func() int { return len(s.members.Alive()) }
}
