package main

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/webchat"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
	"github.com/claybot/claybot/web/dashboard"
	"github.com/claybot/claybot/web/metrics"
)

// newMetrics builds what counts. It asks the system only once that is at work.
func (d *daemon) newMetrics(c configs.Config) *metrics.Metrics {
	headers := make(map[string]string, len(c.Telemetry.OTLP.Headers))
	for name, v := range c.Telemetry.OTLP.Headers {
		headers[name] = v.Value()
	}
	endpoint := c.Telemetry.OTLP.Endpoint
	if !c.Telemetry.OTLP.Wanted() {
		endpoint = ""
	}
	return metrics.New(metrics.Config{
		Status: func(ctx context.Context) (overview.Status, error) { return d.system.Overview.Status(ctx) },
		Events: func(ctx context.Context, run claybot.RunID, after int64) iter.Seq2[claybot.Event, error] {
			return d.db.Events(ctx, run, after)
		},
		Models: func() []string { return modelNames(d.config.Load()) },
		Serve:  func() bool { return d.config.Load().Telemetry.Metrics }, Pprof: func() bool { return d.config.Load().Telemetry.Pprof }, Version: version, Log: d.log,
		OTLP: metrics.OTLP{Endpoint: endpoint, Headers: headers, Interval: c.Telemetry.OTLP.Interval, Off: d.off(func(c configs.Config) string { return c.Telemetry.OTLP.Off() })},
	})
}

// doors builds the web server and what is behind it.
func (d *daemon) doors(c configs.Config, terminal *webchat.Chat) error {
	shown := d.system.Overview
	desk := operator{
		d.system, shown.Listings, shown.Monitor, shown.Stories, d.system.People,
		func() configs.Access { return d.config.Load().Access }, d.removePlaces,
	}
	backend := desk.backend()
	chat := d.page.Handler(desk, web.User)
	routes := []web.Route{
		{Pattern: "/chat/", Scope: web.Operate, Handler: chat},
		{
			Pattern: "POST /chat/files", Scope: web.Operate, Handler: http.StripPrefix("/chat", chat),
			Raw: true, Body: webchat.MaxUpload + 1,
		},
		{Pattern: "/terminal/", Scope: web.Operate, Handler: terminal.Handler(desk, web.User), Local: true},
	}
	routes = append(routes, api.Routes(api.Config{
		Backend: backend, Tasks: d.box.tasks, Beats: d.box.beats, Tooling: d.tooling(), Usage: d.db, Budgets: d.limiter, Log: d.log, Version: version,
		Marks:    d.db,
		Profiles: func() []string { return slices.Collect(maps.Keys(d.config.Load().Agents.Profiles)) },
		Engine:   func(to claybot.Descriptor) string { return d.config.Load().Profile(to).Engine.Name },
	})...)
	routes = append(routes, dashboard.Routes(dashboard.Config{
		Backend: backend, Tasks: d.box.tasks, Beats: d.box.beats, Tooling: d.tooling(), Usage: d.db, Budgets: d.limiter, Log: d.log, Version: version,
	})...)
	routes = append(routes, d.metrics.Routes()...)
	routes = append(routes, mcpRoutes(c.DataDir, d.log)...)
	logins, cookie := d.tree, "nodes"
	if logins == nil {
		logins, cookie = storage.MirrorAlone(files.OpenNamed(c.DataDir, web.Names(), web.Load(d.log.With("part", "web")))), ""
	}
	var err error
	d.web, err = web.New(web.Config{
		Addr: c.HTTP.Addr, Hosts: c.HTTP.Hosts, Dir: c.DataDir, Tree: logins, Cookie: cookie, Log: d.log, Ready: d.system.Overview.Ready, Routes: routes,
		TLSCert: c.HTTP.Guard.TLSCert, TLSKey: c.HTTP.Guard.TLSKey, Insecure: c.HTTP.Guard.Insecure, Proxies: c.HTTP.Guard.Proxies,
		Announce: func(links []string) { d.link(strings.Join(links, "\n")) },
	})
	var unsafe web.Refusal
	if errors.As(err, &unsafe) {
		return configError{err}
	}
	return err
}
