package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/tools"
	questions "github.com/claybot/claybot/tools/ask"
	"github.com/claybot/claybot/tools/browser"
	"github.com/claybot/claybot/tools/chat"
	"github.com/claybot/claybot/tools/clock"
	"github.com/claybot/claybot/tools/documents"
	"github.com/claybot/claybot/tools/files"
	"github.com/claybot/claybot/tools/memory"
	"github.com/claybot/claybot/tools/messaging"
	"github.com/claybot/claybot/tools/schedule"
	"github.com/claybot/claybot/tools/send"
	"github.com/claybot/claybot/tools/shell"
	"github.com/claybot/claybot/tools/skills"
	"github.com/claybot/claybot/tools/todos"
	webtools "github.com/claybot/claybot/tools/web"
	"github.com/claybot/claybot/web"
)

// tooling is everything that agents act with.
type tooling struct {
	workspaces *workspaces
	servers    *mcpServers
	browsers   *browser.Browsers
	box        *toolbox
}

// saveFile stores a file that a tool created for the agent of its call.
type saveFile = func(ctx context.Context, env tools.Env, name, mimeType string, data []byte) (claybot.FileReference, error)

func newTooling(ctx context.Context, config *settings, s *stores, system func() *agentsystem.AgentSystem, addr func() string) (*tooling, error) {
	w, err := newWorkspaces(ctx, config, s, addr)
	if err != nil {
		return nil, err
	}
	save := func(ctx context.Context, env tools.Env, name, mimeType string, data []byte) (claybot.FileReference, error) {
		return system().Control.SaveFile(ctx, agentsystem.Address{Agent: env.Agent.ID}, claybot.FileReference{Name: name, MIMEType: mimeType}, bytes.NewReader(data))
	}
	t := &tooling{workspaces: w, servers: newMCPServers(config, s, w, save, func() tools.Questions { return system().Questions.Asker })}
	t.browsers = browser.New(browser.Config{
		Open: w.browser, SaveFile: save, Log: s.log,
		Key: func(env tools.Env) string {
			want, _ := w.want(env)
			return string(want.Key)
		},
		Listed: func(env tools.Env, address string) bool {
			host, err := egress.HostOf(address)
			if err != nil {
				return false
			}
			want, ok := w.want(env)
			if ok && want.Provider == configs.WorkspaceDocker && slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, host) {
				return true // the agent's own, in its container
			}
			return hostListed(want.Spec.Network.Allow, host) || webListed(config.Load().Tools.Web, env, address, t.box.hasRead)
		},
	})
	t.box = &toolbox{config: config, log: s.log, system: system, stores: s, tooling: t}
	w.audience = t.box.audience
	return t, nil
}

func (t *tooling) close() {
	t.workspaces.manager.Close()
	for _, err := range []error{t.browsers.Close(), t.workspaces.docker.Close()} {
		if err != nil {
			t.workspaces.log.Warn("failed to close browsers and workspaces", "err", err)
		}
	}
}

// webListed reports whether an agent may reach an address without asking: the operator
// listed its host, a user wrote exactly this address in this conversation, or the settings
// let a run reach addresses that are not listed; hasRead reports whether it has read
// untrusted content, or what not everybody may read.
func webListed(c configs.Web, env tools.Env, address string, hasRead func(tools.Env) bool) bool {
	host, err := egress.HostOf(address)
	switch {
	case err != nil:
		return false
	case hostListed(c.Allow, host), hostListed(c.Private, host):
		return true
	case env.Wrote != nil && env.Wrote(address):
		return true
	}
	return c.Open(false) || c.Open(true) && !hasRead(env)
}

// fetchListed is webListed for fetch_url. What its door refuses anyway asks nobody: the
// call fails and says why.
func fetchListed(c configs.Web, env tools.Env, address string, hasRead func(tools.Env) bool) bool {
	host, err := egress.HostOf(address)
	refused := err != nil || !c.Public() && !hostListed(c.Allow, host) && !hostListed(c.Private, host)
	return refused || webListed(c, env, address, hasRead)
}

