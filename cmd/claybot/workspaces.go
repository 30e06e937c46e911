package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/chromium"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/docker"
	"github.com/claybot/claybot/workspace/local"
)

// workspaces opens the workspaces of agents, as their profiles configure them.
type workspaces struct {
	config  *settings
	log     *slog.Logger
	id      string // of this installation, by which it knows its containers
	docker  *docker.Provider
	manager *workspace.Manager
	orders  *nodes.Orders
	addr    func() string // at which the daemon listens
	// audience returns who can read what a call comes to.
	audience func(tools.Env) claybot.Audience
}

// newWorkspaces connects to no engine before a workspace needs one.
func newWorkspaces(ctx context.Context, config *settings, s *stores, addr func() string) (*workspaces, error) {
	c := config.began
	id, err := s.installation(ctx)
	if err != nil {
		return nil, err
	}
	w := &workspaces{config: config, log: s.log, id: id, addr: addr, orders: s.orders}
	relay := docker.Relay{Args: []string{relayCommand}}
	if relay.Path, err = os.Executable(); err != nil {
		w.log.Warn("workspace network allowlist unavailable", "err", err)
	}
	w.docker = docker.New(docker.Config{Node: id, Relay: relay, Tunnel: w.tunnel, Log: w.log})
	w.manager = workspace.NewManager(workspace.ManagerConfig{
		Providers: []workspace.Provider{w.docker, local.New(local.Config{Dir: filepath.Join(c.DataDir, "workspaces"), Log: w.log})},
		Ledger:    s.db, Node: id, TTL: c.Tools.Workspace.TTL, Log: w.log,
		Exists: func(ctx context.Context, id claybot.AgentID) (bool, error) {
			_, err := s.db.IndexedAgentByID(ctx, id)
			if errors.Is(err, storage.ErrNotFound) {
				return false, nil
			}
			return err == nil, err
		},
		Erased: func(ctx context.Context, provider string, key workspace.Key) {
			if err := s.db.SetCheckpoint(ctx, w.taintKey(provider, key), ""); err != nil {
				w.log.Warn("new workspace counts as untrusted, like the one before", "key", key, "err", err)
			}
		},
	})
	return w, nil
}

// taintKey is where it is remembered that a workspace may hold texts of strangers.
func (w *workspaces) taintKey(provider string, key workspace.Key) string {
	return "tainted/" + w.id + "/" + provider + "/" + string(key)
}

// store is the workspace of a call as a place where texts of different runs meet.
func (w *workspaces) store(marks storage.Checkpoints) tools.Store {
	return tools.Store{
		Key: func(env tools.Env) string {
			want, ok := w.want(env)
			if !ok {
				return ""
			}
			return w.taintKey(want.Provider, want.Key)
		},
		Tainted: func(ctx context.Context, key string) (bool, error) {
			mark, err := marks.Checkpoint(ctx, key)
			return mark != "", err
		},
		Taint: func(ctx context.Context, key string) error { return marks.SetCheckpoint(ctx, key, "yes") },
	}
}

// markInstallation is the mark of the database that has the ID of this installation.
const markInstallation = "installation"

// installation returns the ID by which this installation knows its containers. Each
// cluster member has its own, in a file.
func (s *stores) installation(ctx context.Context) (string, error) {
	fresh := strings.ToLower(rand.Text()[:12])
	if s.shared == nil {
		id, err := s.db.Checkpoint(ctx, markInstallation)
		if err != nil || id != "" {
			return id, err
		}
		return fresh, s.db.SetCheckpoint(ctx, markInstallation, fresh)
	}
	path := filepath.Join(s.config.began.DataDir, "installation")
	b, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id, nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(path, []byte(fresh+"\n"), 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("installation ID: %w", err)
	}
	return fresh, nil
}

// leftoverTime bounds how long a start waits for a slow engine.
const leftoverTime = 10 * time.Second

// endLeftovers ends commands that a killed process left in containers.
func (w *workspaces) endLeftovers(ctx context.Context) {
	for _, p := range w.config.Load().Agents.Profiles {
		if p.Workspace.Provider != configs.WorkspaceDocker {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, leftoverTime)
		defer cancel()
		if err := w.docker.EndLeftovers(ctx); err != nil {
			w.log.Warn("failed to stop commands left in containers by a killed process", "err", err)
		}
		return
	}
}

