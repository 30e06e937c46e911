package configs

import (
	"slices"
	"strings"
	"testing"
)

// Every key of the schema can be got, with the default that the guide names.
func TestValueOfEveryKey(t *testing.T) {
	c, _ := load(t, "", nil)
	listed := make(map[string][]Value)
	for _, v := range c.Values() {
		listed[v.Key] = append(listed[v.Key], v)
	}
	paths := append(Keys(), "connectors", "agents.default.deep")
	for _, own := range []string{"name", "provider", "base_url", "key", "system_fallback", "max_tokens"} {
		paths = append(paths, "agents.default.model."+own)
	}
	for _, path := range paths {
		path, entry, _ := strings.Cut(path, "[]")
		if entry != "" || strings.HasPrefix(path, "connectors.webhook.") { // stands for entries of any name
			continue
		}
		all := listed[path]
		if all == nil {
			all = c.Value(path)
		}
		if len(all) != 1 || all[0].Key != path {
			t.Errorf("%s: %+v", path, all)
			continue
		}
		want, plain := strings.CutPrefix(HelpOf(path).Default, "`")
		if word, rest, _ := strings.Cut(want, "`"); plain && rest == "" && !slices.Contains(differing, path) && all[0].Plain() != word {
			t.Errorf("%s: %q, and the guide says %q", path, all[0].Plain(), word)
		}
	}
}

// differing are keys whose default in the guide has another form, is that of another key, or is none until something
// else is set.
var differing = []string{
	"workspaces.ttl", "agents.default.model", "heartbeat.timezone", "files.access_key", "files.secret_key", "files.session_token",
	"speech.voice", "agents.default.plan.quiet",
}

// What a profile or a connector has without being asked can be got as well.
func TestValueOfNamed(t *testing.T) {
	c, warnings := load(t, `
agents:
  default: {plan: {mode: auto, quiet_hours: "22:00-06:00"}, limits: {tool_output: 4MiB}}
  night: {match: [cron], deep: {files: none}, browser: on}
  plain: {match: [heartbeat], deep: true}
connectors:
  hooks: {type: webhook, secret: env:HOOK}
`, map[string]string{"HOOK": "a-secret-of-hooks-1234"})
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	for key, want := range map[string]string{
		"agents.night.plan.mode":          "auto",
		"agents.night.plan.quiet_hours":   "22:00-06:00",
		"agents.night.plan.quiet":         "plan_only",
		"agents.night.plan.retries":       "3",
		"agents.night.limits.tool_output": "4MiB",
		"agents.night.limits.step_calls":  "64",
		"agents.night.notes":              "on",
		"agents.night.browser":            "on",
		"agents.default.browser":          "off",
		"agents.default.deep":             "false",
		"agents.default.deep.files":       "state",
		"agents.night.deep.todos":         "true",
		"agents.night.explore.screens":    "true",
		"agents.night.workspace":          "docker",
		"agents.night.workspace.per":      "agent",
		"agents.plain.deep":               "true",
		"connectors.hooks.max_body":       "1m",
		"connectors.hooks.scheme":         "standard",
		"connectors.hooks.callback":       "",
	} {
		if all := c.Value(key); len(all) != 1 || all[0].Key != key || all[0].Plain() != want {
			t.Errorf("%s: want %q, got %+v", key, want, all)
		}
	}
	if all := c.Value("agents.night.plan"); len(all) < 10 || all[0].Key != "agents.night.plan.mode" {
		t.Errorf("a group that a profile has of the default one: %+v", all)
	}
}

// Secrets in groups of names are secrets, and headers can be.
func TestSecretsOfGroups(t *testing.T) {
	for key, want := range map[string][3]bool{ // IsSecret, TakesSecret, SecretGroup
		"mcp.x.secrets.PLAIN":           {true, true, false},
		"mcp.x.secrets":                 {true, true, true},
		"mcp.x.headers":                 {true, true, true},
		"mcp.x.headers.X-Team":          {false, true, false},
		"mcp.x.token":                   {true, true, false},
		"mcp.x.command":                 {false, false, false},
		"mcp.x.env.HOME":                {false, false, false},
		"mcp.x.oauth.client_secret":     {true, true, false},
		"model.headers":                 {true, true, true},
		"model.headers.X-Team":          {false, true, false},
		"otlp.headers.api-key":          {true, true, false},
		"agents.night.model.headers":    {true, true, true},
		"agents.night.model.headers.X":  {false, true, false},
		"model.key":                     {true, true, false},
		"connectors.hooks.secret":       {true, true, false},
		"agents.default.prompt":         {false, false, false},
		"people.alice":                  {false, false, false},
		"agents.default.model.base_url": {false, false, false},
	} {
		if got := [3]bool{IsSecret(key), TakesSecret(key), SecretGroup(key)}; got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}