// A toolbox assembles the tools of each agent. It builds one set for each profile and kind
// of agent and keeps it until the configuration changes.
type toolbox struct {
	config     *settings
	log        *slog.Logger
	system     func() *agentsystem.AgentSystem
	stores     *stores
	tooling    *tooling
	tasks      web.Tasks         // nil: cron is off
	memories   schedule.Memories // of tasks
	heartbeats web.Heartbeats    // nil: the heartbeat is off
	more       []tools.Tool      // of a scene of the demo

	mu     sync.Mutex
	cached *configs.Config // the configuration of the sets
	unread sync.Map        // warnings about files of prompts that were logged
	served uint64          // the generation of the MCP tools in the sets
	sets   map[boxKey]toolSet
	web    []tools.Tool
}

// A toolSet has the names of those of its tools that make an agent a deep one.
type toolSet struct {
	*tools.Set
	deep []string
}

type boxKey struct {
	profile    string
	deep       string // what a node of a workflow says of it, as JSON
	kind       claybot.AgentType
	heartbeats bool // with the tools of the heartbeat
	skills     bool // there may be some
	workspace  bool
}

// of returns the tools of an agent: those that it is allowed, under its permissions.
func (b *toolbox) of(a claybot.Agent) *tools.Set {
	return b.given(a).Permitted(func() tools.Permit { return b.permit(a) })
}

// allowed returns the names of the tools that the settings of an agent may name.
func (b *toolbox) allowed(a claybot.Agent) []string { return toolNames(b.given(a)) }

// names returns the names of the tools of an agent.
func (b *toolbox) names(a claybot.Agent) []string { return toolNames(b.of(a)) }

// given returns the tools that an agent is allowed: those of its profile, limited to what
// it was given when it was started.
func (b *toolbox) given(a claybot.Agent) *tools.Set {
	bg := a.State.Background
	if bg == nil {
		return b.set(a.Descriptor, nil, b.stores.skills().Exists()).Set
	}
	set, named := b.set(a.Descriptor, bg.Deep, b.stores.skills().Exists()), bg.Tools
	if named != nil && bg.Deep != nil {
		named = slices.Concat(named, set.deep)
	}
	return set.Only(named)
}

func toolNames(set *tools.Set) []string {
	offered := set.Tools()
	names := make([]string, len(offered))
	for i, t := range offered {
		names[i] = t.Name
	}
	return names
}

// mayUseHeartbeats reports whether an agent gets the tools of the heartbeat. The heartbeat reaches
// everybody, so they are for the operator's own chats, for the heartbeat, and for profiles
// that name them.
func mayUseHeartbeats(d claybot.Descriptor, p configs.Profile) bool {
	own := d.Type == claybot.AgentHeartbeat || d.Foreground() && slices.Contains(operatorChats, d.Connector)
	return own || slices.ContainsFunc(p.Tools, func(name string) bool { return strings.HasPrefix(name, "heartbeat_") })
}

// set returns what the profile of an agent allows. It reads the profile from the
// configuration that it builds the sets for, so that no set outlives its configuration. deep is
// what a node of a workflow says in place of the profile; nil: nothing.
func (b *toolbox) set(d claybot.Descriptor, deep *claybot.Deep, skills bool) toolSet {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.config.Load()
	return b.setOf(c, c.Profile(d), d, deep, skills)
}

