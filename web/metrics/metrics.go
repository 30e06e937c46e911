// Package metrics exports metrics for Prometheus at /metrics, traces of runs for
// OpenTelemetry, and profiles of the process at /debug/pprof/. docs/metrics.md lists all
// metrics.
//
// It guarantees: measuring never delays or breaks what is measured, whatever
// the receiver of the traces does; the number of series is bounded, because no
// label holds an id, and names that a model or a provider makes up count as
// "other"; no text of a message, an argument or a result leaves the process.
//
// Both formats are written here, in a few hundred lines, because the libraries
// for them are too heavy for a daemon that idles in 25 MB: linked in alone, the
// client library of Prometheus adds 2.3 MiB to the binary and 2.4 MB of resident
// memory. The SDK of OpenTelemetry (1.47) with its HTTP exporter alone makes 5.8 MB of
// a bare HTTP client 13.6 MB, because the exporter links gRPC and its gateway; it sends
// no JSON, and hides whether a receiver refused a request for good. It would replace
// otlp.go; the queue, the retries and what is counted of them would stay. The
// text formats of Prometheus and the JSON encoding of OTLP are stable
// specifications; tests read the first with the library of Prometheus itself.
//
// Only cmd imports it.
package metrics

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/web"
)

// A Config has the dependencies of the metrics.
type Config struct {
	// Status returns counts of other parts. Each scrape calls it.
	Status func(context.Context) (overview.Status, error)
	// Cluster describes this member of a cluster. Each scrape calls it; it must not query
	// the store. nil: the process has its store for itself.
	Cluster func() Cluster
	// Events yields the events of a run after a seq. Traces need it, once a run has
	// ended.
	Events func(ctx context.Context, run claybot.RunID, after int64) iter.Seq2[claybot.Event, error]
	// Models are the names of the configured models, which always have a label of
	// their own; of other names, only the first dozens do. Optional.
	Models func() []string
	// Serve reports whether /metrics is served now, Pprof whether /debug/pprof/ is.
	// nil: there is no such route.
	Serve func() bool
	Pprof func() bool
	OTLP  OTLP
	// Version is that of claybot; empty where it is not known.
	Version string
	Log     *slog.Logger // nil discards
}

// OTLP is where traces are sent to.
type OTLP struct {
	// Endpoint is the address of a receiver that speaks OTLP over HTTP, to which
	// /v1/traces is added; empty: nothing is sent.
	Endpoint string
	// Headers are sent with each request. They may be secrets and are never
	// logged.
	Headers map[string]string
	// Off gives a reason while nothing may be sent to Endpoint; optional.
	Off func() string
	// Interval is the longest time that something waits to be sent; 0: 5 s.
	Interval time.Duration
	// Provider is who answers model calls, in the words of the semantic
	// conventions; empty: openai, whose protocol it is.
	Provider string
}

// Metrics counts events and exports traces. It is safe for concurrent use.
type Metrics struct {
	cfg      Config
	log      *slog.Logger
	live     *live
	all      []*family
	exporter *exporter
}

var _ agentsystem.Meter = (*Metrics)(nil)

// New creates a meter that counts at once. Run sends traces.
func New(cfg Config) *Metrics {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	m := &Metrics{cfg: cfg, log: cfg.Log.With("part", "metrics"), live: newLive(cfg.Models)}
	m.exporter = newExporter(cfg, m.log)
	m.all = append(slices.Clone(m.live.order), scraped()...)
	return m
}

// Run sends traces until ctx is done, then what is left, for at most 3 s. It
// returns the cause.
func (m *Metrics) Run(ctx context.Context) error { return m.exporter.run(ctx) }

// SendTo changes where traces are sent to: their Endpoint, Headers and Interval. What waits goes there, and is dropped
// without an endpoint.
func (m *Metrics) SendTo(o OTLP) { m.exporter.sendTo(o) }

// Routes returns /metrics for the scope read, and the profiles for admins. Each is 404
// while it is off.
func (m *Metrics) Routes() []web.Route {
	var routes []web.Route
	if m.cfg.Serve != nil {
		routes = append(routes, web.Route{Pattern: "GET /metrics", Scope: web.Read, Handler: while(m.cfg.Serve, http.HandlerFunc(m.serve))})
	}
	if m.cfg.Pprof != nil {
		for _, r := range profileRoutes() {
			r.Handler = while(m.cfg.Pprof, r.Handler)
			routes = append(routes, r)
		}
	}
	return routes
}

// Listener returns a server of GET /metrics alone, without a token, at an address.
func (m *Metrics) Listener(addr string) *web.Plain {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", while(m.cfg.Serve, oneByOne(m.render)))
	return &web.Plain{Addr: addr, Handler: mux, What: "metrics listener", Setting: "metrics_listen", Example: "127.0.0.1:9464", Log: m.log}
}

// oneByOne renders pages one after the other: each asks the store, and callers are not known.
// A page is sent outside of the turn, so that a slow reader holds up no other.
func oneByOne(render func(*http.Request) *page) http.Handler {
	turn := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var p *page
		select {
		case turn <- struct{}{}:
			func() {
				defer func() { <-turn }()
				p = render(r)
			}()
			p.send(w)
		case <-r.Context().Done():
		}
	})
}

// while serves h only while wanted reports true.
func while(wanted func() bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !wanted() {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
