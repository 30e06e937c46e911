package main

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/workspace"
)

// mcpServers keeps the configured MCP servers connected.
type mcpServers struct {
	config     *settings
	log        *slog.Logger
	workspaces *workspaces
	orders     *nodes.Orders
	applying   sync.Mutex // held from the look at what is wanted until it is in force
	manager    *mcp.Manager
}

func newMCPServers(config *settings, s *stores, w *workspaces, save saveFile, ask func() tools.Questions) *mcpServers {
	m := &mcpServers{config: config, log: s.log, workspaces: w, orders: s.orders}
	m.manager = mcp.New(mcp.Config{
		Servers: m.wanted(), Pins: s.db, Tokens: s.secrets(mcp.Folder), Version: version, Log: s.log,
		Pipe: m.pipe, HTTP: m.client, SaveFile: save, Questions: ask, Reserved: reserved,
	})
	return m
}

// wanted is the servers that the configuration asks for.
func (m *mcpServers) wanted() []mcp.Server {
	now := m.config.Load().Tools
	all := make([]mcp.Server, len(now.MCP))
	for i, x := range now.MCP {
		all[i] = mcpServer(x, now.Workspace)
		all[i].Stopped = m.orders.Stopped(nodes.Key{Kind: nodes.MCP, Name: x.Name}) != nil
	}
	return all
}

// apply puts the configuration, and what operators have stopped, in force.
func (m *mcpServers) apply() {
	m.applying.Lock()
	defer m.applying.Unlock()
	m.manager.Set(m.wanted())
}

// restart ends a server and starts it again.
func (m *mcpServers) restart(name string) {
	m.applying.Lock()
	defer m.applying.Unlock()
	m.manager.Set(slices.DeleteFunc(m.wanted(), func(s mcp.Server) bool { return s.Name == name }))
	m.manager.Set(m.wanted())
}

// workspaceKeys begin the keys of workspaces in which MCP servers run.
const workspaceKeys = "mcp/"

// pipe starts a server in a container of its own, as it was configured when it was made: the
// configuration may have another one of its name by now.
func (m *mcpServers) pipe(ctx context.Context, server mcp.Server, cmd workspace.Command) (workspace.Process, error) {
	if p := server.Container.Provider; p == configs.Off || p == "" {
		return nil, errNoWorkspace
	}
	ws, err := m.workspaces.openOf(ctx, server.Container)
	if err != nil {
		return nil, err
	}
	return ws.Pipe(ctx, cmd)
}

// client reaches public hosts, and the one that the operator named, which may be private.
func (m *mcpServers) client(server string) *http.Client {
	client, err := mcpClient(m.config.Load().Tools.MCP, server, egress.Policy{Own: m.workspaces.own, Log: m.workspaces.audit("mcp " + server)})
	if err != nil { // Check refuses such an address as well
		m.log.Error("MCP server unreachable", "server", server, "err", err)
		return nil
	}
	pool := connectors.NewPool(client.Transport, func() string {
		if slices.Contains(m.config.Load().MCPNames(), server) {
			return ""
		}
		return "the settings of the MCP server are invalid or gone since the last reload"
	})
	pool.Wake()
	client.Transport = pool
	return client
}

// mcpClient adds to a policy what a configured server needs, and returns the client for it.
func mcpClient(all []configs.MCPServer, server string, policy egress.Policy) (*http.Client, error) {
	policy.Public = true
	for _, s := range all {
		if u, err := url.Parse(s.Remote.URL); s.Name == server && err == nil && u.Host != "" {
			port := u.Port()
			if port == "" {
				port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
			}
			policy.Private = []string{net.JoinHostPort(u.Hostname(), port)}
		}
	}
	door, err := egress.New(policy)
	if err != nil {
		return nil, err
	}
	return door.Client(egress.Limits{HeaderTimeout: time.Minute}), nil
}

// endTime is how long a server that is gone may take to end.
const endTime = 15 * time.Second

// clear removes containers that no server needs, at the start and after each reload, until ctx
// is done.
func (m *mcpServers) clear(ctx context.Context) {
	for {
		changed := m.config.changed()
		m.removeUnused(ctx)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if !connectors.Sleep(ctx, endTime) {
			return
		}
	}
}