// setOf is set for a profile. The caller holds the lock.
func (b *toolbox) setOf(c *configs.Config, p configs.Profile, d claybot.Descriptor, deep *claybot.Deep, skills bool) toolSet {
	served := b.tooling.servers.manager.Generation()
	key := boxKey{p.Name, "", d.Type, mayUseHeartbeats(d, p), skills, p.Workspace.Provider != configs.Off}
	if deep != nil {
		said, _ := json.Marshal(deep) // texts always marshal
		key.deep = string(said)
	} else if p.Engine.Deep != nil {
		deep = p.Engine.Deep.Settings()
	}
	if b.cached != c || b.served != served || b.sets == nil {
		if b.cached != c || b.web == nil {
			b.web = b.webTools(c.Tools.Web) // they remember rates until the next change
		}
		b.cached, b.served, b.sets = c, served, make(map[boxKey]toolSet)
	}
	if b.sets[key].Set == nil {
		own := b.deepTools(deep)
		set, err := tools.NewSet(b.all(key, p, deep, own)...)
		if err != nil {
			b.log.Error("some tools unavailable", "profile", p.Name, "err", err)
		}
		set.Log, set.Redact = b.log, strings.NewReplacer(concealed(*c)...).Replace
		b.sets[key] = toolSet{Set: set}
		for _, t := range own {
			b.sets[key] = toolSet{set, append(b.sets[key].deep, t.Spec().Name)}
		}
	}
	pinned := p.Pin
	if deep != nil { // which is made to work with them
		pinned = slices.Concat(pinned, []string{"agents", "files"})
	}
	named := p.Tools
	if named != nil && d.Type == claybot.AgentFlow {
		named = slices.Concat(named, webtools.RequestTools)
	}
	if named != nil && key.deep != "" {
		named = slices.Concat(named, b.sets[key].deep)
	}
	return toolSet{b.sets[key].Pinned(pinned).Only(named), b.sets[key].deep}
}

// all returns the tools of a profile for agents of one kind. own are those of a deep one.
func (b *toolbox) all(key boxKey, p configs.Profile, deep *claybot.Deep, own []tools.Tool) []tools.Tool {
	system, heartbeats := b.system(), b.heartbeats
	if !key.heartbeats {
		heartbeats = nil
	}
	all := slices.Concat(clock.Tools(), messaging.Tools(system.Subagents, system.Subagents.Directory, system.Subagents.Reminders), schedule.Tools(b.tasks, heartbeats, system.Subagents.Directory), b.remembering(key, p.Notes.Off), b.more)
	if key.kind == claybot.AgentUser {
		all = append(all, questions.Tools(system.Questions.Asker)...)
		all = append(all, questions.RequestPermission(system.Profiles))
		all = append(all, chat.Tools(system.Chats)...)
	}
	if key.kind == claybot.AgentFlow {
		all = append(all, b.requests()...)
	}
	if key.kind == claybot.AgentCron && b.memories != nil {
		all = append(all, schedule.MemoryTools(b.memories)...)
	}
	all = slices.Concat(all, b.acting(key, p, deep), own)
	if p.RequireTool > 0 && key.kind != claybot.AgentFlow {
		all = append(all, tools.Finisher())
	}
	all = append(all, tools.Finder(b.of))
	// Last, so that no server takes the name of another tool.
	return append(all, b.tooling.servers.manager.Tools(nil)...)
}

// deepTools returns the tools that make an agent a deep one; none for nil.
func (b *toolbox) deepTools(deep *claybot.Deep) (all []tools.Tool) {
	if deep == nil {
		return nil
	}
	system, db := b.system(), b.stores.db
	if deep.Todos {
		all = append(all, todos.Tools(db, system.Output, func(tools.Env) bool { return deep.ShowTodos })...)
	}
	if source := b.documents(deep); source != nil {
		all = append(all, documents.Tools(source)...)
	}
	if len(deep.Subagents) > 0 {
		all = append(all, messaging.TaskTool(system.Subagents, deep.Subagents))
	}
	return all
}

// documents returns where the files of a deep agent are, within its permissions; nil: it has none.
func (b *toolbox) documents(deep *claybot.Deep) documents.Source {
	switch deep.Files {
	case configs.FilesState:
		return b.limited(documents.State(b.stores.db))
	case configs.FilesStore:
		return b.limited(documents.Store(b.stores.db, b.audience))
	case configs.FilesFilesystem:
		if b.stores.tree != nil { // the next run may be on another machine
			return b.limited(documents.Folder(b.stores.db))
		}
		return b.limited(documents.Filesystem(func(env tools.Env) (string, error) {
			return filepath.Join(b.config.Load().DataDir, "agents", string(env.Agent.ID), "files"), nil
		}))
	}
	return nil
}

