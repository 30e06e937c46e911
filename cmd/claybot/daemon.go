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
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/overview"

	"golang.org/x/sync/errgroup"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/connectors/webchat"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/tools/browser"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/metrics"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/docker"
)

// pruneEvery is how often old events are removed.
const pruneEvery = 24 * time.Hour

// A daemon is all parts of a running claybot, wired together.
type daemon struct {
	config    atomic.Pointer[configs.Config]
	log       *slog.Logger
	models    *models
	templates templates
	lock      *files.DirLock
	hub       *runs.Hub // who watches runs
	stores
	built    atomic.Bool // the system is there
	system   *agentsystem.AgentSystem
	limiter  *budgets.Limiter
	engine   *docker.Provider // of workspaces
	places   *workspace.Manager
	servers  *mcp.Manager // of tools
	browsers *browser.Browsers
	box      *toolbox
	web      *web.Server
	page     *webchat.Chat
	relay    *runs.Relay
	metrics  *metrics.Metrics
	bounds   overview.LimitStatus
	boots    *files.Boots
	chats    []connectors.Connector
	damaged  chan damage
	keeper   *keeper      // of a data directory; nil where nodes share a database
	device   devices.Open // that is explored; nil: a browser
	link     func(string) // told the login links when the page is up
	reloads  reloads
}

// A damage is something broken that was found in an agent's files.
type damage struct {
	agent    claybot.AgentID
	sentence string
}

// load reads the configuration and says what is wrong with it.
func (e *env) load() (configs.Config, []configs.Warning, error) {
	if err := configs.CheckNames(os.Environ()); err != nil {
		return configs.Config{}, nil, configError{err}
	}
	c, warnings, err := configs.Load(e.Config, e.lookup, variableNames(os.Environ())...)
	if err != nil {
		return c, nil, configError{err}
	}
	err = c.Override(configs.Override{
		DataDir: e.DataDir, HTTP: e.HTTP, Access: e.Access, Log: e.Log, LogLevel: e.LogLevel, Model: e.Model,
	})
	if err != nil {
		return c, nil, usageError{err}
	}
	c.Source.Warnings = append(warnings, c.UnknownTools(builtin)...)
	return c, c.Source.Warnings, nil
}

// variableNames are the names of variables, NAME=value each.
func variableNames(environ []string) []string {
	names := make([]string, len(environ))
	for i, entry := range environ {
		names[i], _, _ = strings.Cut(entry, "=")
	}
	return names
}

// openDaemon takes the data directory and builds every part. Nothing of it
// works before run. link is told the login links, each on a line, whenever the
// web page has come up.
func openDaemon(ctx context.Context, c configs.Config, log *slog.Logger, link func(string)) (_ *daemon, err error) {
	d := &daemon{log: log, link: link, models: &models{log: log}, damaged: make(chan damage, 64)}
	d.config.Store(&c)
	d.reloads.began = c
	d.hub = d.newHub(c)
	defer func() {
		if err != nil {
			d.close()
		}
		if full := postgres.Crowded(err); full != nil { // only the first connection was had
			err = configError{full}
		}
	}()
	if d.lock, err = lockDirectory(c.DataDir); err != nil {
		return nil, err
	}
	d.bounds = readLimits().apply(log, c.Node.MaxRuns)
	if err := d.openStores(ctx, c); err != nil {
		return nil, err
	}
	if err := d.newPlaces(ctx, c); err != nil {
		return nil, err
	}
	d.newServers(c)
	d.newBrowsers()
	d.box = &toolbox{d: d}
	d.metrics = d.newMetrics(c)
	d.openBoots(ctx, c)
	d.system = agentsystem.New(d.systemConfig(c))
	d.built.Store(true)
	d.limiter = d.newLimiter()
	d.models.limiter = d.limiter
	if d.shared == nil { // else it is done for each node that is gone
		if err := d.limiter.Recover(ctx); err != nil {
			return nil, err
		}
	}
	d.relay = d.newRelay(c)
	d.handle()
	d.warnPrompts(c)
	d.warnPlaces()
	return d, d.connect(c)
}

// openBoots begins the boot record of this process. Without one the daemon works as
// after an orderly end.
func (d *daemon) openBoots(ctx context.Context, c configs.Config) {
	var err error
	if d.boots, err = files.OpenBoots(c.DataDir); err != nil {
		d.log.Warn("invalid boot record; resuming runs as after a clean shutdown", "err", err)
	}
	d.keeper.mark(ctx, true)
}

