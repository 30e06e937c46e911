package imports

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNewModel(t *testing.T) {
	key := Secret{Text: "fake"}
	for _, x := range []struct {
		provider, name, api, base string
		key                       Secret
		want                      Model
		why                       string
	}{
		{"openai", "gpt-5", "", "", key, Model{"openai", "", "gpt-5", key}, ""},
		{"openai", "gpt-5", "", "https://api.openai.com/v1", key, Model{"openai", "", "gpt-5", key}, ""},
		{"openai", "gpt-5", "", "https://api.openai.com/v1", Secret{}, Model{}, "no key for openai was found"},
		{"anthropic", "claude", "", "https://api.anthropic.com/v1", key, Model{"anthropic", "", "claude", key}, ""},
		{"anthropic", "claude", "", "", Secret{}, Model{}, "no key for anthropic"},
		{"minimax", "m", "anthropic-messages", "https://api.minimax.io/anthropic/", key, Model{"anthropic", "https://api.minimax.io/anthropic", "m", key}, ""},
		{"openrouter", "a/b", "", "", key, Model{"openai", "https://openrouter.ai/api/v1", "a/b", key}, ""},
		{"openai", "gpt-5", "openai-responses", "", key, Model{"openai-responses", "", "gpt-5", key}, ""},
		{"openai", "gpt-5", "openai-responses", "https://api.openai.com/v1", key, Model{"openai-responses", "", "gpt-5", key}, ""},
		{"mine", "gpt-5", "openai-responses", "https://example.org/v1", key, Model{"openai-responses", "https://example.org/v1", "gpt-5", key}, ""},
		{"deepseek", "deepseek-flash", "", "", key, Model{"openai", "https://api.deepseek.com", "deepseek-flash", key}, ""},
		{"moonshot", "kimi-k2", "", "", Secret{}, Model{}, "no key for moonshot was found"},
		{"google", "gemini-3-pro", "", "", key, Model{"openai", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3-pro", key}, ""},
		{"groq", "g", "", "", key, Model{"openai", "https://api.groq.com/openai/v1", "g", key}, ""},
		{"lmstudio", "l", "", "", Secret{}, Model{"openai", "http://127.0.0.1:1234/v1", "l", Secret{}}, ""},
		{"ollama", "llama", "", "", Secret{}, Model{"openai", "http://127.0.0.1:11434/v1", "llama", Secret{}}, ""},
		{"mine", "m", "", "http://127.0.0.1:4000/v1", Secret{}, Model{"openai", "http://127.0.0.1:4000/v1", "m", Secret{}}, ""},
		{"mine", "m", "", "", key, Model{}, "the address of the provider mine is not known"},
		{"mine", "m", "", "https://u:fake@example.org/v1", key, Model{}, "its address cannot be used, or may hold a secret"},
		{"mine", "m", "", "https://example.org/v1?api_key=fake", key, Model{}, "its address cannot be used, or may hold a secret"},
		{"mine", "m", "", "https://example.org/sk-fake-0123456789abcdef/v1", key, Model{}, "its address cannot be used, or may hold a secret"},
		{"mine", "m", "", "file:///etc/passwd", key, Model{}, "its address cannot be used, or may hold a secret"},
		{"amazon", "m", "bedrock-converse-stream", "https://example.org", key, Model{}, "claybot does not speak the API bedrock-converse-stream"},
		{"openai", "", "", "", key, Model{}, "it has no name"},
	} {
		got, why := NewModel(x.provider, x.name, x.api, x.base, x.key)
		if got != x.want || !strings.HasPrefix(why, x.why) || (why == "") != (x.why == "") {
			t.Errorf("NewModel(%s, %s, %s, %s) = %+v, %q, want %+v, %q", x.provider, x.name, x.api, x.base, got, why, x.want, x.why)
		}
	}
}

// The key of a provider's usual variable goes to the provider itself.
func TestElsewhere(t *testing.T) {
	for _, x := range []struct {
		provider, base string
		want           bool
	}{
		{"openai", "", false},
		{"openai", "https://api.openai.com/v1", false},
		{"openai", "http://api.openai.com/v1", true},
		{"openai", "https://api.openai.com.example.org/v1", true},
		{"openai", "https://u:fake@api.openai.com/v1", true},
		{"openrouter", "https://openrouter.ai/api/v1/", false},
		{"openrouter", "https://example.org/v1", true},
		{"ollama", "http://127.0.0.1:11434", false},
		{"mine", "https://example.org/v1", false},
	} {
		if got := Elsewhere(x.provider, x.base); got != x.want {
			t.Errorf("%s %s: %v", x.provider, x.base, got)
		}
	}
}

// No secret of the command or the address of an MCP server goes into the configuration.
func TestAddServerSecrets(t *testing.T) {
	for config, want := range map[string]string{
		`{command: "npx", args: ["-y", "notes", "--token", "fake1234abcd"]}`:                "its command holds a password or key; put that into secrets of the server, see docs/mcp.md",
		`{command: "npx", args: ["--api-key=fake1234abcd"]}`:                                "its command holds a password or key; put that into secrets of the server, see docs/mcp.md",
		`{command: "npx", args: ["--token"]}`:                                               "",
		`{command: "npx", args: ["--token-file", "/run/secrets/token1"]}`:                   "",
		`{url: "https://example.org/sk-fake-0123456789abcdef/mcp"}`:                         "its address cannot be used, or may hold a secret",
		`{url: "https://example.org/mcp#fake"}`:                                             "its address cannot be used, or may hold a secret",
		`{url: "javascript://example.org/mcp"}`:                                             "its address cannot be used, or may hold a secret",
		`{url: "https://example.org/mcp", headers: {Authorization: "Bearer fake1234abcd"}}`: "",
	} {
		var f Find
		v, err := ParseJSON5([]byte(config))
		if err != nil {
			t.Fatal(err)
		}
		f.AddServer("x", v, func(s string) (Secret, string) { return Secret{Text: s}, "" })
		got := ""
		for _, l := range f.Left {
			got = l.Why
		}
		if got != want || (len(f.Servers) == 1) != (want == "") {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}

// Notes, tasks and the heartbeat hold no secrets, as the prompt does not.
func TestTextsHoldNoSecrets(t *testing.T) {
	const secret = "The key is sk-fake-0123456789abcdef."
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "MEMORY.md"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f := Find{Slug: "x"}
	f.AddNotes(d, "MEMORY.md")
	f.AddJob(Job{ID: "1", Name: "Look", Text: secret, Kind: "every", Every: 60_000}, Env{})
	f.Checklist(secret, "30m", "")
	for name, text := range map[string]string{"the note": f.Notes[0].Text, "the task": f.Tasks[0].Prompt, "the heartbeat": f.Heartbeat.Prompt} {
		if !strings.HasPrefix(text, "The key is [removed: an API key].") {
			t.Errorf("%s is %q", name, text)
		}
	}
	if len(f.Left) != 3 || f.Left[1].What != "task Look: an API key" {
		t.Errorf("left %v", f.Left)
	}
}

func TestAddAllowed(t *testing.T) {
	for _, x := range []struct{ connector, entry, want string }{
		{"telegram", "123456789", "telegram:123456789"},
		{"telegram", "tg:123456789", "telegram:123456789"},
		{"telegram", "Telegram:0123", "telegram:123"},
		{"telegram", "123456789|ann", "telegram:123456789"},
		{"telegram", "@ann", ""},
		{"telegram", "-100123", ""}, // a group
		{"telegram", "*", ""},
		{"slack", "U012ABC", "slack:U012ABC"},
		{"slack", "user:U012ABC", "slack:U012ABC"},
		{"slack", "C012ABC", ""},
		{"discord", "user:123456789012345678", "discord:123456789012345678"},
		{"discord", "<@!123456789012345678>", "discord:123456789012345678"},
		{"discord", "ann#1234", ""},
	} {
		var f Find
		everyone := f.AddAllowed(x.connector, []string{x.entry})
		got := strings.Join(f.Allow, " ")
		if got != x.want || (len(f.Left) == 0) != (x.want != "") || everyone != (x.entry == "*") {
			t.Errorf("%s %q: %q, left %v, everyone %v, want %q", x.connector, x.entry, got, f.Left, everyone, x.want)
		}
	}
}

func TestRoute(t *testing.T) {
	for _, x := range []struct{ connector, to, want string }{
		{"telegram", "123456789", "telegram/123456789"},
		{"telegram", "telegram:group:-1001234567890:topic:99", "telegram/-1001234567890/99"},
		{"telegram", "-1001234567890:99", "telegram/-1001234567890/99"},
		{"telegram", "-1001234567890:topic:x", ""},
		{"telegram", "@channel", ""},
		{"slack", "channel:C012ABC", ""}, // its workspace is unknown
		{"slack", "channel:T012ABC/C012ABC", "slack/T012ABC/C012ABC"},
		{"discord", "channel:123456789012345678", "discord/123456789012345678"},
		{"whatsapp", "+15555550123", ""},
	} {
		if got := Route(x.connector, x.to); got != x.want {
			t.Errorf("Route(%s, %s) = %q, want %q", x.connector, x.to, got, x.want)
		}
	}
}

func TestAddJob(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	env := Env{Zone: "Europe/Berlin", Now: now}
	for _, x := range []struct {
		job  Job
		want string // schedule, every, at, zone and route, or why it has no place
	}{
		{Job{ID: "1", Text: "x", Kind: "cron", Expr: "0 7 * * *", Zone: "Asia/Tokyo", Silent: true}, "0 7 * * *||| Asia/Tokyo none"},
		{Job{ID: "1", Text: "x", Kind: "cron", Expr: "0 30 7 * * *"}, "30 7 * * *||| Europe/Berlin "},
		{Job{ID: "1", Text: "x", Kind: "cron", Expr: "15 30 7 * * *"}, "15 30 7 * * *||| Europe/Berlin "}, // claybot refuses it, with the reason
		{Job{ID: "1", Text: "x", Kind: "every", Every: 90_000, Channel: "telegram", To: "5"}, "|1m30s||  telegram/5"},
		{Job{ID: "1", Text: "x", Kind: "every", Every: -1}, "its schedule cannot be read"},
		{Job{ID: "1", Text: "x", Kind: "every", Every: 1e300}, "its schedule cannot be read"},
		{Job{ID: "1", Text: "x", Kind: "at", At: now.Add(time.Hour)}, "||2026-01-02T04:04:05Z|  "},
		{Job{ID: "1", Text: "x", Kind: "at", At: now}, "its time, 2026-01-02T03:04:05Z, is over"},
		{Job{ID: "1", Text: "x", Kind: "at"}, "its schedule cannot be read"},
		{Job{ID: "1", Text: "x", Kind: "moon"}, "its schedule cannot be read"},
		{Job{ID: "1", Kind: "cron"}, "it has no text; claybot runs no commands on a schedule, only agents"},
		{Job{ID: "1", Text: "x", Off: true}, "it is switched off there"},
		{Job{Text: "x"}, "it has no id"},
		{Job{ID: "1", Text: strings.Repeat("x", 256<<10+1), Kind: "every", Every: 90_000}, "its text has more than 256 KiB"},
		{Job{ID: "1", Text: "x", Kind: "cron", Expr: "0 7 * * *", Zone: "../../etc/passwd"}, `"../../etc/passwd" is not a time zone`},
		{Job{ID: "1", Text: "x", Kind: "at", At: now.AddDate(8000, 0, 0)}, "its schedule cannot be read"},
	} {
		var f Find
		f.AddJob(x.job, env)
		got := ""
		for _, s := range f.Tasks {
			got = strings.Join([]string{s.Schedule, s.Every, s.At, " " + s.Timezone + " " + s.Route}, "|")
			got = strings.Replace(got, "| ", "| ", 1)
		}
		for _, l := range f.Left {
			got = l.Why
		}
		if got != x.want {
			t.Errorf("%+v: %q, want %q", x.job, got, x.want)
		}
	}
}

func TestChecklist(t *testing.T) {
	for text, is := range map[string]bool{
		"": false, "# Heartbeat\n\n<!-- nothing -->\n- [ ]\n": false, "# Heartbeat\n- Look at the inbox.": true, "Look.": true,
	} {
		var f Find
		f.Checklist(text, "30m", "")
		if (f.Heartbeat != nil) != is {
			t.Errorf("%q is a task: %v", text, f.Heartbeat != nil)
		}
	}
}

// A link within a directory is followed; others, pipes and large files are not read.
func TestDir(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("a.md", "text")
	write("memory/2026/b.md", "b")
	write("memory/.hidden.md", "c")
	write("large", strings.Repeat("x", 11))
	link("a.md", "inside")
	link("/etc/hostname", "outside")
	link("nowhere", "broken")
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const lost = "it is a link that leads out of the directory, or nowhere"
	for name, want := range map[string]string{
		"a.md": "", "inside": "", "outside": lost, "broken": lost, "memory": "it is not a regular file", "large": "it has more than 0 KiB", "../x": "it cannot be read: path escapes from parent",
	} {
		if _, err := d.Read(name, 10); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("Read(%s): %v, want %q", name, err, want)
		}
	}
	if _, err := d.Read("missing", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if got := d.List("memory", ".md"); !slices.Equal(got, []string{"memory/2026/b.md"}) {
		t.Error(got)
	}
	if _, err := OpenDir(filepath.Join(dir, "a.md")); err == nil || !strings.HasSuffix(err.Error(), "is not a directory") {
		t.Error(err)
	}
}
