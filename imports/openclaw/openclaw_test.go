package openclaw

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/imports"
)

// read reads a directory of these files.
func read(t *testing.T, files map[string]string, vars map[string]string) (*imports.Find, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Read(dir, imports.Env{
		Home: "/nowhere", Zone: "UTC", Now: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
		Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
	})
}

// A key of the environment goes to the provider that it is for. One of the directory goes where the directory
// says.
func TestKeysStayWithTheirProvider(t *testing.T) {
	for _, x := range []struct{ provider, dotenv, want string }{
		{`{}`, "", "env:OPENAI_API_KEY"},
		{`{baseUrl: "https://api.openai.com/v1"}`, "", "env:OPENAI_API_KEY"},
		{`{baseUrl: "https://example.org/v1"}`, "", ""},
		{`{baseUrl: "https://example.org/v1", apiKey: "$OPENAI_API_KEY"}`, "", "env:OPENAI_API_KEY"},
		{`{baseUrl: "https://example.org/v1"}`, "OPENAI_API_KEY=fake-of-the-directory", "fake-of-the-directory"},
	} {
		f, err := read(t, map[string]string{
			"openclaw.json": `{agents: {defaults: {model: "openai/gpt-5"}}, models: {providers: {openai: ` + x.provider + `}}}`, ".env": x.dotenv,
		}, map[string]string{"OPENAI_API_KEY": "fake-of-the-environment"})
		if err != nil || f.Model == nil {
			t.Fatalf("%s: %v, left %v", x.provider, err, f.Left)
		}
		got := f.Model.Key.Text
		if f.Model.Key.Env != "" {
			got = "env:" + f.Model.Key.Env
		}
		if got != x.want {
			t.Errorf("%s, .env %q: %q, want %q", x.provider, x.dotenv, got, x.want)
		}
	}
}

