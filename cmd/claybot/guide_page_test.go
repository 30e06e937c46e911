package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/web"
)

// What a new user may give wrongly is answered with a sentence; nothing is stored, and no secret goes
// to another platform or into any text.
func TestSetupPageBadInput(t *testing.T) {
	g := newGuided(t)
	for _, tt := range []struct {
		step   string
		fields []string
		code   int
		says   string
	}{
		{"model", []string{"provider", "other", "address", g.modelURL, "secret", wrongKey, "model", "gpt-5"}, 400, "401"},
		{"model", []string{"provider", "other", "address", "http://127.0.0.1:1/v1", "secret", guidedKey, "model", "gpt-5"}, 400, "the provider cannot be reached: connection refused"},
		{"model", []string{"provider", "other", "address", "127.0.0.1:9/v1", "secret", guidedKey, "model", "gpt-5"}, 400, "put https:// or http:// in front of it"},
		{"model", []string{"provider", "other", "secret", guidedKey}, 400, "The address is missing"},
		{"model", []string{"provider", "openai", "secret", telegramtest.Token}, 400, "That is the token of a Telegram bot, which belongs to the step telegram"},
		{"model", []string{"provider", "openai", "secret", "xoxb-test"}, 400, "which belongs to the step slack"},
		{"model", []string{"provider", "openai", "secret", "sk-ant-FAKE-key"}, 400, "That is a key of Anthropic (sk-ant-…), not of OpenAI; choose its provider. Nothing was sent or stored"},
		{"model", []string{"provider", "openai", "secret", "gsk_FAKEkey"}, 400, "That is a key of Groq (gsk_…), not of OpenAI"},
		{"model", []string{"provider", "anthropic", "secret", "sk-proj-FAKE-key"}, 400, "That is a key of OpenAI (sk-proj-…), not of Anthropic"},
		{"model", []string{"provider", "openai"}, 400, "The key is missing"},
		{"model", []string{"secret", guidedKey}, 400, "The provider is missing"},
		{"model", []string{"provider", "openai", "secret", "env:NOT_SET"}, 400, `The variable \"NOT_SET\" is not set where claybot runs`},
		{"model", []string{"provider", "openai", "secret", "LATER_KEY"}, 400, "write env:LATER_KEY"},
		{"model", []string{"provider", "openai", "secret", "file:/etc/hostname"}, 400, "The page reads no files"},
		{"telegram", []string{"secret", "hello"}, 400, "That does not look like a token of this bot"},
		{"telegram", []string{"secret", ""}, 400, "That does not look like a token of this bot"},
		{"telegram", []string{"secret", wrongToken}, 400, "the bot token is refused (401)"},
		{"telegram", []string{"secret", "xoxb-test"}, 400, "That is the bot token of a Slack app (xoxb-…), which belongs to the step slack"},
		{"telegram", []string{"secret", wrongKey}, 400, "That is the key of a model (sk-…)"},
		{"telegram", []string{"invite", "1"}, 400, "The bot is not set up yet"},
		{"slack", []string{"secret", wrongBot}, 400, "slack refuses the bot token: invalid_auth"},
		{"slack", []string{"secret", "xapp-FAKE"}, 400, "slack refuses the app-level token: invalid_auth"},
		{"slack", []string{"secret", telegramtest.Token}, 400, "belongs to the step telegram"},
		{"slack", []string{"secret", "nonsense"}, 400, "That is neither a bot token"},
		{"slack", []string{"secret", ""}, 400, "The token is missing"},
		{"discord", []string{"secret", wrongKey}, 400, "belongs to the step model"},
		{"discord", []string{"operator", "1"}, 400, "The bot is not set up yet"},
		{"budget", []string{"value", "five"}, 400, "is neither a number of tokens"},
		{"workspace", []string{"value", "cloud"}, 400, "choose docker, local or off"},
		{"kitchen", nil, 404, ""},
	} {
		form := g.form("budget", tt.fields...)
		if tt.step != "kitchen" {
			form = g.form(tt.step, tt.fields...)
		}
		form.Set("step", tt.step)
		code, body := g.send("POST", "/ui/setup/answer", "application/x-www-form-urlencoded", form.Encode())
		if code != tt.code || !strings.Contains(body, tt.says) {
			t.Errorf("%s %q: %d %s, want %d %s", tt.step, tt.fields, code, body, tt.code, tt.says)
		}
	}
	if g.file() != "" {
		t.Errorf("the file is %q", g.file())
	}
	g.telegram.Close()
	if code, body := g.answer("telegram", "secret", telegramtest.Token); code != 400 || !strings.Contains(body, "connection refused") {
		t.Errorf("a platform that is down: %d %s", code, body)
	}
	g.private()
}

