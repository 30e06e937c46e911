package configs

import (
	"reflect"
	"slices"
	"testing"
)

const shown = " holds a secret, or its name says so; no prompt may show it; ignored ?"

var brokenPrompts = []fault{
	{"prompts as word", "prompts: strict\n", []string{"1 prompts: want a group of keys (strict, env), found a single value; ignored ?"}},
	{"strict", "prompts:\n  strict: very\n", []string{`2 prompts.strict: "very" is not one of true, false; ignored ?`}},
	{"env as group", "prompts:\n  env: {A: b}\n", []string{"2 prompts.env: want a list, found a group of keys; ignored ?"}},
	{"env by a bad name", "prompts:\n  env: [A-B, \"\", 1A, \"A=b\"]\n", []string{
		`2 prompts.env: "A-B" is not the name of a variable; ignored ?`, `2 prompts.env: "" is not the name`, `2 prompts.env: "1A" is not the name`, `2 prompts.env: "A=b" is not the name`,
	}},
	{"env with secrets", "prompts:\n  env:\n    - OPENAI_API_KEY\n    - my_token\n    - DbPassword\n    - CLIENT_SECRET_2\n    - OTEL_EXPORTER_OTLP_HEADERS\n    - TOKENS\n", []string{
		`3 prompts.env: "OPENAI_API_KEY"` + shown, `4 prompts.env: "my_token"` + shown, `5 prompts.env: "DbPassword"` + shown,
		`6 prompts.env: "CLIENT_SECRET_2"` + shown, `7 prompts.env: "OTEL_EXPORTER_OTLP_HEADERS"` + shown, `8 prompts.env: "TOKENS"` + shown,
	}},
	{"env that the file uses below", "prompts: {env: [MINE]}\nagents:\n  a:\n    match: web\n    model: {name: m, key: env:MINE}\n", []string{
		`1 prompts.env: "MINE"` + shown, `5 agents.a.model.key: the environment variable "MINE" is not set ?`,
	}},
	{"env by mistake a token", "prompts: {env: [" + canary + "]}\n", []string{"1 prompts.env: a value that looks like a secret is not the name of a variable; ignored ?"}},
}

func TestPrompts(t *testing.T) {
	vars := map[string]string{"CITY": "Berlin", "ODD": "sk-not-a-real-key", "MINE": "x"}
	c, warnings := load(t, "prompts: {strict: true, env: [CITY, ODD, NOT_SET, MONKEY, CITY]}\nmodel: {headers: {X-Key: env:MINE}}\n", vars)
	if want := (Prompts{Strict: true, Env: []string{"CITY", "NOT_SET", "MONKEY"}}); !reflect.DeepEqual(c.Agents.Prompts, want) {
		t.Errorf("got %+v, want %+v", c.Agents.Prompts, want)
	}
	if len(warnings) != 1 || warnings[0].Key != "prompts.env" {
		t.Errorf("warnings: %v", warnings)
	}
	if c, _ := load(t, "prompts: {env: CITY}\n", vars); !reflect.DeepEqual(c.Agents.Prompts, Prompts{Env: []string{"CITY"}}) {
		t.Errorf("one name: %+v", c.Agents.Prompts)
	}
	// Every variable that claybot itself reads a secret from is refused.
	for _, name := range []string{
		"OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "CLAYBOT_HTTP_TLS_KEY",
		"DB_PASS", "pgpasswd", "MailApiKey", "MY_APIKEYS", "GITHUB_PAT", "PAT", "SENTRY_DSN", "DATABASE_URL", "TEST_DATABASE_URL",
	} {
		if c, _ := load(t, "prompts: {env: ["+name+"]}\n", nil); c.Agents.Prompts.Env != nil {
			t.Errorf("%s may be shown", name)
		}
	}
	for value, want := range map[string]bool{
		"postgres://ann:canary@db.example.org/x": false, "redis://:canary@10.0.0.1": false, "amqp://a:b,amqp://ann:can/ary%@c": false, "see https://ann:canary@host/": false,
		"https://example.org:8080/x": true, "ann@example.org": true, "ssh://git@example.org": true, "a:b@c": true,
	} {
		c, _ := load(t, "prompts: {env: [ADDRESS, PATH_X, COMPASS]}\n", map[string]string{"ADDRESS": value})
		if got := slices.Contains(c.Agents.Prompts.Env, "ADDRESS"); got != want || !slices.Contains(c.Agents.Prompts.Env, "COMPASS") || !slices.Contains(c.Agents.Prompts.Env, "PATH_X") {
			t.Errorf("%s: %v", value, c.Agents.Prompts.Env)
		}
	}
}