func (d *daemon) systemConfig(c configs.Config) agentsystem.Config {
	var shared storage.Versions
	if d.shared != nil {
		shared = d.shared
	}
	return agentsystem.Config{
		Stores: agentsystem.Stores{
			Agents: d.agents, Index: d.db, Inbox: d.db, Runs: d.db, Outbox: d.db, Access: d.db, Counts: d.db,
			Later: d.db, Texts: d.db, Asked: d.db, Marks: d.db, Parking: d.db, Shared: shared,
		},
		Boots:       d.boots,
		Zone:        func() *time.Location { return d.config.Load().Schedule.Cron.Zone },
		CheckPrompt: checkPrompt,
		CheckEdit:   func(a claybot.Agent, c claybot.ToolCall) error { return d.box.of(a).Editable(a, c) },
		Transcribe:  d.transcriber(),
		Log:         d.log, Members: d.members, Lease: c.Node.Lease, MaxRuns: d.bounds.MaxRuns, HandOver: c.Node.Handover, Version: version, Hub: d.hub, Meter: d.metrics,
		Profile: d.profile, Admission: d.admission, Society: d.society, MaxBatch: d.maxBatch(),
		Models: d.modelsOf, Tools: d.box.allowed,
		Reports: overview.Reports{
			Sinks:    func() []runs.SinkHealth { return d.relay.Health() },
			Checks:   d.keeper.results,
			Servers:  d.serverStatus,
			Disk:     func() (overview.DiskStatus, error) { return diskOf(d.config.Load().DataDir) },
			Model:    func() overview.ModelStatus { return d.models.health(*d.config.Load()) },
			Settings: d.settingStatus,
			Limits:   d.bounds,
		},
		SwitchedOff: d.switchedOff,
		Operators:   func() []string { return d.config.Load().Access.Operators },
	}
}

// connect builds the connectors that the configuration asks for, and the web
// server that carries two of them.
func (d *daemon) connect(c configs.Config) error {
	d.page = webchat.New(webchat.Config{
		Name: "web", HTML: true, Log: d.log, Poll: d.lookEvery(), Door: func() connectors.Health { return d.web.Health() },
	})
	terminal := webchat.New(webchat.Config{Name: "terminal", Log: d.log, Poll: d.lookEvery()})
	d.chats = []connectors.Connector{d.page, terminal}
	telegramOff := func(c configs.Config) string { return c.Connectors.Telegram.Off() }
	if why := c.Connectors.Telegram.Off(); why != "" {
		d.chats = append(d.chats, offChat{"telegram", why})
	} else if c.Connectors.Telegram.Wanted() {
		d.chats = append(d.chats, switchedTelegram{telegram.New(telegram.Config{
			Name: "telegram", Token: c.Connectors.Telegram.Token.Value(), BaseURL: c.Connectors.Telegram.APIURL, Log: d.log, Off: d.off(telegramOff),
			Delivery: c.Connectors.Telegram.Delivery, OnAmbiguous: c.Connectors.Telegram.OnAmbiguous, Marks: d.db,
		}), d.lever(telegramOff)})
	}
	slackOff := func(c configs.Config) string { return c.Connectors.Slack.Off() }
	if why := c.Connectors.Slack.Off(); why != "" {
		d.chats = append(d.chats, offChat{"slack", why})
	} else if c.Connectors.Slack.Wanted() {
		d.chats = append(d.chats, switchedSlack{slack.New(slack.Config{
			Name: "slack", BotToken: c.Connectors.Slack.BotToken.Value(), AppToken: c.Connectors.Slack.AppToken.Value(), APIURL: c.Connectors.Slack.APIURL, Log: d.log, Marks: d.db,
			Nodes: d.mates(), NoBackfill: !c.Connectors.Slack.Backfill, Off: d.off(slackOff),
		}), d.lever(slackOff)})
	}
	d.schedule(c)
	return d.doors(c, terminal)
}