// warn logs settings that give up protections.
func (w *workspaces) warn() {
	seen := make(map[string]bool)
	for name, p := range w.config.Load().Agents.Profiles {
		if p.Workspace.Provider == configs.WorkspaceLocal && !seen[local.Name] {
			seen[local.Name] = true
			w.log.Warn("commands of agents run on this machine, with its network; "+
				"users of the bot and pages that agents read can influence them; set workspaces.provider to docker to isolate them", "profile", name)
		}
		if p.Workspace.Provider == configs.WorkspaceDocker && p.Workspace.Network == configs.NetworkHostUnsafe && !seen[p.Workspace.Network] {
			seen[p.Workspace.Network] = true
			w.log.Warn("commands of agents reach everything that this machine reaches, also private addresses and metadata; set workspaces.network to full to close those", "profile", name)
		}
		for _, given := range p.Workspace.Container.Unsafe {
			if !seen[given] {
				seen[given] = true
				w.log.Warn("workspace protection disabled", "profile", name, "unsafe", given)
			}
		}
	}
}

// want returns the workspace of an agent for a call; ok is false if the agent
// has none. The agents of one person share one only if their conversations have the same
// readers.
func (w *workspaces) want(env tools.Env) (want workspace.Want, ok bool) {
	a, thread := env.Agent, env.Route.ThreadID
	c := w.config.profile(a).Workspace
	key := "agent/" + string(a.ID)
	switch owner := a.Descriptor.OwnerID(); {
	case c.Provider == configs.Off || c.Provider == "":
		return want, false
	case c.Per == configs.PerOwner && owner != "":
		key = "owner/" + owner
		if place := w.audience(env).Place; place != "" {
			key += "/in/" + place
		}
	case c.Per == configs.PerThread && thread != "":
		key = "thread/" + string(a.ID) + "/" + thread
	}
	return workspace.Want{Provider: c.Provider, Key: workspace.Key(key), Spec: specOf(c), TTL: c.TTL}, true
}

func specOf(c configs.Workspace) workspace.Spec {
	s := workspace.Spec{
		Image: c.Container.Image, Platform: c.Container.Platform, InitialScript: c.InitialScript, User: c.Container.User,
		CPUs: c.CPUs, Memory: c.Memory, PIDs: c.PIDs, Disk: c.Disk,
		Network: workspace.Network{Mode: c.Network, Allow: c.Hosts},
		Runtime: c.Container.Runtime, Docker: c.Container.Docker, KeepOnTimeout: !c.KillOnTimeout, Unsafe: c.Container.Unsafe,
	}
	for _, v := range c.Env {
		s.Env = append(s.Env, workspace.Var{Name: v.Name, Value: v.Value.Value()})
	}
	for _, v := range c.Volumes {
		s.Volumes = append(s.Volumes, workspace.Volume(v))
	}
	return s
}

// errNoWorkspace is the error of a tool whose agent has no workspace.
var errNoWorkspace = &workspace.Error{Code: workspace.Unavailable, Text: "this agent has no workspace; an operator can give it one with workspace in the configuration"}

// open opens the workspace of a call.
func (w *workspaces) open(ctx context.Context, env tools.Env) (workspace.Workspace, error) {
	want, ok := w.want(env)
	if !ok {
		return nil, errNoWorkspace
	}
	return w.openOf(ctx, want)
}

// openOf opens a workspace, unless an operator has stopped its provider.
func (w *workspaces) openOf(ctx context.Context, want workspace.Want) (workspace.Workspace, error) {
	if err := w.withheld(want.Provider); err != nil {
		return nil, err
	}
	return w.manager.Open(ctx, want)
}

// withheld says to a model that an operator has stopped a provider of workspaces; nil: none has.
func (w *workspaces) withheld(provider string) error {
	return withheld(w.orders, nodes.Key{Kind: nodes.Workspace, Name: provider}, "the workspaces of "+provider)
}

