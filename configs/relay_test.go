package configs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
)

func loadText(t *testing.T, text string, env map[string]string) (configs.Config, []configs.Warning) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claybot.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := configs.Load(path, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	return c, warnings
}

func TestRelay(t *testing.T) {
	env := map[string]string{"HOOK_SECRET": "a-secret-for-tests"}
	c, warnings := loadText(t, `
relay:
  - name: analytics
    url: https://hooks.example.org/claybot
    secret: env:HOOK_SECRET
  - name: log
    file: events.jsonl
`, env)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	if c.RelayPartial() {
		t.Error("the relay counts as incomplete")
	}
	if len(c.Telemetry.Relay) != 2 || c.Telemetry.Relay[0].URL != "https://hooks.example.org/claybot" || c.Telemetry.Relay[0].Secret.Value() != "a-secret-for-tests" {
		t.Errorf("got %+v", c.Telemetry.Relay)
	}
	if got := c.Telemetry.Relay[1].File; got != filepath.Join(filepath.Dir(c.Source.File), "events.jsonl") {
		t.Errorf("the file is %s, want it beside the configuration", got)
	}
}

func TestRelayBroken(t *testing.T) {
	tests := []struct{ text, want string }{
		{"relay: x", "want a list of relays"},
		{"rellay:\n  - {name: a, file: f}", "did you mean relay"},
		{"relay: [x]", "want a group of keys"},
		{"relay:\n  - {url: 'https://a.example', secret: 'env:S'}", "has no name"},
		{"relay:\n  - {name: a}", "wants either url or file"},
		{"relay:\n  - {name: a, file: f, url: 'https://a.example', secret: 'env:S'}", "wants either url or file"},
		{"relay:\n  - {name: a, url: 'https://a.example'}", "has no secret"},
		{"relay:\n  - {name: a, url: 'https://a.example', secret: 'env:MISSING'}", "is not set"},
		{"relay:\n  - {name: a, url: 'https://a.example', secret: plain-text-secret}", "must not stand in the file"},
		{"relay:\n  - {name: a, url: 'https://u:p@a.example', secret: 'env:S'}", "must not hold a user name"},
		{"relay:\n  - {name: a, url: 'ftp://a.example', secret: 'env:S'}", "not an http or https address"},
		{"relay:\n  - {name: 'A b', file: f}", "is not a name"},
		{"relay:\n  - {name: a, file: f, secret: 'env:S'}", "needs no secret"},
		{"relay:\n  - {name: a, fil: f}", "did you mean relay[0].file"},
		{"relay:\n  - {name: a, file: \"a\\nb\"}", "not the name of a file"},
		{"relay:\n  - {name: a, file: f}\n  - {name: a, file: g}", "was given in line"},
	}
	for _, tt := range tests {
		c, warnings := loadText(t, tt.text, map[string]string{"S": "s3cret-for-tests"})
		var all []string
		for _, w := range warnings {
			all = append(all, w.String())
		}
		said := strings.Join(all, "\n")
		if !strings.Contains(said, tt.want) {
			t.Errorf("%s: said %q, want %q", tt.text, said, tt.want)
		}
		if strings.Contains(said, "plain-text-secret") || strings.Contains(said, "u:p") {
			t.Errorf("%s: a secret is told: %s", tt.text, said)
		}
		if c.Source.Warnings = warnings; !c.RelayPartial() {
			t.Errorf("%s: the relay counts as complete", tt.text)
		}
		if want := strings.Count(tt.want, "given in line"); len(c.Telemetry.Relay) != want {
			t.Errorf("%s: %d relays are left, want %d", tt.text, len(c.Telemetry.Relay), want)
		}
	}
}
