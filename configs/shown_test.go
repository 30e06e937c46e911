package configs

import (
	"slices"
	"strings"
	"testing"
)

// Each default can stand in the file, and changes nothing there.
func TestDefaultsOfValues(t *testing.T) {
	plain, _ := load(t, "", nil)
	all := plain.Values()
	if len(all) < 100 {
		t.Errorf("%d keys", len(all))
	}
	for _, v := range all {
		if v.Origin != OriginDefault || v.Refused {
			t.Errorf("%s comes from %s", v.Key, v.Origin)
		}
		if v.Value == "" {
			continue
		}
		c, warnings := load(t, nested(v.Key, v.Value), nil)
		if len(warnings) != 0 {
			t.Errorf("%s: %s: %v", v.Key, v.Value, warnings)
		}
		for _, now := range c.Values() {
			i := slices.IndexFunc(all, func(v Value) bool { return v.Key == now.Key })
			if i < 0 || all[i].Value != now.Value {
				t.Errorf("%s: %s changes %s to %q", v.Key, v.Value, now.Key, now.Value)
			}
		}
	}
}

// nested is a file that sets one key.
func nested(key, value string) string {
	var b strings.Builder
	names := strings.Split(key, ".")
	for i, name := range names {
		b.WriteString(strings.Repeat("  ", i) + name + ":")
		if i < len(names)-1 {
			b.WriteString("\n")
		}
	}
	return b.String() + " " + value + "\n"
}

func TestValues(t *testing.T) {
	c, warnings := load(t, `
model: gpt-5-mini
access: {mode: allowlist, allow: [telegram:123456789]}
log_level: warn
telegram:
  token: env:BOT
agents:
  default:
    max_steps: 12
  night:
    match: [cron]
    model: {name: small, base_url: http://127.0.0.1:11434/v1}
    whenBusy: never
connectors:
  hooks:
    type: webhook
    secret: env:HOOK
mcp:
  files: {command: [files]}
people:
  alice: [telegram/1, slack/U1]
retention:
  runs: sometimes
relay:
  - name: log
    url: http://127.0.0.1:9999/sk-canary
`, map[string]string{
		"BOT": "123:canary", "HOOK": "canary-of-the-hook", "SLACK_BOT_TOKEN": "xoxb-canary", "CLAYBOT_LOG_LEVEL": "debug", "OPENAI_API_KEY": "sk-canary",
		"CLAYBOT_STORAGE_URL": "postgres://claybot:canary@db/claybot", "CLAYBOT_NODE_NAME": "a", "CLAYBOT_ACCESS": "nobody",
	})
	c.Source.Warnings = warnings
	if err := c.Override(Override{DataDir: "/data", Model: "gpt-5"}); err != nil {
		t.Fatal(err)
	}
	all := c.Values()
	for _, v := range all {
		if strings.Contains(v.Value, "canary") && v.Key != "relay" {
			t.Errorf("%s shows a secret: %s", v.Key, v.Value)
		}
	}
	file := c.Source.File
	for _, want := range []Value{
		{Key: "data_dir", Value: "/data", Origin: "--data-dir", Above: true},
		{Key: "model.name", Value: "gpt-5", Origin: "--model", Above: true},
		{Key: "model.key", Value: Hidden, Origin: "OPENAI_API_KEY", Above: true},
		{Key: "access.mode", Origin: "CLAYBOT_ACCESS", Refused: true, Above: true},
		{Key: "access.allow", Value: "['telegram:123456789']", Origin: file + ":3"},
		{Key: "log_level", Value: "debug", Origin: "CLAYBOT_LOG_LEVEL", Above: true},
		{Key: "log", Origin: OriginDefault},
		{Key: "telegram.token", Value: "env:BOT", Origin: file + ":6"},
		{Key: "slack.bot_token", Value: Hidden, Origin: "SLACK_BOT_TOKEN", Above: true},
		{Key: "storage.url", Value: Hidden, Origin: "CLAYBOT_STORAGE_URL", Above: true},
		{Key: "node.name", Value: "a", Origin: "CLAYBOT_NODE_NAME", Above: true},
		{Key: "agents.default.max_steps", Value: "12", Origin: file + ":9"},
		{Key: "agents.default.maxBatch", Value: "100", Origin: OriginDefault},
		{Key: "agents.night.match", Value: "[cron]", Origin: file + ":11"},
		{Key: "agents.night.model.base_url", Value: "http://127.0.0.1:11434/v1", Origin: file + ":12"},
		{Key: "agents.night.whenBusy", Origin: file + ":13", Refused: true},
		{Key: "connectors.hooks.type", Value: "webhook", Origin: file + ":16"},
		{Key: "connectors.hooks.secret", Value: "env:HOOK", Origin: file + ":17"},
		{Key: "mcp.files", Value: "{command: [files]}", Origin: file + ":19"},
		{Key: "people.alice", Value: "[telegram/1, slack/U1]", Origin: file + ":21"},
		{Key: "retention.runs", Origin: file + ":23", Refused: true},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("want %+v, got %+v", want, c.Value(want.Key))
		}
	}
	seen := make(map[string]bool)
	for _, v := range all {
		if seen[v.Key] {
			t.Errorf("%s is there twice", v.Key)
		}
		seen[v.Key] = true
	}
	if got := c.Value("agents.night"); len(got) != 4 {
		t.Errorf("a group has %+v", got)
	}
	if got := c.Value("agents.night.max_steps"); len(got) != 1 || got[0].Value != "12" {
		t.Errorf("what a profile has of the default one: %+v", got)
	}
	for _, key := range []string{"http_hosts", "budgets", "relay"} {
		if got := c.Value(key); len(got) != 1 {
			t.Errorf("%s: %+v", key, got)
		}
	}
	if got := c.Value("agents.nigh"); len(got) != 0 {
		t.Errorf("no such key has %+v", got)
	}
}
