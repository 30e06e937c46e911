package configs

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

// Every key has a class and can be read, and every variable sets a key.
func TestDeclarations(t *testing.T) {
	for path, k := range declarations().keys {
		if classOf(path) == 0 {
			t.Errorf("%s has no class", path)
		}
		if set := setterOf(k); set == nil || k.kind != "" && k.typ == reflect.TypeFor[struct{}]() && groupKind(k) == nil && profileKind(k) == nil && path != "agents.foreground_scope" {
			t.Errorf("%s has no reader", path)
		}
	}
	known := make(map[string]bool)
	for _, v := range variables() {
		if known[v.name] || classOf(v.path) == 0 {
			t.Errorf("the variable %s is there twice, or sets no key that has a class", v.name)
		}
		known[v.name] = true
	}
}

// An address is taken with exactly its host, or not at all.
func TestAddresses(t *testing.T) {
	for v, want := range map[string]string{ // a part of what is wrong; empty: it is taken
		"http://127.0.0.1:9900/v1": "", "https://h.example.org": "", "http://localhost:11434/v1/": "", "http://my_ollama:1/v1": "", "HTTPS://H.example.org": "",
		"http://[::1]:8080/v1": "", "http://[fe80::1%25eth0]:1": "", "https://xn--exmple-cua.org/v1": "",

		"127.0.0.1:9900/v1": `"127.0.0.1:9900/…" has no scheme`, "localhost:1": `"localhost:1" has no scheme`, "h.example.org/v1": `"h.example.org/…" has no scheme`,
		"https://h.example.org./v1": "must not end in a dot", "http://h.example.org.:80": "must not end in a dot",
		"http://u:canary@h.example.org": "user name or password", "http://h.example.org/@x": "user name or password", "u:canary@h.example.org": "user name or password",
		"http://h.example.org?key=canary": "query or a fragment", "http://h.example.org/v1?": "query or a fragment", "http://h.example.org/#": "query or a fragment",
		"http://h.example.org:0": "number from 1 to 65535", "http://h.example.org:99999": "number from 1 to 65535", "http://h.example.org:": "number from 1 to 65535", "http://h.example.org:http": "not an http or https address",
		"http://exämple.org": "xn--", "http://оpenai.com": "xn--", "http://h example.org": "not an http", "http://h.example.org/a b": "spaces", "http://h.example.org\\@x": "user name",
		"http:/h.example.org": "not an http", "http:h.example.org": "not an http", "http://": "not an http", "//h.example.org": "not an http", "ftp://h.example.org": "not an http",
		"http://127.1": "not a name", "http://2130706433": "not a name", "http://0x7f000001": "not a name", "http://1.2.3.4.5": "not a name", "http://-h.example.org": "not a name",
		"http://[127.0.0.1]": "not an http", "http://::1": "not an http", "http://h..example.org": "not a name", "http://%68.example.org": "not an http", "canary-canary": "not an http", "": "not an http",
	} {
		got := addressFault(v)
		if (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, "canary") {
			t.Errorf("%q: %q, want %q", v, got, want)
		}
	}
}

