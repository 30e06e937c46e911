package main

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/workspace/docker"
	"github.com/claybot/claybot/workspace/local"
)

// A file that cannot be read at a reload is on the status until one can, and nothing
// that it says is taken.
func TestUnreadableReload(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	for _, bad := range []string{"model: [\n", "model: demo\n---\nmodel: gpt-5\n"} {
		h.reload(bad, nil)
		if st := h.get("/status"); !strings.Contains(st, "configuration reload failed") || !strings.Contains(st, `"off":true`) || !strings.Contains(st, "claybot.yaml:") {
			t.Errorf("%q: the status is %s", bad, st)
		}
		if got := h.say("hello"); !strings.Contains(got, "hello") {
			t.Errorf("%q: the reply is %q", bad, got)
		}
	}
	h.reload("model: demo\n", nil)
	if st := h.get("/status"); strings.Contains(st, "reload failed") {
		t.Errorf("after a good reload the status is %s", st)
	}
}

// A file that is gone or emptied does not drop the settings that were read from it;
// a daemon that began without a key takes one that has some.
func TestReloadKeepsAFile(t *testing.T) {
	const good = "model: {name: m, base_url: nowhere}\nbudgets: [{per: all, usd: 5}]\n"
	h := startDaemon(t, "# nothing yet\n", nil)
	h.reload(good, nil)
	for _, text := range []string{"", "# log: json\n", "---\n", "{}\n", "missing"} {
		if h.set(text, nil); text == "missing" {
			t.Chdir(h.dir)
			delete(h.vars, "CLAYBOT_CONFIG")
			if err := os.Remove(filepath.Join(h.dir, "claybot.yaml")); err != nil {
				t.Fatal(err)
			}
		}
		h.daemon.reload(h.ctx, h.env, false)
		if st := h.get("/status"); !strings.Contains(st, "configuration reload failed") || !strings.Contains(st, "restart claybot to run without one") {
			t.Errorf("%q: the status is %s", text, st)
		}
		if c := h.daemon.config.Load(); len(c.Agents.Budgets) != 1 || c.Model.Off() == "" {
			t.Errorf("%q: the settings are gone", text)
		}
	}
	h.reload("log: json\n", nil)
	if c := h.daemon.config.Load(); len(c.Agents.Budgets) != 0 {
		t.Errorf("a file with a key was not taken: %v", c.Agents.Budgets)
	}
}

// Commands reach the daemon of the data directory that they were given, also while
// the file cannot be read.
func TestCommandsWithAnUnreadableFile(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	h.set("model: [\n", nil)
	errs := new(bytes.Buffer)
	h.env.err = errs
	c, err := h.env.connect()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ready(h.ctx); err != nil || !strings.Contains(errs.String(), "claybot: warning: ") || !strings.Contains(errs.String(), "claybot.yaml:") {
		t.Errorf("%v, said %q", err, errs)
	}
	delete(h.vars, "CLAYBOT_DATA_DIR")
	if _, err := h.env.connect(); exitCode(err) != exitConfig {
		t.Errorf("without a data directory: %v", err)
	}
	h.vars["CLAYBOT_DATA_DIR"] = t.TempDir() // no daemon is there
	if _, err := h.env.connect(); exitCode(err) != exitConfig {
		t.Errorf("without a daemon: %v", err)
	}
}

// What is said to be off after a reload is off, and what only a restart applies is
// not said to be.
func TestReloadSaysWhatHolds(t *testing.T) {
	h := startDaemon(t, "model: demo\n", map[string]string{"CLAYBOT_HTTP_ADDR": ""})
	metrics := func() int {
		w := httptest.NewRecorder()
		for _, r := range h.daemon.listeners.metrics.Routes() {
			if r.Pattern == "GET /metrics" {
				r.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			}
		}
		return w.Code
	}
	if got := metrics(); got != http.StatusOK {
		t.Fatalf("metrics: %d", got)
	}
	h.reload("model: demo\nmetrics: five\n", nil)
	if got, st := metrics(), h.get("/status"); got != http.StatusNotFound || !strings.Contains(st, "no metrics are served until") {
		t.Errorf("metrics: %d, the status is %s", got, st)
	}
	for _, bad := range []string{"http: five", "http: {insecure: maybe}", "node: {max_runs: five}", "storage: {url: nowhere}", "files: {url: nowhere}"} {
		h.reload("model: demo\n"+bad+"\n", map[string]string{"CLAYBOT_HTTP_ADDR": ""})
		if st := h.get("/status"); !strings.Contains(st, "the old value still holds, until claybot is restarted") || strings.Contains(st, `"off":true`) {
			t.Errorf("%s: the status is %s", bad, st)
		}
	}
	h.reload("model: demo\n", nil)
	if got := metrics(); got != http.StatusOK {
		t.Errorf("metrics after a good reload: %d", got)
	}
}

