package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/platforms"
)

// What is pasted may be broken over lines, quoted, or both tokens of Slack at once.
func TestTokensIn(t *testing.T) {
	const telegram = "1234567:FAKE-telegram-token-for-tests-only"
	for _, tt := range []struct {
		answer string
		want   []string
	}{
		{telegram, []string{telegram}},
		{"  " + telegram + "\n", []string{telegram}},
		{`"` + telegram + `"`, []string{telegram}},
		{"1234567:FAKE-telegram-token\n-for-tests-only", []string{telegram}},
		{"1234567:FAKE-\r\ntelegram-token-for-\n tests-only", []string{telegram}},
		{"xoxb-1-fake\nxapp-1-fake", []string{"xoxb-1-fake", "xapp-1-fake"}},
		{"xapp-1-\nfake xoxb-1-\nfake", []string{"xapp-1-fake", "xoxb-1-fake"}},
		{"hello", []string{"hello"}},
		{"", nil},
	} {
		if got := tokensIn(tt.answer, platforms.TelegramToken, platforms.SlackBotToken, platforms.SlackAppToken); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.answer, got, tt.want)
		}
	}
}

// A secret that is named and cannot be read is not as if none were set: setup names the file or the
// variable, and asks no platform. The commands that it prints have its own flags.
func TestSetupUnreadable(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "TELEGRAM_BOT_TOKEN", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "DISCORD_BOT_TOKEN", "CLAYBOT_CONFIG"} {
		t.Setenv(name, "")
	}
	t.Setenv("CLAYBOT_CONFIG", "no.yaml")
	dir := filepath.Join(t.TempDir(), "a b")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CLAYBOT_DATA_DIR", dir)
	const address = "http://127.0.0.1:9"
	for step, file := range map[string]string{
		"telegram": "telegram: {token: 'file:lost', api_url: '" + address + "'}\n",
		"slack":    "slack: {bot_token: 'file:lost', app_token: 'file:lost', api_url: '" + address + "/'}\n",
		"discord":  "discord: {token: 'file:lost', api_url: '" + address + "'}\n",
		"model":    "model: {name: m, base_url: '" + address + "', key: 'file:lost'}\n",
	} {
		path := filepath.Join(dir, step+".yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run([]string{"--config", path, "--data-dir", dir, "setup", step}, strings.NewReader(""), &out, &errs)
		if lost := filepath.Join(dir, "lost"); code != exitError || !strings.Contains(out.String(), "the secret's file cannot be read") || !strings.Contains(out.String(), lost) {
			t.Errorf("%s: exit %d, %q, %q", step, code, out.String(), errs.String())
		}
		if want := "claybot --config '" + path + "' --data-dir '" + dir + "' setup " + step + " --"; !strings.Contains(errs.String(), want) {
			t.Errorf("%s: the next step is %q, want %q", step, errs.String(), want)
		}
	}
	for ref, want := range map[string]string{"env:": "env: names no variable; give env:NAME", "file:": "file: names no file; give file:PATH", "file:lost": "lost"} {
		var out, errs bytes.Buffer
		code := run([]string{"--config", filepath.Join(dir, "discord.yaml"), "setup", "telegram", "--telegram-token", ref}, strings.NewReader(""), &out, &errs)
		if code == exitOK || !strings.Contains(errs.String(), "--telegram-token: ") || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit %d, %q", ref, code, errs.String())
		}
	}
}

func TestBudgetFor(t *testing.T) {
	known, unknown := configs.Default(), configs.Default()
	known.Model.Name, known.Model.BaseURL = "gpt-5", "https://api.openai.com/v1"
	unknown.Model.Name, unknown.Model.BaseURL = "llama3:8b", "http://127.0.0.1:11434/v1"
	for _, tt := range []struct {
		config       configs.Config
		amount, want string // empty: an error
	}{
		{known, "2000000", "[{per: all, every: day, tokens: 2000000}]"},
		{known, "2,000,000 tokens", "[{per: all, every: day, tokens: 2000000}]"},
		{known, "$5", "[{per: all, every: day, usd: 5}]"},
		{known, "0.50 USD", "[{per: all, every: day, usd: 0.50}]"},
		{known, "5$", "[{per: all, every: day, usd: 5}]"},
		{unknown, "$5", ""},
		{unknown, "5000", "[{per: all, every: day, tokens: 5000}]"},
		{known, "five", ""},
		{known, "-1", ""},
		{known, "0", ""},
		{known, "$0", ""},
		{known, "$NaN", ""},
		{known, "$1e9", ""},
		{known, "1e3", ""},
		{known, "", ""},
	} {
		got, err := budgetFor(tt.config, tt.amount)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q: %q, %v; want %q", tt.amount, got, err, tt.want)
		}
		if err != nil {
			continue
		}
		text, err := configs.Set(nil, "budgets", got)
		if err != nil {
			t.Fatal(err)
		}
		c, warnings, err := configs.LoadText("claybot.yaml", text, func(string) (string, bool) { return "", false })
		if err != nil || len(warnings) > 0 || len(c.Agents.Budgets) != 1 || c.Agents.Budgets[0].Fault != "" {
			t.Errorf("%s: %+v, %v, %v", got, c.Agents.Budgets, warnings, err)
		}
	}
}

// A setup that is killed between two of its writes leaves no file in which the key or a header of one
// provider stands beside the address of another one.
func TestNoKeyGoesElsewhere(t *testing.T) {
	const before = "model:\n  base_url: https://old.example/v1\n  key: file:old\n  name: a\n  headers:\n    X-Auth: file:old\n"
	next := choiceOfModel{base: "https://new.example/v1", name: "b", key: "new-fake", moves: true}
	for n := range len(next.settings()) + 1 {
		dir := t.TempDir()
		path := filepath.Join(dir, "claybot.yaml")
		for name, text := range map[string]string{path: before, filepath.Join(dir, "old"): "old-fake\n"} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e := &env{cli: &cli{settingFlags: settingFlags{Config: path}}, out: t.Output(), err: t.Output(), lookup: func(string) (string, bool) { return "", false }}
		for _, x := range next.settings()[:n] {
			f, err := e.configFile()
			if err == nil {
				_, err = f.set(e, x)
				f.unlock()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		c, _, err := e.load()
		if err != nil {
			t.Fatal(err)
		}
		old := c.Model.BaseURL == "https://old.example/v1"
		for _, secret := range append(c.Model.Credentials(), c.Model.Headers["X-Auth"]) {
			if v := secret.Value(); v == "new-fake" && old || v == "old-fake" && !old {
				t.Errorf("after %d writes, %q goes to %s", n, v, c.Model.BaseURL)
			}
		}
		if n == len(next.settings()) && (c.Model.Name != "b" || c.Model.Key.Value() != "new-fake" || old) {
			t.Errorf("in the end: %+v", c.Model)
		}
	}
}