// A model whose address, account or limit is bad is off, and so is each profile and
// fallback that would be reached in the same way. None falls back to a provider.
func TestModelsAreOff(t *testing.T) {
	both := map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "K": "k"}
	bad := map[string]string{"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": "127.0.0.1:9900/v1"}
	badBoth := map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "OPENAI_BASE_URL": "127.0.0.1:9900/v1"}
	for _, tt := range []struct {
		name, file string
		vars       map[string]string
		want       string // the routes, in the order in which they are asked: off, or their address
	}{
		{"address of the environment", "", bad, "off"},
		{"address of the environment, Claude by name and both keys", "model: claude-x", badBoth, "anthropic"},
		{"address of the environment, Claude without its key", "model: claude-x", bad, "off"},
		{"address of the environment, a good one in the file", "model: {base_url: http://h/v1}", bad, "off"},
		{"address in the file, a good one of the environment", "model: {base_url: h/v1}", map[string]string{"OPENAI_BASE_URL": "http://h/v1"}, "http://h/v1"},
		{"address in the file", "model: {base_url: 'h.example.org:1'}", both, "off"},
		{"mistyped", "model: {base_ulr: http://h}", both, "off"},
		{"another word", "model: {endpoint: http://h}", both, "off"},
		{"in the wrong place", "base_url: http://h", both, "off"},
		{"twice", "model: {base_url: http://h, base_url: http://i}", both, "off"},
		{"a list", "model: [a]", both, "off"},
		{"an alias", "x: &x {base_url: http://h}\nmodel: *x", both, "off"},
		{"a merged group", "x: &x {base_url: http://h}\nmodel: {<<: *x, name: m}", both, "off"},
		{"a mistyped group", "modle: {base_url: http://h}", both, "off"},
		{"provider", "model: {provider: antropic}", both, "off"},
		{"name", "model: 'a b'", both, "off"},
		{"key", "model: {base_url: http://h, key: env:NOT_SET}", map[string]string{}, "off"},
		{"key of a server in the file, and one of the environment", "model: {base_url: http://h, key: env:NOT_SET}", both, "off"},
		{"key of Claude's server in the file, and one of the environment", "model: {provider: anthropic, base_url: http://h, key: env:NOT_SET}", both, "off"},
		{"key of a server of the environment", "model: {key: env:NOT_SET}", map[string]string{"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": "http://h"}, "http://h"},
		{"key of the provider", "model: {key: env:NOT_SET}", map[string]string{"OPENAI_API_KEY": "o"}, "openai"},
		{"one of two keys", "model: {base_url: http://h, keys: [env:NOT_SET, env:K]}", both, "http://h"},
		{"no key of two", "model: {base_url: http://h, keys: [env:NOT_SET, env:GONE]}", both, "off"},
		{"a header", "model: {base_url: http://h, headers: {Authorization: env:NOT_SET}}", both, "off"},
		{"a header that is none", "model: {headers: {'a b': c}}", both, "off"},
		{"max_tokens", "model: {base_url: http://h, max_tokens: five}", both, "off"},
		{"a price", "model: {base_url: http://h, prices: {m: {input: five}}}", both, "off"},
		{"a harmless key", "model: {base_url: http://h, system_fallback: mabye}", both, "http://h"},
		{"a member of a chain", "model: {name: m, base_url: http://h, fallback: [{name: a, base_url: i.example.org}, {name: b, base_url: http://j}]}", both, "http://h http://j"},
		{"a mistyped member of a chain", "model: {name: m, base_url: http://h, fallback: [{name: a, url: http://i}]}", both, "http://h"},
		{"another word in a chain", "model: {name: m, base_url: http://h, fallback: [{name: a, site: http://i}]}", both, "http://h"},
		{"the first of a chain", "model: {name: m, base_url: h.example.org, fallback: [a, {name: b, base_url: http://j}]}", both, "off off http://j"},
		{"a chain that is none", "model: {name: m, base_url: http://h, falback: [a]}", both, "http://h"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, warnings := load(t, tt.file+"\n", tt.vars)
			var got []string
			for _, r := range c.Model.Routes() {
				where := r.BaseURL
				switch {
				case r.Off() != "":
					where = "off"
				case where == "":
					where = r.API()
				}
				got = append(got, where)
			}
			if s := strings.Join(got, " "); s != tt.want || c.Model.Demo() {
				t.Errorf("routes %s (demo: %v), want %s; %v", s, c.Model.Demo(), tt.want, warnings)
			}
			if p := c.Profile(claybot.User("web", "a", "b")); p.Model.Off() != c.Model.Off() {
				t.Errorf("the default profile: %q, the model: %q", p.Model.Off(), c.Model.Off())
			}
			if len(warnings) == 0 {
				t.Error("nothing is said")
			}
		})
	}
}