// A reload names what only a restart applies, and nothing else.
func TestReloadNamesWhatNeedsARestart(t *testing.T) {
	h := startDaemon(t, "model: demo\nlog: text\nagents: {default: {maxBatch: 5}}\n", map[string]string{"CLAYBOT_HTTP_ADDR": ""})
	for file, want := range map[string]string{
		"log: text\nlog_level: debug\nlimits: {runs_per_minute: 3}": "",
		"log: json": "log",
		"log: text\nrelay: [{name: a, file: a.jsonl}]":                    "",
		"log: text\notlp: {endpoint: 'http://127.0.0.1:1'}":               "",
		"log: text\nhttp: 127.0.0.1:1":                                    "http",
		"log: text\ntranscription: whisper-1":                             "transcription",
		"log: text\ntranscription: {model: whisper-1, base_url: nowhere}": "",
		"log: text\nspeech: {voice: alloy, model: tts}":                   "speech",
		"log: text\nworkspaces: {ttl: 5h}":                                "workspaces.ttl",
		"log: text\nworkspaces: {memory: 1g}":                             "",
		"log: text\nagents: {default: {maxBatch: 5000}}":                  "",
		"log: text\nagents: {default: {maxBatch: 900}}":                   "maxBatch",
		"log: text\nagents: {default: {maxBatch: 4}}":                     "",
	} {
		h.set("model: demo\n"+file+"\n", map[string]string{"CLAYBOT_HTTP_ADDR": ""})
		restart, err := h.daemon.config.reload(h.env, false, func(configs.Config) {})
		if got := strings.Join(restart, " "); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", file, got, err, want)
		}
	}
}

// What waits for a restart is on the status, with the value in force and that of the file, until the file has the old
// value again.
func TestPendingRestart(t *testing.T) {
	h := startDaemon(t, "model: demo\nlog: text\n", nil)
	h.reload("model: demo\nlog: json\n", nil)
	if st := h.get("/status"); !strings.Contains(st, `"code":"restart-pending"`) || !strings.Contains(st, "log: text is in force, json in the file") {
		t.Errorf("the status is %s", st)
	}
	key := func() (k web.ConfigKey) {
		v, err := configDesk{h.daemon}.Configuration(h.ctx)
		if i := slices.IndexFunc(v.Keys, func(k web.ConfigKey) bool { return k.Key == "log" }); err == nil && i >= 0 {
			return v.Keys[i]
		}
		t.Fatal("no key log", err)
		return k
	}
	if k := key(); k.Value != "json" || !k.Restart || k.InForce != "text" {
		t.Errorf("the key is %+v", k)
	}
	h.reload("model: demo\nlog: text\n", nil)
	if st := h.get("/status"); strings.Contains(st, "restart-pending") || key().Restart {
		t.Errorf("with the old value the status is %s, the key %+v", st, key())
	}
	all := []string{"http", "http_hosts", "maxBatch", "heartbeat.enabled"}
	for key, want := range map[string]string{
		"http.addr": "http", "http": "http", "http.public_url": "http http_hosts", "agents.default.maxBatch": "maxBatch", "heartbeat": "heartbeat.enabled", "log_level": "", "": strings.Join(all, " "),
	} {
		own, earlier := restarts(all, strings.Fields(key))
		if strings.Join(own, " ") != want || len(own)+len(earlier) != len(all) {
			t.Errorf("%s: %v and %v, want %s", key, own, earlier, want)
		}
	}
}

// A connector whose settings are the same stays; one with others is replaced, and a bad setting
// switches it off until it is corrected.
func TestReloadedConnector(t *testing.T) {
	const good = "model: demo\ntelegram: {token: env:TOKEN, api_url: 'http://127.0.0.1:9'}\n"
	h := startDaemon(t, good, nil)
	first := h.daemon.roster.of("telegram")
	for _, tt := range []struct {
		file      string
		same, off bool
	}{
		{good + "log_level: debug\n", true, false},
		{strings.Replace(good, "http://", "", 1), false, true},
		{good, false, false},
		{strings.Replace(good, ":9'", ":10'", 1), false, false},
	} {
		h.reload(tt.file, nil)
		now := h.daemon.roster.of("telegram")
		if _, off := now.(offConnector); off != tt.off || (now == first) != tt.same || strings.Contains(h.log.String(), "requires a restart") {
			t.Errorf("%q: %T, the same: %v; %s", tt.file, now, now == first, &h.log)
		}
		first = now
	}
}

