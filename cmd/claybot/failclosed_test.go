package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// allRows makes every bad value start a daemon of its own, not a sample of them.
const allRows = "CLAYBOT_TEST_ALL_ROWS"

// badAddresses are values of addresses, none of which names a host that may be
// called: what they resemble must not be called either.
var badAddresses = []string{
	"127.0.0.1:9900/v1", "localhost:9900", "model.example.org", "model.example.org/v1", "//model.example.org/v1", "http//model.example.org", "http:/model.example.org/v1",
	"http:model.example.org", "https://model.example.org./v1", "http://model.example.org.:8080/v1", "https://me:secret@model.example.org/v1", "https://secret@model.example.org",
	"https://model.example.org/v1?key=secret", "https://model.example.org/#v1", "https://model.example.org:0/v1", "https://model.example.org:99999/v1", "https://model.example.org:/v1",
	"https://model.example.org:https/v1", "ftp://model.example.org/v1", "unix:///run/model.sock", "https://", "https:///v1", "http://mödel.example.org/v1", "http://model example.org/v1",
	"http://model.example.org/v 1", "http://127.1:9900/v1", "http://2130706433:9900/v1", "127.0.0.1:9900", "http:127.0.0.1:9900", "//127.0.0.1:9900/v1", "http://me:secret@127.0.0.1:9900/v1", "http://127.0.0.1:9900/v1?key=secret", "http://model..example.org", "nonsense", "off",
}

// badNames are values of a provider, an account or a model, as lines of the group
// model; env is the same by a variable, where there is one.
var badNames = []struct{ line, env string }{
	{"provider: openia", ""},
	{"provider: OpenAI", ""},
	{"provider: [openai]", ""},
	{"keys: [env:NOT_SET]", ""},
	{"keys: [sk-not-a-real-key]", ""},
	{"keys: [file:missing, env:NOT_SET]", ""},
	{"name: 'two words'", "CLAYBOT_MODEL=two words"},
	{"name: sk-not-a-real-key", "CLAYBOT_MODEL=sk-not-a-real-key"},
	{"endpoint: http://model.example.org", "OPENAI_BASE_ULR=http://model.example.org"},
	{"bse_url: http://model.example.org", "OPENAI_API_BASE=http://model.example.org"},
	{"headers: {Authorization: env:NOT_SET}", ""},
	{"base_url: ", "OPENAI_BASE_URL="},
	{"base_url: ~", "CLAYBOT_MODEL_BASE_URL=http://model.example.org"},
	{"base_url: 'http://model.example.org/v1', key: ", "CLAYBOT_API_URL=http://model.example.org"},
	{"name: 'http://127.0.0.1:9900/v1'", "CLAYBOT_MODEL=http://127.0.0.1:9900/v1"},
	{"name: '127.0.0.1:9900'", "CLAYBOT_MODEL=model.example.org:9900"},
	{"base_url: 'http://model.example.org/v1', key: env:NOT_SET", "OPENAI_API_HOST=http://model.example.org"},
	{"name: claude-x, base_url: ", "OPENAI_API_ENDPOINT=model.example.org"},
}

// badFiles are files whose mistakes are in none of the groups above.
var badFiles = []string{
	"model: {site: 'http://model.example.org'}", "model: {<<: {base_url: 'http://model.example.org'}}", "model: none",
	"agents: {private: {match: 'terminal, web', model: {name: m, base_url: 'http://127.0.0.1:9900'}}}", "agents: {private: {for: terminal, tools: []}}", "agents: {terminal: {tools: []}}",
	"profiles: {default: {tools: []}}", "max_usd: 5", "limits: {usd: 5}",
	"openai: {base_url: 'http://model.example.org'}", "llm: {name: m}", "ollama: {host: 'model.example.org:11434'}", "model:",
	"agents: {default: five}", "agents: {default: {max_steps: }}", "budgets: [{per: all, usd: 0x1p4}]", "budgets:",
}

// badLimits are values of limits, at the place of %s.
var badLimits = []string{"0", "-1", "five", "1e9", ".nan", "1e400", "\"\"", "~five", "[5]"}