// A profile that sets what was bad is reached; one that inherits it is not. Which
// profile an agent has is no guess.
func TestProfilesAreOff(t *testing.T) {
	const good = "model: {name: m, base_url: http://h}\n"
	for _, tt := range []struct {
		name, file string
		telegram   string // why agents of telegram are off, in part; empty: they are not
		slack      string
	}{
		{"inherited", "model: {base_url: h}\nagents: {a: {match: telegram, model: {base_url: http://i}}}", "", "model.base_url"},
		{"its own", good + "agents: {a: {match: telegram, model: {base_url: 'i:1'}}}", "agents.a.model.base_url", ""},
		{"steps", good + "agents: {a: {match: telegram, max_steps: 1e9}}", "agents.a.max_steps", ""},
		{"steps of the default", good + "agents: {default: {max_steps: 0}, a: {match: telegram, max_steps: 5}}", "", "agents.default.max_steps"},
		{"engine", good + "agents: {a: {match: telegram, engine: plna}}", "agents.a.engine", ""},
		{"a mistyped match", good + "agents: {a: {match: telegarm}}", "telegarm", ""},
		{"a name for a channel", good + "agents: {a: {match: ['slack:#general']}}", "", "#general"},
		{"a profile that is a word", good + "agents: {a: word}", "agents.a", "agents.a"},
		{"a default that is a word", good + "agents: {default: five, a: {match: telegram}}", "agents.default", "agents.default"},
		{"profiles that are a word", good + "agents: word", "agents:", "agents:"},
		{"a mistyped group", good + "agnets: {a: {match: slack}}", "agnets", "agnets"},
		{"a mistyped default", good + "agents: {defualt: {max_steps: 3}}", "agents.defualt", "agents.defualt"},
		{"a misplaced address", good + "agents: {a: {match: slack, base_url: http://i}}", "", "agents.a.base_url"},
		{"a harmless key", good + "agents: {a: {match: slack, whenBusy: never}}", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, warnings := load(t, tt.file+"\n", nil)
			for connector, want := range map[string]string{"telegram": tt.telegram, "slack": tt.slack} {
				p := c.Profile(claybot.User(connector, "1", "1"))
				got := p.Off() + p.Model.Off()
				if (got == "") != (want == "") || !strings.Contains(got, want) {
					t.Errorf("%s: %q, want %q; %v", connector, got, want, warnings)
				}
			}
		})
	}
}

