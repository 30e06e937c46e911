package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

// environ looks variables up in a map.
func environ(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

// write puts a configuration file into a directory of its own.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads text as a file and requires that it is readable.
func load(t testing.TB, text string, vars map[string]string) (Config, []Warning) {
	t.Helper()
	c, warnings, err := Load(write(t, text), environ(vars))
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c, warnings
}

func TestDefaults(t *testing.T) {
	t.Chdir(t.TempDir()) // no claybot.yaml here
	c, warnings, err := Load("", environ(nil))
	if err != nil || len(warnings) != 0 {
		t.Fatalf("Load = %v, %v", warnings, err)
	}
	if c.Source.File != "" || c.DataDir != ".claybot" || c.HTTP.Addr != "127.0.0.1:8420" || c.Access.Mode != "pairing" {
		t.Errorf("got %+v", c)
	}
	if !c.Model.Demo() || c.Connectors.Telegram.Wanted() || c.Connectors.Slack.Wanted() {
		t.Error("nothing is configured, but something thinks so")
	}
	want := Profile{Name: "default", Model: c.Model, MaxSteps: 64, Inbox: Inbox{WhenBusy: "wait", ProcessBuffer: "allTogether", MaxBatch: 100}, VoiceReplies: "off", AutoSend: true, Respond: "mention", Reactions: Reactions{Feedback: true, Stop: []string{}, Approve: []string{}}, Memory: true, Engine: Engine{Name: "react"}, Workspace: plainWorkspace()}
	if got := c.Profile(claybot.User("telegram", "1", "1")); !reflect.DeepEqual(got, want) {
		t.Errorf("profile = %+v, want %+v", got, want)
	}
}

// The zero Config, which no Load made, still has a profile.
func TestProfileOfZeroConfig(t *testing.T) {
	if got := new(Config).Profile(claybot.User("web", "a", "b")); got.MaxSteps != DefaultMaxSteps {
		t.Errorf("profile = %+v", got)
	}
}

func TestWhichFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{FileName: "data_dir: here", "b.yaml": "data_dir: b", "c.yaml": "data_dir: c"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ path, env, want string }{
		{"", "", "here"},
		{"", "b.yaml", "b"},
		{"c.yaml", "b.yaml", "c"},
	} {
		c, _, err := Load(tt.path, naming(tt.env))
		if err != nil || c.DataDir != tt.want {
			t.Errorf("Load(%q) with CLAYBOT_CONFIG=%q reads %q, %v; want %q", tt.path, tt.env, c.DataDir, err, tt.want)
		}
	}
	for _, tt := range []struct{ path, env string }{{"none.yaml", ""}, {"", "none.yaml"}} {
		_, _, err := Load(tt.path, naming(tt.env))
		if err == nil || !strings.Contains(err.Error(), "none.yaml") {
			t.Errorf("a named file that is missing: %v", err)
		}
	}
}

