package main

import (
	"os"
	"path/filepath"
	"slices"
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
