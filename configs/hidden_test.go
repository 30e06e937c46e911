package configs

import (
	"strings"
	"testing"
)

// A value is hidden where a name on its path is that of a secret, and shown where only its entry has such a name.
func TestHiddenByPath(t *testing.T) {
	const text = `
model: {name: demo, headers: {X-Custom: canary}}
mcp:
  files: {url: 'https://mcp.example/x', headers: {X-Custom: canary, X-Team: "env:TEAM"}}
  token: {command: [x], env: {HOME: /x}}
relay:
  - {name: my_token, file: a.log}
connectors:
  key: {type: webhook, secret: "env:TEAM"}
people:
  token: [telegram/1]
`
	c, warnings := load(t, text, map[string]string{"TEAM": "a-secret-of-teams-1234"})
	c.Source.Warnings = warnings
	for key, want := range map[string]string{
		"model.headers":              "{X-Custom: (secret)}",
		"mcp.files":                  `{url: 'https://mcp.example/x', headers: {X-Custom: (secret), X-Team: "env:TEAM"}}`,
		"mcp.files.headers":          `{X-Custom: (secret), X-Team: "env:TEAM"}`,
		"mcp.files.headers.X-Custom": Hidden,
		"mcp.files.headers.X-Team":   "env:TEAM",
		"mcp.token":                  "{command: [x], env: {HOME: /x}}",
		"mcp.token.command":          "[x]",
		"mcp.token.env.HOME":         "/x",
		"relay.my_token":             "{name: my_token, file: a.log}",
		"relay.my_token.file":        "a.log",
		"connectors.key.type":        "webhook",
		"people.token":               "[telegram/1]",
	} {
		if all := c.Value(key); len(all) != 1 || all[0].Plain() != want {
			t.Errorf("%s: want %q, got %+v", key, want, all)
		}
		if got, ok := Written([]byte(text), key); key != "relay.my_token.file" && (!ok || strings.Trim(got, `"`) != want) {
			t.Errorf("%s: written is %q, want %q", key, got, want)
		}
	}
	if got, _ := Written([]byte(text), "model.headers.X-Custom"); got != Hidden {
		t.Errorf("a header of the model: %q", got)
	}
}