// A file that was meant to be read is never passed over for the defaults.
func TestFileThatWasMeant(t *testing.T) {
	for name, tt := range map[string]struct {
		make func() error
		env  map[string]string
		want string // a part of the error; empty: the defaults hold
	}{
		"nothing":             {want: ""},
		"an empty variable":   {env: map[string]string{"CLAYBOT_CONFIG": ""}, want: "CLAYBOT_CONFIG: is set and has no value"},
		"a blank variable":    {env: map[string]string{"CLAYBOT_CONFIG": " "}, want: "CLAYBOT_CONFIG: is set and has no value"},
		"a dangling link":     {make: func() error { return os.Symlink("gone.yaml", FileName) }, want: "claybot.yaml: "},
		"another ending":      {make: func() error { return os.WriteFile("claybot.yml", nil, 0o600) }, want: "claybot.yml is not read: rename it to claybot.yaml"},
		"a link with another": {make: func() error { return os.Symlink("gone.yml", "claybot.yml") }, want: "claybot.yml is not read"},
		"a directory":         {make: func() error { return os.Mkdir(FileName, 0o700) }, want: "claybot.yaml: "},
		"both": {make: func() error {
			return errors.Join(os.WriteFile("claybot.yml", []byte("log: text"), 0o600), os.WriteFile(FileName, []byte("log: json"), 0o600))
		}},
	} {
		t.Chdir(t.TempDir())
		if tt.make != nil {
			if err := tt.make(); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := Load("", environ(tt.env))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// naming is an environment in which a file may be named.
func naming(path string) func(string) (string, bool) {
	if path == "" {
		return environ(nil)
	}
	return environ(map[string]string{"CLAYBOT_CONFIG": path})
}

func TestFile(t *testing.T) {
	c, warnings := load(t, `
data_dir: ~/bot
http: off
http_hosts: [Chat.example.org, "claybot.lan:8420", "[fd00::1]:8420", chat.example.org]
access: {mode: allowlist, allow: ["telegram:1", "slack:T1/C9"]}
log: json
log_level: debug
model: {name: llama, base_url: http://127.0.0.1:11434/v1, prices: {gpt-4.1: {input: 2, output: 8}}}
telegram: {token: env:TG, api_url: "http://127.0.0.1:1/", delivery: direct, on_ambiguous: notice}
slack: {bot_token: env:B, app_token: env:A, api_url: http://127.0.0.1:2/api, backfill: off, panel: off, home: off, shortcuts: off, feedback_buttons: on}
agents:
  default: {debounceMs: 50, maxBatch: 7, prompt: hello}
  work:
    match: [slack, "telegram:-100"]
    debounceMs: 100
    whenBusy: injectAfterTools
    processBuffer: oneByOne
    progress: send
    auto_send: off
    require_tool: 2
    memory: off
    tools: [send_message]
    model: {name: big, key: env:K}
`, map[string]string{"HOME": "/home/me", "TG": "1:tg", "B": "xoxb-1", "A": "xapp-1", "K": "sk-k"})
	for _, w := range warnings {
		t.Errorf("warning: %s", w)
	}
	check := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	check("data_dir", c.DataDir, "/home/me/bot")
	check("http", c.HTTP.Addr, Off)
	check("http_hosts", c.HTTP.Hosts, []string{"chat.example.org", "claybot.lan:8420", "[fd00::1]:8420"})
	check("access", c.Access, Access{Mode: "allowlist", Allow: []Allowed{{"telegram", "1"}, {"slack", "T1/C9"}}})
	check("allows", c.Access.Allows("slack", "T1/C9"), true)
	check("allows", c.Access.Allows("slack", "1"), false)
	check("model", c.Model.Demo(), false)
	check("prices", c.Model.Prices, map[string]Price{"gpt-4.1": {Input: 2, Output: 8}})
	check("telegram", c.Connectors.Telegram.Token.Value(), "1:tg")
	check("telegram url", c.Connectors.Telegram.APIURL, "http://127.0.0.1:1")
	check("slack url", c.Connectors.Slack.APIURL, "http://127.0.0.1:2/api/")
	check("slack backfill", c.Connectors.Slack.Backfill, false)
	check("slack feedback buttons", c.Connectors.Slack.Feedback, true)
	check("slack home", c.Connectors.Slack.Home, false)
	check("slack shortcuts", c.Connectors.Slack.Shortcut, false)
	check("slack panel", c.Connectors.Slack.Panel, false)
	def, work := c.Profile(claybot.User("telegram", "1", "1")), c.Profile(claybot.User("slack", "T1/C1", "U1"))
	check("default", def.Name, "default")
	check("default max", def.Inbox.DebounceMax, 500*time.Millisecond)
	check("default model", def.Model.Name, "llama")
	check("work", work.Name, "work")
	check("work by channel", c.Profile(claybot.User("telegram", "-100", "1")).Name, "work")
	check("inherited prompt", work.Prompt, "hello")
	check("inherited batch", work.Inbox.MaxBatch, 7)
	check("derived max", work.Inbox.DebounceMax, time.Second)
	check("busy", work.Inbox.WhenBusy, WhenBusyInject)
	check("buffer", work.Inbox.ProcessBuffer, BufferOneByOne)
	check("progress", work.Progress, true)
	check("auto_send", []bool{def.AutoSend, work.AutoSend}, []bool{true, false})
	check("require_tool", []int{def.RequireTool, work.RequireTool}, []int{0, 2})
	check("memory", work.Memory, false)
	check("tools", work.Tools, []string{"send_message"})
	check("all tools", def.Tools, []string(nil))
	check("model name", work.Model.Name, "big")
	check("model key", work.Model.Key.Value(), "sk-k")
	check("model url is inherited", work.Model.BaseURL, c.Model.BaseURL)
}

// A channel's own profile wins over its connector's, wherever it stands.
func TestMostSpecificProfileWins(t *testing.T) {
	c, _ := load(t, `
agents:
  all: {match: slack}
  one: {match: ["slack:T1/C1"]}
`, nil)
	for channel, want := range map[string]string{"T1/C1": "one", "T1/C2": "all"} {
		if got := c.Profile(claybot.User("slack", channel, "U1")).Name; got != want {
			t.Errorf("%s has profile %s, want %s", channel, got, want)
		}
	}
}

func TestEnvironmentOverFile(t *testing.T) {
	vars := map[string]string{
		"CLAYBOT_DATA_DIR": "/d", "CLAYBOT_HTTP_ADDR": ":0", "CLAYBOT_HTTP_HOSTS": "a.example.org, b:1,", "CLAYBOT_ACCESS": "allowlist",
		"CLAYBOT_HTTP_TLS_CERT": "c.pem", "CLAYBOT_HTTP_TLS_KEY": "/k.pem", "CLAYBOT_HTTP_PROXIES": "10.0.0.5, fd00::/8,", "CLAYBOT_HTTP_INSECURE": "1",
		"CLAYBOT_ALLOW": "telegram:123, slack:U1,", "CLAYBOT_LOG": "text", "CLAYBOT_LOG_LEVEL": "WARN",
		"CLAYBOT_MODEL": "m", "OPENAI_API_KEY": "sk-1\n", "OPENAI_BASE_URL": "http://h/v1", "ANTHROPIC_API_KEY": "sk-ant-1",
		"TELEGRAM_BOT_TOKEN": "1:t", "TELEGRAM_API_URL": "http://t", "SLACK_BOT_TOKEN": "xoxb-2",
		"SLACK_APP_TOKEN": "xapp-2", "SLACK_SIGNING_SECRET": "s2", "SLACK_REFRESH_TOKEN": "r2", "SLACK_CLIENT_ID": "1.2", "SLACK_CLIENT_SECRET": "c2", "SLACK_API_URL": "http://s/api", "DISCORD_BOT_TOKEN": "d.o.t", "DISCORD_API_URL": "http://d/",
		"CLAYBOT_PPROF": "1", "CLAYBOT_METRICS_LISTEN": ":9464", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://o/", "OTEL_EXPORTER_OTLP_HEADERS": "a=b",
		"CLAYBOT_FILES_URL": "s3://env", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t",
		"CLAYBOT_STORAGE_URL": " postgres://p ", "CLAYBOT_STORAGE_POOLER": "true", "CLAYBOT_STORAGE_LISTEN": "off",
		"CLAYBOT_NODE_NAME": "n1", "CLAYBOT_NODE_LEASE": "3s", "CLAYBOT_NODE_MAX_RUNS": "7", "CLAYBOT_NODE_HANDOVER": "1s",
	}
	c, warnings := load(t, `
data_dir: file
http: off
http_hosts: file.example.org
access: {mode: open, allow: ["telegram:9"]}
log: json
log_level: debug
model: {name: file, base_url: http://file, key: env:OTHER}
telegram: {token: env:OTHER, api_url: http://file}
slack: {bot_token: env:OTHER, app_token: env:OTHER, api_url: http://file}
discord: {token: env:OTHER, api_url: http://file}
pprof: false
metrics_listen: off
otlp: {endpoint: http://file, headers: {file: file}}
files: {url: "s3://file"}
storage: {url: env:OTHER, pooler: false, listen: true}
node: {name: file, lease: 20s, max_runs: 9, handover: 2s}
`, vars)
	got := fmt.Sprint(c.DataDir, c.HTTP.Addr, c.HTTP.Hosts, c.HTTP.Guard, c.Access.Mode, c.Access.Allow, c.Log.Format, c.Log.Level, c.Model.Name, c.Model.Key.Value(), c.Model.BaseURL,
		c.Connectors.Telegram.Token.Value(), c.Connectors.Telegram.APIURL, c.Connectors.Slack.BotToken.Value(), c.Connectors.Slack.AppToken.Value(), c.Connectors.Slack.Signing.Value(), c.Connectors.Slack.Refresh.Value(), c.Connectors.Slack.ClientID, c.Connectors.Slack.ClientSecret.Value(), c.Connectors.Slack.APIURL, c.Connectors.Discord.Token.Value(), c.Connectors.Discord.APIURL,
		c.Telemetry.Pprof, c.Telemetry.MetricsListen, c.Telemetry.OTLP.Endpoint, len(c.Telemetry.OTLP.Headers), c.Telemetry.OTLP.Headers["a"].Value(),
		c.Storage.Files.Bucket, c.Storage.Files.AccessKey.Value(), c.Storage.Files.SecretKey.Value(), c.Storage.Files.SessionToken.Value(),
		c.Storage.URL.Value(), c.Storage.Pooler, c.Storage.Listen, c.Node)
	want := "/d:0[a.example.org b:1]{c.pem /k.pem [10.0.0.5/32 fd00::/8] true}allowlist[{telegram 123} {slack U1}]textWARNmsk-1http://h/v11:thttp://txoxb-2xapp-2s2r21.2c2http://s/api/d.o.thttp://dtrue:9464http://o1benvastpostgres://ptruefalse{n1 3s 7 1s}"
	if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := len(warnings); n != 6 { // the file asks for OTHER, which is not set
		t.Errorf("%d warnings: %v", n, warnings)
	}
	for _, v := range variables() {
		if _, ok := vars[v.name]; !ok {
			t.Errorf("%s is not in this test", v.name)
		}
	}
}

func TestOverride(t *testing.T) {
	c, _ := load(t, "agents: {other: {match: web, model: own}}", map[string]string{"CLAYBOT_MODEL": "env", "CLAYBOT_ACCESS": "pairing"})
	err := c.Override(Override{DataDir: "d", HTTP: "off", Access: "open", Log: "json", LogLevel: "error", Model: "flag"})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(c.DataDir, " ", c.HTTP.Addr, " ", c.Access.Mode, " ", c.Log.Format, " ", c.Log.Level, " ", c.Model.Name, " ",
		c.Profile(claybot.Descriptor{}).Model.Name, " ", c.Profile(claybot.User("web", "a", "b")).Model.Name)
	if want := "d off open json ERROR flag flag own"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, o := range []Override{{HTTP: "x"}, {Access: "x"}, {Log: "x"}, {LogLevel: "x"}, {Model: "a b"}} {
		before := c.Access
		if err := c.Override(o); err == nil || !strings.HasPrefix(err.Error(), "--") || !reflect.DeepEqual(c.Access, before) {
			t.Errorf("Override(%+v) = %v, access %v", o, err, c.Access)
		}
	}
}

// A leading ~ is the home directory wherever a data directory is named; a
// directory of the name ~ is never made by accident.
func TestHomeDirectory(t *testing.T) {
	const home = "/home/me"
	for _, tt := range []struct{ file, env, flag, home, want, err string }{
		{file: "~/bot", home: home, want: "/home/me/bot"},
		{env: "~/bot", home: home, want: "/home/me/bot"},
		{env: "~", home: home, want: home},
		{flag: "~/bot", home: home, want: "/home/me/bot"},
		{env: "~bot", want: "~bot"},
		{env: "/x/~/y", want: "/x/~/y"},
		{file: "~/bot", err: "data_dir: \"~/bot\""},
		{file: "~/bot", env: "/srv/bot", want: "/srv/bot"},
		{env: "~/bot", err: "HOME is not set"},
		{flag: "~/bot", err: "--data-dir: \"~/bot\""},
	} {
		file, vars := "", map[string]string{"HOME": tt.home}
		if tt.file != "" {
			file = "data_dir: " + tt.file + "\n"
		}
		if tt.env != "" {
			vars["CLAYBOT_DATA_DIR"] = tt.env
		}
		c, _, err := Load(write(t, file), environ(vars))
		if err == nil && tt.flag != "" {
			err = c.Override(Override{DataDir: tt.flag})
		}
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%+v: %v", tt, err)
			}
		case err != nil || c.DataDir != tt.want:
			t.Errorf("%+v: %q, %v", tt, c.DataDir, err)
		}
	}
}

func TestParseAllowed(t *testing.T) {
	for s, want := range map[string]Allowed{
		"telegram:-100123": {"telegram", "-100123"},
		" slack : T1/C9 ":  {"slack", "T1/C9"},
		"foo:1":            {}, "telegram:abc": {}, "web:operator": {}, "terminal:operator": {}, "telegram": {}, "slack:": {}, "slack:@bob": {},
	} {
		got, err := Default().ParseAllowed(s)
		if refused := want == (Allowed{}); refused != (err != nil) || !refused && got != want {
			t.Errorf("ParseAllowed(%q) = %v, %v", s, got, err)
		}
	}
}

func TestSecretReferences(t *testing.T) {
	path := write(t, "telegram: {token: file:tg}\nslack: {bot_token: file:missing, app_token: env:APP}\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "tg"), []byte("42:abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := Load(path, environ(map[string]string{"APP": "xapp-1"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Connectors.Telegram.Token.Value(); got != "42:abc" {
		t.Errorf("relative file: %q", got)
	}
	if len(warnings) != 1 || warnings[0].Key != "slack.bot_token" {
		t.Errorf("warnings: %v", warnings)
	}
	if !c.Connectors.Slack.Wanted() || c.Connectors.Slack.BotToken.Value() != "" || c.Connectors.Slack.AppToken.Value() != "xapp-1" {
		t.Error("a token that cannot be read must leave the connector wanted and the other token alone")
	}
}

// The example names every key and every variable, and is itself without fault.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("claybot.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"OPENAI_API_KEY": "sk-x", "ANTHROPIC_API_KEY": "sk-ant-x", "TELEGRAM_BOT_TOKEN": "1:x", "SLACK_BOT_TOKEN": "xoxb-x", "SLACK_APP_TOKEN": "xapp-x", "SLACK_SIGNING_SECRET": "not-real", "SLACK_REFRESH_TOKEN": "xoxe-1-not-real", "SLACK_CLIENT_SECRET": "not-real", "DISCORD_BOT_TOKEN": "not.a.token", "ANALYTICS_SECRET": "not-real", "CI_WEBHOOK_SECRET": "not-real", "CI_CALLBACK_SECRET": "not-real either", "GITHUB_WEBHOOK_SECRET": "not-real", "BRAVE_API_KEY": "not-real", "AWS_ACCESS_KEY_ID": "not-real", "AWS_SECRET_ACCESS_KEY": "not-real", "AWS_SESSION_TOKEN": "not-real", "CLAYBOT_STORAGE_URL": "postgres://claybot@db.example.org/claybot"}
	c, warnings, err := Load("claybot.example.yaml", environ(vars))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		t.Errorf("warning: %s", w)
	}
	for _, path := range Keys() {
		name := path[strings.LastIndexByte(path, '.')+1:]
		indent := strings.Repeat("  ", strings.Count(path, "."))
		if strings.Contains(path, "[]") {
			indent += "(- |  )"
		}
		if !regexp.MustCompile(`(?m)^` + indent + name + `:`).Match(text) {
			t.Errorf("the example lacks %s", path)
		}
	}
	for _, v := range variables() {
		if !strings.Contains(string(text), v.name) {
			t.Errorf("the example does not name %s", v.name)
		}
	}
	def, d := c.Agents.Profiles[DefaultProfile], Default().Agents.Profiles[DefaultProfile]
	def.Prompt, def.Model, def.Workspace = d.Prompt, d.Model, d.Workspace
	if !reflect.DeepEqual(def, d) {
		t.Errorf("the example's default profile is %+v, the defaults are %+v", def, d)
	}
	plain := Default()
	c.Schedule.Cron.Zone, c.Schedule.Heartbeat.Zone, c.Schedule.Heartbeat.ActiveHours, c.Schedule.Heartbeat.Route = time.UTC, time.UTC, "", "" // the comments say otherwise
	deep := *c.Agents.Profiles["research"].Engine.Deep
	deep.Subagents = nil
	for _, x := range []struct{ got, want any }{
		{c.Agents.Scope, plain.Agents.Scope},
		{c.Agents.Subagents, plain.Agents.Subagents},
		{c.Schedule.Cron, plain.Schedule.Cron},
		{c.Schedule.Heartbeat, plain.Schedule.Heartbeat},
		{c.Telemetry.Metrics, plain.Telemetry.Metrics},
		{c.Telemetry.Pprof, plain.Telemetry.Pprof},
		{c.Telemetry.MetricsListen, plain.Telemetry.MetricsListen},
		{c.Telemetry.OTLP.Interval, plain.Telemetry.OTLP.Interval},
		{deep, plainDeep()},
		{c.Agents.Prompts.Strict, plain.Agents.Prompts.Strict},
		{*c.Agents.Profiles["explorer"].Engine.Explore, Explore{
			URL: "https://shop.example.org/", Hosts: []string{"shop.example.org"}, Goal: "the page with the prices",
			MaxIterations: DefaultIterations, NoProgress: DefaultNoProgress, Screens: true,
		}},
		{c.Agents.Profiles["planner"].Engine.Plan.Mode, PlanApprove},
		{c.Agents.Profiles["planner"].Engine.Plan.Quiet.What, QuietPlanOnly},
		{c.Agents.Profiles["planner"].Engine.Plan.Intents[0].Inputs[0].Required, true},
	} {
		if !reflect.DeepEqual(x.got, x.want) {
			t.Errorf("the example has %+v, the defaults are %+v", x.got, x.want)
		}
	}
}

// The guide has a row for every key and every variable.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	want := Keys()
	for _, v := range variables() {
		want = append(want, v.name)
	}
	for _, name := range want {
		name = strings.Replace(name, "agents.default.", "agents.<profile>.", 1)
		name = strings.Replace(name, "connectors.webhook.", "connectors.<name>.", 1)
		if !strings.Contains(string(text), "\n| `"+name+"` |") {
			t.Errorf("docs/configuration.md has no row for `%s`", name)
		}
	}
}
