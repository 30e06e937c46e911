package openclaw

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/imports"
	"github.com/claybot/claybot/storage/sqlite"
)

// read reads a directory of these files.
func read(t *testing.T, files map[string]string, vars map[string]string) (*imports.Find, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	return readDir(dir, vars)
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func readDir(dir string, vars map[string]string) (*imports.Find, error) {
	return Read(dir, imports.Env{
		Home: "/nowhere", Zone: "UTC", Now: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
		Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
		Query:  func(path, query string) ([][]string, error) { return sqlite.Foreign(context.Background(), path, query) },
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

// Tasks are in a database since OpenClaw 2026.6.1; a file of before may still be there. The columns are those
// of src/cron/store/row-codec.ts 06070cf7 that a task needs.
func TestTasksOfTheDatabase(t *testing.T) {
	const file = `{version: 1, jobs: [{id: "a", name: "Of the file", schedule: {kind: "every", everyMs: 3600000}, payload: {kind: "agentTurn", message: "news"}}]}`
	job := func(name string) string {
		return `{"id":"` + name + `","name":"` + name + `","enabled":true,"schedule":{"kind":"cron","expr":"0 7 * * *"},"payload":{"kind":"agentTurn","message":"news"},"state":{}}`
	}
	row := func(key, job string, enabled, order int) string {
		return fmt.Sprintf("INSERT INTO cron_jobs VALUES ('%s', 'job-%d', '%s', %d, %d, 0);", key, order, job, enabled, order)
	}
	const table = "CREATE TABLE cron_jobs (store_key TEXT, job_id TEXT, job_json TEXT, enabled INTEGER, sort_order INTEGER, updated_at INTEGER, PRIMARY KEY (store_key, job_id));"
	for _, x := range []struct {
		what, database string
		files          map[string]string
		tasks, left    string
	}{
		{"file alone", "", map[string]string{"cron/jobs.json": file}, "Of the file", ""},
		{"database, whose tasks count", table + row("%/cron/jobs.json", job("B"), 1, 1) + row("%/cron/jobs.json", job("A"), 1, 0), map[string]string{"cron/jobs.json": file}, "A B", ""},
		{"switched off", table + row("%/cron/jobs.json", job("A"), 0, 0), nil, "", "task A: it is switched off there"},
		{"posts to an address", table + row("%/cron/jobs.json", `{"id":"P","name":"P","delivery":{"mode":"webhook"}}`, 1, 0), nil, "", "task P: it posts its result"},
		{"of a directory that was moved", table + row("/elsewhere/cron/jobs.json", job("A"), 1, 0), nil, "A", ""},
		{"of two directories", table + row("/elsewhere/cron/jobs.json", job("B"), 1, 0) + row("%/cron/jobs.json", job("A"), 1, 1), nil, "A", ""},
		{"of two others", table + row("/elsewhere/jobs.json", job("B"), 1, 0) + row("/other/jobs.json", job("A"), 1, 1), nil, "", "it has the tasks of 2 files, and none is"},
		{"file of its own, whose tasks went into the database", table + row("/elsewhere/tasks.json", job("B"), 1, 0) + row("/own/tasks.json", job("A"), 1, 1), map[string]string{"openclaw.json": `{cron: {store: "/own/tasks.json"}}`}, "A", ""},
		{"database whose tasks were deleted", table, map[string]string{"cron/jobs.json": file}, "", ""},
		{"database of before", "CREATE TABLE other (x)", map[string]string{"cron/jobs.json": file}, "Of the file", ""},
		{"another table", "CREATE TABLE cron_jobs (x)", nil, "", "but: "},
		{"no JSON, of one", table + row("%/cron/jobs.json", job("A"), 1, 0) + row("%/cron/jobs.json", "x", 1, 1), nil, "", "a task there is not JSON"},
		{"unfinished", table + row("%/cron/jobs.json", job("A"), 1, 0), nil, "", "OpenClaw has not finished a change of it"},
		{"no database", "", map[string]string{"state/openclaw.sqlite": strings.Repeat("x", 4096)}, "", "they are in a database, state/openclaw.sqlite, but: "},
	} {
		t.Run(x.what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "openclaw")
			files := map[string]string{"openclaw.json": "{}"}
			maps.Copy(files, x.files)
			write(t, dir, files)
			if x.database != "" {
				stop := writeDatabase(t, filepath.Join(dir, "state", "openclaw.sqlite"), strings.ReplaceAll(x.database, "%/", dir+"/"))
				defer stop()
			}
			if x.what == "unfinished" {
				write(t, dir, map[string]string{jobDatabase + "-journal": "x"})
			}
			f, err := readDir(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, task := range f.Tasks {
				names = append(names, task.Name)
			}
			if got := strings.Join(names, " "); got != x.tasks {
				t.Errorf("tasks %q, want %q", got, x.tasks)
			}
			i := slices.IndexFunc(f.Left, func(l imports.Left) bool { return strings.HasPrefix(l.What, "task") })
			if (i >= 0) != (x.left != "") || i >= 0 && !strings.Contains(f.Left[i].What+": "+f.Left[i].Why, x.left) {
				t.Errorf("left %v, want %q", f.Left, x.left)
			}
		})
	}
}

// writeDatabase makes a database that its owner has open, so that what was written is still in its log.
func writeDatabase(t *testing.T, path, text string) (stop func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA journal_mode = WAL;" + text); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
