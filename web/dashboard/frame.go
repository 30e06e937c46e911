package dashboard

import (
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"sync"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

//go:embed assets
var assets embed.FS

//go:embed templates
var templates embed.FS

// A Config has the dependencies of the pages.
type Config struct {
	Backend web.Backend
	Usage   storage.Usages
	// Prices returns the prices that are set now, for what caches saved; nil: none is known.
	Prices func() llm.Prices
	// Tasks and Heartbeats are nil where cron or the heartbeat is off.
	Tasks      web.Tasks
	Heartbeats web.Heartbeats
	Tooling    web.Tooling // optional
	Budgets    web.Budgets // nil: there are none
	Log        *slog.Logger
	Version    string
}

// pages creates the routes of pages, their parts and their actions. The types of
// the single pages embed it.
type pages struct {
	log     *slog.Logger
	version string
	views   func() map[string]*template.Template // by page; parsed when the first is asked for
}

// A place is an entry of the navigation.
type place struct {
	Page, Path, Title, Icon string
	First                   bool // in the bar of a phone, not behind More
}

// places are the pages in the order of the navigation.
var places = []place{
	{Page: "chats", Path: "/", Title: "Chats", Icon: "chat", First: true},
	{Page: "agents", Path: "/ui/agents", Title: "Agents", Icon: "agents", First: true},
	{Page: "runs", Path: "/ui/runs", Title: "Runs", Icon: "runs", First: true},
	{Page: "schedule", Path: "/ui/schedule", Title: "Schedule", Icon: "clock", First: true},
	{Page: "flows", Path: "/ui/flows", Title: "Workflows", Icon: "fork"},
	{Page: "tools", Path: "/ui/tools", Title: "Tools", Icon: "tool"},
	{Page: "deliveries", Path: "/ui/deliveries", Title: "Deliveries", Icon: "send"},
	{Page: "usage", Path: "/ui/usage", Title: "Usage", Icon: "chart"},
	{Page: "access", Path: "/ui/access", Title: "Access", Icon: "key"},
	{Page: "nodes", Path: "/ui/nodes", Title: "Map", Icon: "map"},
	{Page: "config", Path: "/ui/config", Title: "Settings", Icon: "tool"},
	{Page: "health", Path: "/ui/health", Title: "Health", Icon: "pulse"},
}

// below maps pages without a navigation entry to the one that is highlighted
// for them.
var below = map[string]string{"agent": "agents", "run": "runs", "flow": "flows", "flow-edit": "flows", "notes": "agents", "note": "agents", "members": "health", "config-key": "config", "config-history": "config", "setup": "config", "node": "nodes", "node-add": "nodes"}

// Routes returns the routes of the pages, their fragments, actions and assets.
func Routes(cfg Config) []web.Route {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &pages{log: cfg.Log, version: cfg.Version, views: sync.OnceValue(readViews)}
	all := p.frameRoutes()
	for _, s := range sections(cfg, p) {
		all = append(all, s.routes()...)
	}
	return all
}

// A section is some pages with their routes.
type section interface{ routes() []web.Route }

func sections(cfg Config, p *pages) []section {
	b := cfg.Backend
	rows := lookup{b.Agents, b.Runs}
	asked := &questionPages{pages: p, rows: rows, questions: b.Questions}
	bench := &toolPages{pages: p, tooling: cfg.Tooling, agents: b.Agents}
	notes := &notePages{pages: p, tooling: cfg.Tooling, agents: b.Agents, runs: b.Runs}
	budgets := &budgetPages{pages: p, store: cfg.Budgets}
	return []section{
		asked, bench, notes, budgets,
		&chatPages{pages: p, rows: rows, asked: asked, agents: b.Agents, guided: b.Setup != nil},
		&agentPages{
			pages: p, rows: rows, asked: asked, bench: bench,
			agents: b.Agents, control: b.Control, settings: b.Settings, privacy: b.Privacy, inboxes: b.Inboxes, reminders: b.Reminders, runs: b.Runs, files: b.Files,
		},
		&runPages{pages: p, rows: rows, asked: asked, notes: notes, agents: b.Agents, runs: b.Runs, control: b.RunControl, system: b.System},
		&schedulePages{pages: p, rows: rows, tasks: cfg.Tasks, heartbeats: cfg.Heartbeats, reminders: b.Reminders},
		&flowPages{pages: p, rows: rows, asked: asked, flows: b.Flows, starts: b.FlowRuns, edits: b.FlowEditor != nil, agents: b.Agents, runs: b.Runs, system: b.System},
		&flowEditPages{pages: p, editor: b.FlowEditor},
		&deliveryPages{pages: p, outbox: b.Outbox, system: b.System},
		&usagePages{pages: p, budgets: budgets, usage: cfg.Usage, prices: cfg.Prices},
		&accessPages{pages: p, pairing: b.Pairing, grants: b.Grants, directory: b.Directory, system: b.System},
		&nodePages{pages: p, nodes: b.Nodes, config: &configPages{p, b.Configuration}},
		&configPages{pages: p, config: b.Configuration},
		&setupPages{pages: p, setup: b.Setup, agents: b.Agents, runs: b.Runs},
		&healthPages{pages: p, system: b.System},
	}
}

// frameRoutes returns the routes that all pages need.
func (b *pages) frameRoutes() []web.Route {
	return []web.Route{
		{Pattern: "GET /assets/{name}", Scope: web.Read, Handler: asset("assets/")},
		{Pattern: "GET /assets/vendor/{name}", Scope: web.Read, Handler: asset("assets/vendor/")},
		{Pattern: "GET /ui/{rest...}", Scope: web.Read, Page: true, Handler: http.HandlerFunc(b.missing)},
		{Pattern: "GET /ui", Scope: web.Read, Page: true, Handler: http.RedirectHandler("/", http.StatusSeeOther)},
	}
}

func asset(folder string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.ServeAsset(w, r, assets, folder+r.PathValue("name"))
	})
}
