package main

import (
	"context"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/workspace"
)

// serverKeys begin the keys of workspaces in which MCP servers run.
const serverKeys = "mcp/"

// removeServers removes the containers of MCP servers that the configuration no
// longer has, or has elsewhere. They have no time after which they go by
// themselves. Their data stays, for when they come back.
func (d *daemon) removeServers(ctx context.Context) {
	all, err := d.places.List(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn("failed to list containers of MCP servers", "err", err)
		}
		return
	}
	c := d.config.Load()
	wanted := make(map[string]bool)
	for _, s := range c.Tools.MCP {
		wanted[s.Name] = len(s.Process.Command) > 0 && s.Process.Where != configs.MCPHost
	}
	for _, l := range all {
		name, ok := strings.CutPrefix(string(l.Key), serverKeys)
		if !ok || l.State != workspace.Running || l.InUse || wanted[name] && l.Provider == c.Tools.Workspace.Provider {
			continue
		}
		if err := d.places.Remove(ctx, l.Provider, l.Key, false); err != nil {
			if ctx.Err() == nil {
				d.log.Warn("failed to remove container of unconfigured MCP server; will retry", "server", name, "err", err)
			}
			continue
		}
		d.log.Info("removed container of unconfigured MCP server", "server", name)
	}
}
