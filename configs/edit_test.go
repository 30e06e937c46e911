package configs

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestEdit(t *testing.T) {
	for name, x := range map[string]struct{ before, key, value, after string }{
		"an empty file":          {"", "log", "json", "log: json\n"},
		"a file of comments":     {"# mine\n", "telegram.token", "env:BOT", "# mine\ntelegram:\n  token: env:BOT\n"},
		"another value":          {"log: text # as I like it\n\nlog_level: info\n", "log", "json", "log: json # as I like it\n\nlog_level: info\n"},
		"no new line at the end": {"log: text", "log_level", "warn", "log: text\nlog_level: warn\n"},
		"a key of a group":       {"telegram:\n    token: env:BOT\n# the rest\nlog: json\n", "telegram.receive", "webhook", "telegram:\n    token: env:BOT\n    receive: webhook\n# the rest\nlog: json\n"},
		"a group without a key":  {"telegram:\nlog: json\n", "telegram.token", "env:BOT", "telegram:\n  token: env:BOT\nlog: json\n"},
		"a deep key":             {"agents:\n  default:\n    max_steps: 3\n", "agents.night.maxBatch", "2", "agents:\n  default:\n    max_steps: 3\n  night:\n    maxBatch: 2\n"},
		"a short form":           {"model: gpt-5 # good\nlog: json\n", "model.base_url", "http://127.0.0.1:1/v1", "model:\n  name: gpt-5 # good\n  base_url: http://127.0.0.1:1/v1\nlog: json\n"},
		"a list":                 {"access:\n  allow:\n  - telegram:1\n  - telegram:2\n  mode: open\n", "access.allow", "[slack:U1]", "access:\n  allow: [slack:U1]\n  mode: open\n"},
		"a list for a word":      {"operators: web/1\n", "operators", "[web/1, slack/U1]", "operators: [web/1, slack/U1]\n"},
		"a text of lines":        {"agents:\n  default:\n    prompt: |\n      one\n\n      # two\n    max_steps: 3\n", "agents.default.prompt", "a # b\nc", "agents:\n  default:\n    prompt: \"a # b\\nc\"\n    max_steps: 3\n"},
		"what YAML would change": {"", "agents.default.prompt", "yes: *no", "agents:\n  default:\n    prompt: \"yes: *no\"\n"},
		"an empty value":         {"", "agents.default.prompt", "", "agents:\n  default:\n    prompt: \"\"\n"},
		"the short key itself":   {"model: gpt-5 # good\n", "model.name", "gpt-6", "model: gpt-6 # good\n"},
		"lines of Windows":       {"log: json\r\n", "log_level", "info", "log: json\r\nlog_level: info\r\n"},
		"the same":               {"log: json\n", "log", "json", "log: json\n"},
		"within braces":          {"telegram: {api_url: \"http://127.0.0.1:1\"} # my {bot}\nlog: json\n", "telegram.token", "env:BOT", "telegram: # my {bot}\n  api_url: \"http://127.0.0.1:1\"\n  token: env:BOT\nlog: json\n"},
		"another within braces":  {"model: {name: gpt-5, prices: {x: {input: 1, output: 2}}}\n", "model.name", "gpt-6", "model:\n  name: gpt-6\n  prices: {x: {input: 1, output: 2}}\n"},
		"deep within braces":     {"agents: {default: {max_steps: 3, prompt: \"ü, {a}\"}}\n", "agents.default.maxBatch", "2", "agents:\n  default:\n    max_steps: 3\n    prompt: \"ü, {a}\"\n    maxBatch: 2\n"},
		"empty braces":           {"telegram: {}\n", "telegram.token", "env:BOT", "telegram:\n  token: env:BOT\n"},
		"braces of lines":        {"telegram: {\n  api_url: x,\n  receive: poll}\n", "telegram.token", "env:BOT", "telegram:\n  api_url: x\n  receive: poll\n  token: env:BOT\n"},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := Set([]byte(x.before), x.key, x.value)
			if err != nil || string(after) != x.after {
				t.Fatalf("got %v\n%s\nwant\n%s", err, after, x.after)
			}
			again, err := Set(after, x.key, x.value)
			if err != nil || string(again) != string(after) {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
	for name, x := range map[string]struct{ before, key, after string }{
		"a key":            {"log: json # c\nlog_level: info\n", "log", "log_level: info\n"},
		"the last one":     {"# c\nlog: json\n", "log", "# c\n"},
		"its group":        {"agents:\n  default:\n    max_steps: 3\nlog: json\n", "agents.default.max_steps", "log: json\n"},
		"a group":          {"agents:\n  default:\n    max_steps: 3\n    maxBatch: 4\n\n# c\nlog: json\n", "agents.default", "\n# c\nlog: json\n"},
		"a short key":      {"model: gpt-5\nlog: json\n", "model.name", "log: json\n"},
		"a missing one":    {"log: json", "log_level", "log: json"},
		"in a missing one": {"log: json\n", "telegram.token", "log: json\n"},
		"within braces":    {"model: {name: gpt-5, provider: openai}\n", "model.name", "model:\n  provider: openai\n"},
	} {
		t.Run("without "+name, func(t *testing.T) {
			if after, err := Unset([]byte(x.before), x.key); err != nil || string(after) != x.after {
				t.Errorf("got %v\n%s\nwant\n%s", err, after, x.after)
			}
		})
	}
}

func TestEditByHand(t *testing.T) {
	for before, key := range map[string]string{
		"model: {name: gpt-5, # good\n  provider: openai}\n": "model.name",
		"log: json\n---\n":       "log_level",
		"log: json\n...\n":       "log_level",
		"budgets:\n  - usd: 5\n": "budgets.usd",
		"log: json\n":            "log.level",
		"a: &x {b: c}\nc: *x\n":  "c.b",
	} {
		if after, err := Set([]byte(before), key, "x"); !errors.Is(err, ErrByHand) {
			t.Errorf("%s: %q, %v", key, after, err)
		}
	}
	for _, broken := range []string{"log: [", "log: json\nlog: text\n", "- a\n", "a: 1\n---\nb: 2\n"} {
		if after, err := Set([]byte(broken), "log_level", "info"); err == nil {
			t.Errorf("%q becomes %q", broken, after)
		}
	}
	for key, value := range map[string]string{"access": "open", "agents": "{}", "agents.default": "x"} {
		const groups = "access:\n  mode: open\n  allow: [web/1]\nagents:\n  default:\n    max_steps: 3\n"
		if after, err := Set([]byte(groups), key, value); err == nil || !strings.Contains(err.Error(), "is a group of") {
			t.Errorf("%s: %q, %v", key, after, err)
		}
	}
	if got := Meant([]byte("access:\n  mode: open\n"), "access"); got != "access.mode" {
		t.Errorf("access means %s", got)
	}
	for _, key := range []string{"", ".", "a..b", "a."} {
		if after, err := Set(nil, key, "x"); err == nil {
			t.Errorf("key %q: %q", key, after)
		}
	}
}

// Every tenth key of the example can be set and removed without a change of another line, as far as
// it does not stand within braces.
func TestEditExample(t *testing.T) {
	text, err := os.ReadFile("claybot.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{env: environ(nil)}
	c, err := r.read("claybot.example.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for i, v := range c.Values() {
		if v.Origin == OriginDefault || i%10 != 0 {
			continue
		}
		next, err := Set(text, v.Key, "zyx")
		if errors.Is(err, ErrByHand) || err != nil && strings.Contains(err.Error(), " is a group of ") { // of values with names of their own
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", v.Key, err)
		}
		changed++
		if back, err := Unset(next, v.Key); err != nil || strings.Contains(string(back), "zyx") {
			t.Errorf("%s: %v", v.Key, err)
		}
	}
	if changed < 10 {
		t.Errorf("%d keys of the example can be changed", changed)
	}
}

// No form of a value that is written shows what may be a secret.
func TestWrittenSecrets(t *testing.T) {
	for key, value := range map[string]string{
		"discord.token": "MTk4canary", "slack.signing_secret": "canary", "files.secret_key": "canary", "connectors.ci.secret": "canary", "model.key": "canary",
		"model.headers": "{X-Api-Key: canary}", "otlp.headers": "{authorization: Basic canary}", "mcp.notes": "{command: [notes, --token, ghp_canary12345], env: {API_TOKEN: canary}}",
		"workspaces.env": "{GITHUB_TOKEN: canary}", "telegram.api_url": "https://api.telegram.org/bot123456789:AAcanarycanarycanarycanary", "model.base_url": "http://me:canary@127.0.0.1/v1",
		"agents.default.prompt": "'use the header Authorization: Bearer canary'", "log_level": "AKIACANARY1234567", "relay": "[{name: x, url: 'http://h', headers: {X-Token: canary}}]",
	} {
		text, err := Set(nil, key, value)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		got, ok := Written(text, key)
		if !ok || strings.Contains(strings.ToLower(got), "canary") {
			t.Errorf("%s: %s", key, got)
		}
	}
	text := []byte("model: {name: demo, max_tokens: 7}\n")
	if got, _ := Written(text, "model"); got != "{name: demo, max_tokens: 7}" {
		t.Errorf("a group without a secret: %s", got)
	}
	if got := MaskLine("  max_tokens: 7"); got != "  max_tokens: 7" {
		t.Errorf("a line without a secret: %s", got)
	}
	for key, secret := range map[string]bool{
		"model.max_tokens": false, "http.tls_key": false, "model.key": true, "telegram.token": true, "connectors.x.token": true, "connectors.x.receive": false,
		"agents.a.max_steps": false, "access.mode": false, "slack.client_id": false, "unknown.api_key": true,
	} {
		if IsSecret(key) != secret {
			t.Errorf("%s: %v", key, !secret)
		}
	}
}
