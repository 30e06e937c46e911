package agentsystem_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	chatplatforms "github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/tools"
)

const nodeTTL = 10 * time.Second

// A clusterRig is several members over one PostgreSQL in a bubble of time, with one
// chat and one model. Hints of the store are off, so all of it also proves that
// polling is enough.
type clusterRig struct {
	*testing.T
	url    string
	chat   *chat
	mind   *mind
	line   func(m *member, l *line) connectors.Connector
	index  *postgres.DB
	agents *files.Store
	nodes  []*member
	names  int
	hints  bool // what a node tells reaches the others
	// decorate, when it is set, stands between a node and its stores.
	decorate func(agentsystem.Stores) agentsystem.Stores
	// finds, when it is set, is what a node finds wrong.
	finds func(m *member) []overview.Finding
}

// A member is one node.
type member struct {
	c       *clusterRig
	name    string
	fuse    *fuse
	way     *way
	db      *postgres.DB
	line    *line
	members *cluster.Membership
	cfg     agentsystem.Config
	system  *agentsystem.AgentSystem
	stopRun func()
	ended   chan error
	once    sync.Once
}

// bubbleTime is the clock of the store, as time in a bubble is not the server's.
func bubbleTime() int64 { return time.Now().UnixMilli() }

// nodesInBubble runs a test with n nodes.
func nodesInBubble(t *testing.T, n int, prepare func(c *clusterRig), test func(c *clusterRig)) {
	t.Helper()
	address := postgrestest.Shared(t).Database(t) // what it starts is to live outside of the bubble
	schema := schemaIn(t, address)
	synctest.Test(t, func(t *testing.T) {
		c := &clusterRig{T: t, url: schema, chat: new(chat), mind: newMind(t)}
		c.line = func(_ *member, l *line) connectors.Connector { return findingLine{l} }
		c.index = c.open()
		var err error
		if c.agents, err = files.Open(files.Config{Dir: t.TempDir(), Index: c.index}); err != nil {
			t.Fatal(err)
		}
		if prepare != nil {
			prepare(c)
		}
		defer c.close()
		for range n {
			c.start()
		}
		test(c)
	})
}

func schemaIn(t *testing.T, address string) string {
	t.Helper()
	name := "t" + strings.ToLower(rand.Text())
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	database := strings.TrimPrefix(u.Path, "/")
	if _, err := postgrestest.Shared(t).Query(t.Context(), database, "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func (c *clusterRig) open() *postgres.DB {
	c.Helper()
	db, err := postgres.Open(context.Background(), postgres.Config{URL: c.url, NoListen: true, Clock: bubbleTime, Conns: 4})
	if err != nil {
		c.Fatal(err)
	}
	return db
}

// start adds a node.
func (c *clusterRig) start() *member {
	c.Helper()
	c.names++
	m := &member{c: c, name: fmt.Sprint("node", c.names), fuse: newFuse(-1), db: c.open(), ended: make(chan error, 1)}
	m.way = &way{fuse: m.fuse}
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() && os.Getenv("RIG_LOG") != "" {
		log = slog.New(slog.NewTextHandler(c.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).With("on", m.name)
	}
	m.members = cluster.New(cluster.Config{
		Store: waysideNodes{m.db, m.way}, Claims: waysideClaims{m.db, m.way}, Versions: m.db, TTL: nodeTTL, Log: log,
		Self: storage.Member{Name: m.name, Version: "test"}, Hints: m,
	})
	hub := runs.NewHub()
	stores := agentsystem.Stores{
		Agents: c.agents, Index: m.db, Inbox: waysideInbox{m.db, m.way}, Runs: waysideRuns{m.db, m.way}, Outbox: waysideOutbox{m.db, m.way}, Access: m.db, Counts: waysideFigures{m.db, m.way},
		Later: m.db, Texts: m.db, Asked: m.db, Marks: m.db, Chatter: m.db, Parking: m.db,
	}
	if c.decorate != nil {
		stores = c.decorate(stores)
	}
	m.cfg = agentsystem.Config{
		Stores: m.fuse.stores(stores), Log: log, Version: "test", Hub: hub, Members: m.members,
		PeopleSettings: agentsystem.PeopleSettings{Admission: func() people.Access { return people.Access{Mode: people.AccessOpen} }},
		Settings: agentsystem.Settings{
			Profile: func(claybot.Descriptor) profiles.Profile { return profiles.Profile{} },
		},
	}
	if c.finds != nil {
		m.cfg.Operators = func() []string { return []string{"chat/boss"} }
		m.cfg.Instances = func() chatplatforms.Instances { return chatplatforms.Instances{"chat": "telegram"} }
		m.cfg.Reports.Findings = func(overview.Status) []overview.Finding { return c.finds(m) }
	}
	m.system = agentsystem.New(m.cfg)
	set := (&bench{acted: make(map[string]int), fuse: func() *fuse { return m.fuse }}).set(c.T)
	m.system.Handle("react", &react.Loop{
		Model: func(claybot.Agent) llm.Model { return c.mind },
		Tools: func(claybot.Agent) *tools.Set { return set },
	})
	m.line = &line{name: "chat", chat: c.chat, fuse: m.fuse}
	c.nodes = append(c.nodes, m)
	m.run(c.line(m, m.line))
	synctest.Wait()
	return m
}

// run works as the daemon does: the membership begins first and ends last.
func (m *member) run(l connectors.Connector) {
	belong, part := context.WithCancel(context.Background())
	work, stop := context.WithCancel(context.Background())
	m.stopRun = stop
	left := make(chan error, 1)
	go func() { left <- m.members.Run(belong) }()
	go func() {
		err := m.system.Run(work, l)
		part()
		m.ended <- errors.Join(err, <-left)
	}()
}

// Tell implements storage.Notifications.
func (m *member) Notify(h storage.Notification) {
	if !m.c.hints || m.fuse.dead() {
		return
	}
	for _, other := range m.c.nodes {
		if other != m && !other.fuse.dead() {
			other.system.Heard(h)
		}
	}
}

// stop ends a node in order.
func (m *member) stop() {
	m.c.Helper()
	m.once.Do(func() {
		m.stopRun()
		if err := <-m.ended; err != nil && !m.fuse.dead() {
			m.c.Errorf("%s: Run: %v", m.name, err)
		}
		m.db.Close()
	})
}

// kill ends the process of a node at this moment: nothing of it reaches the store
// or the chat any more, and it yields nothing.
func (m *member) kill() {
	m.fuse.blow()
	m.stopRun()
}

func (c *clusterRig) close() {
	for _, m := range c.nodes {
		m.stop()
	}
	if err := errors.Join(c.agents.Close(), c.index.Close()); err != nil {
		c.Error(err)
	}
}

// say posts a message of a person at a node.
func (m *member) say(user, text string) {
	m.c.Helper()
	msg := claybot.AgentMessage{
		ID: claybot.MessageID(text), Type: claybot.MessageUser, Text: text, FirstHand: true,
		From: claybot.Sender{UserID: user, Name: user},
	}
	if err := m.system.Post(m.c.Context(), claybot.User("chat", "dm-"+user, user), msg); err != nil {
		m.c.Fatalf("post %s: %v", text, err)
	}
}

// wants compares what people see within a time.
func (c *clusterRig) wants(within time.Duration, user string, texts ...string) {
	c.Helper()
	for end := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		synctest.Wait()
		got := c.chat.seen("dm-" + user)
		if slices.Equal(got, texts) {
			return
		}
		if !time.Now().Before(end) {
			c.Errorf("%s sees %q within %v, want %q", user, got, within, texts)
			return
		}
	}
}

// A way is that of one node to the store: it can be cut.
type way struct {
	fuse *fuse
	mu   sync.Mutex
	shut bool
	// attempted is called after an attempt was recorded.
	attempted func()
}

func (w *way) cut(shut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shut = shut
}

func (w *way) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fuse.dead() {
		return errDead
	}
	if w.shut {
		return fmt.Errorf("%w: no way to the store", storage.ErrBusy)
	}
	return nil
}

