package dashboard

import (
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"sync"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

//go:embed assets
var assets embed.FS

//go:embed templates
var templates embed.FS

// A Config says what the pages stand on.
type Config struct {
	Desk  web.Desk
	Usage storage.Usages
	// Tasks and Beats are nil where cron or the heartbeat is off.
	Tasks   web.Tasks
	Beats   web.Beats
	Shop    web.Workshop // nil: nothing is told of tools, workspaces, skills and notes
	Budgets Budgets      // nil: there are none
	Log     *slog.Logger
	Version string
}

// A board is the dashboard. It has no state of its own but what can be read
// again.
type board struct {
	Config
	views func() map[string]*template.Template // by page; parsed when the first is asked for
	books bookkeeper
}

// A place is an entry of the navigation.
type place struct {
	Page, Path, Title, Icon string
	First                   bool     // in the bar of a phone, not behind More
	Vendored                []string // files of others that the page needs, below assets
}

// places are the pages in the order of the navigation.
var places = []place{
	{Page: "chats", Path: "/", Title: "Chats", Icon: "chat", First: true},
	{Page: "agents", Path: "/ui/agents", Title: "Agents", Icon: "agents", First: true},
	{Page: "runs", Path: "/ui/runs", Title: "Runs", Icon: "runs", First: true},
	{Page: "schedule", Path: "/ui/schedule", Title: "Schedule", Icon: "clock", First: true},
	{Page: "tools", Path: "/ui/tools", Title: "Tools", Icon: "tool"},
	{Page: "deliveries", Path: "/ui/deliveries", Title: "Deliveries", Icon: "send"},
	{Page: "usage", Path: "/ui/usage", Title: "Usage", Icon: "chart", Vendored: []string{"vendor/uPlot.min.css", "vendor/uPlot.iife.min.js"}},
	{Page: "access", Path: "/ui/access", Title: "Access", Icon: "key"},
	{Page: "health", Path: "/ui/health", Title: "Health", Icon: "pulse"},
}

// below are the pages that have no place of their own, with the one they are
// shown under.
var below = map[string]string{"agent": "agents", "run": "runs", "notes": "agents", "note": "agents", "nodes": "health"}

// Routes are the pages with what belongs to them.
func Routes(cfg Config) []web.Route {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	b := &board{Config: cfg, views: sync.OnceValue(readViews)}
	all := b.frameRoutes()
	for _, section := range sections {
		all = append(all, section(b)...)
	}
	return all
}

// frameRoutes are what all pages need.
func (b *board) frameRoutes() []web.Route {
	return []web.Route{
		{Pattern: "GET /assets/{name}", Scope: web.Read, Handler: asset("assets/")},
		{Pattern: "GET /assets/vendor/{name}", Scope: web.Read, Handler: asset("assets/vendor/")},
		{Pattern: "GET /ui/{rest...}", Scope: web.Read, Page: true, Handler: http.HandlerFunc(b.missing)},
		{Pattern: "GET /ui/live", Scope: web.Read, Handler: http.HandlerFunc(b.live)},
		{Pattern: "GET /ui", Scope: web.Read, Page: true, Handler: http.RedirectHandler("/", http.StatusSeeOther)},
	}
}

func asset(folder string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.ServeAsset(w, r, assets, folder+r.PathValue("name"))
	})
}