// Only a browser on the machine that has logged in there sets claybot up: a token, and a request that came
// by a proxy, read which command to run.
func TestSetupPageElsewhere(t *testing.T) {
	g := newGuided(t)
	code, body := g.send("POST", "/tokens", "application/json", `{"name":"ci","scope":"admin"}`)
	_, after, _ := strings.Cut(body, `"token":"`)
	token, _, _ := strings.Cut(after, `"`)
	if code != http.StatusCreated || token == "" {
		t.Fatalf("%d %s", code, body)
	}
	owner, err := os.ReadFile(filepath.Join(g.dir, ".claybot", "web.token"))
	if err != nil {
		t.Fatal(err)
	}
	form := g.form("budget", "value", "5000").Encode()
	login := g.http
	for name, headers := range map[string][]string{
		"a token": {"Authorization", "Bearer " + token}, "the owner's token": {"Authorization", "Bearer " + strings.TrimSpace(string(owner))},
		"a proxy": {"X-Forwarded-For", "203.0.113.7"}, "another proxy": {"Via", "1.1 proxy"},
	} {
		if g.http = login; headers[0] == "Authorization" {
			g.http = new(http.Client)
		}
		for _, path := range []string{"/ui/setup/answer", "/ui/setup/models"} {
			if code, body := g.send("POST", path, "application/x-www-form-urlencoded", form, headers...); code != http.StatusForbidden || !strings.Contains(body, "Run on that machine: claybot setup") {
				t.Errorf("%s to %s: %d %s", name, path, code, body)
			}
		}
		if code, body := g.send("GET", "/ui/setup/now?step=slack", "", "", headers...); code != http.StatusForbidden {
			t.Errorf("%s reads %d %s", name, code, body)
		}
		if code, body := g.send("GET", "/ui/setup", "", "", headers...); code != http.StatusOK || !strings.Contains(body, "Run on that machine: claybot setup") || strings.Contains(body, "setup-now") {
			t.Errorf("%s sees %d %s", name, code, body)
		}
	}
	if g.file() != "" {
		t.Errorf("the file is %q", g.file())
	}
}

// A setup that is killed in the middle goes on where it was, and two browsers at once lose nothing:
// what another window has changed meanwhile is not overwritten.
func TestSetupPageResumes(t *testing.T) {
	g := newGuided(t)
	const kind = "application/x-www-form-urlencoded"
	first, second := g.form("model", "provider", "ollama"), g.form("model", "provider", "other", "address", g.modelURL, "secret", "env:LATER_KEY", "model", "gpt-5")
	if code, body := g.send("POST", "/ui/setup/models", kind, first.Encode()); code != 200 || !strings.Contains(body, "<option selected>llama3:8b</option><option>qwen3:4b</option>") {
		t.Errorf("the models of Ollama: %d %s", code, body)
	}
	if first.Set("model", "qwen3:4b"); g.file() != "" {
		t.Errorf("a list of models wrote %s", g.file())
	}
	if code, body := g.send("POST", "/ui/setup/answer", kind, first.Encode()); code != 204 {
		t.Fatalf("the model: %d %s", code, body)
	}
	if code, body := g.send("POST", "/ui/setup/answer", kind, second.Encode()); code != 412 || !strings.Contains(body, "has been changed meanwhile") {
		t.Errorf("a second browser: %d %s", code, body)
	}
	g.shows("model", `qwen3:4b answers`)
	g.takes("model", "model", "llama3:8b")
	g.shows("model", `llama3:8b answers`)
	g.takes("model", "provider", "other", "address", g.modelURL, "secret", "env:LATER_KEY", "model", "gpt-5")
	g.shows("model", `gpt-5 answers`)
	if !strings.Contains(g.file(), "key: env:LATER_KEY") || strings.Contains(g.file(), g.ollama) {
		t.Errorf("the file is %s", g.file())
	}
	g.takes("slack", "secret", "xapp-test")
	if code, body := g.answer("slack", "secret", "xapp-test"); code != 400 || !strings.Contains(body, "which is stored already; the bot token, which begins with xoxb-, is missing") {
		t.Errorf("the same token again: %d %s", code, body)
	}
	g.takes("telegram", "secret", telegramtest.Token)
	code := g.shows("telegram", `\?start=([A-Z2-9]{16})`)
	g.kill()
	g.telegram.Write(telegramtest.Incoming{ChatID: 1001, UserID: 1001, Text: "/start " + code})
	g.start()
	// The person has access now, and the page asks whether that is the owner.
	g.shows("telegram", `id="person-1001"`)
	g.takes("telegram", "operator", "1001")
	g.shows("telegram", `telegram/1001 is the operator`)
	// The token that was pasted before is there, and the other one is asked for.
	g.shows("slack", `App-level token \(xapp-…\)</div><span class="badge good">there`)
	g.takes("slack", "secret", "xoxb-\ntest")
	code = g.shows("slack", `id="pair-code">([A-Z2-9]{16})<`)
	g.slack.DM("U1", code)
	g.shows("slack", `slack/U1 is the operator`)
	if !strings.Contains(g.file(), "operators: [slack/U1, telegram/1001]") {
		t.Errorf("the file is %s", g.file())
	}
	g.private()
}

