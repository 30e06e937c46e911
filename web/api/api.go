// Package api is claybot's HTTP interface for programs: JSON, event streams and
// a door for OpenAI clients, described by an OpenAPI document that it serves.
//
// It guarantees: one table of operations makes the routes and the document, so
// they cannot differ; all errors have one shape; an unknown field, parameter or
// id is an error and never ignored; what was accepted is durable; a request that
// names an idempotency key may be repeated, and so may one of an OpenAI client that
// names none. A reader that is slow, or does not
// read at all, costs at most 256 KiB and delays nobody.
//
// It knows no platform, and of the store its marks alone: all it does goes through
// web.Desk and web.Workshop. Who may come in is the affair of package web. Only cmd imports it.
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

// A Config is what the API stands on.
type Config struct {
	Desk  web.Desk
	Tasks web.Tasks // nil: cron is off
	Beats web.Beats // nil: the heartbeat is off
	Usage storage.Usages
	// Budgets are asked how they stand; nil: there are none.
	Budgets Budgets
	Shop    web.Workshop // optional: nothing is told of tools then
	// Profiles names the profiles of the configuration, which OpenAI clients may
	// name as models. Optional.
	Profiles func() []string
	// Engine names the engine that an agent will have which does not exist yet.
	// Optional: none plans then.
	Engine func(claybot.Descriptor) string
	// Marks remember which answers were delivered. Without them, a retry of an OpenAI
	// client that sends no Idempotency-Key is a message of its own.
	Marks storage.Marks
	// KeepAlive is how long a client that waits for an answer goes without a sign of
	// life; 0: 15 s.
	KeepAlive time.Duration
	Log       *slog.Logger
	// Version is that of the program; it is in the document.
	Version string
}

// An api is the handlers. They are safe for concurrent use.
type api struct {
	Config
	document  func() []byte
	configure sync.Mutex // from reading the settings of an agent to writing them
	notes     notes
}

// Routes are the paths of the API.
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
	a := &api{Config: cfg, notes: notes{process: rand.Text()}}
	a.document = sync.OnceValue(a.describe)
	return a
}

// operations is the one table: routes and document are made of it.
func (a *api) operations() []operation {
	var all []operation
	for _, part := range [][]operation{
		a.startOperations(), a.runOperations(), a.undoOperations(), a.graphOperations(), a.agentOperations(), a.fileOperations(), a.manageOperations(), a.parkedOperations(), a.questionOperations(),
		a.taskOperations(), a.beatOperations(), a.outboxOperations(), a.pairingOperations(), a.reportOperations(), a.nodeOperations(), a.budgetOperations(),
		a.modelOperations(), a.workshopOperations(),
	} {
		all = append(all, part...)
	}
	return append(all, operation{
		id: "openapi", method: http.MethodGet, path: "/openapi.json", tag: "about", scope: web.Read,
		summary: "This document.",
		answers: []answer{{status: http.StatusOK, value: map[string]any{}, about: "OpenAPI 3.1"}},
		serve: func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-cache")
			_, _ = w.Write(a.document()) // a client that is gone needs no answer
			return nil
		},
	})
}
