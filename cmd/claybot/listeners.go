package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/webchat"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
	"github.com/claybot/claybot/web/dashboard"
	"github.com/claybot/claybot/web/metrics"
)

// listeners are the ways in from outside other than chat platforms, and the publishers of
// metrics and events.
type listeners struct {
	web            *web.Server
	page, terminal *webchat.Chat
	metrics        *metrics.Metrics
	scrapes        *web.Plain // of metrics alone; nil: off
	relay          *relay
	link           func(web.LoginLink) // gets the login links
}

// newListeners builds the chats of the page and the terminal, and the metrics. The web
// server that serves them follows in open, once the system is built.
func newListeners(d *daemon, link func(web.LoginLink)) *listeners {
	l := &listeners{link: link}
	l.page = webchat.New(webchat.Config{
		Name: "web", HTML: true, Log: d.log, Poll: d.stores.poll(), Door: func() connectors.Health { return l.web.Health() },
		Approves: func(r *http.Request) (once, always bool) {
			s := web.CallerOf(r).Scope
			return s.Allows(web.Approve), s.Allows(web.Admin)
		},
	})
	l.terminal = webchat.New(webchat.Config{Name: "terminal", Log: d.log, Poll: d.stores.poll()})
	l.metrics = metrics.New(metrics.Config{
		Status:  func(ctx context.Context) (overview.Status, error) { return d.system.Overview.Status(ctx) },
		Cluster: d.clusterMetrics(),
		Events: func(ctx context.Context, run claybot.RunID, after int64) iter.Seq2[claybot.Event, error] {
			return d.stores.db.Events(ctx, run, after)
		},
		Models: func() []string { return modelNames(d.config.Load()) },
		Serve:  func() bool { return d.config.Load().Telemetry.Metrics }, Pprof: func() bool { return d.config.Load().Telemetry.Pprof }, Version: version, Log: d.log,
		OTLP: metrics.OTLP{Off: d.config.off(func(c configs.Config) string { return c.Telemetry.OTLP.Off() })},
	})
	l.sendTraces(d.config.began)
	if addr := d.config.began.Telemetry.MetricsListen; addr != configs.Off {
		l.scrapes = l.metrics.Listener(addr)
	}
	return l
}

// sendTraces has traces sent to the receiver of a configuration. While a setting of it is not valid, they wait.
func (l *listeners) sendTraces(c configs.Config) {
	if o := c.Telemetry.OTLP; o.Off() == "" {
		l.metrics.SendTo(metrics.OTLP{Endpoint: o.Endpoint, Headers: revealed(o.Headers), Interval: o.Interval})
	}
}

// problems are the settings that cannot be used, those of the configuration included.
func (l *listeners) problems(s *settings) []overview.SettingStatus {
	all := s.status()
	if l.scrapes == nil {
		return all
	}
	if why := l.scrapes.Problem(); why != "" {
		text, next, _ := strings.Cut(why, "; ")
		all = append(all, overview.SettingStatus{Text: text, Next: next, Off: true, Code: "http-unusable", Key: "metrics_listen"})
	}
	return all
}

// clusterMetrics returns a function that describes this member to a scrape; nil without a
// cluster.
func (d *daemon) clusterMetrics() func() metrics.Cluster {
	if d.stores.shared == nil {
		return nil
	}
	return func() metrics.Cluster {
		m := d.stores.members
		return metrics.Cluster{
			Member: m.Name(), Live: m.Trusted() == nil, Members: len(m.Alive()), MembershipsLost: m.Lost(),
			LeasesLost: d.system.Worker.LeasesLost(), Traffic: d.stores.shared.Traffic(),
		}
	}
}

// addr is the address at which the web server listens.
func (l *listeners) addr() string { return l.web.Addr() }

// open builds the web server with all its routes.
func (l *listeners) open(d *daemon, c configs.Config) (err error) {
	shown := d.system.Overview
	desk := operator{
		d.system, d.system.Control, shown.Listings, shown.Monitor, shown.Stories, d.system.People,
		func() configs.Config { return *d.config.Load() }, d.tooling.workspaces.forget,
		d.stores.members.Mixed,
		erasing{d.stores, d.tooling.workspaces, d.tooling.box},
	}
	if l.scrapes != nil && l.scrapes.Addr == c.HTTP.Addr && !strings.HasSuffix(l.scrapes.Addr, ":0") {
		return configError{fmt.Errorf("metrics_listen and http.addr are both %s: give each an address of its own", c.HTTP.Addr)}
	}
	backend, box, tooling, db := desk.backend(), d.tooling.box, newToolbench(d), d.stores.db
	backend.Configuration, backend.Nodes, backend.Setup = configDesk{d}, nodeDesk{d}, newSetupDesk(d)
	backend.Flows, backend.FlowRuns, backend.FlowEditor = flowDesk{d}, flowDesk{d}, flowDesk{d}
	chat := l.page.Handler(desk, desk, web.User)
	routes := []web.Route{
		{Pattern: "/chat/", Scope: web.Operate, Chat: true, Handler: chat},
		{
			Pattern: "POST /chat/files", Scope: web.Operate, Chat: true, Handler: http.StripPrefix("/chat", chat),
			Raw: true, Body: webchat.MaxUpload + 1,
		},
		{Pattern: "/terminal/", Scope: web.Operate, Handler: l.terminal.Handler(desk, desk, web.User), Local: true},
		{Pattern: "POST /stop", Scope: web.Admin, Handler: http.HandlerFunc(d.stop), Local: true},
		{Pattern: "POST /reload", Scope: web.Admin, Handler: http.HandlerFunc(d.reloadAsked), Local: true},
		{Pattern: "POST /probe", Scope: web.Operate, Handler: http.HandlerFunc(d.probeAsked), Local: true},
	}
	routes = append(routes, api.Routes(api.Config{
		Backend: backend, Tasks: box.tasks, Heartbeats: box.heartbeats, Tooling: tooling, Usage: db, Budgets: d.limiter, Log: d.log, Version: version,
		Marks:    db,
		Profiles: func() []string { return slices.Collect(maps.Keys(d.config.Load().Agents.Profiles)) },
		Engine:   func(to claybot.Descriptor) string { return d.config.Load().Profile(to).Engine.Name },
	})...)
	routes = append(routes, dashboard.Routes(dashboard.Config{
		Backend: backend, Tasks: box.tasks, Heartbeats: box.heartbeats, Tooling: tooling, Usage: db, Budgets: d.limiter, Log: d.log, Version: version,
		Prices: func() llm.Prices { return pricesIn(*d.config.Load()) },
	})...)
	routes = append(routes, l.metrics.Routes()...)
	routes = append(routes, d.hookRoutes()...)
	routes = append(routes, d.callbacks.routes()...)
	routes = append(routes, mcpRoutes(c.DataDir, db, d.log)...)
	logins, cookie := d.stores.logins()
	l.web, err = web.New(web.Config{
		Addr: c.HTTP.Addr, Setting: func() string { return addrSetting(c) }, Hosts: c.HTTP.Hosts, Dir: c.DataDir, Tree: logins, Cookie: cookie, Log: d.log, Ready: d.readiness, Routes: routes,
		Spent:   d.limiter.TokenSpent,
		TLSCert: c.HTTP.Guard.TLSCert, TLSKey: c.HTTP.Guard.TLSKey, Insecure: c.HTTP.Guard.Insecure, Proxies: c.HTTP.Guard.Proxies,
		Announce: l.link,
	})
	if unsafe := web.Refusal(""); errors.As(err, &unsafe) {
		return configError{err}
	}
	return err
}