// People who write to an agent that a bad setting switches off read that it is the
// agent, not the model.
func TestTheAgentIsOff(t *testing.T) {
	model := openaitest.New(openaitest.Config{})
	address, stop, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	good := "model: {name: m, base_url: '" + address + "'}\n"
	h := startDaemon(t, good+"agents: {default: {max_steps: -1}}\n", nil)
	got := h.say("hello")
	if !strings.Contains(got, "This agent is not configured correctly") || !strings.Contains(got, "agents.default.max_steps") || strings.Contains(got, "The model is not") {
		t.Errorf("the reply is %q", got)
	}
	h.reload("model: {name: m, base_url: nowhere}\n", nil)
	if got := h.say("hello"); !strings.Contains(got, "The model is not configured correctly") {
		t.Errorf("the reply is %q", got)
	}
}

// /status says that an agent is switched off for as long as a bad setting does that, and
// /why what made the run fail.
func TestStatusWhileOff(t *testing.T) {
	const waiting = "I am waiting for you."
	h := startDaemon(t, "model: {name: m, base_url: nowhere}\n", nil)
	h.say("hello")
	if got := h.say("/why"); !strings.Contains(got, "The model is not configured correctly") || !strings.Contains(got, "model.base_url") {
		t.Errorf("/why says %q", got)
	}
	for file, want := range map[string][]string{
		"model: {name: m, base_url: nowhere}\n":                                                           {"The model is not configured correctly", "model.base_url", "- model: m, switched off"},
		"model: {name: m}\nagents: {default: {max_steps: -1}}\n":                                          {"This agent is not configured correctly", "agents.default.max_steps", "- model: m\n"},
		"model: {name: m}\nbudgets: [{per: all, usd: five}]\n":                                            {"A budget is not configured correctly", "budgets[0].usd", "- model: m\n"},
		"model: {name: m, base_url: nowhere, fallback: [{name: f, base_url: 'http://127.0.0.1:9/v1'}]}\n": {waiting, "- model: m\n"},
		"model: demo\n":      {waiting, "- model: the built-in demo model\n"},
		"model: {name: m}\n": {waiting, "- model: m\n"},
	} {
		h.reload(file, nil)
		got := h.say("/status")
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s/status says %q, want %q", file, got, part)
			}
		}
		if want[0] != waiting && strings.Contains(got, waiting) {
			t.Errorf("%s/status says %q", file, got)
		}
	}
}

// The key of another company never takes the place of a missing key for a server that
// the file names.
func TestNoOtherKeyForAServer(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	h := startDaemon(t, "model: {name: m, base_url: '"+server.URL+"', key: env:NOPE}\n", nil)
	if got := h.say("hello"); !strings.Contains(got, "The model is not configured correctly") || len(asked) > 0 {
		t.Errorf("asked with %q, the reply is %q", asked, got)
	}
}

// The names of protections that the configuration takes are those of the providers.
func TestProtections(t *testing.T) {
	if got, want := configs.Protections(), slices.Sorted(slices.Values(append(docker.Unsafe(), local.Unconfined))); !slices.Equal(got, want) {
		t.Errorf("configs has %v, the providers %v", got, want)
	}
}