// schedule builds what wakes agents by itself.
func (d *daemon) schedule(c configs.Config) {
	if c.Schedule.Cron.Enabled {
		tree, dir := d.scheduled(c, cron.Layout)
		tasks := cron.New(cron.Config{
			Dir: filepath.Join(c.DataDir, cron.Layout.Folder), TaskDir: dir, Tree: tree, Claims: d.db, Node: d.members.Node, Ledger: d.db, Index: d.db, Log: d.log,
			Zone: func() *time.Location { return d.config.Load().Schedule.Cron.Zone }, Gates: c.Schedule.Cron.Gates, Known: d.configured, Notice: d.system.People.Notify,
			Unusable: d.system.Unusable,
		})
		d.chats, d.box.tasks = append(d.chats, switchedCron{tasks, d.lever(func(c configs.Config) string { return c.Schedule.Cron.Off() })}), tasks
		d.box.memories = tasks
	} else if why := c.Schedule.Cron.Off(); why != "" {
		d.chats = append(d.chats, offChat{"cron", why})
	}
	if c.Schedule.Heartbeat.Enabled {
		tree, _ := d.scheduled(c, heartbeat.Layout)
		beats := heartbeat.New(heartbeat.Config{
			Dir: filepath.Join(c.DataDir, heartbeat.Layout.Folder), Tree: tree, Claims: d.db, Node: d.members.Node, Receipts: d.db, Log: d.log,
			Place:  d.system.People.Foreground,
			Notice: func(ctx context.Context, key, text string) error { return d.system.People.Notify(ctx, "", key, text) },
			Settings: func() heartbeat.Settings {
				h := d.config.Load().Schedule.Heartbeat
				return heartbeat.Settings{
					Every: h.Every, ActiveHours: h.ActiveHours, Zone: h.Zone,
					MaxUnattended: h.MaxUnattended, Route: h.Route, Gates: h.Gates,
				}
			},
		})
		d.chats, d.box.beats = append(d.chats, switchedBeats{beats, d.lever(func(c configs.Config) string { return c.Schedule.Heartbeat.Off() })}), beats
	} else if why := c.Schedule.Heartbeat.Off(); why != "" {
		d.chats = append(d.chats, offChat{"heartbeat", why})
	}
}

// scheduled returns where a connector has its tasks: in the database that members
// share, or in a folder of the data directory, which agents may then be told of.
func (d *daemon) scheduled(c configs.Config, l storage.Layout) (tree *storage.Mirror, dir string) {
	if d.tree != nil {
		return d.tree, ""
	}
	dir = filepath.Join(c.DataDir, l.Folder)
	return storage.MirrorFolder(files.OpenTree(files.TreeConfig{Dir: dir, Layout: l, Marks: d.db})), dir
}

// configured reports whether there is a connector of that name to send with.
func (d *daemon) configured(name string) bool {
	return slices.ContainsFunc(d.chats, func(c connectors.Connector) bool {
		_, sends := c.(connectors.Sender)
		return sends && c.Name() == name
	})
}

// run works until ctx is done and everything has ended in order.
func (d *daemon) run(life context.Context) error {
	d.warnOpen()
	d.endLeftovers(life)
	group, ctx := errgroup.WithContext(life)
	// The doors close last, so that people see the answers of the last runs.
	serving, closeDoors := context.WithCancel(context.WithoutCancel(life))
	group.Go(func() error {
		defer closeDoors()
		return d.system.Run(ctx, d.chats...)
	})
	group.Go(func() error { return d.members.Run(serving) }) // until the last claim is yielded
	if d.shared != nil {
		group.Go(func() error { return untilDone(ctx, d.limiter.Follow(ctx)) })
		group.Go(func() error { return untilDone(serving, d.tree.Run(serving)) })
	}
	group.Go(func() error {
		if err := d.web.Run(serving); serving.Err() == nil {
			return err
		}
		return nil
	})
	group.Go(func() error { return untilDone(ctx, d.limiter.Watch(ctx)) })
	group.Go(func() error { return d.relay.Run(ctx) })
	group.Go(func() error {
		if err := d.metrics.Run(serving); serving.Err() == nil { // the last runs are told as well
			return err
		}
		return nil
	})
	group.Go(func() error { return untilDone(ctx, d.places.Run(ctx)) })
	group.Go(func() error { return untilDone(serving, d.servers.Run(serving)) }) // the last runs call their tools
	group.Go(func() error { d.removeServers(ctx); return nil })
	group.Go(func() error { d.announce(ctx); return nil })
	group.Go(func() error { d.upkeep(ctx); return nil })
	group.Go(func() error { return d.keeper.run(ctx) })
	group.Go(func() error { trim(ctx); return nil })
	err := group.Wait()
	if life.Err() != nil && errors.Is(err, context.Cause(life)) {
		return nil // the end that was asked for
	}
	return err
}

// untilDone is nil for the end that was asked for.
func untilDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// close lets everything go. What run began has ended by then.
func (d *daemon) close() {
	var all []io.Closer
	if d.browsers != nil {
		all = append(all, d.browsers)
	}
	if d.engine != nil {
		all = append(all, d.engine)
	}
	all = append(all, d.stores.close...)
	if d.boots != nil {
		all = append(all, d.boots)
	}
	if d.lock != nil {
		all = append(all, d.lock)
	}
	for _, c := range all {
		if err := c.Close(); err != nil {
			d.log.Warn("failed to close the store", "err", err)
		}
	}
}

