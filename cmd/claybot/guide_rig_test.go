package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/web"
)

// The key that the model of a guided daemon takes, and secrets that no platform or provider takes.
const (
	guidedKey   = "sk-FAKE-right-key"
	wrongKey    = "sk-FAKE-wrong-key"
	wrongToken  = "7654321:FAKE-wrong-telegram-token-for-tests"
	wrongBot    = "xoxb-FAKE-wrong"
	patientStep = 100 * time.Millisecond // between two looks
)

// guided is a new user's daemon, in a process of its own, with nothing configured; a browser on its
// machine; and the platforms around it.
type guided struct {
	*testing.T
	dir      string
	env      []string
	telegram *telegramtest.Server
	slack    *slacktest.Server
	discord  *discordtest.Server
	model    *openaitest.Server
	modelURL string
	ollama   string // the address of the API of a server that asks for no key
	cmd      *exec.Cmd
	log      logText
	link     web.LoginLink
	base     string
	http     *http.Client
	seen     strings.Builder // all that the daemon answered
}

// newGuided starts the platforms, and a daemon with nothing configured.
func newGuided(t *testing.T) *guided {
	t.Helper()
	g := &guided{
		T: t, dir: t.TempDir(), telegram: telegramtest.New(telegramtest.Config{}), slack: slacktest.New(slacktest.Config{Manifest: slack.Manifest}),
		discord: discordtest.New(discordtest.Config{}), model: openaitest.New(openaitest.Config{Key: guidedKey}),
	}
	g.discord.AddDirect("100000000000000009", "100000000000000001")
	must := func(address string, stop func(), err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if stop != nil {
			t.Cleanup(stop)
		}
		return address
	}
	telegram, err := g.telegram.Start()
	must(telegram, g.telegram.Close, err)
	discord, err := g.discord.Start()
	must(discord, g.discord.Close, err)
	slack := must(listenLocal(g.slack))
	t.Cleanup(g.slack.Close)
	g.modelURL, g.ollama = must(g.model.Start()), must(openaitest.New(openaitest.Config{Models: []string{"llama3:8b", "qwen3:4b"}}).Start())
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc([]string{"CLAYBOT_", "OPENAI_", "ANTHROPIC_", "TELEGRAM_", "SLACK_", "DISCORD_", "OLLAMA_"}, func(p string) bool { return strings.HasPrefix(name, p) }) {
			g.env = append(g.env, v)
		}
	}
	g.env = append(g.env, "CLAYBOT_HTTP_ADDR=127.0.0.1:0", "HOME="+g.dir, "TELEGRAM_API_URL="+telegram, "SLACK_API_URL="+slack+"/api/", "DISCORD_API_URL="+discord,
		"OLLAMA_HOST="+strings.TrimSuffix(g.ollama, "/v1"), "LATER_KEY="+guidedKey)
	g.start()
	t.Cleanup(g.kill)
	return g
}

// start starts the daemon, and logs the browser in by its link.
func (g *guided) start() {
	g.Helper()
	g.cmd = exec.Command("claybot", "serve")
	g.cmd.Dir, g.cmd.Env, g.cmd.Stderr = g.dir, g.env, &g.log
	if err := g.cmd.Start(); err != nil {
		g.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(g.Context(), patience)
	defer cancel()
	g.until("the daemon to start", func() bool {
		c, err := dial(filepath.Join(g.dir, ".claybot"))
		return err == nil && c.ready(ctx) == nil && c.call(ctx, "POST", "/login-link", nil, &g.link) == nil
	})
	base, token, _ := strings.Cut(g.link.URL, "/login?token=")
	jar, _ := cookiejar.New(nil) // it never fails
	g.base, g.http = base, &http.Client{Jar: jar}
	if code, body := g.send("POST", "/login", "application/json", `{"token":"`+token+`"}`); code != http.StatusNoContent {
		g.Fatalf("login: %d %s", code, body)
	}
}

// kill ends the daemon as kill -9 does.
func (g *guided) kill() {
	_ = g.cmd.Process.Kill() // it may have ended
	_ = g.cmd.Wait()
}

// fresh has a new link for another browser.
func (g *guided) fresh() string {
	g.Helper()
	c, err := dial(filepath.Join(g.dir, ".claybot"))
	if err == nil {
		err = c.call(g.Context(), "POST", "/login-link", nil, &g.link)
	}
	if err != nil {
		g.Fatal(err)
	}
	return g.link.URL
}

func (g *guided) until(what string, holds func() bool) {
	g.Helper()
	tick := time.NewTicker(patientStep)
	defer tick.Stop()
	end := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			g.Fatalf("waited for %s\nlog: %s", what, g.log.String())
		}
	}
}

