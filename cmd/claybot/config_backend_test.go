package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/web"
)

// config calls the API of the configuration, and checks the status of the answer.
func (h *harness) config(want int, method, path, version, body string, out any) string {
	h.t.Helper()
	req, err := h.client.Request(h.ctx, method, path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if version != "" {
		req.Header.Set("If-Match", `"`+strings.TrimSpace(version)+`"`)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		h.t.Fatalf("%s %s = %d %s, %v, want %d", method, path, resp.StatusCode, text, err, want)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			h.t.Fatal(err)
		}
	}
	return string(text)
}

// The API changes the file by the same steps as the commands: checked, based on a version, with
// a history, applied at once, and without a secret in any answer.
func TestConfigAPI(t *testing.T) {
	h := startDaemon(t, "# mine\nmodel: demo\nlimits:\n  runs_per_minute: 5 # few\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	file := filepath.Join(h.dir, "claybot.yaml")
	text := func() string {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var v web.ConfigView
	h.config(200, "GET", "/config", "", "", &v)
	find := func(key string) web.ConfigKey {
		for _, k := range v.Keys {
			if k.Key == key {
				return k
			}
		}
		t.Fatalf("there is no %s", key)
		return web.ConfigKey{}
	}
	if k := find("limits.runs_per_minute"); k.Value != "5" || k.Kind != "number" || k.Limits != "0..100000" || !strings.HasSuffix(k.Origin, "claybot.yaml:4") || k.Help == "" {
		t.Errorf("the key is %+v", k)
	}
	if k := find("telegram.token"); k.Kind != "secret" {
		t.Errorf("the token is %+v", k)
	}
	before := v.Version
	var out web.ConfigChanged
	h.config(200, "PUT", "/config/limits.runs_per_minute", before, `{"value":"7"}`, &out)
	if got := text(); got != "# mine\nmodel: demo\nlimits:\n  runs_per_minute: 7 # few\n" || out.Version != configs.VersionOf([]byte(got)) {
		t.Errorf("the file is %q, %+v", got, out)
	}
	if got := h.daemon.config.Load().Limits.RunsPerMinute; got != 7 {
		t.Errorf("in force is %d", got)
	}
	if c := out.Changes; len(c) != 1 || c[0].N != 1 || c[0].By != web.Operator || *c[0].Before != "5" || *c[0].After != "7" {
		t.Errorf("the change is %+v", c)
	}
	// What is based on an older version, or not valid, changes nothing.
	was := text()
	h.config(412, "PUT", "/config/limits.runs_per_minute", before, `{"value":"9"}`, nil)
	h.config(412, "DELETE", "/config/limits.runs_per_minute", before, "", nil)
	h.config(412, "POST", "/config/history/1/revert", before, "", nil)
	// A version that is empty is none, and no consent to any.
	for path, method := range map[string]string{"limits.runs_per_minute": "PUT", "log_level": "DELETE", "history/1/revert": "POST"} {
		if got := h.config(400, method, "/config/"+path, " ", `{"value":"9"}`, nil); !strings.Contains(got, "If-Match") {
			t.Errorf("%s %s without a version: %s", method, path, got)
		}
	}
	for path, body := range map[string]string{
		"limits.runs_per_minute": `{"value":"many"}`, "limits.runs_per_minutes": `{"value":"7"}`, "telegram.token": `{"value":"1234567:FAKE-not-a-real-token-at-all"}`,
		"log_level": `{"secret":"FAKE"}`, "discord.token": `{"secret":"two\nlines"}`, "model.name": `{}`, "access.mode": `{"value":"open","secret":"x"}`, "a..b": `{"value":"1"}`,
	} {
		if got := h.config(400, "PUT", "/config/"+path, "", body, nil); strings.Contains(got, "FAKE") {
			t.Errorf("%s: the answer has the secret: %s", path, got)
		}
	}
	if got := h.config(404, "POST", "/config/history/99/revert", "", "", nil); !strings.Contains(got, `"not_found"`) {
		t.Errorf("a change that there is not: %s", got)
	}
	if text() != was {
		t.Errorf("the file is %q", text())
	}
	// A secret is stored beside the file.
	got := h.config(200, "PUT", "/config/files.secret_key", "", `{"secret":"FAKE.not.real"}`, &out)
	if strings.Contains(got, "FAKE") || strings.Contains(text(), "FAKE") || !strings.Contains(text(), "secret_key: file:claybot.secrets/files.secret_key-") {
		t.Errorf("the answer is %s, the file %q", got, text())
	}
	h.config(200, "DELETE", "/config/files.secret_key", out.Version, "", nil)
	h.config(200, "POST", "/config/history/1/revert", "", "", &out)
	var all web.ConfigChanges
	h.config(200, "GET", "/config/history", "", "", &all)
	if len(all.Changes) != 4 || all.Changes[0].N != 4 || *all.Changes[0].After != "5" || text() != "# mine\nmodel: demo\nlimits:\n  runs_per_minute: 5 # few\n" {
		t.Errorf("the history is %+v, the file %q", all.Changes, text())
	}
	// A file that cannot be written stays as it is, and the answer says why.
	if err := os.Remove(file + ".history"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file+".history", 0o700); err != nil {
		t.Fatal(err)
	}
	if got := h.config(400, "PUT", "/config/log_level", "", `{"value":"debug"}`, nil); !strings.Contains(got, "not a regular file") || strings.Contains(text(), "log_level") {
		t.Errorf("the answer is %s, the file %q", got, text())
	}
	if err := os.Remove(file + ".history"); err != nil {
		t.Fatal(err)
	}
	// Of changes at the same time that are based on one version, one is made.
	h.config(200, "GET", "/config", "", "", &v)
	codes := make(chan int, 8)
	var calls sync.WaitGroup
	for range cap(codes) {
		calls.Go(func() {
			req, err := h.client.Request(h.ctx, "PUT", "/config/limits.runs_per_minute", strings.NewReader(`{"value":"8"}`))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("If-Match", v.Version)
			resp, err := h.client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			codes <- resp.StatusCode
		})
	}
	calls.Wait()
	close(codes)
	count := make(map[int]int)
	for code := range codes {
		count[code]++
	}
	if count[200] != 1 || count[412] != 7 {
		t.Errorf("the answers are %v", count)
	}
	// A broken file is shown as such, and stays as it is.
	if err := os.WriteFile(file, []byte("model: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.config(200, "GET", "/config", "", "", &v)
	if h.config(400, "PUT", "/config/log_level", "", `{"value":"debug"}`, nil); !strings.Contains(v.Broken, "claybot.yaml:") || text() != "model: [\n" {
		t.Errorf("broken: %q, the file is %q", v.Broken, text())
	}
}

// Over the network, an admin token sends no file or variable elsewhere, runs nothing on the
// machine, and gives no further person access.
func TestConfigOverTheNetwork(t *testing.T) {
	h := startDaemon(t, "model:\n  name: demo\nspeech:\n  key: env:KEY\n", map[string]string{"HIDDEN": "not-real", "DISCORD_BOT_TOKEN": "not-real"})
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	file := filepath.Join(h.dir, "claybot.yaml")
	desk := configDesk{h.daemon}
	web1 := filepath.Join(h.dir, "data", "web.token")
	outside := filepath.Join(h.dir, "outside")
	if err := os.WriteFile(outside, []byte("not-real\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ key, value string }{
		{"model.key", "file:" + web1},
		{"model.key", "file:" + outside},
		{"model.key", "file:nothing-there"},
		{"model.key", "file:claybot.secrets/../outside"},
		{"model.key", "file:claybot.secrets"},
		{"model.key", "file:claybot.secrets/none"},
		{"model.key", "env:HIDDEN"},
		{"telegram", "{token: 'file:" + outside + "'}"},
		{"model.fallback", "[{name: demo, key: env:HIDDEN}]"},
		{"model.base_url", "https://a.example/v1"},
		{"telegram.api_url", "https://a.example"},
		{"agents.x.model.base_url", "https://a.example/v1"},
		{"transcription", "{key: env:KEY, base_url: 'https://a.example'}"},
		{"workspaces", "local"},
		{"workspaces.provider", "local"},
		{"agents.x.workspace", "local"},
		{"mcp", "{x: {command: [sh]}}"},
		{"cron.gates", "true"},
		{"access.mode", "open"},
		{"access", "'open'"},
		{"access", "{mode: open}"},
		{"operators", "[telegram/1]"},
		{"agents.default.confirm", "[{match: shell, action: allow}]"},
		{"agents.default.approve", "[]"},
		{"agents.default.allow", "[shell]"},
		{"agents.x", "{allow: ['*']}"},
		{"agents.default.send_to", "['telegram:1']"},
		{"agents.foreground_scope", "all"},
		{"web.unlisted", "allow"},
		{"web", "{fetch: {allow: [a.example]}}"},
		{"agents.default.approvals.approvers", "[telegram/1]"},
		{"agents.x.plan", "{approvers: [telegram/1]}"},
		{"http.addr", "0.0.0.0:8420"},
		{"prompts.env", "[HIDDEN]"},
		{"data_dir", "/tmp"},
	} {
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = desk.ChangeConfig(h.ctx, web.ConfigEdit{Key: test.key, Value: &test.value})
		var problem *web.Problem
		if !errors.As(err, &problem) || problem.Status != http.StatusForbidden || !strings.Contains(problem.Message, "change this on the machine") {
			t.Errorf("%s = %s: %v, want 403", test.key, test.value, err)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
			t.Fatalf("%s = %s: the file is %q, %v", test.key, test.value, after, err)
		}
	}
	// What stands there already, or claybot has stored, is allowed.
	for _, test := range []struct{ key, value, secret string }{
		{"transcription.key", "env:KEY", ""},
		{"discord.token", "env:DISCORD_BOT_TOKEN", ""},
		{"model.key", "", "sk-FAKE-not-real"},
		{"limits.runs_per_minute", "7", ""},
		{"access.allow", "[telegram:1]", ""},
		{"access.mode", "allowlist", ""},
	} {
		edit := web.ConfigEdit{Key: test.key, Value: &test.value, Secret: test.secret}
		if out, err := desk.ChangeConfig(h.ctx, edit); err != nil || len(out.Changes) != 1 {
			t.Errorf("%s = %s: %+v, %v", test.key, test.value, out, err)
		}
	}
	// A secret for what stays on the machine is not kept, and a change made there is not undone.
	kept := func() int {
		list, err := os.ReadDir(filepath.Join(h.dir, "claybot.secrets"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	was := kept()
	if _, err := desk.ChangeConfig(h.ctx, web.ConfigEdit{Key: "files.secret_key", Secret: "FAKE"}); err == nil || kept() != was {
		t.Errorf("the secret: %v, %d files, %d before", err, kept(), was)
	}
	var out web.ConfigChanged
	h.config(200, "PUT", "/config/telegram.api_url", "", `{"value":"http://127.0.0.1:1"}`, &out)
	if _, err := desk.RevertConfig(h.ctx, out.Changes[0].N, "x", ""); err == nil || !strings.Contains(err.Error(), "change this on the machine") {
		t.Errorf("the revert: %v", err)
	}
}

// A value as it is shown, without its secret, does not replace the real one.
func TestConfigHidden(t *testing.T) {
	h := startDaemon(t, "model:\n  name: demo\nagents:\n  default:\n    prompt: see https://hooks.example/hooks/T0123456/abc\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	if got := h.config(400, "PUT", "/config/agents.default.prompt", "", `{"value":"see https://hooks.example/hooks/(secret)"}`, nil); !strings.Contains(got, "stands for what is not shown") {
		t.Errorf("the answer is %s", got)
	}
	set := configSetCmd{Key: "agents.default.prompt", Value: new("see (secret)")}
	if err := set.Run(h.env); err == nil || !strings.Contains(err.Error(), "stands for what is not shown") {
		t.Errorf("the command: %v", err)
	}
}

// What is typed as a text is that text in the file, and in force, whatever it is in YAML.
func TestConfigTyped(t *testing.T) {
	h := startDaemon(t, "model:\n  name: demo\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	desk := configDesk{h.daemon}
	for _, text := range []string{`"quoted words"`, `'single'`, "yes", "on", "123", "null", "~", "{a: b}", "[x]", "a: b # c", "1e3", "plain", "&x *y !z"} {
		if _, err := desk.ChangeConfig(h.ctx, web.ConfigEdit{Key: "agents.default.prompt", Value: &text, Text: true}); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := h.daemon.config.Load().Agents.Profiles[configs.DefaultProfile].Prompt; got != text {
			t.Errorf("%s is in force as %s", text, got)
		}
		v, err := desk.Configuration(h.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range v.Keys {
			if k.Key == "agents.default.prompt" && (k.Text != text || k.Kind != "text") {
				t.Errorf("%s is shown as %+v", text, k)
			}
		}
	}
}

// A change that a daemon would refuse at its start is refused, unless that is so already.
func TestConfigGuarded(t *testing.T) {
	h := startDaemon(t, "model:\n  name: demo\n", map[string]string{"CLAYBOT_HTTP_ADDR": ""})
	set := func(key, value string) error {
		f, err := h.env.configFile()
		if err != nil {
			return err
		}
		defer f.unlock()
		_, err = f.put(h.env, key, value, "")
		return err
	}
	if err := set("http.addr", "0.0.0.0:8420"); err == nil || !strings.Contains(err.Error(), "nothing was changed: the web page at 0.0.0.0:8420 would be reachable") {
		t.Errorf("an open page: %v", err)
	}
	if got := h.config(400, "PUT", "/config/http.addr", "", `{"value":"0.0.0.0:8420"}`, nil); !strings.Contains(got, "would be reachable") {
		t.Errorf("over the API: %s", got)
	}
	if err := set("http.trusted_proxies", "[10.0.0.5]"); err != nil {
		t.Error(err)
	}
	if err := set("http.addr", "0.0.0.0:8420"); err != nil {
		t.Errorf("behind a proxy: %v", err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "claybot.yaml"), []byte("http: 0.0.0.0:8420\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := set("log_level", "debug"); err != nil {
		t.Errorf("another key: %v", err)
	}
	// Of a file that could not be read, nothing is so already.
	f := configFile{path: filepath.Join(h.dir, "claybot.yaml"), named: filepath.Join(h.dir, "claybot.yaml"), text: []byte("http: [\n")}
	if _, err := f.check(h.env, []string{"http"}, []byte("model: demo\nhttp: 0.0.0.0:8420\n")); err == nil {
		t.Error("an open page in place of a broken file")
	}
}

// A change whose reload cannot come any more returns, and a file is free while a reload works.
func TestConfigWithoutReload(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	desk := configDesk{h.daemon}
	change := func(value string) chan web.ConfigChanged {
		done := make(chan web.ConfigChanged, 1)
		go func() {
			out, err := desk.ChangeConfig(h.ctx, web.ConfigEdit{Key: "log_level", Value: &value})
			if err != nil {
				t.Error(err)
			}
			done <- out
		}()
		return done
	}
	first := change("debug")
	asked := <-h.daemon.reloads // which works on it
	f, err := h.env.configFile()
	if err == nil {
		ctx, cancel := context.WithTimeout(h.ctx, lockWait)
		defer cancel()
		err = f.lock(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.unlock()
	asked.done <- reloaded{Refused: []string{"telegram keeps its old settings"}}
	if out := <-first; len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "keeps its old settings") {
		t.Errorf("the change is %+v", out)
	}
	second := change("warn")
	<-h.daemon.reloads
	h.daemon.reloadOn(h.ctx, h.env, nil)() // claybot stops
	if out := <-second; len(out.Changes) != 1 || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "with the next start") {
		t.Errorf("the change is %+v", out)
	}
}

// A change that cannot be undone any more is a conflict, and one of the form of the log needs a restart.
func TestConfigConflict(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	h.config(200, "PUT", "/config/log_level", "", `{"value":"warn"}`, nil)
	h.config(200, "PUT", "/config/log_level", "", `{"value":"info"}`, nil)
	if got := h.config(409, "POST", "/config/history/1/revert", "", "", nil); !strings.Contains(got, "changed again since") {
		t.Errorf("the answer is %s", got)
	}
	var out web.ConfigChanged
	h.config(200, "PUT", "/config/relay", "", `{"value":"[{name: kept, file: events.jsonl}]"}`, &out)
	if len(out.Restart) != 0 {
		t.Errorf("the change is %+v", out)
	}
	h.config(200, "PUT", "/config/log", "", `{"value":"json"}`, &out)
	if len(out.Restart) != 1 || out.Restart[0] != "log" {
		t.Errorf("the change is %+v", out)
	}
}

// A change that the history does not have has no number: that of another change would undo that one.
func TestConfigNumbered(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	var out web.ConfigChanged
	h.config(200, "PUT", "/config/log_level", "", `{"value":"warn"}`, &out)
	f, err := h.env.configFile()
	if err != nil {
		t.Fatal(err)
	}
	desk, made := configDesk{h.daemon}, []change{{Key: "language"}}
	if got := desk.numbered(f, made, true)[0].N; got != 1 || out.Changes[0].N != 1 {
		t.Errorf("the change in the history has number %d, and %d for who made it", got, out.Changes[0].N)
	}
	if got := desk.numbered(f, made, false)[0].N; got != 0 {
		t.Errorf("the change that is not there has number %d", got)
	}
	if err := os.Remove(f.historyPath()); err != nil {
		t.Fatal(err)
	}
	if got := desk.numbered(f, made, true)[0].N; got != 0 {
		t.Errorf("the change of a history that is gone has number %d", got)
	}
}

// A value for a group, such as model, is in the history under the key that it means, so that a revert finds it.
func TestConfigMeant(t *testing.T) {
	h := startDaemon(t, "model:\n  name: demo\n  max_tokens: 500\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	var out web.ConfigChanged
	h.config(200, "PUT", "/config/model", "", `{"value":"gpt-5"}`, &out)
	if len(out.Changes) != 1 || out.Changes[0].Key != "model.name" || *out.Changes[0].Before != "demo" {
		t.Fatalf("the change is %+v", out)
	}
	h.config(200, "POST", "/config/history/1/revert", "", "", nil)
	if name := h.daemon.config.Load().Model.Name; name != "demo" {
		t.Errorf("after the revert, the model is %s", name)
	}
}