// acting returns the tools that reach files, commands, the chat and the web. The file
// tools of a deep agent take the names that those of its workspace would have.
func (b *toolbox) acting(key boxKey, p configs.Profile, deep *claybot.Deep) []tools.Tool {
	if !key.workspace {
		return append(send.Tools(b.system().Output, nil), b.web...)
	}
	open, network := b.open, func(env tools.Env) string { return b.config.profile(env.Agent).Workspace.Network }
	store := b.tooling.workspaces.store(b.stores.db)
	commands := store
	commands.Open = func(env tools.Env) bool { return shell.LetsIn(network(env)) }
	all := append(commands.On(shell.Tools(open, network)), send.Tools(b.system().Output, open)...)
	if deep == nil || deep.Files == configs.FilesNone {
		all = append(all, store.On(files.Tools(open))...)
	}
	if p.Workspace.Browser {
		all = append(all, b.tooling.browsers.Tools()...)
	}
	return append(all, b.web...)
}

// hasRead reports whether a run has read untrusted content, or what not everybody may read:
// by its calls, or because it was shown its notes or will be.
func (b *toolbox) hasRead(env tools.Env) bool {
	if env.Tainted || env.Private || env.Indexed {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if files, err := b.promptFiles(ctx, env.Agent, env.Place); err != nil || files.private {
		return true
	}
	if b.config.profile(env.Agent).Notes.Off || b.stores.orders.Stopped(notesNode) != nil {
		return false
	}
	_, private, err := memory.Index(ctx, b.stores.db, env.Agent, showsOwnerNotes(ctx, b.system(), env.Agent, env.Place))
	return private || err != nil
}

// audience returns who can read what a call comes to.
func (b *toolbox) audience(env tools.Env) claybot.Audience {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	return b.system().Subagents.Directory.Readers(ctx, env)
}

// remembering returns the tools for notes and skills.
func (b *toolbox) remembering(key boxKey, off bool) (all []tools.Tool) {
	if key.skills {
		all = skills.Tools(b.stores.skills(), func(env tools.Env) []string { return b.config.profile(env.Agent).Notes.Skills })
	}
	if off {
		return all
	}
	return append(all, memory.Tools(memory.Config{
		Notes: b.stores.db, Versions: b.stores.db, Global: func(env tools.Env) bool { return b.config.profile(env.Agent).Notes.Global },
		Discloses: b.system().Subagents.Directory.DisclosesNotes,
	})...)
}

// skillCommands returns the chat commands that the skills of an agent declare.
func (b *toolbox) skillCommands(ctx context.Context, a claybot.Agent) ([]connectors.Command, error) {
	if _, ok := b.of(a).Spec(tools.UseSkill); !ok || b.stores.orders.Stopped(skillsNode) != nil {
		return nil, nil
	}
	return b.stores.skills().Commands(ctx, b.config.profile(a).Notes.Skills)
}

// webTools returns fetch_url and web_search as configured.
// requests are the tools of the http nodes of workflows.
func (b *toolbox) requests() []tools.Tool {
	w := b.tooling.workspaces
	return webtools.Requests(webtools.RequestConfig{
		Policy: egress.Policy{Private: b.config.Load().Tools.Web.Private, Own: w.own, Log: w.audit("workflows")},
		Secret: func(reference string) (string, error) { return b.config.Load().ReadSecret(reference, os.LookupEnv) },
	})
}

func (b *toolbox) webTools(c configs.Web) []tools.Tool {
	w := b.tooling.workspaces
	cfg := webtools.Config{
		Listed: func(env tools.Env, address string) bool {
			return fetchListed(b.config.Load().Tools.Web, env, address, b.hasRead)
		},
		Own: w.own, Log: b.log, Requests: w.audit("web tools"),
		FetchRate: tools.Rate{N: c.FetchPerMinute(), Per: time.Minute},
	}
	if !c.NoFetch {
		cfg.Fetch = &egress.Policy{Public: c.Public(), Allow: c.Allow, Private: c.Private}
	}
	for _, s := range c.Search {
		cfg.Search = append(cfg.Search, webtools.Provider{Kind: s.Provider, Key: s.Key.Value(), BaseURL: s.BaseURL})
	}
	all, err := webtools.Tools(cfg)
	if err != nil {
		b.log.Error("web tools unavailable", "err", err)
	}
	return all
}
