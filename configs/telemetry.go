package configs

import (
	"net/url"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// OTLP is where traces of runs are sent to.
type OTLP struct {
	// Endpoint is the address of a receiver, to which /v1/traces is added; no
	// slash at the end. Empty: nothing is sent.
	Endpoint string
	Headers  map[string]Secret // sent with each request
	Interval time.Duration     // between two requests, from MinExport
	faults   reasons
}

// Wanted reports whether traces are to be sent.
func (o OTLP) Wanted() bool { return o.Endpoint != "" && o.faults == nil }

// The bounds of OTLP.Interval.
const (
	DefaultExport = 5 * time.Second
	MinExport     = 100 * time.Millisecond
	maxExport     = time.Hour
)

func otlpKeys() []key[OTLP] {
	return []key[OTLP]{
		text("endpoint", func(r *reader, at place, v string, o *OTLP) { r.otlpURL(at, v, o) }),
		{"headers", func(r *reader, at place, n *yaml.Node, o *OTLP) {
			before := len(r.warnings)
			setHeaders(r, at, n, &o.Headers)
			r.sealAll(o, at.path, before)
		}},
		text("interval", func(r *reader, at place, v string, o *OTLP) {
			every, err := time.ParseDuration(v)
			if err != nil || every < MinExport || every > maxExport {
				r.warn(at, "%s is not a duration such as 5s or 1m, from 100ms to 1h; ignored", quote(v))
				return
			}
			o.Interval = every
		}),
	}
}

func (r *reader) otlpURL(at place, v string, o *OTLP) {
	u, ok := r.url(at, v)
	store(&o.Endpoint, strings.TrimRight(u, "/"), ok)
}

// otlpHeaders reads name=value pairs with commas between them, as the standard
// variable of OpenTelemetry has them: values are percent-encoded. All of them
// are secrets.
func (r *reader) otlpHeaders(at place, v string, o *OTLP) {
	headers := make(map[string]Secret)
	for _, it := range commas(at, v) {
		name, value, ok := strings.Cut(it.text, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !headerName(name) || strings.ContainsAny(value, "\r\n\x00") {
			r.warn(at, "one of the headers is not of the form name=value; ignored") // it may hold a secret
			continue
		}
		headers[name] = NewSecret(at.key, value)
	}
	o.Headers = headers
}

// pprof says whether profiles are served. They show what is in memory, so
// whatever is not understood means no.
func (r *reader) pprof(at place, v string, to *bool) {
	yes, ok := parseTruth(v)
	if v == "1" || v == "0" { // how variables are often set
		yes, ok = v == "1", true
	}
	if !ok {
		r.warn(at, "%s is not one of true, false; ignored", quote(v))
		instead(r, len(r.warnings)-1, "using false")
	}
	*to = yes
}

// telemetryKeys are those of the root.
func telemetryKeys() []key[Config] {
	return []key[Config]{
		text("metrics", func(r *reader, at place, v string, c *Config) { r.truth(at, v, &c.Telemetry.Metrics) }),
		text("pprof", func(r *reader, at place, v string, c *Config) { r.pprof(at, v, &c.Telemetry.Pprof) }),
		{"otlp", func(r *reader, at place, n *yaml.Node, c *Config) { group(r, at, n, &c.Telemetry.OTLP, otlpKeys()) }},
	}
}

func telemetryVariables() []variable {
	return []variable{
		{"CLAYBOT_PPROF", func(r *reader, at place, v string, c *Config) { r.pprof(at, v, &c.Telemetry.Pprof) }},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", func(r *reader, at place, v string, c *Config) { r.otlpURL(at, v, &c.Telemetry.OTLP) }},
		{"OTEL_EXPORTER_OTLP_HEADERS", func(r *reader, at place, v string, c *Config) { r.otlpHeaders(at, v, &c.Telemetry.OTLP) }},
	}
}
