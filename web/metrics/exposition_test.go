package metrics

import (
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/web"
)

func TestNegotiation(t *testing.T) {
	prometheus := "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
	for _, tt := range []struct {
		accept string
		want   bool
	}{
		{"", false},
		{"*/*", false},
		{"text/plain", false},
		{"text/html,application/xhtml+xml;q=0.9", false},
		{"application/openmetrics-text", true},
		{"application/openmetrics-text; version=1.0.0", true},
		{"application/openmetrics-text; version=2.0.0", false},
		{"application/openmetrics-text;q=0", false},
		{"application/openmetrics-text;q=7", false},
		{"application/openmetrics-text;q=x", false},
		{"application/openmetrics-text;q=0.2, text/plain;q=0.3", false},
		{"text/plain;q=0.3, application/openmetrics-text;q=0.3", true},
		{prometheus, true},
		{";;;,,,/", false},
		{"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;q=0.7,text/plain;version=0.0.4;q=0.3", false},
	} {
		if got := wantsOpenMetrics(http.Header{"Accept": {tt.accept}}); got != tt.want {
			t.Errorf("%q: OpenMetrics %v, want %v", tt.accept, got, tt.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", -1.5: "-1.5", 1e21: "1e+21", .0005: "0.0005", math.Inf(1): "+Inf", math.Inf(-1): "-Inf",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
	if got := number(math.NaN()); got != "NaN" {
		t.Errorf("number(NaN) = %s", got)
	}
}

// Values that mean something in the format are told as they are.
func TestEscaping(t *testing.T) {
	f := &family{name: "x_total", kind: counter, help: "a \\ and \n a \"line\"", labels: []string{"l"}}
	odd := []string{`quote " back \ end`, "two\nlines", "\x00\x1b[0m", "bad \xff utf8", "é 漢 🙂", "} 1"}
	for i, v := range odd {
		f.add(float64(i+1), v)
	}
	for _, open := range []bool{false, true} {
		p := &page{open: open}
		p.family(f, nil)
		text := p.String()
		if n := strings.Count(text, "\n"); n != len(odd)+2 {
			t.Errorf("%d lines:\n%s", n, text)
		}
		if open {
			continue // the parser reads the other format
		}
		all := parse(t, text)
		if got := all["x_total"].GetHelp(); got != f.help {
			t.Errorf("help %q", got)
		}
		for i, v := range odd {
			if got := value(t, all, "x_total", "l", strings.ToValidUTF8(v, "\uFFFD")); got != float64(i+1) {
				t.Errorf("%q = %v", v, got)
			}
		}
	}
}

func TestHistogram(t *testing.T) {
	f := &family{name: "h_seconds", kind: histogram, help: "h", bounds: []float64{.5, 1, 10}, labels: []string{"l"}}
	for _, v := range []float64{0, .5, .7, 1, 1.1, 10, 11, 1e9} {
		f.observe(v, "x")
	}
	p := new(page)
	p.family(f, nil)
	h := parse(t, p.String())["h_seconds"].GetMetric()[0].GetHistogram()
	var got []uint64
	for _, b := range h.GetBucket() {
		got = append(got, b.GetCumulativeCount())
	}
	if want := []uint64{2, 4, 6, 8}; !slices.Equal(got, want) || h.GetSampleCount() != 8 || h.GetSampleSum() != 1e9+24.3 {
		t.Errorf("buckets %v, want %v; count %d, sum %v", got, want, h.GetSampleCount(), h.GetSampleSum())
	}
	p = &page{open: true}
	p.family(f, nil)
	if !strings.Contains(p.String(), `le="1.0"`) || !strings.Contains(p.String(), "# UNIT h_seconds seconds\n") {
		t.Errorf("OpenMetrics:\n%s", p)
	}
}

// omLine is a line of OpenMetrics.
var omLine = regexp.MustCompile(`^(# (HELP|TYPE|UNIT) [a-z_]+ .*|[a-z_]+(\{([a-z]+="([^"\\\n]|\\[n"\\])*",?)+\})? [-+0-9.eInfNa]+)$`)

func TestOpenMetrics(t *testing.T) {
	text, head := get(t, serve(t, everything(t)).URL+"/metrics", "application/openmetrics-text; version=1.0.0")
	if got := head.Get("Content-Type"); got != "application/openmetrics-text; version=1.0.0; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	lines := strings.Split(text, "\n")
	if n := len(lines); lines[n-2] != "# EOF" || lines[n-1] != "" {
		t.Errorf("the page ends with %q", lines[max(0, n-3):])
	}
	family, kind := "", ""
	for _, line := range lines[:len(lines)-2] {
		if !omLine.MatchString(line) {
			t.Errorf("not a line of OpenMetrics: %q", line)
		}
		words := strings.Fields(line)
		switch {
		case words[0] == "#":
			family = words[2]
			if words[1] == "TYPE" {
				kind = words[3]
			}
			if kind == "counter" && words[1] == "TYPE" && strings.HasSuffix(family, "_total") {
				t.Errorf("a family of counters is called %s", family)
			}
		case !strings.HasPrefix(line, family):
			t.Errorf("%q stands below %s", line, family)
		case kind == "counter" && !strings.HasPrefix(line, family+"_total"):
			t.Errorf("a counter without _total: %q", line)
		}
	}
}

// Routes are there only when they are wanted, for those who may see them.
func TestRoutes(t *testing.T) {
	scopes := func(c Config) map[string]web.Scope {
		all := make(map[string]web.Scope)
		for _, r := range New(c).Routes() {
			all[r.Pattern] = r.Scope
		}
		return all
	}
	if got := scopes(Config{}); len(got) != 0 {
		t.Errorf("routes that no scope asked for: %v", got)
	}
	if got := scopes(Config{Serve: yes}); len(got) != 1 || got["GET /metrics"] != web.Read {
		t.Errorf("got %v", got)
	}
	got := scopes(Config{Pprof: yes})
	if len(got) != 5 {
		t.Errorf("got %v", got)
	}
	for pattern, scope := range got {
		if scope != web.Admin || !strings.HasPrefix(pattern, "GET /debug/pprof/") {
			t.Errorf("%s needs %q", pattern, scope)
		}
	}
	srv := serve(t, New(Config{Pprof: yes}))
	for path, want := range map[string]string{"": "goroutine", "goroutine?debug=1": "goroutine profile:", "cmdline": "", "symbol": "num_symbols", "heap": ""} {
		text, head := get(t, srv.URL+"/debug/pprof/"+path, "")
		if !strings.Contains(text, want) || head.Get("Cache-Control") != "no-store" {
			t.Errorf("/debug/pprof/%s: %.80q, %v", path, text, head)
		}
	}
}

// What is no longer wanted is not served.
func TestRoutesWhileWanted(t *testing.T) {
	wanted := true
	routes := New(Config{Serve: yes, Pprof: func() bool { return wanted }}).Routes()
	for _, want := range []int{http.StatusOK, http.StatusNotFound} {
		for _, r := range routes {
			if !strings.HasSuffix(r.Pattern, "/cmdline") {
				continue
			}
			w := httptest.NewRecorder()
			r.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/pprof/cmdline", nil))
			if w.Code != want {
				t.Errorf("wanted %v: %d", wanted, w.Code)
			}
		}
		wanted = false
	}
}

// An age is never negative.
func TestAge(t *testing.T) {
	if age(time.Unix(10, 0), time.Unix(20, 0)) != 0 || age(time.Unix(10, 0), time.Time{}) != 0 || age(time.Unix(20, 0), time.Unix(10, 0)) != 10 {
		t.Error("ages are wrong")
	}
}

func FuzzSample(f *testing.F) {
	f.Add("a", "b\"\n\\")
	f.Add("\xff", "\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		fam := &family{name: "x_total", kind: counter, help: a + b, labels: []string{"l", "m"}}
		fam.add(1, a, b)
		fam.add(1, a, b)
		p := new(page)
		p.family(fam, nil)
		all := parse(t, p.String())
		if got := value(t, all, "x_total", "l", strings.ToValidUTF8(a, "\uFFFD"), "m", strings.ToValidUTF8(b, "\uFFFD")); got != 2 {
			t.Errorf("%q %q = %v in\n%s", a, b, got, p)
		}
	})
}
