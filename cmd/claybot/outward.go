package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/tools/web"
	"github.com/claybot/claybot/workspace"
)

// webTools are fetch_url and web_search, as the configuration has them.
func (d *daemon) webTools() []tools.Tool {
	c := d.config.Load().Tools.Web
	cfg := web.Config{
		Listed: d.listed, Own: d.ownAddress, Log: d.log,
		Requests:  func(r egress.Request) { d.tellOutward("web tools", r) },
		FetchRate: tools.Rate{N: c.FetchPerMinute(), Per: time.Minute},
	}
	if !c.NoFetch {
		cfg.Fetch = &egress.Policy{Public: c.Allow == nil, Allow: c.Allow, Private: c.Private}
	}
	for _, s := range c.Search {
		cfg.Search = append(cfg.Search, web.Provider{Kind: s.Provider, Key: s.Key.Value(), BaseURL: s.BaseURL})
	}
	all, err := web.Tools(cfg)
	if err != nil {
		d.log.Error("web tools unavailable", "err", err)
	}
	return all
}

// listed reports whether an agent may reach a host without being asked about it:
// it is on the operator's list, a person has written it in this conversation, or
// every page may be read and the run has read no text of strangers so far.
func (d *daemon) listed(env tools.Env, host string) bool {
	c := d.config.Load().Tools.Web
	switch {
	case hostListed(c.Allow, host), hostListed(c.Private, host):
		return true
	case env.Wrote != nil && env.Wrote(host):
		return true
	}
	return c.Allow == nil && !env.Tainted
}

// newServers builds what keeps the servers of tools connected.
func (d *daemon) newServers(c configs.Config) {
	d.servers = mcp.New(mcp.Config{
		Servers: mcpServers(c), Pins: d.db, Tokens: d.mcpTokens(c), Version: version, Log: d.log,
		Pipe: func(ctx context.Context, server string, cmd workspace.Command) (workspace.Process, error) {
			return d.serverPipe(ctx, c, server, cmd)
		},
		HTTP:     func(server string) *http.Client { return d.serverClient(c, server) },
		SaveFile: d.saveFile,
		Reserved: reserved,
	})
}

// serverPipe starts a server in a container of its own.
func (d *daemon) serverPipe(ctx context.Context, c configs.Config, server string, cmd workspace.Command) (workspace.Process, error) {
	want := workspace.Want{Provider: c.Tools.Workspace.Provider, Key: workspace.Key(serverKeys + server)}
	if want.Provider == configs.Off || want.Provider == "" {
		return nil, errNoPlace
	}
	for _, s := range c.Tools.MCP {
		if s.Name == server {
			want.Spec = mcpSpec(s)
		}
	}
	if want.Spec.Image == "" {
		want.Spec.Image = c.Tools.Workspace.Container.Image
	}
	ws, err := d.places.Open(ctx, want)
	if err != nil {
		return nil, err
	}
	return ws.Pipe(ctx, cmd)
}

// serverClient reaches public hosts, and the one that the operator named, which
// may be private.
func (d *daemon) serverClient(c configs.Config, server string) *http.Client {
	policy := egress.Policy{Public: true, Own: d.ownAddress, Log: func(r egress.Request) { d.tellOutward("mcp "+server, r) }}
	for _, s := range c.Tools.MCP {
		if u, err := url.Parse(s.Remote.URL); s.Name == server && err == nil && u.Host != "" {
			policy.Private = []string{pairOf(u)}
		}
	}
	door, err := egress.New(policy)
	if err != nil { // an address that Check refuses as well
		d.log.Error("MCP server unreachable", "server", server, "err", err)
		return nil
	}
	client := door.Client(egress.Limits{HeaderTimeout: time.Minute})
	client.Transport = connectors.Switched(client.Transport, func() string {
		if slices.Contains(d.config.Load().MCPNames(), server) {
			return ""
		}
		return "the settings of the MCP server are bad or gone since the last reload"
	})
	return client
}

// pairOf is the host and port of an address.
func pairOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// saveFile keeps what a tool made for the agent of its call.
func (d *daemon) saveFile(ctx context.Context, env tools.Env, name, mimeType string, data []byte) (claybot.FileReference, error) {
	return d.system.SaveFile(ctx, agentsystem.Address{Agent: env.Agent.ID}, claybot.FileReference{Name: name, MIMEType: mimeType}, bytes.NewReader(data))
}
