package configs

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

var brokenTelemetry = []fault{
	{"metrics", "metrics: maybe\n", []string{`1 metrics: "maybe" is not one of true, false; ignored ?`}},
	{"metrics listener", "metrics_listen: 9464\n", []string{`1 metrics_listen: "9464" is not an address such as 127.0.0.1:8420, and not off; the metrics listener is off until this is corrected ?`}},
	{"metrics listener mistyped", "metrics_lisen: 127.0.0.1:9464\n", []string{"1 metrics_lisen: unknown key; ignored ?metrics_listen"}},
	{"pprof", "pprof: ture\n", []string{`1 pprof: "ture" is not one of true, false; no profiles are served until this is corrected ?`}},
	{"pprof as group", "pprof: {on: true}\n", []string{"1 pprof: want a single value, found a group of keys ?"}},
	{"otlp as address", "otlp: http://127.0.0.1:4318\n", []string{"1 otlp: want a group of keys (endpoint, headers, interval), found a single value; ignored ?"}},
	{"otlp endpoint", "otlp:\n  endpoint: 127.0.0.1:4318\n", []string{"2 otlp.endpoint: \"127.0.0.1:4318\" has no scheme: put https:// or http:// in front of it; no traces are sent ?"}},
	{"otlp password", "otlp:\n  endpoint: http://me:canary@host\n", []string{"2 otlp.endpoint: an address must not hold a user name or password ?"}},
	{"otlp query", "otlp:\n  endpoint: http://host/?key=canary\n", []string{"2 otlp.endpoint: an address must not hold a query ?"}},
	{"otlp secret", "otlp:\n  headers: {api-key: canary}\n", []string{"2 otlp.headers.api-key: a secret must not stand in the file ?"}},
	{"otlp header", "otlp:\n  headers: {\"a b\": c}\n", []string{`2 otlp.headers.a b: "a b" is not the name of a header ?`}},
	{"otlp interval", "otlp:\n  interval: 5\n", []string{`2 otlp.interval: "5" is not a duration such as 90s or 30m, from 100ms to 1h; ignored ?`}},
	{"otlp too often", "otlp:\n  interval: 99ms\n", []string{`2 otlp.interval: "99ms" is not a duration ?`}},
	{"otlp backwards", "otlp:\n  interval: -1s\n", []string{`2 otlp.interval: "-1s" is not a duration ?`}},
	{"otlp mistyped", "otlp:\n  endpont: http://host\n", []string{"2 otlp.endpont: unknown key; ignored ?otlp.endpoint"}},
}

func TestTelemetry(t *testing.T) {
	plain, _ := load(t, "", nil)
	if !plain.Telemetry.Metrics || plain.Telemetry.MetricsListen != Off || plain.Telemetry.Pprof || plain.Telemetry.OTLP.Wanted() || plain.Telemetry.OTLP.Interval != 5*time.Second {
		t.Errorf("defaults: %+v %v %v", plain.Telemetry.OTLP, plain.Telemetry.Metrics, plain.Telemetry.Pprof)
	}
	text := "metrics: off\nmetrics_listen: 0.0.0.0:9464\npprof: yes\notlp: {endpoint: \"https://host:4318/otlp/\", headers: {api-key: env:KEY, team: a}, interval: 1m}\n"
	c, warnings := load(t, text, map[string]string{"KEY": "canary"})
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	if c.Telemetry.Metrics || c.Telemetry.MetricsListen != "0.0.0.0:9464" || !c.Telemetry.Pprof || c.Telemetry.OTLP.Endpoint != "https://host:4318/otlp" || c.Telemetry.OTLP.Interval != time.Minute {
		t.Errorf("got %v %v %+v", c.Telemetry.Metrics, c.Telemetry.Pprof, c.Telemetry.OTLP)
	}
	if h := c.Telemetry.OTLP.Headers; len(h) != 2 || h["api-key"].Value() != "canary" || h["team"].Value() != "a" || h["api-key"].String() != "env:KEY" {
		t.Errorf("headers %v", h)
	}
}

func TestTelemetryInEnvironment(t *testing.T) {
	c, warnings := load(t, "pprof: false\notlp: {endpoint: http://a, headers: {x: y}}\n", map[string]string{
		"CLAYBOT_PPROF": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://b:4318/",
		"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b%3Dc, team = red ,",
	})
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	got := make(map[string]string)
	for name, s := range c.Telemetry.OTLP.Headers {
		got[name] = s.Value()
	}
	if want := map[string]string{"api-key": "a b=c", "team": "red"}; !reflect.DeepEqual(got, want) || !c.Telemetry.Pprof || c.Telemetry.OTLP.Endpoint != "http://b:4318" {
		t.Errorf("got %v %v %q, want %v", got, c.Telemetry.Pprof, c.Telemetry.OTLP.Endpoint, want)
	}
}

// What is wrong with a header is told without its value.
func TestBadTelemetryInEnvironment(t *testing.T) {
	for _, tt := range []struct{ name, value string }{
		{"OTEL_EXPORTER_OTLP_HEADERS", "canary"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=canary%zz"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=canary%0d%0aHost:x"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "=canary"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a canary=b"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://canary:4317"},
		{"CLAYBOT_PPROF", "please"},
	} {
		c, warnings := load(t, "pprof: true\n", map[string]string{tt.name: tt.value})
		if len(warnings) != 1 || warnings[0].Key != tt.name || strings.Contains(warnings[0].String(), "canary") {
			t.Errorf("%s=%s: warnings %v", tt.name, tt.value, warnings)
		}
		if len(c.Telemetry.OTLP.Headers) != 0 || c.Telemetry.OTLP.Wanted() || c.Telemetry.Pprof != (tt.name != "CLAYBOT_PPROF") {
			t.Errorf("%s=%s: got %+v, pprof %v", tt.name, tt.value, c.Telemetry.OTLP, c.Telemetry.Pprof)
		}
	}
}