// register is the contract under a name that its own method does not hide.
type register = storage.Members

type waysideNodes struct {
	register
	*way
}

func (n waysideNodes) RenewMember(ctx context.Context, self storage.Member, ttl time.Duration) ([]storage.Member, error) {
	if err := n.err(); err != nil {
		return nil, err
	}
	return n.register.RenewMember(ctx, self, ttl)
}

func (n waysideNodes) Leave(ctx context.Context, id string) error {
	if err := n.err(); err != nil {
		return err
	}
	return n.register.Leave(ctx, id)
}

type waysideClaims struct {
	storage.Claims
	*way
}

func (x waysideClaims) Claim(ctx context.Context, node, name string) (storage.Claim, error) {
	if err := x.err(); err != nil {
		return storage.Claim{}, err
	}
	return x.Claims.Claim(ctx, node, name)
}

func (x waysideClaims) Yield(ctx context.Context, c storage.Claim) error {
	if err := x.err(); err != nil {
		return err
	}
	return x.Claims.Yield(ctx, c)
}

type waysideInbox struct {
	agentsystem.Inbox
	*way
}

func (i waysideInbox) Acquire(ctx context.Context, node string, ttl time.Duration, limit, batch int) ([]storage.Acquired, time.Time, error) {
	if err := i.err(); err != nil {
		return nil, time.Time{}, err
	}
	return i.Inbox.Acquire(ctx, node, ttl, limit, batch)
}

func (i waysideInbox) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, string, error) {
	if err := i.err(); err != nil {
		return l, "", err
	}
	return i.Inbox.Renew(ctx, l, ttl)
}

func (i waysideInbox) Release(ctx context.Context, l storage.Lease, w storage.Wait, orderly bool) error {
	if err := i.err(); err != nil {
		return err
	}
	return i.Inbox.Release(ctx, l, w, orderly)
}

type waysideRuns struct {
	agentsystem.Runs
	*way
}

func (r waysideRuns) Finish(ctx context.Context, l storage.Lease, id claybot.RunID, o storage.Outcome) ([]claybot.Outgoing, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.Runs.Finish(ctx, l, id, o)
}

type waysideOutbox struct {
	agentsystem.Outbox
	*way
}

func (o waysideOutbox) Unsent(ctx context.Context, dest string, after int64, limit int) ([]claybot.Outgoing, error) {
	if err := o.err(); err != nil {
		return nil, err
	}
	return o.Outbox.Unsent(ctx, dest, after, limit)
}

func (o waysideOutbox) UnsentDests(ctx context.Context) ([]string, error) {
	if err := o.err(); err != nil {
		return nil, err
	}
	return o.Outbox.UnsentDests(ctx)
}

func (o waysideOutbox) Attempt(ctx context.Context, c storage.Claim, id string) error {
	err := o.err()
	if err == nil {
		err = o.Outbox.Attempt(ctx, c, id)
	}
	o.mu.Lock()
	then := o.attempted
	o.mu.Unlock()
	if then != nil && err == nil {
		then()
	}
	return err
}

func (o waysideOutbox) Resolve(ctx context.Context, c storage.Claim, id string, r storage.Resolution) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Outbox.Resolve(ctx, c, id, r)
}
