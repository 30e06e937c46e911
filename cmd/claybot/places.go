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
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/docker"
	"github.com/claybot/claybot/workspace/local"
)

// markInstallation is where the id of this installation is kept, by which it
// knows its containers.
const markInstallation = "installation"

// newPlaces builds what opens workspaces. No engine is asked before one is needed.
func (d *daemon) newPlaces(ctx context.Context, c configs.Config) error {
	id, err := d.installation(ctx, c)
	if err != nil {
		return err
	}
	relay := docker.Relay{Args: []string{relayCommand}}
	if relay.Path, err = os.Executable(); err != nil {
		d.log.Warn("workspace network allowlist unavailable", "err", err)
	}
	d.engine = docker.New(docker.Config{Node: id, Relay: relay, Tunnel: d.tunnel, Log: d.log})
	d.places = workspace.NewManager(workspace.ManagerConfig{
		Providers: []workspace.Provider{d.engine, local.New(local.Config{Dir: filepath.Join(c.DataDir, "workspaces"), Log: d.log})},
		Ledger:    d.db, Node: id, TTL: c.Tools.Workspace.TTL, Log: d.log,
		Exists: func(ctx context.Context, id claybot.AgentID) (bool, error) {
			_, err := d.db.IndexedAgentByID(ctx, id)
			if errors.Is(err, storage.ErrNotFound) {
				return false, nil
			}
			return err == nil, err
		},
	})
	return nil
}

// installation is the id by which containers of this data directory are known. Nodes
// that share a database have one each: what runs in the containers of one is none
// of the others' business.
func (d *daemon) installation(ctx context.Context, c configs.Config) (string, error) {
	if d.shared != nil {
		return installationOf(filepath.Join(c.DataDir, "installation"))
	}
	id, err := d.db.Checkpoint(ctx, markInstallation)
	if err != nil || id != "" {
		return id, err
	}
	id = newInstallation()
	return id, d.db.SetCheckpoint(ctx, markInstallation, id)
}

// installationOf reads the id from a file, or makes it.
func installationOf(path string) (string, error) {
	b, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the id of this installation: %w", err)
	}
	id := newInstallation()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("the id of this installation: %w", err)
	}
	return id, nil
}

func newInstallation() string { return strings.ToLower(rand.Text()[:12]) }

// leftoverTime bounds how long a start waits for an engine that is slow.
const leftoverTime = 10 * time.Second

// endLeftovers ends commands in containers that a killed process has left.
func (d *daemon) endLeftovers(ctx context.Context) {
	used := false
	for _, p := range d.config.Load().Agents.Profiles {
		used = used || p.Workspace.Provider == configs.WorkspaceDocker
	}
	if !used {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leftoverTime)
	defer cancel()
	if err := d.engine.EndLeftovers(ctx); err != nil {
		d.log.Warn("failed to stop commands left in containers by a killed process", "err", err)
	}
}

// warnPlaces tells of settings that give protections up.
func (d *daemon) warnPlaces() {
	c := d.config.Load()
	seen := make(map[string]bool)
	for name, p := range c.Agents.Profiles {
		w := p.Workspace
		if w.Provider == configs.WorkspaceLocal && !seen[local.Name] {
			seen[local.Name] = true
			d.log.Warn("commands of agents run on this machine, as the user who runs claybot; "+
				"users of the bot and pages that agents read can influence them; set workspaces.provider to docker to isolate them", "profile", name)
		}
		for _, given := range w.Container.Unsafe {
			if !seen[given] {
				seen[given] = true
				d.log.Warn("workspace protection disabled", "profile", name, "unsafe", given)
			}
		}
	}
}

// place is the workspace that an agent has by its settings, for a call of a
// thread; ok is false where it has none.
func (d *daemon) place(a claybot.Agent, thread string) (w workspace.Want, ok bool) {
	c := d.settings(a).Workspace
	key := "agent/" + string(a.ID)
	switch owner := a.Descriptor.OwnerID(); {
	case c.Provider == configs.Off || c.Provider == "":
		return w, false
	case c.Per == configs.PerOwner && owner != "":
		key = "owner/" + owner
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

// errNoPlace is what a tool says where an agent has no workspace.
var errNoPlace = &workspace.Error{Code: workspace.Unavailable, Text: "this agent has no workspace; an operator can give it one with workspace in the configuration"}

// openPlace opens the workspace of a call.
func (d *daemon) openPlace(ctx context.Context, env tools.Env) (workspace.Workspace, error) {
	want, ok := d.place(env.Agent, env.Thread)
	if !ok {
		return nil, errNoPlace
	}
	return d.places.Open(ctx, want)
}

// placeName says where the tools of an agent act, without opening it: approvals
// are bound to it.
func (d *daemon) placeName(a claybot.Agent) string {
	want, ok := d.place(a, "")
	if !ok {
		return ""
	}
	s := want.Spec
	b, _ := json.Marshal(s) // plain values always marshal
	parts := []string{want.Provider, string(want.Key)}
	add := func(what, value string) {
		if value != "" {
			parts = append(parts, what+" "+value)
		}
	}
	add("image", s.Image)
	add("platform", s.Platform)
	add("user", s.User)
	add("network", strings.Join(append([]string{s.Network.Mode}, s.Network.Allow...), " "))
	names := make([]string, len(s.Env))
	for i, v := range s.Env {
		names[i] = v.Name
	}
	add("variables", strings.Join(names, " "))
	sum := sha256.Sum256(b) // of the values of variables, of volumes and limits, too
	add("settings", hex.EncodeToString(sum[:4]))
	return strings.Join(parts, ", ")
}

// tunnel lets the connections of a workspace out that its settings allow.
func (d *daemon) tunnel(ctx context.Context, key workspace.Key, allow []string, conn io.ReadWriteCloser) error {
	door, err := egress.New(egress.Policy{
		Allow: allow, Own: d.ownAddress,
		Log: func(r egress.Request) { d.tellOutward("workspace "+string(key), r) },
	})
	if err != nil {
		return err
	}
	proxy := egress.NewProxy(door)
	defer proxy.Close()
	return proxy.ServeTunnel(ctx, conn)
}

// ownAddress reports the addresses at which the daemon itself listens.
func (d *daemon) ownAddress(at netip.AddrPort) bool {
	return egress.Listeners(d.web.Addr())(at)
}

// tellOutward logs what went out, or was kept from it. Paths and queries may be
// secrets and are not told.
func (d *daemon) tellOutward(who string, r egress.Request) {
	attrs := []any{"by", who, "method", r.Method, "host", r.Host, "sent", r.Sent, "received", r.Received, "decision", r.Decision}
	if r.Why != "" {
		attrs = append(attrs, "why", r.Why)
	}
	d.log.Info("outward request", attrs...)
}

// removePlaces removes the workspaces of a deleted agent.
func (d *daemon) removePlaces(ctx context.Context, id claybot.AgentID) {
	if err := d.places.Forget(ctx, id); err != nil {
		d.log.Warn("failed to remove workspaces of deleted agent; will retry", "agent", id, "err", err)
	}
}

// relayCommand is the hidden command that runs inside the network of a workspace
// and carries its connections to the daemon.
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

// hostListed reports whether the operator's list has a host.
func hostListed(list []string, host string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		name, _, _ := strings.Cut(entry, ":")
		if below, ok := strings.CutPrefix(name, "*."); ok {
			return strings.HasSuffix(host, "."+below)
		}
		return name == host
	})
}