// What is not a model is switched off, too, and never allows more than was meant.
func TestOff(t *testing.T) {
	open := map[string]string{"TG": "1:x"}
	for file, closed := range map[string]func(c Config) bool{
		"telegram: {token: env:TG, api_url: h.example.org}":                   func(c Config) bool { return c.Connectors.Telegram.Off() != "" && c.Connectors.Telegram.Wanted() },
		"telegram: {token: env:TG, base_url: http://h}":                       func(c Config) bool { return c.Connectors.Telegram.Off() != "" },
		"slack: {bot_token: env:TG, api_url: 'http://h:99999'}":               func(c Config) bool { return c.Connectors.Slack.Off() != "" },
		"otlp: {endpoint: http://h, headers: {Authorization: Bearer x}}":      func(c Config) bool { return !c.Telemetry.OTLP.Wanted() },
		"otlp: {endpont: http://h}":                                           func(c Config) bool { return !c.Telemetry.OTLP.Wanted() && c.Telemetry.OTLP.Off() != "" },
		"transcription: {base_url: h.example.org}":                            func(c Config) bool { return !c.Transcription.Wanted() && c.Transcription.Off() != "" },
		"speech: {base_url: h.example.org}":                                   func(c Config) bool { return !c.Speech.Wanted() && c.Speech.Off() != "" },
		"access: opne":                                                        func(c Config) bool { return c.Access.Mode == AccessAllowlist && c.Access.Off() != "" },
		"acess: open":                                                         func(c Config) bool { return c.Access.Mode == AccessAllowlist },
		"access: {mode: open, allwo: [a]}":                                    func(c Config) bool { return c.Access.Mode == AccessAllowlist },
		"access: {mode: open, mode: pairing}":                                 func(c Config) bool { return c.Access.Mode == AccessAllowlist },
		"access: {mode: pairing, allow: {a: b}}":                              func(c Config) bool { return c.Access.Mode == AccessAllowlist },
		"subagents: {max_depth: -1, max_children: 5, max_starts_per_hour: 5}": func(c Config) bool { return c.Agents.Subagents.MaxDepth == 0 && c.Agents.Subagents.MaxChildren == 0 },
		"subagents: off":                                                      func(c Config) bool { return c.Agents.Subagents.MaxStartsPerHour == 0 },
		"cron: off":                                                           func(c Config) bool { return !c.Schedule.Cron.Enabled },
		"cron: {gatse: false}":                                                func(c Config) bool { return !c.Schedule.Cron.Gates },
		"heartbeat: {route: nowhere}":                                         func(c Config) bool { return !c.Schedule.Heartbeat.Enabled && c.Schedule.Heartbeat.Off() != "" },
		"heartbeat: {every: 0}":                                               func(c Config) bool { return !c.Schedule.Heartbeat.Enabled },
		"heartbeat: {max_unattended: 1e9}":                                    func(c Config) bool { return !c.Schedule.Heartbeat.Enabled },
		"web: off":                                                            func(c Config) bool { return c.Tools.Web.NoFetch },
		"web: {fetc: off}":                                                    func(c Config) bool { return c.Tools.Web.NoFetch },
		"web: {fetches_per_minute: five}":                                     func(c Config) bool { return c.Tools.Web.NoFetch },
		"limits: {runs_per_minute: lots}":                                     func(c Config) bool { return c.Limits.RunsPerMinute == AdvisedRunsPerMinute },
		"limits: {runs_per_minut: 5}":                                         func(c Config) bool { return c.Limits.RunsPerMinute == AdvisedRunsPerMinute },
		"limits: 5":                                                           func(c Config) bool { return c.Limits.RunsPerMinute == AdvisedRunsPerMinute },
		"metrics_listen: here":                                                func(c Config) bool { return c.Telemetry.Metrics && c.Telemetry.MetricsListen == Off },
		"metrics: fasle":                                                      func(c Config) bool { return !c.Telemetry.Metrics },
		"http: of":                                                            func(c Config) bool { return c.HTTP.Addr == Off },
		"http: {insecure: flase}":                                             func(c Config) bool { return c.HTTP.Addr == Off },
		"workspace: off":                                                      func(c Config) bool { return c.Tools.Workspace.Provider == Off },
		"node: {max_runs: five}":                                              func(c Config) bool { return c.Node.MaxRuns == 1 },
		"storge: {url: env:TG}":                                               func(c Config) bool { return c.Storage.Shared() && c.Storage.URL.Value() == "" },
		"storage: {ulr: env:TG}":                                              func(c Config) bool { return c.Storage.Shared() && c.Storage.URL.Value() == "" },
		"files: {bucket: b, max_inline: 5m}":                                  func(c Config) bool { return c.Storage.Files.Fault != "" },
		"files: {endpoint: 'https://h'}":                                      func(c Config) bool { return c.Storage.Files.Fault != "" },
		"files: {ulr: 's3://b'}":                                              func(c Config) bool { return c.Storage.Files.Fault != "" },
		"agents: {default: {tools: {a: b}}}":                                  func(c Config) bool { t := c.Agents.Profiles[DefaultProfile].Tools; return t != nil && len(t) == 0 },
		"agents: {default: {tols: [a]}}":                                      func(c Config) bool { t := c.Agents.Profiles[DefaultProfile].Tools; return t != nil && len(t) == 0 },
		"agents: {default: {limits: {run_calls: five}, tools: [a]}}":          func(c Config) bool { return len(c.Agents.Profiles[DefaultProfile].Tools) == 0 },
		"agents: {default: {aprove: [shell]}}": func(c Config) bool {
			return slices.Equal(c.Agents.Profiles[DefaultProfile].Care.Approve, []string{"*"})
		},
		"agents: {default: {confrim: {shell: always}}}": func(c Config) bool {
			return slices.Equal(c.Agents.Profiles[DefaultProfile].Care.Approve, []string{"*"})
		},
		"agents: {default: {aprovals: {quorum: 2}}}": func(c Config) bool { return c.Agents.Profiles[DefaultProfile].Care.NoApproval },
		"agents: {default: {dryrun: true}}":          func(c Config) bool { return c.Agents.Profiles[DefaultProfile].Care.DryRun },
		"agents: {default: {workspce: off}}":         func(c Config) bool { return c.Agents.Profiles[DefaultProfile].Workspace.Provider == Off },
		"agents: {default: {deep: {files: nnoe}}}":   func(c Config) bool { return c.Agents.Profiles[DefaultProfile].Engine.Deep.Files == FilesNone },
		"agents: {default: {browser: flase}}":        func(c Config) bool { return !c.Agents.Profiles[DefaultProfile].Workspace.Browser },
		"people: {a: [nonsense]}\nagents: {default: {approvals: {quorum: 2, approvers: [telegram/1, telegram/2]}}}": func(c Config) bool { return c.Agents.Profiles[DefaultProfile].Care.NoApproval },
	} {
		c, warnings := load(t, file+"\n", open)
		off := slices.ContainsFunc(warnings, func(w Warning) bool { return w.Off && strings.HasSuffix(w.Text, until) })
		if !closed(c) || !off && !strings.HasPrefix(file, "files") && !strings.HasPrefix(file, "people") {
			t.Errorf("%s: %v\n%+v", file, warnings, c)
		}
	}
}

