package main

import (
	"context"
	"log/slog"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/workspace"
)

// idleDaemon is a daemon that is built and does not run.
func idleDaemon(t *testing.T, change func(*configs.Config)) *daemon {
	t.Helper()
	cfg := configs.Default()
	cfg.DataDir, cfg.HTTP.Addr = t.TempDir(), configs.Off
	change(&cfg)
	d, err := openDaemon(t.Context(), cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

// What MCP servers that are no longer configured have left is removed, and nothing
// else.
func TestRemoveServers(t *testing.T) {
	d := idleDaemon(t, func(c *configs.Config) {
		c.Tools.Workspace.Provider = configs.WorkspaceLocal
		c.Tools.MCP = []configs.MCPServer{
			{Name: "kept", Process: configs.MCPProcess{Command: []string{"server"}, Where: configs.MCPWorkspace}},
			{Name: "moved", Process: configs.MCPProcess{Command: []string{"server"}, Where: configs.MCPHost}},
			{Name: "far", Remote: configs.MCPRemote{URL: "https://mcp.test/"}},
		}
	})
	want := map[workspace.Key]workspace.State{
		"mcp/kept": workspace.Running, "mcp/moved": workspace.Idle, "mcp/far": workspace.Idle, "mcp/old": workspace.Idle,
		"agent/old": workspace.Running, "owner/mcp/old": workspace.Running,
	}
	spec := workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkFull}}
	for key := range want {
		if _, err := d.tooling.workspaces.manager.Open(t.Context(), workspace.Want{Provider: configs.WorkspaceLocal, Key: key, Spec: spec}); err != nil {
			t.Fatal(err)
		}
	}
	d.tooling.servers.removeUnused(t.Context())
	all, err := d.tooling.workspaces.manager.List(t.Context())
	if err != nil || len(all) != len(want) {
		t.Errorf("%d workspaces, %v", len(all), err)
	}
	for _, l := range all {
		if l.State != want[l.Key] {
			t.Errorf("%s is %s, want %s", l.Key, l.State, want[l.Key])
		}
	}
}

// What a deleted agent has is removed, though the caller that asked for it has gone.
func TestDeleteAgentToItsEnd(t *testing.T) {
	d := idleDaemon(t, func(*configs.Config) {})
	a, err := d.stores.agents.AgentFor(t.Context(), claybot.User("web", "main", "operator"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var removed []claybot.AgentID
	desk := operator{Control: d.system.Control, removed: func(ctx context.Context, id claybot.AgentID) {
		cancel()
		if _, ends := ctx.Deadline(); ctx.Err() != nil || !ends {
			t.Errorf("ends by itself: %v, %v", ends, ctx.Err())
		}
		removed = append(removed, id)
	}}
	if err := desk.DeleteAgent(ctx, a.ID); err != nil || len(removed) != 1 || removed[0] != a.ID {
		t.Errorf("removed %v, %v", removed, err)
	}
}