// send makes a request as a browser does; more are names and values of further headers.
func (g *guided) send(method, path, kind, body string, more ...string) (int, string) {
	g.Helper()
	r, err := http.NewRequestWithContext(g.Context(), method, g.base+path, strings.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", g.base)
		r.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	resp, err := g.http.Do(r)
	if err != nil {
		g.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.Fatal(err)
	}
	g.seen.WriteString(path + "\n" + string(text) + "\n" + resp.Header.Get("HX-Trigger") + "\n")
	return resp.StatusCode, string(text)
}

// step is the part of the page for a step.
func (g *guided) step(name string) string {
	g.Helper()
	code, body := g.send("GET", "/ui/setup/now?step="+name, "", "")
	if code != http.StatusOK {
		g.Fatalf("%s: %d %s", name, code, body)
	}
	return body
}

var versionField = regexp.MustCompile(`name="version" value="([^"]+)"`)

// form is the form of a step with fields.
func (g *guided) form(step string, fields ...string) url.Values {
	g.Helper()
	form := url.Values{"step": {step}}
	if found := versionField.FindStringSubmatch(g.step(step)); found != nil {
		form.Set("version", found[1])
	}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return form
}

// answer answers a step.
func (g *guided) answer(step string, fields ...string) (int, string) {
	g.Helper()
	return g.send("POST", "/ui/setup/answer", "application/x-www-form-urlencoded", g.form(step, fields...).Encode())
}

// takes answers a step with what must be taken.
func (g *guided) takes(step string, fields ...string) {
	g.Helper()
	if code, body := g.answer(step, fields...); code != http.StatusNoContent {
		g.Fatalf("%s %q: %d %s", step, fields, code, body)
	}
}

// shows waits until a step shows a pattern, and returns its first group.
func (g *guided) shows(step, pattern string) string {
	g.Helper()
	re, found, body := regexp.MustCompile(pattern), []string(nil), ""
	defer func() {
		if found == nil {
			g.Logf("the step shows %s", body)
		}
	}()
	g.until(step+" to show "+pattern, func() bool {
		body = g.step(step)
		found = re.FindStringSubmatch(body)
		return found != nil
	})
	return found[len(found)-1]
}

// file is the configuration file; empty if there is none.
func (g *guided) file() string {
	g.Helper()
	b, err := os.ReadFile(filepath.Join(g.dir, "claybot.yaml"))
	if err != nil && !os.IsNotExist(err) {
		g.Fatal(err)
	}
	return string(b)
}

// private checks that no secret is in an answer, the log, the file or its history, and that those which
// are stored are for the owner alone.
func (g *guided) private() {
	g.Helper()
	history, _ := os.ReadFile(filepath.Join(g.dir, "claybot.yaml.history")) // it may not be there
	for what, text := range map[string]string{"an answer": g.seen.String(), "the log": g.log.String(), "the file": g.file(), "the history": string(history)} {
		for _, secret := range []string{guidedKey, wrongKey, wrongToken, wrongBot, telegramtest.Token, discordtest.Token, "xoxb-test", "xapp-test"} {
			if i := strings.Index(text, secret); i >= 0 {
				g.Errorf("%s has a secret: %s", what, text[max(0, i-100):i])
			}
		}
	}
	all, _ := filepath.Glob(filepath.Join(g.dir, "claybot.secrets", "*")) // the pattern is a constant
	for _, path := range all {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			g.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// logs reports whether the log has a text.
func (g *guided) logs(text string) bool { return bytes.Contains([]byte(g.log.String()), []byte(text)) }