// What would be kept in another place stops the start.
func TestBadDataDirectoryStops(t *testing.T) {
	for _, file := range []string{"dataDir: x\n", "data_dri: x\n", "data_dir: {a: b}\n", "data_dir: a\ndata_dir: b\n"} {
		if _, _, err := Load(write(t, file), environ(nil)); err == nil || !strings.Contains(err.Error(), "data") {
			t.Errorf("%q: %v", file, err)
		}
		if _, _, err := Load(write(t, file), environ(map[string]string{"CLAYBOT_DATA_DIR": "d"})); err != nil && !strings.HasPrefix(file, "dataDir") {
			t.Logf("%q: %v", file, err)
		}
	}
}

// A good value of the environment takes the place of a bad one in the file.
func TestMended(t *testing.T) {
	c, warnings := load(t, "access: opne\ntelegram: {token: env:TG, api_url: nonsense}\n",
		map[string]string{"TG": "1:x", "CLAYBOT_ACCESS": "pairing", "TELEGRAM_API_URL": "http://127.0.0.1:1"})
	if c, warnings := load(t, "model: {base_url: nonsense, key: env:NOT_SET}\n", map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1", "OPENAI_API_KEY": "o"}); len(offWarnings(warnings)) > 0 || c.Model.Off() != "" || c.Model.BaseURL != "http://127.0.0.1:1" {
		t.Errorf("model %q, warnings %v", c.Model.Off(), warnings)
	}
	if c.Connectors.Telegram.Off() != "" || c.Connectors.Telegram.APIURL != "http://127.0.0.1:1" || len(warnings) != 2 {
		t.Errorf("telegram %+v, warnings %v", c.Connectors.Telegram, warnings)
	}
	for _, w := range warnings {
		if w.Key == "telegram.api_url" && (w.Off || !strings.HasSuffix(w.Text, "because TELEGRAM_API_URL is set")) {
			t.Errorf("warning %s", w)
		}
	}
}

