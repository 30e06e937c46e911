// Package api is claybot's HTTP API: JSON, event streams and an endpoint for OpenAI
// clients, described by an OpenAPI document that it serves.
//
// It guarantees: one table of operations defines the routes and the document, so they
// cannot differ; all errors have one format; an unknown field, parameter or id is an
// error; accepted data is durable; a request with an idempotency key may be repeated, and
// so may a request of an OpenAI client without a key. A slow reader costs at most 256 KiB
// and delays no other.
//
// It uses the contracts of package web, which owns its JSON types, and the checkpoints of
// the store. A resource is a type that takes the contracts it needs. Package web
// authenticates. Only cmd imports it.
package api

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A Config has the dependencies of the API.
type Config struct {
	Backend    web.Backend
	Tasks      web.Tasks      // nil: cron is off
	Heartbeats web.Heartbeats // nil: the heartbeat is off
	Usage      storage.Usages
	Budgets    web.Budgets // nil: there are none
	Tooling    web.Tooling // optional
	// Profiles returns the profiles that OpenAI clients may use as models. Optional.
	Profiles func() []string
	// Engine returns the engine of an agent that does not exist yet. Optional: without it,
	// no such agent plans.
	Engine func(claybot.Descriptor) string
	// Marks record which answers were delivered. Without them, a retry of an OpenAI client
	// without Idempotency-Key is a new message.
	Marks storage.Checkpoints
	// KeepAlive is the interval of keep-alive bytes to a waiting client; 0: 15 s.
	KeepAlive time.Duration
	Log       *slog.Logger
	// Version is that of the program, for the document.
	Version string
}

// An api serves and describes operations. It is safe for concurrent use.
type api struct {
	operations []operation // define both routes and document
	document   func() []byte
	version    string
	log        *slog.Logger
}

// Routes returns the routes of the API.
func Routes(cfg Config) []web.Route {
	return newAPI(cfg).routes()
}

func newAPI(cfg Config) *api {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.KeepAlive == 0 {
		cfg.KeepAlive = pingEvery
	}
	if cfg.Engine == nil {
		cfg.Engine = func(claybot.Descriptor) string { return claybot.EngineReact }
	}
	cfg.Log = cfg.Log.With("part", "api")
	a := &api{version: cfg.Version, log: cfg.Log}
	a.document = sync.OnceValue(a.describe)
	for _, r := range resources(cfg) {
		a.operations = append(a.operations, r.operations()...)
	}
	a.operations = append(a.operations, op("openapi", web.Read, "GET /openapi.json", "Get this document.").tagged("about").served(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(a.document()) // the client may have disconnected
		return nil
	}, answer{status: http.StatusOK, value: map[string]any{}, about: "OpenAPI 3.1"}))
	return a
}

// A resource has operations.
type resource interface{ operations() []operation }

func resources(cfg Config) []resource {
	b := cfg.Backend
	files, graphs := attachments{b.Agents, b.Files}, graphs{b.System}
	start := starter{b.Starter, b.Agents, b.Settings, graphs, files, cfg.Engine, flowDesk{b.Flows, b.FlowRuns}}
	return []resource{
		start, files, graphs,
		runAPI{b.Runs, b.Agents, b.RunControl, b.Questions, b.System, b.Flows, cfg.Log},
		agents{b.Agents, b.Control, b.Privacy, b.Reminders, b.Runs},
		settings{b.Settings, new(sync.Mutex)},
		configuration{b.Configuration},
		nodeCalls{b.Nodes},
		flowDesk{b.Flows, b.FlowRuns},
		flowEditing{b.FlowEditor},
		inboxes{b.Inboxes},
		questionRoutes{b.Questions},
		outbox{b.Outbox},
		access{b.Pairing, b.Grants},
		people{b.People, b.Directory},
		tasks{cfg.Tasks},
		heartbeats{cfg.Heartbeats},
		budgetAPI{cfg.Budgets},
		tooling{cfg.Tooling},
		reports{b.System, cfg.Usage, cfg.Log},
		&completions{
			b.Agents, b.Runs, b.RunControl, b.Questions, start, cfg.Profiles,
			&notes{marks: cfg.Marks, process: rand.Text(), runs: b.Runs, log: cfg.Log}, cfg.KeepAlive, cfg.Log,
		},
	}
}