// A change of each key that only a restart applies is said with its group: what claybot config set, the API and the
// page answer, and what the log has.
func TestSettingsThatNeedARestart(t *testing.T) {
	load := func(text string) configs.Config {
		t.Helper()
		c, warnings, err := configs.LoadText("/x/claybot.yaml", []byte(text), func(name string) (string, bool) {
			value, is := map[string]string{"SECRET": "FAKE"}[name]
			return value, is
		})
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%s: %v, %v", text, warnings, err)
		}
		return c
	}
	for text, want := range map[string]string{
		"http: {addr: '127.0.0.1:9'}":                                        "http",
		"http: {tls_cert: /x/cert, tls_key: /x/key}":                         "http",
		"http: {trusted_proxies: [10.0.0.5]}":                                "http",
		"http: {insecure: true}":                                             "http",
		"http: {public_url: 'https://chat.example'}":                         "http_hosts", // its host is one of them
		"http_hosts: [chat.example]":                                         "http_hosts",
		"metrics_listen: '127.0.0.1:9'":                                      "metrics_listen",
		"storage: {connections: 20}":                                         "storage",
		"storage: {listen: false}":                                           "storage",
		"storage: {pooler: true}":                                            "storage",
		"storage: {copies: 7}":                                               "storage",
		"files: {max_inline: 30m}":                                           "files",
		"node: {name: other}":                                                "node",
		"node: {lease: 20s}":                                                 "node",
		"node: {max_runs: 7}":                                                "node",
		"node: {handover: 7s}":                                               "node",
		"relay: [{name: a, file: /x/events}]":                                "",
		"relay: [{name: a, url: 'https://a.example', secret: 'env:SECRET'}]": "",
		"otlp: {endpoint: 'https://a.example'}":                              "",
		"otlp: {headers: {X-Key: 'env:SECRET'}}":                             "",
		"otlp: {interval: 7s}":                                               "",
		"log: json":                                                          "log",
		"cron: {enabled: false}":                                             "cron.enabled",
		"cron: {gates: false}":                                               "cron.gates",
		"heartbeat: {enabled: false}":                                        "heartbeat.enabled",
		"transcription: whisper-1":                                           "transcription",
		"speech: gpt-4o-mini-tts":                                            "speech",
		"workspaces: {ttl: 7h}":                                              "workspaces.ttl",
		"agents: {default: {maxBatch: 190}}":                                 "maxBatch",
		"log_level: debug":                                                   "",
		"limits: {runs_per_minute: 7}":                                       "",
		"agents: {default: {debounceMs: 7}}":                                 "",
	} {
		began, next := load("language: en\n"), load(text+"\n")
		var got []string
		for _, x := range restartOnly {
			if x.changed(began, next) {
				got = append(got, x.key)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A sink whose settings are the same stays. One with others is replaced, one that is gone from a valid list goes, and one
// that may be missing for a bad value takes no events until it is corrected.
func TestReloadedSinks(t *testing.T) {
	h := startDaemon(t, "model: demo\nrelay: [{name: a, url: 'http://127.0.0.1:9', secret: env:KEY}, {name: b, file: b.jsonl}]\n", nil)
	r := h.daemon.listeners.relay
	first := r.Sinks
	for _, tt := range []struct{ relay, same, off, names string }{
		{"[{name: a, url: 'http://127.0.0.1:9', secret: env:KEY}, {name: b, file: b.jsonl}]", "a b", "", "a b"},
		{"[{name: a, url: 'http://127.0.0.1:9', secret: env:APP}, {name: b, file: b.jsonl}]", "b", "", "a b"},
		{"[{name: b, file: b.jsonl}, {name: c, file: c.jsonl}]", "b", "", "b c"},
		{"[{name: b, file: b.jsonl}, {name: c}]", "b", "c", "b c"},
		{"[{name: b}, {name: c}]", "c", "b c", "b c"},
		{"[{name: b, file: b.jsonl}]", "", "", "b"},
		{"[]", "", "", ""},
	} {
		h.reload("model: demo\nrelay: "+tt.relay+"\n", nil)
		var same, off, names []string
		for _, name := range slices.Sorted(maps.Keys(r.Sinks)) {
			names = append(names, name)
			if r.Sinks[name] == first[name] {
				same = append(same, name)
			}
			if r.Sinks[name] == offSink {
				off = append(off, name)
			}
		}
		if got := []string{strings.Join(same, " "), strings.Join(off, " "), strings.Join(names, " ")}; !slices.Equal(got, []string{tt.same, tt.off, tt.names}) {
			t.Errorf("%s: %q", tt.relay, got)
		}
		first = r.Sinks
	}
	if strings.Contains(h.log.String(), "requires a restart") {
		t.Error(&h.log)
	}
}

// A text for another data directory is not put in force where the one before was lost: a command that did not find the
// daemon has begun it, without all that is in force.
func TestReloadOfALostText(t *testing.T) {
	all := "data_dir: " + filepath.Join(t.TempDir(), "data") + "\nmodel: demo\nlimits: {runs_per_minute: 7}\n"
	h := startDaemon(t, all, map[string]string{"CLAYBOT_DATA_DIR": ""})
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	for _, tt := range []struct{ text, failed string }{
		{"# nothing\n", "the file has no key"},
		{"log_level: debug\n", "its text was gone, and this one is for another data directory"},
		{all + "log_level: debug\n", ""},
		{"data_dir: elsewhere\nlimits: {runs_per_minute: 7}\n", ""}, // which a restart applies
		{"# nothing\n", "the file has no key"},
		{"data_dir: elsewhere\nlimits: {runs_per_minute: 7}\nlog_level: warn\n", ""},
	} {
		if err := os.WriteFile(filepath.Join(h.dir, "claybot.yaml"), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, ok := h.daemon.askReload(h.ctx, false)
		if !ok || !strings.Contains(out.Failed, tt.failed) || (out.Failed == "") != (tt.failed == "") {
			t.Errorf("%q: %+v, %v", tt.text, out, ok)
		}
		if n := h.daemon.config.Load().Limits.RunsPerMinute; n != 7 {
			t.Errorf("%q: %d runs a minute", tt.text, n)
		}
	}
}