// name describes where the tools of an agent act, without opening it. Approvals are bound
// to it.
func (w *workspaces) name(a claybot.Agent) string {
	want, ok := w.want(tools.Env{Agent: a})
	if !ok {
		return ""
	}
	s := want.Spec
	names := make([]string, len(s.Env))
	for i, v := range s.Env {
		names[i] = v.Name
	}
	b, _ := json.Marshal(s) // plain values always marshal
	sum := sha256.Sum256(b) // covers the values of variables, volumes and limits as well
	parts := []string{want.Provider, string(want.Key)}
	for _, p := range [][2]string{
		{"image", s.Image},
		{"platform", s.Platform},
		{"user", s.User},
		{"network", strings.Join(append([]string{s.Network.Mode}, s.Network.Allow...), " ")},
		{"variables", strings.Join(names, " ")},
		{"settings", hex.EncodeToString(sum[:4])},
	} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	return strings.Join(parts, ", ")
}

// browser starts a browser in the workspace of a call. It reaches the hosts that commands
// in the workspace reach.
func (w *workspaces) browser(ctx context.Context, env tools.Env, s devices.Spec) (devices.Device, error) {
	ws, err := w.open(ctx, env)
	if err != nil {
		return nil, err
	}
	want, _ := w.want(env)
	network := want.Spec.Network
	if s.Hosts, err = devices.ParseHosts(network.Allow); err != nil {
		return nil, err
	}
	r := chromium.Remote{
		Workspace: ws, Machine: want.Provider == configs.WorkspaceDocker, Web: network.Web(), Log: w.log,
	}
	if network.Proxied() {
		r.Proxy = docker.RelayAddress
	}
	return r.Open(ctx, s)
}

// tunnel carries the connections of a workspace that its settings allow.
func (w *workspaces) tunnel(ctx context.Context, key workspace.Key, network workspace.Network, conn io.ReadWriteCloser) error {
	p := reachOf(network)
	p.Own, p.Log = w.own, w.audit("workspace "+string(key))
	policy, err := egress.New(p)
	if err != nil {
		return err
	}
	proxy := egress.NewProxy(policy)
	defer proxy.Close()
	return proxy.ServeTunnel(ctx, conn)
}

// reachOf is what a workspace reaches through the tunnel. web.private opens nothing for it.
func reachOf(n workspace.Network) egress.Policy {
	full := n.Mode == workspace.NetworkFull
	return egress.Policy{Public: full, AnyPort: full, Allow: n.Allow}
}

// own reports whether the daemon itself listens at an address.
func (w *workspaces) own(at netip.AddrPort) bool { return egress.Listeners(w.addr())(at) }

// audit logs the outbound requests of a caller, allowed or denied. Paths and queries may
// be secrets and are left out.
func (w *workspaces) audit(caller string) func(egress.Request) {
	return func(r egress.Request) {
		attrs := []any{"by", caller, "method", r.Method, "host", r.Host, "sent", r.Sent, "received", r.Received, "decision", r.Decision}
		if r.Why != "" {
			attrs = append(attrs, "why", r.Why)
		}
		w.log.Info("outbound request", attrs...)
	}
}

// forget removes the workspaces of a deleted agent.
func (w *workspaces) forget(ctx context.Context, id claybot.AgentID) {
	if err := w.manager.Forget(ctx, id); err != nil {
		w.log.Warn("failed to remove workspaces of deleted agent; will retry", "agent", id, "err", err)
	}
}

// relayCommand is the hidden command that runs inside the network of a workspace and
// carries its connections to the daemon.
const relayCommand = "egress-relay"

type relayCmd struct{}

// Run carries connections until its standard input ends.
func (relayCmd) Run(*env) error {
	return egress.Relay(context.Background(), docker.RelayAddress, stdio{})
}

// stdio is standard input and output as one stream.
type stdio struct{}

func (stdio) Read(b []byte) (int, error)  { return os.Stdin.Read(b) }
func (stdio) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdio) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

// hostListed reports whether an allowlist has a host.
func hostListed(list []string, host string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		name, _, _ := strings.Cut(entry, ":")
		if below, ok := strings.CutPrefix(name, "*."); ok {
			return strings.HasSuffix(host, "."+below)
		}
		return name == host
	})
}
