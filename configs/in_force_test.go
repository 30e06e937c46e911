package configs

import (
	"fmt"
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

// Keys of MCP servers and relays can be got with their defaults, and so can those entries as a whole.
func TestValueOfEntries(t *testing.T) {
	c, warnings := load(t, `
mcp:
  files: {command: [npx, -y], timeout: 5s, env: {HOME: /x}}
  far: {url: "https://mcp.example/hooks/T0123456", headers: {Authorization: "env:HOOK"}, oauth: {scopes: [a]}}
  slow: {command: [x], timeout: never}
relay:
  - {name: log, file: a.log}
  - {name: far, url: "https://hooks.example/hooks/T0123456", secret: env:HOOK}
  - {name: bad}
`, map[string]string{"HOOK": "a-secret-of-hooks-1234"})
	c.Source.Warnings = warnings
	for key, want := range map[string]struct {
		value string
		line  int // 0: default
	}{
		"mcp.files.command": {"[npx, -y]", 3}, "mcp.files.timeout": {"5s", 3}, "mcp.files.where": {"workspace", 0}, "mcp.files.network": {"none", 0}, "mcp.files.trusted": {"false", 0},
		"mcp.files.env": {"{HOME: /x}", 3}, "mcp.files.env.HOME": {"/x", 3}, "mcp.files.hosts": {"", 0}, "mcp.files.tools": {"", 0}, "mcp.files.tools.deny": {"", 0}, "mcp.files.headers": {"", 0},
		"mcp.far.timeout": {"1m", 0}, "mcp.far.url": {"https://mcp.example/hooks/(secret)", 4}, "mcp.far.headers.Authorization": {"env:HOOK", 4}, "mcp.far.headers": {`{Authorization: "env:HOOK"}`, 4},
		"mcp.far.oauth.scopes": {"[a]", 4}, "mcp.far.oauth.grant": {"authorization_code", 0}, "mcp.far.token": {"", 0}, "mcp.slow.command": {"[x]", 5}, "mcp.slow.where": {"workspace", 0},
		"relay.log": {"{name: log, file: a.log}", 7}, "relay.log.file": {"a.log", 7}, "relay.log.secret": {"", 0}, "relay.far.secret": {"env:HOOK", 8}, "relay.far.url": {"https://hooks.example/(secret)", 8}, "relay.far.file": {"", 0},
	} {
		all := c.Value(key)
		if len(all) != 1 || all[0].Key != key || all[0].Plain() != want.value || all[0].Refused {
			t.Errorf("%s: want %q, got %+v", key, want.value, all)
			continue
		}
		if from := all[0].Origin; want.line == 0 && from != OriginDefault || want.line > 0 && !strings.HasSuffix(from, fmt.Sprintf(":%d", want.line)) {
			t.Errorf("%s: from %s", key, from)
		}
	}
	for _, key := range []string{"mcp.slow.timeout", "relay.bad"} {
		if all := c.Value(key); len(all) != 1 || !all[0].Refused || all[0].Value != "" {
			t.Errorf("%s is not valid, and is %+v", key, all)
		}
	}
	for _, key := range []string{"mcp.gone.url", "mcp.files.tiemout", "mcp.files.env.PATH", "mcp.files.oauth.grnt", "relay.gone", "relay.gone.file", "relay.log.fil", "relay[0].file", "relay.", "budgets.x.usd"} {
		if all := c.Value(key); len(all) != 0 {
			t.Errorf("%s is %+v", key, all)
		}
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