// limitedKeys are the keys that they are values of.
var limitedKeys = []string{
	"budgets: [{per: all, usd: %s}]", "budgets: [{per: agent, every: day, tokens: %s}]",
	"agents: {default: {max_steps: %s}}", "bugdets: [{per: all, usd: %s}]", "model: {max_tokens: %s}",
}

// A badRow is one bad value: in a file, and by the environment or by the API.
type badRow struct {
	name, file string
	env        map[string]string
}

// badPort is the port of this machine in bad values. badRows puts that of a server in
// its place, which sees connections to an address that no lookup resolves.
const badPort = ":9900"

// badRows are the bad values; those of limits take one key after another.
func badRows(port string) (rows []badRow) {
	for _, v := range badAddresses {
		quoted := fmt.Sprintf("%q", v)
		rows = append(rows, badRow{
			"address " + v, strings.ReplaceAll(`model: {name: m, base_url: ADDR, fallback: [b, {name: c, base_url: ADDR}]}
telegram: {token: env:TOKEN, api_url: ADDR}
slack: {bot_token: env:BOT, app_token: env:APP, api_url: ADDR}
otlp: {endpoint: ADDR, interval: 100ms}
transcription: {base_url: ADDR}
speech: {base_url: ADDR}
relay: [{name: r, url: ADDR, secret: env:KEY}]
mcp: {m: {url: ADDR}}
web: {search: [{provider: searxng, base_url: ADDR}]}
agents: {default: {explore: {url: ADDR}}}
`, "ADDR", quoted),
			map[string]string{"OPENAI_BASE_URL": v, "TELEGRAM_API_URL": v, "SLACK_API_URL": v, "OTEL_EXPORTER_OTLP_ENDPOINT": v},
		})
	}
	for _, n := range badNames {
		row := badRow{name: n.line, file: "model: {" + n.line + "}\n"}
		if name, value, ok := strings.Cut(n.env, "="); ok {
			row.env = map[string]string{name: value}
		}
		rows = append(rows, row)
	}
	for _, file := range badFiles {
		rows = append(rows, badRow{name: file, file: file + "\n"})
	}
	for i := range 20 {
		key, v := limitedKeys[i%len(limitedKeys)], badLimits[i%len(badLimits)]
		if strings.HasPrefix(key, "model") && v == "0" { // which has a meaning
			v = "-5"
		}
		file := fmt.Sprintf(key, v) + "\n"
		rows = append(rows, badRow{name: file, file: file})
	}
	for i, row := range rows {
		rows[i].file = strings.ReplaceAll(row.file, badPort, port)
		for name, v := range row.env {
			row.env[name] = strings.ReplaceAll(v, badPort, port)
		}
	}
	return rows
}

// TestBadValuesReachNoHost gives a daemon 60 bad values of settings, each by a file at
// the start, by a file that is reloaded, and by the environment or, where no variable
// sets it, by the API: no host is looked up or connected to, nothing is asked of the model that was
// configured before, and the person who writes reads why.
func TestBadValuesReachNoHost(t *testing.T) {
	lookups := recordLookups(t)
	port := lookups.listen(t)
	rows := badRows(port)
	if len(rows) < 60 {
		t.Fatalf("%d rows, want 60", len(rows))
	}
	t.Run("control", func(t *testing.T) {
		h := startDaemon(t, "model: demo\nrelay: [{name: r, url: 'http://named.example.org:9', secret: env:KEY}, {name: s, url: 'http://127.0.0.1"+port+"', secret: env:KEY}]\n", nil)
		h.say("hello")
		for got := lookups.take(); !slices.Contains(got, "named.example.org") || !slices.Contains(got, connected); got = append(got, lookups.take()...) {
			select {
			case <-h.ctx.Done():
				t.Fatalf("looked up %q: the test sees nothing", got)
			case <-time.After(time.Millisecond):
			}
		}
	})
	for i, row := range rows {
		if i%13 != 0 && os.Getenv(allRows) == "" && !strings.Contains(row.file, "five}\n") && !strings.HasPrefix(row.name, "base_url: ") {
			continue
		}
		number := strconv.Itoa(i) // the directory of a test has its name, and a reply may name the file
		t.Run("start/"+number, func(t *testing.T) { lookups.none(t, startDaemon(t, row.file, nil), row.name) })
		if row.env != nil {
			t.Run("variable/"+number, func(t *testing.T) { lookups.none(t, startDaemon(t, "", row.env), row.name+" by a variable") })
		}
	}
	t.Run("reload", func(t *testing.T) { reloadRows(t, lookups, rows) })
}

