package configs

import (
	"strings"
	"testing"
)

// A refusal of a change says neither the line of a text that is not written, nor what the value would have
// switched off.
func TestRefusal(t *testing.T) {
	for text, want := range map[string]string{
		"access:\n  mode: sometimes\n":       `access.mode: "sometimes" is not one of pairing, allowlist, open`,
		"budgets:\n  - {usd: much}\n":        "",
		"log_level: loud\n":                  `log_level: "loud" is not one of debug, info, warn, error`,
		"telegram:\n  tokn: env:X\n":         "telegram.tokn: unknown key; did you mean telegram.token?",
		"agents:\n  hr:\n    max_steps: 3\n": "agents.hr: has no match: only API clients that name it use it; for chats, add match: [telegram] or the like",
	} {
		_, warnings := load(t, text, map[string]string{"X": "x"})
		if len(warnings) == 0 || want != "" && warnings[0].Refusal() != want {
			t.Errorf("%q is refused with %v", text, warnings)
			continue
		}
		for _, w := range warnings {
			if got := w.Refusal(); strings.Contains(got, "until") || strings.Contains(got, "ignored") || strings.Contains(got, FileName) {
				t.Errorf("%q is refused with %q", text, got)
			}
			if advice := w.Key == "agents.hr"; w.Advice() != advice {
				t.Errorf("%q: advice is %v", w, w.Advice())
			}
		}
	}
}

// A token that its platform could only refuse switches the connector off, with where to get another one.
func TestWrongCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"telegram: {token: 'env:X'}\n":                                  "telegram: X is malformed; the connector telegram is off until this is corrected",
		"slack: {bot_token: 'env:X', app_token: 'env:APP'}\n":           "slack: X is malformed; the connector slack is off until this is corrected",
		"discord: {token: 'env:X'}\n":                                   "discord: X is malformed; the connector discord is off until this is corrected",
		"connectors:\n  sales: {type: telegram, token: 'env:X'}\n":      ": X is malformed; the connector sales is off until this is corrected",
		"slack: {bot_token: 'env:APP', app_token: 'env:BOT'}\n":         "slack: APP is malformed, and looks like BOT: swap the two; the connector slack is off until this is corrected",
		"slack: {bot_token: 'env:X', app_token: 'env:Y'}\n":             "slack: X is malformed; the connector slack is off until this is corrected|slack: Y contains spaces or quotes; the connector slack is off until this is corrected",
		"telegram: {token: 'env:GOOD'}\n":                               "",
		"slack: {bot_token: 'env:NOT_SET', app_token: 'env:NOT_SET'}\n": "",
	} {
		c, _ := load(t, text, map[string]string{"X": "123:short", "Y": "xapp 1", "APP": "xapp-1", "BOT": "xoxb-1", "GOOD": "123456:FAKE-token-for-the-tests"})
		all := c.WrongCredentials()
		if want == "" {
			if len(all) > 0 {
				t.Errorf("%q: %v", text, all)
			}
			continue
		}
		each := strings.Split(want, "|")
		for n, want := range each {
			code := CodeMalformed
			if strings.Contains(want, "quotes") {
				code = CodeQuoted
			}
			if len(all) != len(each) || !strings.Contains(all[n].String(), want) || !all[n].Off || all[n].Code() != code || all[n].Next == "" {
				t.Fatalf("%q: %+v", text, all)
			}
		}
		if i := c.Connectors.Instances()[0]; i.Settings.Off() == "" {
			t.Errorf("%q: the connector is on", text)
		}
	}
}

// A model of a provider that takes no request without a key is keyless without one; a server of one's own is not.
func TestKeyless(t *testing.T) {
	for text, want := range map[string]bool{
		"model: gpt-5\n": true,
		"model: {name: claude-x, provider: anthropic}\n":        true,
		"model: {name: x, base_url: 'http://127.0.0.1:1/v1'}\n": false,
		"model: {name: x, provider: ollama}\n":                  false,
		"model: {name: gpt-5, key: 'env:K'}\n":                  false,
		"model: demo\n":                                         false,
		"":                                                      false,
	} {
		if c, _ := load(t, text, map[string]string{"K": "sk-x"}); c.Model.Keyless() != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