// warnOpen tells of settings that are allowed and seldom meant.
func (d *daemon) warnOpen() {
	if d.config.Load().NamelessProxy() {
		d.log.Warn("http.trusted_proxies is set and http_hosts is not: requests by the host name of the proxy are refused; add the name to http_hosts")
	}
	if d.config.Load().Access.Mode == configs.AccessOpen {
		d.log.Warn("access is open: anyone who finds this bot can use it and spend your money; set CLAYBOT_ACCESS=pairing to restrict it")
	}
}

// announce writes the line that says the daemon is ready: each connector has
// had its first success, or has given up and said why.
func (d *daemon) announce(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	settled, failing := d.settled()
	for ; !settled; settled, failing = d.settled() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	attrs := []any{"version", version, "model", modelName(d.config.Load().Model), "http", d.web.Addr()}
	if len(failing) > 0 {
		attrs = append(attrs, "failing", strings.Join(failing, "; "))
	}
	d.log.Info("ready", attrs...)
}

// settled reports whether every connector has had its first success, or has
// given up, and what is the matter with those that are not well. The page that
// cannot be opened stops nobody: its port may stay taken.
func (d *daemon) settled() (settled bool, failing []string) {
	settled = true
	for _, c := range d.chats {
		h := c.Health()
		settled = settled && (h.Settled() || h.State == connectors.StateFailing && c == d.page)
		if !h.Well() {
			failing = append(failing, c.Name()+": "+strings.TrimPrefix(h.Err, c.Name()+": "))
		}
	}
	return settled, failing
}

// upkeep tells people about damage that was found in their agents' files, removes old
// events, and keeps the lock of the data directory.
func (d *daemon) upkeep(ctx context.Context) {
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	look := time.NewTicker(lookPlace)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-d.damaged:
			if err := d.system.Tell(ctx, x.agent, x.sentence); err != nil {
				d.log.Warn("failed to notify users of damage", "agent", x.agent, "err", err)
			}
		case <-look.C:
			if err := d.lock.Renew(); err != nil {
				d.log.Error("failed to recreate claybot.lock after its removal; an older claybot may start in the data directory", "err", err)
			}
		case now := <-prune.C:
			if err := d.prune(ctx, now); err != nil {
				d.log.Warn("failed to remove old events", "err", err)
			}
		}
	}
}

func (d *daemon) onDamage(id claybot.AgentID, sentence string) {
	select {
	case d.damaged <- damage{id, sentence}:
	default: // more than a person would read; all of it is in the log
	}
}

// inForce is the state of an agent with what applies to it now.
func (d *daemon) inForce(a claybot.Agent, own claybot.Settings) claybot.AgentState {
	if d.system == nil { // the stores are opened before it is made
		return a.State
	}
	return d.system.Profiles.InForce(a, own)
}

// onSettings reads settings that were found in the file of an agent.
func (d *daemon) onSettings() {
	if d.system == nil { // which reads them when it starts
		return
	}
	if err := d.system.Profiles.Load(context.Background()); err != nil {
		d.log.Warn("failed to read agent settings", "err", err)
	}
}

// settings are those of an agent, as they are now.
func (d *daemon) settings(a claybot.Agent) configs.Profile {
	return d.config.Load().Profile(a.Descriptor)
}

// serverStatus is how the MCP servers are doing.
func (d *daemon) serverStatus() []overview.ServerStatus {
	all := d.servers.Status()
	list := make([]overview.ServerStatus, len(all))
	for i, s := range all {
		list[i] = overview.ServerStatus{Name: s.Name, OK: s.State == mcp.StateConnected, State: s.State}
		if !list[i].OK {
			list[i].Err = s.LastError
		}
	}
	return list
}

// operatorChats are the chats that only an operator can open.
var operatorChats = []string{"web", "terminal"}

func (d *daemon) maxBatch() int {
	n := inbox.DefaultMaxBatch
	for _, p := range d.config.Load().Agents.Profiles {
		n = max(n, p.Inbox.MaxBatch)
	}
	return n
}

// nodeID is new for every process and for every term of it, so that a lease of an
// earlier one is never taken for its own.
func nodeID(c configs.Config) string {
	return fmt.Sprintf("%s/%d/%s", c.Node.Name, os.Getpid(), rand.Text()[:8])
}