// Variables with a name close to one that is read are reported with the right name,
// others are not. No value is shown.
func TestNamesOfVariables(t *testing.T) {
	for name, want := range map[string]string{
		"TELEGRAM_TOKEN": "TELEGRAM_BOT_TOKEN", "TELEGRAM_BOT_TOKN": "TELEGRAM_BOT_TOKEN", "SLACK_TOKEN": "SLACK_BOT_TOKEN", "ANTHROPIC_KEY": "ANTHROPIC_API_KEY",
		"CLAYBOT_MODLE": "CLAYBOT_MODEL", "CLAYBOT_ACESS": "CLAYBOT_ACCESS", "CLAYBOT_OPENAI_API_KEY": "OPENAI_API_KEY", "CLAYBOT_TELEGRAM_TOKEN": "TELEGRAM_BOT_TOKEN",
		"OPENAI_API_BASE": "OPENAI_BASE_URL", "OPENAI_BASE_ULR": "OPENAI_BASE_URL", "OPENAI_APIKEY": "OPENAI_API_KEY", "CLAYBOT_CONFG": "CLAYBOT_CONFIG",
		"ANTHROPIC_BASE_URL": keyBase,

		"PATH": "", "HOME": "", "LOG_LEVEL": "", "SLACK_WEBHOOK_URL": "", "TELEGRAM_CHAT_ID": "", "OPENAI_ORG_ID": "", "CLAYBOT_SERVICE_HOST": "", "CLAYBOT_PORT_8420_TCP_ADDR": "",
		"CLAYBOT_HOST": "", "CLAYBOT_NODE_NAME": "", "AWS_ACCESS_KEY": "", "ACCESS": "", "MODEL": "", "HTTP_PROXY": "", "OTEL_SERVICE_NAME": "", "GITHUB_TOKEN": "", "CLAYBOT_TEST_X": "",
	} {
		vars := map[string]string{name: "canary"}
		_, warnings, err := Load(write(t, ""), environ(vars), slices.Collect(maps.Keys(vars))...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		switch {
		case want == "" && len(warnings) != 0, want != "" && len(warnings) != 1:
			t.Errorf("%s: %v", name, warnings)
		case want != "" && (warnings[0].Near != want || !strings.Contains(warnings[0].Next, "set "+want) || strings.Contains(warnings[0].String(), "canary")):
			t.Errorf("%s: %+v, want %s", name, warnings[0], want)
		}
	}
}

// A mistyped variable that says where texts go, or who may write, does not leave the
// default in force.
func TestMistypedVariablesClose(t *testing.T) {
	for _, tt := range []struct {
		vars   map[string]string
		file   string
		closed func(Config) bool
	}{
		{map[string]string{"OPENAI_API_KEY": "o", "OPENAI_BASE_ULR": "http://127.0.0.1:1"}, "", func(c Config) bool { return c.Model.Off() != "" }},
		{map[string]string{"OPENAI_API_KEY": "o", "OPENAI_API_BASE": "http://127.0.0.1:1"}, "", func(c Config) bool { return c.Model.Off() != "" }},
		{map[string]string{"OPENAI_API_KEY": "o", "OPENAI_API_BASE": "https://api.openai.com/v1"}, "", func(c Config) bool { return c.Model.Off() == "" }},
		{map[string]string{"OPENAI_API_KEY": "o", "OPENAI_API_BASE": "http://127.0.0.1:1", "OPENAI_BASE_URL": "http://127.0.0.1:2"}, "", func(c Config) bool { return c.Model.Off() == "" && c.Model.BaseURL == "http://127.0.0.1:2" }},
		{map[string]string{"ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "", func(c Config) bool { return c.Model.Off() != "" }},
		{map[string]string{"ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "model: {name: x, provider: anthropic, base_url: http://h}", func(c Config) bool { return c.Model.Off() == "" }},
		{map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "model: {name: m, fallback: [claude-x]}", func(c Config) bool {
			r := c.Model.Routes()
			return r[0].Off() == "" && r[1].Off() != ""
		}},
		{map[string]string{"OPENAI_API_KEY": "o", "CLAYBOT_MODLE": "demo"}, "", func(c Config) bool { return c.Model.Off() != "" }},
		{map[string]string{"CLAYBOT_ACESS": "allowlist"}, "access: open", func(c Config) bool { return c.Access.Mode == AccessAllowlist }},
		{map[string]string{"TELEGRAM_BOT_TOKEN": "1:x", "TELEGRAM_API_ULR": "http://127.0.0.1:1"}, "", func(c Config) bool { return c.Connectors.Telegram.Off() != "" }},
		{map[string]string{"TELEGRAM_TOKEN": "1:x"}, "telegram: {token: 'env:TELEGRAM_TOKEN'}", func(c Config) bool {
			return c.Connectors.Telegram.Off() == "" && c.Connectors.Telegram.Token.Value() == "1:x"
		}},
	} {
		c, warnings, err := Load(write(t, tt.file+"\n"), environ(tt.vars), slices.Collect(maps.Keys(tt.vars))...)
		if err != nil || !tt.closed(c) {
			t.Errorf("%v, %s: %v, %v", tt.vars, tt.file, warnings, err)
		}
	}
	if _, _, err := Load(write(t, ""), environ(map[string]string{"CLAYBOT_DATADIR": "x"}), "CLAYBOT_DATADIR"); err == nil {
		t.Error("a mistyped CLAYBOT_DATA_DIR starts with another directory")
	}
}