// reloadRows gives bad values to a daemon whose model works.
func reloadRows(t *testing.T, lookups *lookupLog, rows []badRow) {
	t.Helper()
	model := openaitest.New(openaitest.Config{})
	address, stop, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	good := "model: {name: m, base_url: '" + address + "'}\n"
	h := startDaemon(t, good, nil)
	if got := h.say("hello"); !strings.Contains(got, "echo: hello") {
		t.Fatalf("before: %q", got)
	}
	calls := model.Calls()
	for i, row := range rows {
		for source, set := range map[string]func(){
			"file":     func() { h.reload(row.file, nil) },
			"variable": func() { h.reload("log: text\n", row.env) },
		} {
			if source == "variable" && row.env == nil {
				continue
			}
			if set(); i%13 == 0 || os.Getenv(allRows) != "" {
				lookups.none(t, h, row.name)
			}
			if _, err := h.ask(); err == nil {
				t.Errorf("%s by %s: the model answers", row.name, source)
			}
			if names := lookups.take(); len(names) > 0 {
				t.Errorf("%s by %s: %q were looked up", row.name, source, names)
			}
			if model.Calls() != calls {
				t.Fatalf("%s by %s: the model that was configured before is asked", row.name, source)
			}
		}
	}
	h.reload(good, nil)
	if got := h.say("hello again"); !strings.Contains(got, "echo: hello again") {
		t.Errorf("after: %q", got)
	}
}

// Limits that the API sets are refused as well, and nothing is changed by a bad one.
func TestBadLimitsByTheAPI(t *testing.T) {
	model := openaitest.New(openaitest.Config{})
	address, stop, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	h := startDaemon(t, "model: {name: gpt-5, base_url: '"+address+"'}\nbudgets: [{per: all, usd: 5}]\n", nil)
	h.say("hello")
	var agents struct {
		Agents []struct {
			ID claybot.AgentID `json:"id"`
		} `json:"agents"`
	}
	if err := h.client.call(h.ctx, "GET", "/agents", nil, &agents); err != nil || len(agents.Agents) != 1 {
		t.Fatalf("agents %v, %v", agents, err)
	}
	path := "/agents/" + string(agents.Agents[0].ID) + "/settings"
	var budgets struct {
		Budgets []struct {
			Key   string `json:"key"`
			Limit int64  `json:"limit"`
		} `json:"budgets"`
	}
	if err := h.client.call(h.ctx, "GET", "/budgets", nil, &budgets); err != nil || len(budgets.Budgets) != 2 { // the default one of the person as well
		t.Fatalf("budgets %v, %v", budgets, err)
	}
	before := h.get(path)
	for _, v := range []string{"-1", `"five"`, "1e9", "1e400", "null1", "[5]", "1001"} {
		for method, bad := range map[string]string{"PATCH " + path: `{"maxSteps": ` + v + `}`, "POST /budgets/extend": `{"key": "` + budgets.Budgets[0].Key + `", "idempotencyKey": "k` + v[:1] + `", "usd": ` + v + `}`} {
			if v == "1001" && strings.HasPrefix(method, "POST") {
				continue // a good amount
			}
			verb, to, _ := strings.Cut(method, " ")
			err := h.client.call(h.ctx, verb, to, rawBody(bad), nil)
			var refused *refusal
			if !errors.As(err, &refused) || refused.status < 400 || refused.status >= 500 {
				if !badJSON(bad) {
					t.Errorf("%s %s: %v, want a refusal", method, bad, err)
				}
			}
		}
	}
	for _, bad := range []string{`{"model": "http://model.example.org"}`, `{"model": "nonsense"}`, `{"engine": "ract"}`, `{"tools": ["nonsense"]}`} {
		var refused *refusal
		if err := h.client.call(h.ctx, "PATCH", path, rawBody(bad), nil); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want a refusal", bad, err)
		}
	}
	if after := h.get(path); after != before {
		t.Errorf("the settings were %s and are %s", before, after)
	}
}

// rawBody is sent as it stands, where it is JSON.
type rawBody string