// The forms of a secret, with where it comes from.
func TestSecrets(t *testing.T) {
	const good, other = "xoxb-1-fake", "xoxb-2-fake"
	for _, x := range []struct{ name, value, want string }{
		{"itself", `"xoxb-1-fake"`, good},
		{"a template of the environment", `"${MINE}"`, "env:MINE"},
		{"shorthand", `"$MINE"`, "env:MINE"},
		{"an older marker", `"secretref-env:MINE"`, "env:MINE"},
		{"a reference to the environment", `{source: "env", provider: "default", id: "MINE"}`, "env:MINE"},
		{"a variable of .env", `"${OF_DOTENV}"`, other},
		{"a variable of the configuration", `"${OF_CONFIG}"`, other},
		{"a variable of both", `"${BOTH}"`, "env:BOTH"}, // the environment counts first in OpenClaw
		{"a variable that is not set", `"${NONE}"`, "it is the variable NONE, which is not set here; set it and import again"},
		{"a part of a text", `"xoxb-${MINE}"`, "it is made of variables and other text; set it by hand"},
		{"a pointer into a file", `{source: "file", provider: "pointer", id: "/a/b~1c"}`, good},
		{"a pointer to nothing", `{source: "file", provider: "pointer", id: "/a/x"}`, "its file does not have it"},
		{"a file", `{source: "file", provider: "single", id: "value"}`, good},
		{"a file elsewhere", `{source: "file", provider: "elsewhere", id: "value"}`, "it is in a file outside of the directory; store it with claybot config set"},
		{"a file above", `{source: "file", provider: "above", id: "value"}`, "its file cannot be read: it cannot be read: path escapes from parent"},
		{"a missing file", `{source: "file", provider: "missing", id: "value"}`, "its file cannot be read: file does not exist"},
		{"a provider that is not there", `{source: "file", provider: "no", id: "value"}`, "it is in a file outside of the directory; store it with claybot config set"},
		{"a command", `{source: "exec", provider: "vault", id: "x"}`, "a command there finds it, which claybot does not run; store it with claybot config set"},
		{"a plugin", `{source: "keyring", provider: "x", id: "x"}`, "it is a reference of a kind that claybot does not know"},
	} {
		f, err := read(t, map[string]string{
			"openclaw.json": `{env: {vars: {OF_CONFIG: "xoxb-2-fake", BOTH: "xoxb-2-fake"}}, secrets: {providers: {
				pointer: {source: "file", path: "~/.openclaw/s.json"}, single: {source: "file", path: "~/.openclaw/one.txt", mode: "singleValue"},
				elsewhere: {source: "file", path: "/etc/hostname", mode: "singleValue"}, above: {source: "file", path: "~/.openclaw/../x", mode: "singleValue"},
				missing: {source: "file", path: "~/.openclaw/missing", mode: "singleValue"},
			}}, channels: {slack: {botToken: ` + x.value + `, appToken: "xapp-1-fake"}}}`,
			".env":    "# x\nexport OF_DOTENV='xoxb-2-fake'\n",
			"s.json":  `{"a": {"b/c": "xoxb-1-fake"}}`,
			"one.txt": "xoxb-1-fake\n",
		}, map[string]string{"MINE": good, "BOTH": good})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, a := range f.Accounts {
			if got = a.Secrets[0].Secret.Text; got == "" {
				got = "env:" + a.Secrets[0].Secret.Env
			}
		}
		if i := slices.IndexFunc(f.Left, func(l imports.Left) bool { return l.What == "slack" }); i >= 0 {
			got = strings.TrimPrefix(f.Left[i].Why, "botToken: ")
		}
		if got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// Older names of files and settings, and settings of one agent.
func TestOlder(t *testing.T) {
	f, err := read(t, map[string]string{
		"clawdbot.json":                      `{agent: {model: "claude-opus-4-6"}, channels: {discord: {token: "MTIzNDU2Nzg5MDEyMzQ1Njc4.Gfakef.fake-token-of-nobody-0123456789", dm: {policy: "allowlist", allowFrom: ["123456789012345678"]}}}}`,
		".env":                               "ANTHROPIC_API_KEY=sk-ant-fake\n",
		"cron/jobs.json":                     `[{"jobId": "x", "name": "Old", "schedule": {"kind": "at", "atMs": 1798761600000}, "payload": {"kind": "agentTurn", "message": "Go.", "deliver": true, "channel": "telegram", "to": "5"}}]`,
		"workspace/BOOTSTRAP.md":             "x",
		"workspace/memory/x/y.md":            "note",
		"credentials/discord-allowFrom.json": `{"version": 2, "allowFrom": ["1"]}`,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Model == nil || *f.Model != (imports.Model{Provider: "anthropic", Name: "claude-opus-4-6", Key: imports.Secret{Text: "sk-ant-fake"}}) {
		t.Errorf("model %+v", f.Model)
	}
	if !f.Listed || f.Owner() != "discord/123456789012345678" {
		t.Errorf("listed %v, owner %q", f.Listed, f.Owner())
	}
	if len(f.Tasks) != 1 || f.Tasks[0].At != "2027-01-01T00:00:00Z" || f.Tasks[0].Route != "telegram/5" || !f.Tasks[0].Once {
		t.Errorf("tasks %+v", f.Tasks)
	}
	if len(f.Notes) != 1 || f.Notes[0].Path != "openclaw/memory/x/y.md" {
		t.Errorf("notes %+v", f.Notes)
	}
	want := []string{"credentials/discord-allowFrom.json", "BOOTSTRAP.md"}
	for _, what := range want {
		if !slices.ContainsFunc(f.Left, func(l imports.Left) bool { return l.What == what }) {
			t.Errorf("%s is not left: %v", what, f.Left)
		}
	}
}

// Nothing that another type stands for is read as something else.
func TestOddTypes(t *testing.T) {
	for _, text := range []string{
		`{}`, `{channels: 5, agents: [], models: "x", mcp: {servers: []}, cron: true, env: null}`,
		`{agents: {list: "x", defaults: {model: {primary: {}, fallbacks: "y"}, workspace: 5}}, channels: {telegram: {accounts: [], allowFrom: {}}, slack: "x"}}`,
		`{mcp: {servers: {a: "x", b: {command: {}, env: []}}}, models: {providers: {x: []}}}`,
	} {
		if _, err := read(t, map[string]string{"openclaw.json": text, "cron/jobs.json": `{"version": "x", "jobs": 5}`, "agents/main/agent/auth-profiles.json": `[]`}, nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The configuration may be split into files, at each depth; what does not lead to one within the directory is a
// mistake, as in OpenClaw.
func TestIncludes(t *testing.T) {
	files := map[string]string{
		"openclaw.json":        `{$include: ["./parts/base.json5", "parts/models.json5"], agents: {$include: "parts/agents.json5", list: [{id: "two"}]}}`,
		"parts/base.json5":     `{channels: {telegram: {$include: "./telegram.json5", enabled: true}}, models: {providers: {}}}`,
		"parts/telegram.json5": `{enabled: false, botToken: "1234567:FAKE-telegram-token-for-tests-only", dmPolicy: "allowlist", allowFrom: ["7"]}`,
		"parts/models.json5":   `{models: {providers: {openai: {apiKey: "fake-of-the-file"}}}}`,
		"parts/agents.json5":   `{defaults: {model: "openai/gpt-5"}, list: [{id: "one", default: true}]}`,
	}
	f, err := read(t, files, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Model == nil || f.Model.Name != "gpt-5" || f.Model.Key.Text != "fake-of-the-file" {
		t.Errorf("model %+v", f.Model)
	}
	if len(f.Accounts) != 1 || f.Accounts[0].Connector != "telegram" {
		t.Errorf("accounts %d, left %v", len(f.Accounts), f.Left)
	}
	if !slices.ContainsFunc(f.Left, func(l imports.Left) bool { return l.What == "agent two" }) {
		t.Errorf("the lists of agents were not joined: left %v", f.Left)
	}
	for _, x := range []struct{ name, text, want string }{
		{"above", `{$include: "../other.json"}`, "openclaw.json: $include: ../other.json is outside of the directory"},
		{"elsewhere", `{agents: {$include: "/etc/hostname"}}`, "/etc/hostname is outside of the directory"},
		{"itself", `{$include: "./openclaw.json"}`, "./openclaw.json includes itself"},
		{"missing", `{$include: "gone.json5"}`, "gone.json5: file does not exist"},
		{"no path", `{$include: 7}`, "$include: want the path of a file, or a list of paths"},
		{"no object", `{$include: "list.json5", a: 1}`, "there are keys beside it"},
		{"a mistake", `{$include: "wrong.json5"}`, "wrong.json5:2: found"},
		{"too many", `{$include: "many.json5"}`, "includes more than 200 files"},
	} {
		_, err := read(t, map[string]string{
			"openclaw.json": x.text, "list.json5": "[1]", "wrong.json5": "{\n]",
			"many.json5": `{$include: [` + strings.Repeat(`"half.json5", `, 20) + `]}`, "half.json5": `{$include: [` + strings.Repeat(`"leaf.json5", `, 20) + `]}`, "leaf.json5": "{}",
		}, nil)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// Tasks are in a database since OpenClaw 2026.6.1, and the file may be older than that.
func TestTasksOfTheDatabase(t *testing.T) {
	jobs := `{version: 1, jobs: [{id: "a", name: "News", schedule: {kind: "every", everyMs: 3600000}, payload: {kind: "agentTurn", message: "news"}}]}`
	for _, x := range []struct {
		files map[string]string
		tasks int
		left  string
	}{
		{map[string]string{"cron/jobs.json": jobs}, 1, ""},
		{map[string]string{"cron/jobs.json": jobs, "state/openclaw.sqlite": "x"}, 1, "cron/jobs.json was read; newer versions of OpenClaw no longer use it"},
		{map[string]string{"state/openclaw.sqlite": "x"}, 0, "keeps them in a database, state/openclaw.sqlite; list them with openclaw cron list"},
	} {
		x.files["openclaw.json"] = "{}"
		f, err := read(t, x.files, nil)
		if err != nil || len(f.Tasks) != x.tasks {
			t.Fatalf("%v: %d tasks, left %v", err, len(f.Tasks), f.Left)
		}
		i := slices.IndexFunc(f.Left, func(l imports.Left) bool { return strings.HasPrefix(l.What, "tasks") })
		if (i >= 0) != (x.left != "") || i >= 0 && !strings.Contains(f.Left[i].Why, x.left) {
			t.Errorf("left %v, want %q", f.Left, x.left)
		}
	}
}
