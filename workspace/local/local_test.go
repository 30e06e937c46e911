package local

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/workspacetest"
)

// open is what local workspaces are opened with.
var open = workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkFull}}

func newProvider(t testing.TB) *Provider { return New(Config{Dir: t.TempDir() + "/workspaces"}) }

// canary is a variable that this process has from its beginning, as claybot has
// its tokens.
const canary = "CLAYBOT_CANARY"

// TestSuite runs the suite in a process whose environment has a secret.
func TestSuite(t *testing.T) {
	secret := os.Getenv(canary)
	if secret == "" {
		args := []string{"-test.run=^TestSuite$", "-test.v"}
		if testing.Short() {
			args = append(args, "-test.short")
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), canary+"=not-a-real-secret-4711")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestSuite") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	workspacetest.Test(t, func(t *testing.T) workspace.Provider { return newProvider(t) }, workspacetest.Options{Spec: open, Host: []string{secret}})
}