// removeUnused removes the containers of MCP servers that are no longer configured, or
// run elsewhere now; they never expire by themselves. Their data stays for a later use.
func (m *mcpServers) removeUnused(ctx context.Context) {
	all, err := m.workspaces.manager.List(ctx)
	if err != nil {
		if ctx.Err() == nil {
			m.log.Warn("failed to list containers of MCP servers", "err", err)
		}
		return
	}
	c := m.config.Load()
	wanted := make(map[string]bool)
	for _, s := range c.Tools.MCP {
		wanted[s.Name] = len(s.Process.Command) > 0 && s.Process.Where != configs.MCPHost && m.orders.Stopped(nodes.Key{Kind: nodes.MCP, Name: s.Name}) == nil
	}
	for _, l := range all {
		name, ok := strings.CutPrefix(string(l.Key), workspaceKeys)
		if !ok || l.State != workspace.Running || l.InUse || wanted[name] && l.Provider == c.Tools.Workspace.Provider {
			continue
		}
		if err := m.workspaces.manager.Remove(ctx, l.Provider, l.Key, false); err == nil {
			m.log.Info("removed container of unconfigured MCP server", "server", name)
		} else if ctx.Err() == nil {
			m.log.Warn("failed to remove container of unconfigured MCP server; will retry", "server", name, "err", err)
		}
	}
}

// status reports how the servers are doing.
func (m *mcpServers) status() []overview.ServerStatus {
	all := m.manager.Status()
	list := make([]overview.ServerStatus, len(all))
	for i, s := range all {
		list[i] = overview.ServerStatus{Name: s.Name, OK: s.State == mcp.StateConnected || s.State == mcp.StateStopped, State: s.State}
		if !list[i].OK {
			list[i].Err = s.LastError
		}
	}
	return list
}

// views shows the servers for the pages and the API.
func (m *mcpServers) views() []web.ServerView {
	all := m.manager.Status()
	views := make([]web.ServerView, len(all))
	for i, s := range all {
		v := web.ServerView{Name: s.Name, Transport: s.Transport, State: s.State, Problem: s.LastError, Tools: s.Tools, Restarts: s.Restarts, OffHash: s.OffHash}
		if s.State != mcp.StateConnected && s.Stderr != "" { // its own output often names the cause
			v.Problem = strings.TrimSpace(v.Problem + "\nIt wrote: " + s.Stderr)
		}
		if s.State == mcp.StateLogin {
			v.Login = "claybot mcp login " + s.Name
		}
		for _, o := range s.Off {
			if !o.Changed {
				continue // it cannot be accepted
			}
			if v.Off == nil {
				v.Off = make(map[string]string)
			}
			v.Off[o.Tool] = o.Why + ". It says now: " + o.Now
		}
		views[i] = v
	}
	return views
}

// mcpServer is a configured server, as package mcp wants it.
func mcpServer(s configs.MCPServer, w configs.Workspace) mcp.Server {
	out := mcp.Server{
		Name: s.Name, Command: s.Process.Command, Where: s.Process.Where, Dir: s.Process.Dir, URL: s.Remote.URL, Token: s.Remote.Token.Value(),
		Allow: s.Allow, Deny: s.Deny, Timeout: s.Timeout, Trusted: s.Trusted,
		Headers: revealed(s.Remote.Headers), Effects: make(map[string]tools.Effect, len(s.Effects)),
	}
	if len(s.Process.Command) > 0 && s.Process.Where != configs.MCPHost {
		out.Container = workspace.Want{
			Provider: w.Provider, Key: workspace.Key(workspaceKeys + s.Name), Exact: true,
			Spec: workspace.Spec{Image: cmp.Or(s.Process.Image, w.Container.Image), Network: workspace.Network{Mode: s.Process.Network, Allow: s.Process.Hosts}},
		}
	}
	for name, value := range s.Process.Env {
		out.Env = append(out.Env, workspace.Var{Name: name, Value: value})
	}
	for name, value := range revealed(s.Process.Secrets) {
		out.Env = append(out.Env, workspace.Var{Name: name, Value: value})
	}
	slices.SortFunc(out.Env, func(a, b workspace.Var) int { return strings.Compare(a.Name, b.Name) })
	for name, effect := range s.Effects {
		out.Effects[name] = map[string]tools.Effect{
			configs.EffectOnce: tools.Once, configs.EffectIdempotent: tools.Idempotent, configs.EffectReadOnly: tools.ReadOnly,
		}[effect]
	}
	if o := s.Remote.OAuth; o != nil {
		out.OAuth = &mcp.OAuth{Grant: o.Grant, ClientID: o.ClientID, ClientSecret: o.ClientSecret.Value(), Scopes: o.Scopes, Redirect: o.Redirect}
	}
	return out
}

// revealed returns the values of named secrets; nil if there are none.
func revealed(all map[string]configs.Secret) map[string]string {
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]string, len(all))
	for name, s := range all {
		out[name] = s.Value()
	}
	return out
}