// A key that is set where claybot runs goes to no address that the page names, unless the user has agreed.
func TestSetupPageConsent(t *testing.T) {
	model := openaitest.New(openaitest.Config{Key: guidedKey})
	address, stop, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	vars := map[string]string{"OPENAI_API_KEY": guidedKey, "CLAYBOT_CONFIG": filepath.Join(t.TempDir(), "claybot.yaml")}
	e := &env{cli: &cli{}, lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, environ: []string{"OPENAI_API_KEY=x"}}
	if err := os.WriteFile(vars["CLAYBOT_CONFIG"], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := &guide{env: e, ctx: t.Context(), say: t.Logf}
	for _, consent := range []bool{false, true} {
		c, err := g.choice(web.SetupAnswer{Provider: "other", Address: address, Model: "gpt-5", Consent: consent})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = g.listed(c)
		var no *web.Problem
		if err = setupProblem(err, "secret"); consent == (err != nil) || !consent && (!errors.As(err, &no) || no.Status != http.StatusConflict || !strings.Contains(no.Message, "OPENAI_API_KEY is set where claybot runs, and claybot would send that key to 127.0.0.1:")) {
			t.Errorf("consent %v: %v", consent, err)
		}
	}
}

// The page offers the providers that have names. A key of the environment goes to none of them, and one lacks its address or
// its key until they are given.
func TestSetupPageProviders(t *testing.T) {
	if code, body := newGuided(t).send("GET", "/ui/setup/now?step=model", "", ""); code != http.StatusOK || !strings.Contains(body, `value="mistral"> Mistral`) || !strings.Contains(body, `value="azure" data-address> Azure OpenAI`) {
		t.Errorf("the page is %d %s", code, body)
	}
	vars := map[string]string{"OPENAI_API_KEY": guidedKey, "CLAYBOT_CONFIG": filepath.Join(t.TempDir(), "claybot.yaml")}
	e := &env{cli: &cli{}, lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, environ: []string{"OPENAI_API_KEY=x"}}
	if err := os.WriteFile(vars["CLAYBOT_CONFIG"], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := &guide{env: e, ctx: t.Context(), say: t.Logf}
	for _, tt := range []struct {
		provider, address, secret, want string // the address of the model, or the problem
	}{
		{"mistral", "", "fake-key-of-mistral", "https://api.mistral.ai/v1"},
		{"mistral", "", "", "The key is missing: paste it, or name the variable that has it, such as env:MISTRAL_API_KEY"},
		{"mistral", "", "sk-or-fake-key", "That is a key of OpenRouter (sk-or-…), not of Mistral"},
		{"openai-responses", "", "sk-proj-FAKE-key", ""},
		{"openai-responses", "", "sk-or-fake-key", "That is a key of OpenRouter (sk-or-…), not of OpenAI"},
		{"azure", "", "fake-key-of-azure", "The address is missing: give that of your own resource, such as https://NAME.openai.azure.com"},
		{"azure", "https://x.openai.azure.com", "fake-key-of-azure", "https://x.openai.azure.com"},
		{"vllm", "", "", "http://127.0.0.1:8000/v1"},
		{"misral", "", "", "The provider is missing: choose one"},
	} {
		c, err := g.choice(web.SetupAnswer{Provider: tt.provider, Address: tt.address, Secret: tt.secret, Model: "m"})
		got := ""
		if m, bad := g.trial(c); bad == nil {
			got = m.BaseURL
		}
		if err == nil {
			_, err = g.trial(c)
		}
		var no *web.Problem
		if errors.As(err, &no) {
			got = no.Message
		} else if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%+v: got %q", tt, got)
		}
		if open := anywhere(tt.provider); open != (tt.provider == "vllm") {
			t.Errorf("anybody may run %s: %v", tt.provider, open)
		}
	}
}

// Ollama is offered also while it does not run, with what to do, and listed once it does.
func TestSetupPageOffersOllama(t *testing.T) {
	g := newGuided(t)
	g.kill()
	away := slices.Clone(g.env)
	g.env = append(g.env, "OLLAMA_HOST=127.0.0.1:1") // a port that the system never assigns
	g.start()
	g.shows("model", `value="ollama"> Ollama on this machine [^>]*>It does not answer at this moment: start it with <code>ollama serve`)
	code, body := g.send("POST", "/ui/setup/models", "application/x-www-form-urlencoded", g.form("model", "provider", "ollama").Encode())
	if code != http.StatusBadRequest || !strings.Contains(body, "start it with: ollama serve") || g.file() != "" {
		t.Errorf("while it does not run: %d %s", code, body)
	}
	g.kill()
	g.env = away
	g.start()
	g.shows("model", `value="ollama"> Ollama on this machine \(http://127\.0\.0\.1:[0-9]+/v1\)`)
}
