package main

import (
	"context"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/chromium"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/browser"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/docker"
)

// newBrowsers builds the browsers of agents, each in the workspace of its agent.
func (d *daemon) newBrowsers() {
	d.browsers = browser.New(browser.Config{
		Open: d.openBrowser, SaveFile: d.saveFile, Log: d.log,
		Key: func(env tools.Env) string {
			want, _ := d.place(env.Agent, env.Thread)
			return string(want.Key)
		},
		Listed: func(env tools.Env, host string) bool {
			want, ok := d.place(env.Agent, env.Thread)
			if ok && want.Provider == configs.WorkspaceDocker && loopback(host) {
				return true // the agent's own, in its container
			}
			return hostListed(want.Spec.Network.Allow, host) || d.listed(env, host)
		},
	})
}

// loopback reports the names of a machine for itself.
func loopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == "[::1]"
}

// openBrowser starts a browser in the workspace of a call, which reaches what its
// commands reach.
func (d *daemon) openBrowser(ctx context.Context, env tools.Env, s devices.Spec) (devices.Device, error) {
	want, ok := d.place(env.Agent, env.Thread)
	if !ok {
		return nil, errNoPlace
	}
	ws, err := d.places.Open(ctx, want)
	if err != nil {
		return nil, err
	}
	if s.Hosts, err = devices.ParseHosts(want.Spec.Network.Allow); err != nil {
		return nil, err
	}
	r := chromium.Remote{
		Workspace: ws, Machine: want.Provider == configs.WorkspaceDocker, Web: want.Spec.Network.Mode == workspace.NetworkFull, Log: d.log,
	}
	if want.Spec.Network.Mode == workspace.NetworkAllow {
		r.Proxy = docker.RelayAddress
	}
	return r.Open(ctx, s)
}
