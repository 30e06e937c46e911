package claybot_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// metricName is a metric in an expression of Prometheus.
var metricName = regexp.MustCompile(`\b(claybot|process|go)_[a-z_]+`)

// histogramPart is the suffix of the series of a histogram.
var histogramPart = regexp.MustCompile(`_(bucket|sum|count)$`)

// unknownMetrics are the metrics of an expression that a guide does not list.
func unknownMetrics(expr, guide string) (all []string) {
	for _, name := range metricName.FindAllString(expr, -1) {
		whole := histogramPart.ReplaceAllString(name, "")
		if !strings.Contains(guide, "\n| `"+name+"` | ") && (whole == name || !strings.Contains(guide, "\n| `"+whole+"` | histogram | ")) {
			all = append(all, name)
		}
	}
	return all
}

// The dashboard shows metrics that exist.
func TestDashboard(t *testing.T) {
	guide, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string][]string{
		"claybot_run_duration_seconds_bucket": nil,
		"claybot_agents_bucket":               {"claybot_agents_bucket"},
	} {
		if got := unknownMetrics(expr, string(guide)); !slices.Equal(got, want) {
			t.Fatalf("unknown in %s: %v, want %v", expr, got, want)
		}
	}
	text, err := os.ReadFile("deploy/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID          int
			Title       string
			Description string
			Targets     []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	if len(board.Panels) < 10 || len(board.Templating.List) != 2 {
		t.Errorf("%d panels, %d variables", len(board.Panels), len(board.Templating.List))
	}
	for i, p := range board.Panels {
		if p.ID != i+1 || p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("incomplete: %+v", p)
		}
		for _, x := range p.Targets {
			if missing := unknownMetrics(x.Expr, string(guide)); missing != nil || !metricName.MatchString(x.Expr) || x.LegendFormat == "" {
				t.Errorf("%s: %q has unknown metrics %v", p.Title, x.Expr, missing)
			}
		}
	}
	for _, v := range board.Templating.List {
		if missing := unknownMetrics(string(v.Query), string(guide)); missing != nil {
			t.Errorf("%s: %s has unknown metrics %v", v.Name, v.Query, missing)
		}
	}
}

// The alerts are about metrics that exist, and Prometheus reaches the port that has them.
func TestMonitoring(t *testing.T) {
	k := readKube(t)
	if len(k.monitors) != 1 || len(k.rules) != 1 {
		t.Fatalf("%d monitors, %d sets of rules", len(k.monitors), len(k.rules))
	}
	guide, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := unknownMetrics("max(claybot_agents) / claybot_agent > 1", string(guide)); !slices.Equal(got, []string{"claybot_agent"}) {
		t.Fatalf("unknown: %v", got)
	}
	alerts := 0
	for _, g := range k.rules[0].Spec.Groups {
		for _, r := range g.Rules {
			alerts++
			if missing := unknownMetrics(r.Expr, string(guide)); missing != nil || !metricName.MatchString(r.Expr) {
				t.Errorf("%s: %q has unknown metrics %v", r.Alert, r.Expr, missing)
			}
			if r.Annotations["summary"] == "" || r.Labels["severity"] == "" || r.Alert == "" {
				t.Errorf("incomplete: %+v", r)
			}
		}
	}
	if alerts < 10 {
		t.Errorf("%d alerts", alerts)
	}
	c := checkSettings(t, "the ConfigMap", k.settings[0].Data["claybot.yaml"])
	_, port, _ := strings.Cut(c.Telemetry.MetricsListen, ":")
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	ports := k.sets[0].Spec.Template.Spec.Containers[0].Ports
	if end := k.monitors[0].Spec.PodMetricsEndpoints; !slices.ContainsFunc(ports, func(p kubePort) bool { return p.Name == end[0].Port && p.ContainerPort == n }) {
		t.Errorf("Prometheus asks %+v; the members listen on %d and name %+v", end, n, ports)
	}
	i := slices.IndexFunc(k.policies, func(p kubePolicy) bool { return p.Metadata.Name == "claybot-metrics" })
	if i < 0 || len(k.policies[i].Spec.Ingress) != 1 || k.policies[i].Spec.Ingress[0].Ports[0].Port != n || len(k.policies[i].Spec.Ingress[0].From) != 1 {
		t.Errorf("policies: %+v", k.policies)
	}
}
