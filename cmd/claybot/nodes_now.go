package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/tools/mcp"
)

// keyOfConnector is the node of a connector, by its name.
func keyOfConnector(name string) nodes.Key {
	if name == string(claybot.AgentCron) || name == string(claybot.AgentHeartbeat) {
		return nodes.Key{Kind: nodes.Schedule, Name: name}
	}
	return nodes.Key{Kind: nodes.Connector, Name: name}
}

// Nodes implements web.Nodes.
func (d nodeDesk) Nodes(ctx context.Context) ([]nodes.View, error) {
	st, err := d.system.Overview.Status(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	c := d.config.Load()
	all := slices.Concat(d.connectorNodes(c, st.Connectors), d.flowNodes(), d.profileNodes(c), d.serverNodes(), d.workspaceNodes(ctx, c))
	for _, s := range st.Sinks {
		n := nodes.View{Key: nodes.Key{Kind: nodes.Relay, Name: s.Name}, State: nodes.Running}
		if s.Error != "" {
			n.State, n.Text = nodes.Failed, s.Error
			if w, ofSetting := relaySetting(c, s.Name); ofSetting {
				n = offNode(n, w)
			}
		}
		n.Can = []string{nodes.Restart}
		if receiversOf(*c)["relay "+s.Name] != "" {
			n.Can = append(n.Can, nodes.Test)
		}
		d.tests.settle(&n, s.Success.Time())
		d.stoppable(&n)
		all = append(all, n)
	}
	for i := range all {
		all[i].Stopped = d.stores.orders.Stopped(all[i].Key)
	}
	all = append(all, d.unmade(c, all)...)
	agents, err := d.stoppedAgents(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, agents...)
	for _, k := range d.stores.orders.All() {
		if k.Kind != nodes.Agent && !slices.ContainsFunc(all, func(n nodes.View) bool { return n.Key == k }) {
			all = append(all, nodes.View{Key: k, State: nodes.Stopped, Text: "it is not configured any more; if it comes again, it is stopped", Can: []string{nodes.Start}, Stopped: d.stores.orders.Stopped(k)})
		}
	}
	d.startsFlows(all)
	nodes.Settle(all)
	advise(all, st.Findings)
	return all, nil
}

// connectorStates are the states of nodes by those of connectors.
var connectorStates = map[string]string{
	connectors.StateLive: nodes.Running, connectors.StateStarting: nodes.Waiting, connectors.StateStandby: nodes.Waiting,
	connectors.StateFailing: nodes.Failed, connectors.StateStopped: nodes.Off, connectors.StateOff: nodes.Stopped,
}

func (d nodeDesk) connectorNodes(c *configs.Config, all []overview.ConnectorStatus) (list []nodes.View) {
	for _, x := range all {
		n := nodes.View{Key: keyOfConnector(x.Name), State: connectorStates[x.State], Text: x.Err, Uses: profilesOf(c, x.Name)}
		if x.Held != "" {
			n.State, n.Text = nodes.Failed, x.Held
		}
		if s, configured := c.Connectors.Instance(x.Name); configured {
			n.Type = s.Type()
		}
		if !slices.Contains(operatorChats, x.Name) {
			n.Can = []string{nodes.Start, nodes.Stop, nodes.Restart}
		}
		if _, verifies := d.roster.of(x.Name).(connectors.Verifier); verifies {
			n.Can = append(n.Can, nodes.Test)
		}
		if w, ofSetting := settingOf(c, x); ofSetting && x.Held == "" {
			n = offNode(n, w)
		}
		if kept := d.config.keeps(x.Name); n.Text == "" && kept != nil {
			n.Text, n.Next, n.Code = kept.Text, kept.Next, kept.Code
		}
		d.tests.settle(&n, x.LastOK)
		list = append(list, n)
	}
	return list
}

// profilesOf are the profiles whose agents a connector may reach.
func profilesOf(c *configs.Config, connector string) []nodes.Key {
	desc := claybot.Descriptor{Type: claybot.AgentUser, Connector: connector}
	switch connector {
	case string(claybot.AgentCron), string(claybot.AgentHeartbeat):
		desc = claybot.Descriptor{Type: claybot.AgentType(connector)}
	}
	names := []string{c.Profile(desc).Name}
	for name, p := range c.Agents.Profiles {
		if slices.ContainsFunc(p.Match, func(m string) bool { return strings.HasPrefix(m, connector+":") }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	keys := make([]nodes.Key, 0, len(names))
	for _, name := range slices.Compact(names) {
		keys = append(keys, nodes.Key{Kind: nodes.Profile, Name: name})
	}
	return keys
}

// profileNodes are the profiles, and the models and groups of tools that they use.
func (d nodeDesk) profileNodes(c *configs.Config) (list []nodes.View) {
	models, keys := make(map[string]nodes.View), modelKeys(c)
	for _, name := range slices.Sorted(maps.Keys(c.Agents.Profiles)) {
		p := c.Agents.Profiles[name]
		m := d.modelNode(keys[fingerprint(p.Model)], p.Model)
		models[m.Name] = m
		n := nodes.View{Key: nodes.Key{Kind: nodes.Profile, Name: name}, Type: p.Engine.Name, State: nodes.Running, Uses: []nodes.Key{m.Key}}
		if why := p.Off(); why != "" {
			n.State, n.Text = nodes.Off, why
			if w, ofSetting := offBy(c, why); ofSetting {
				n = offNode(n, w)
			}
		}
		d.stoppable(&n)
		n.Uses = append(n.Uses, d.tooling.box.nodesOf(name)...)
		for _, s := range c.Tools.MCP {
			if p.Tools == nil || slices.ContainsFunc(p.Tools, func(t string) bool { return strings.HasPrefix(t, s.Name+"_") || t == "mcp:"+s.Name }) {
				n.Uses = append(n.Uses, nodes.Key{Kind: nodes.MCP, Name: s.Name})
			}
		}
		if p.Workspace.Provider != configs.Off && p.Workspace.Provider != "" {
			n.Uses = append(n.Uses, nodes.Key{Kind: nodes.Workspace, Name: p.Workspace.Provider})
		}
		list = append(list, n)
	}
	return slices.Concat(list, slices.Collect(maps.Values(models)), d.toolNodes(list))
}

// modelNode is a model with the routes that follow it when it fails.
func (d nodeDesk) modelNode(name string, m configs.Model) nodes.View {
	n := nodes.View{Key: nodes.Key{Kind: nodes.Model, Name: name}, Type: m.ProviderName(), State: nodes.Running, Can: []string{nodes.Restart, nodes.Test}}
	if m.Demo() {
		n.Type = configs.DemoModel
	}
	switch why, problem := m.Off(), d.models.problem(m); {
	case why != "":
		n.State, n.Text = nodes.Off, why
		if w, ofSetting := offBy(d.config.Load(), why); ofSetting {
			n = offNode(n, w)
		}
	case problem != "":
		n.State, n.Text = nodes.Failed, problem
	default:
		if before := d.models.unasked(m); before != "" {
			n.State, n.Text = nodes.Waiting, "restarted, and not asked since; it failed before: "+before
			n.Next = "ask it now: claybot nodes test " + n.Key.String()
		}
	}
	d.stoppable(&n)
	return n
}

// modelKeys are the names of the nodes of models by their fingerprints: their own, with the host where
// several have the same, and the profile where that is the same as well.
func modelKeys(c *configs.Config) map[string]string {
	keys, taken := make(map[string]string), make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(c.Agents.Profiles)) {
		m := c.Agents.Profiles[name].Model
		if keys[fingerprint(m)] != "" {
			continue
		}
		key := cmp.Or(m.ID(), "default")
		if m.Demo() {
			key = configs.DemoModel
		}
		for _, more := range []string{"", "@" + hostOf(m), " of " + name} {
			if key += more; !taken[key] {
				break
			}
		}
		keys[fingerprint(m)], taken[key] = key, true
	}
	return keys
}

// serverState is the state of the node of an MCP server. One whose last try failed has failed until a try succeeds.
func serverState(state, lastError string) string {
	if state == mcp.StateStarting && lastError != "" {
		state = mcp.StateWaiting
	}
	return cmp.Or(serverStates[state], state)
}

// serverStates are the states of nodes by those of MCP servers.
var serverStates = map[string]string{
	mcp.StateConnected: nodes.Running, mcp.StateStarting: nodes.Waiting, mcp.StateLogin: nodes.Waiting,
	mcp.StateWaiting: nodes.Failed, mcp.StateRefused: nodes.Off, mcp.StateStopped: nodes.Stopped,
}

func (d nodeDesk) serverNodes() (list []nodes.View) {
	for _, s := range d.tooling.servers.manager.Status() {
		n := nodes.View{Key: nodes.Key{Kind: nodes.MCP, Name: s.Name}, Type: s.Transport, State: serverState(s.State, s.LastError), Can: []string{nodes.Restart, nodes.Test}}
		if n.State != nodes.Running {
			n.Text = s.LastError
		}
		if s.State == mcp.StateLogin {
			n.Text = "it wants a login: claybot mcp login " + s.Name
		}
		d.stoppable(&n)
		list = append(list, n)
	}
	return list
}

// providerTime bounds how long a list of nodes waits for a provider of workspaces.
const providerTime = 2 * time.Second

// workspaceNodes are the providers of workspaces that profiles use.
func (d nodeDesk) workspaceNodes(ctx context.Context, c *configs.Config) (list []nodes.View) {
	ctx, cancel := context.WithTimeout(ctx, providerTime)
	defer cancel()
	for _, name := range providersOf(c) {
		n := nodes.View{Key: nodes.Key{Kind: nodes.Workspace, Name: name}, State: nodes.Running, Can: []string{nodes.Restart, nodes.Test}}
		if err := d.tooling.workspaces.manager.Check(ctx, name); err != nil {
			n.State, n.Text = nodes.Failed, err.Error()
		}
		d.stoppable(&n)
		list = append(list, n)
	}
	return list
}