func (b rawBody) MarshalJSON() ([]byte, error) { return []byte(b), nil }

// badJSON reports a body that is not sent at all.
func badJSON(s string) bool { return !json.Valid([]byte(s)) }

// A harness is a daemon in this process, with the file and the environment that the
// test gives it.
type harness struct {
	t      *testing.T
	ctx    context.Context
	dir    string
	env    *env
	vars   map[string]string
	daemon *daemon
	client *client
	log    logText
}

// A logText is a log that can be read while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startDaemon runs a daemon until the test ends.
func startDaemon(t *testing.T, file string, vars map[string]string) *harness {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	h := &harness{t: t, ctx: ctx, dir: t.TempDir()}
	h.env = &env{cli: &cli{}, out: new(bytes.Buffer), err: new(bytes.Buffer), lookup: func(name string) (string, bool) {
		v, ok := h.vars[name]
		return v, ok
	}}
	h.set(file, vars)
	c, _, err := h.env.load()
	if err != nil {
		t.Fatal(err)
	}
	if h.daemon, err = openDaemon(ctx, c, slog.New(slog.NewTextHandler(&h.log, nil)), nil); err != nil {
		t.Fatal(err)
	}
	h.daemon.env = h.env
	ended := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() { ended <- h.daemon.run(running) }()
	t.Cleanup(func() { stop(); <-ended; h.daemon.close() })
	<-h.daemon.listeners.web.Up()
	if h.client, err = dial(c.DataDir); err == nil {
		err = h.client.ready(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// set is what the next load reads. Keys and tokens are there, also of real providers.
func (h *harness) set(file string, vars map[string]string) {
	h.t.Helper()
	h.vars = map[string]string{
		"CLAYBOT_DATA_DIR": filepath.Join(h.dir, "data"), "CLAYBOT_HTTP_ADDR": "off", "HOME": h.dir,
		"OPENAI_API_KEY": "sk-not-a-real-key", "ANTHROPIC_API_KEY": "sk-ant-not-a-real-key", "KEY": "not-a-real-key",
		"TOKEN": "1234567:not-a-real-token-not-a-real", "BOT": "xoxb-not-real", "APP": "xapp-not-real",
		"CLAYBOT_CONFIG": filepath.Join(h.dir, "claybot.yaml"),
	}
	if vars["TELEGRAM_API_URL"] != "" { // else they would call the real platforms
		h.vars["TELEGRAM_BOT_TOKEN"], h.vars["SLACK_BOT_TOKEN"], h.vars["SLACK_APP_TOKEN"] = h.vars["TOKEN"], h.vars["BOT"], h.vars["APP"]
	}
	for name, v := range vars {
		h.vars[name] = v
		h.t.Setenv(name, v) // its name is looked at
	}
	if h.vars["CLAYBOT_DATA_DIR"] == "" { // the file names it
		delete(h.vars, "CLAYBOT_DATA_DIR")
		_ = os.Unsetenv("CLAYBOT_DATA_DIR")
	}
	if err := os.WriteFile(h.vars["CLAYBOT_CONFIG"], []byte(file), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// reload does what SIGHUP does.
func (h *harness) reload(file string, vars map[string]string) {
	h.t.Helper()
	h.set(file, vars)
	h.daemon.reload(h.ctx, h.env, false)
}

// say writes as the operator on the command line, and returns what there is to read.
func (h *harness) say(text string) string {
	h.t.Helper()
	var out bytes.Buffer
	err := (&talk{client: h.client, out: &out, errs: &out}).once(h.ctx, text)
	if err != nil && !errors.Is(err, errSilent) {
		h.t.Fatal(err)
	}
	return out.String()
}

// ask asks the model of the operator's agent, as a run does.
func (h *harness) ask() (llm.Response, error) {
	a := claybot.Agent{ID: "nobody", Descriptor: claybot.User("terminal", "operator", "operator")}
	return h.daemon.models.choose(a).Chat(h.ctx, llm.Request{Agent: a.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: "hello"}}})
}

func (h *harness) get(path string) string {
	h.t.Helper()
	var v json.RawMessage
	if err := h.client.call(h.ctx, "GET", path, nil, &v); err != nil {
		h.t.Fatal(err)
	}
	return string(v)
}
