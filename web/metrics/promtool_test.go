package metrics

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Prometheus finds no fault with the metrics.
func TestPromtool(t *testing.T) {
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is not installed (scripts/programs.sh installs it)")
		}
		t.Skip("SKIPPED, the metrics are not tried: promtool is not installed (scripts/programs.sh installs it)")
	}
	text, _ := get(t, serve(t, everything(t)).URL+"/metrics", "")
	cmd := exec.CommandContext(t.Context(), path, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
