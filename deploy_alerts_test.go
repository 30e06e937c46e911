package claybot_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Prometheus takes the alerts of deploy/alerts.yaml, and they say what deploy/alerts_test.yaml wants, about metrics that exist.
func TestAlerts(t *testing.T) {
	rules, err := os.ReadFile("deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if missing := unknownMetrics(string(rules), string(guide)); missing != nil {
		t.Errorf("unknown metrics %v", missing)
	}
	cases, err := os.ReadFile("deploy/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rules)) {
		if _, alert, ok := strings.Cut(strings.TrimSpace(line), "- alert: "); ok && strings.Count(string(cases), "alertname: "+alert) < 2 {
			t.Errorf("%s is not tried when all is well, and when it is not", alert)
		}
	}
	promtool(t, "check", "rules", "deploy/alerts.yaml")
	promtool(t, "test", "rules", "deploy/alerts_test.yaml")
}

// promtool runs the tool of Prometheus, which must find no fault.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is not installed (scripts/programs.sh installs it)")
		}
		t.Skip("SKIPPED, the alerts are not tried: promtool is not installed (scripts/programs.sh installs it)")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
