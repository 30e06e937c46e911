package configs

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

// offWarnings are the texts of the warnings after which something is off.
func offWarnings(warnings []Warning) (texts []string) {
	for _, w := range warnings {
		if w.Off {
			texts = append(texts, w.String())
		}
	}
	return texts
}

// A destination or a limit without a value is not the default.
func TestKeysWithoutAValue(t *testing.T) {
	vars := map[string]string{"OPENAI_API_KEY": "o", "TELEGRAM_BOT_TOKEN": "1:x", "K": "k"}
	def := func(c Config) Profile { return c.Agents.Profiles[DefaultProfile] }
	for file, closed := range map[string]func(c Config) bool{
		"model:\n  base_url:":                func(c Config) bool { return c.Model.Off() != "" },
		"model:":                             func(c Config) bool { return c.Model.Off() != "" },
		"model: {name: }":                    func(c Config) bool { return c.Model.Off() != "" },
		"model: {base_url: http://h, key: }": func(c Config) bool { return c.Model.Off() != "" },
		"model: {base_url: http://h, headers: {X: }}":         func(c Config) bool { return c.Model.Off() != "" },
		"model: {prices: {m: }}":                              func(c Config) bool { return c.Model.Off() != "" },
		"model: {name: m, fallback: [{name: f, base_url: }]}": func(c Config) bool { return len(c.Model.Fallback) == 0 },
		"telegram:\n  api_url:":                               func(c Config) bool { return c.Connectors.Telegram.Off() != "" },
		"transcription: {base_url: }":                         func(c Config) bool { return c.Transcription.Off() != "" },
		"storage:\n  url:":                                    func(c Config) bool { return c.Storage.Shared() && c.Storage.URL.Value() == "" },
		"storage:":                                            func(c Config) bool { return c.Storage.Shared() && c.Storage.URL.Value() == "" },
		"files:\n  url:":                                      func(c Config) bool { return c.Storage.Files.Fault != "" },
		"access:":                                             func(c Config) bool { return c.Access.Off() != "" },
		"access: {mode: open, allow: }":                       func(c Config) bool { return c.Access.Mode == AccessAllowlist },
		"budgets:":                                            func(c Config) bool { return len(c.Agents.Budgets) == 1 && c.Agents.Budgets[0].Fault != "" },
		"budgets: [{per: all, usd: }]":                        func(c Config) bool { return c.Agents.Budgets[0].Fault != "" },
		"http:":                                               func(c Config) bool { return c.HTTP.Addr == Off },
		"web: {fetch: }":                                      func(c Config) bool { return c.Tools.Web.NoFetch },
		"web: {fetch: {allow: }}": func(c Config) bool {
			return c.Tools.Web.NoFetch || c.Tools.Web.Allow != nil && len(c.Tools.Web.Allow) == 0
		},
		"relay: [{name: r, url: , file: f}]":                            func(c Config) bool { return c.Telemetry.Relay == nil },
		"mcp: {m: {url: 'http://h', tools: {deny: }}}":                  func(c Config) bool { return c.Tools.MCP == nil },
		"workspaces: {provider: docker, network: }":                     func(c Config) bool { return c.Tools.Workspace.Provider == Off },
		"subagents: {max_depth: }":                                      func(c Config) bool { return c.Agents.Subagents.MaxChildren == 0 },
		"agents: {default: {tools: }}":                                  func(c Config) bool { return def(c).Tools != nil && len(def(c).Tools) == 0 },
		"agents: {default: {approve: }}":                                func(c Config) bool { return slices.Equal(def(c).Care.Approve, []string{"*"}) },
		"agents: {default: {confirm: }}":                                func(c Config) bool { return slices.Equal(def(c).Care.Approve, []string{"*"}) },
		"agents: {default: {dry_run: }}":                                func(c Config) bool { return def(c).Care.DryRun },
		"agents: {default: {max_steps: }}":                              func(c Config) bool { return def(c).Off() != "" },
		"agents: {default: {model: }}":                                  func(c Config) bool { return def(c).Model.Off() != "" },
		"agents: {default: {engine: }}":                                 func(c Config) bool { return def(c).Off() != "" },
		"agents: {default: {limits: {run_calls: }}}":                    func(c Config) bool { return def(c).Tools != nil && len(def(c).Tools) == 0 },
		"agents: {default: {plan: {deny: }}}":                           func(c Config) bool { return def(c).Engine.Plan.Mode == PlanPreview },
		"agents: {default: {allow: [shell]}, a: {match: web, allow: }}": func(c Config) bool { return len(c.Agents.Profiles["a"].Care.Allow) == 0 },
		"agents: {a: {match: , max_steps: 3}}":                          func(c Config) bool { return c.Profile(claybot.User("web", "a", "b")).Off() != "" },
	} {
		c, warnings := load(t, file+"\n", vars)
		if !closed(c) || len(offWarnings(warnings)) == 0 || !strings.Contains(warnings[0].Text, "has no value; remove the line or give it one") {
			t.Errorf("%s: %v", file, warnings)
		}
	}
	for _, file := range []string{"data_dir:", "data_dir: ''"} {
		if _, _, err := Load(write(t, file), environ(vars)); err == nil || !strings.Contains(err.Error(), "has no value") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// An address of the environment that is set to nothing is not the default.
func TestVariablesWithoutAValue(t *testing.T) {
	for name, closed := range map[string]func(c Config) bool{
		"OPENAI_BASE_URL":             func(c Config) bool { return c.Model.Off() != "" },
		"TELEGRAM_API_URL":            func(c Config) bool { return c.Connectors.Telegram.Off() != "" },
		"SLACK_API_URL":               func(c Config) bool { return c.Connectors.Slack.Off() != "" },
		"CLAYBOT_FILES_URL":           func(c Config) bool { return c.Storage.Files.Fault != "" },
		"CLAYBOT_MODEL":               nil, // none of these says where something goes
		"OPENAI_API_KEY":              nil,
		"OTEL_EXPORTER_OTLP_ENDPOINT": nil,
	} {
		vars := map[string]string{"OPENAI_API_KEY": "o", "TELEGRAM_BOT_TOKEN": "1:x", "SLACK_BOT_TOKEN": "xoxb-1"}
		vars[name] = " "
		c, warnings, err := Load(write(t, ""), environ(vars), slices.Collect(maps.Keys(vars))...)
		if err != nil || (len(warnings) == 0) != (closed == nil) || closed != nil && (!closed(c) || len(offWarnings(warnings)) != 1) {
			t.Errorf("%s: %v, %v", name, warnings, err)
		}
	}
	for _, name := range []string{"CLAYBOT_STORAGE_URL", "CLAYBOT_DATA_DIR"} {
		if _, _, err := Load(write(t, ""), environ(map[string]string{name: ""})); err == nil || !strings.Contains(err.Error(), name+": is set and has no value") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An address in the place of a name says where texts were to go.
func TestAddressesForNames(t *testing.T) {
	for name, address := range map[string]bool{
		"http://127.0.0.1:9911/v1": true, "127.0.0.1:9911": true, "127.0.0.1": true, "localhost:80/v1": true, "localhost": true, "ollama:11434": true,
		"models.example.org:8443/v1": true, "[::1]:8080": true, "HTTPS://h.example.org": true, "http://me:canary@h": true,
		"llama3:8b": false, "qwen:0.5b": false, "qwen2.5:72b-instruct-q4_K_M": false, "meta-llama/llama-3:free": false, "gemma:7": false, "ft:gpt-4o:org::7p4lURel": false,
		"hf.co/bartowski/Llama-3:Q4_K_M": false, "registry.example.org/team/m:123": false, "gpt-5": false,
	} {
		for source, load := range map[string]func() (Config, []Warning, error){
			"file": func() (Config, []Warning, error) {
				return Load(write(t, "model: '"+name+"'\n"), environ(map[string]string{"OPENAI_API_KEY": "o"}))
			},
			"variable": func() (Config, []Warning, error) {
				return Load(write(t, ""), environ(map[string]string{"OPENAI_API_KEY": "o", "CLAYBOT_MODEL": name}))
			},
		} {
			c, warnings, err := load()
			if err != nil || (c.Model.Off() != "") != address || address && !strings.Contains(warnings[0].Text, "that is an address, not the name of a model: put it into base_url") {
				t.Errorf("%s by %s: off %q, %v, %v", name, source, c.Model.Off(), warnings, err)
			}
			if strings.Contains(c.Model.Off(), "canary") {
				t.Errorf("%s: a secret is shown: %s", name, c.Model.Off())
			}
		}
	}
	c, _ := load(t, "", nil)
	if err := c.Override(Override{Model: "127.0.0.1:9911"}); err == nil {
		t.Error("--model takes an address")
	}
}

// Of two documents none is read, as the second one may be what was meant.
func TestDocuments(t *testing.T) {
	for text, want := range map[string]string{"log: json\n---\nlog: text\n": ":3: a second document", "---\n---\nlog: json\n": "", "log: json\n---\n": "", "log: json\n---\n}\n": ":3: "} {
		c, _, err := Load(write(t, text), environ(nil))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && c.Log.Format != "json" {
			t.Errorf("%q: %q, %v", text, c.Log.Format, err)
		}
	}
}

// Groups that are named as a provider, or say where something is, are not passed over.
func TestUnknownGroups(t *testing.T) {
	vars := map[string]string{"OPENAI_API_KEY": "o"}
	for file, off := range map[string]bool{
		"openai: {base_url: http://h}": true, "llm: {name: m}": true, "anthropic: {}": true, "ollama: {model: m}": true, "backend: {upstream: {url: http://h}}": true,
		"backends: {a: {list: [{api_key: k}]}}": true, "notes: {colour: red}": false, "openai: yes": false, "x-labels: {team: a}": false,
	} {
		if c, warnings := load(t, file+"\n", vars); (c.Model.Off() != "") != off || len(warnings) == 0 {
			t.Errorf("%s: off %q, %v", file, c.Model.Off(), warnings)
		}
	}
}

// A variable that is not read is reported whatever a comment of the file says, and
// not when the file itself hands it on.
func TestVariablesThatTheFileNames(t *testing.T) {
	for file, want := range map[string]bool{
		"# OPENAI_API_BASE is not used any more":                    true,
		"agents: {default: {prompt: OPENAI_API_BASE}}":              true,
		"mcp: {m: {url: 'http://h', token: 'env:OPENAI_API_BASE'}}": false,
		"mcp: {m: {command: [a], env: {OPENAI_API_BASE: x}}}":       false,
		"prompts: {env: [OPENAI_API_BASE]}":                         false,
	} {
		vars := map[string]string{"OPENAI_API_KEY": "o", "OPENAI_API_BASE": "http://h"}
		c, warnings, err := Load(write(t, file+"\n"), environ(vars), slices.Collect(maps.Keys(vars))...)
		if err != nil || (c.Model.Off() != "") != want {
			t.Errorf("%s: off %q, %v, %v", file, c.Model.Off(), warnings, err)
		}
	}
}

// Names of variables that people guess close what they seem to be for.
func TestGuessedVariables(t *testing.T) {
	model := func(c Config) bool { return c.Model.Off() != "" }
	telegram, slack := func(c Config) bool { return c.Connectors.Telegram.Off() != "" }, func(c Config) bool { return c.Connectors.Slack.Off() != "" }
	spent := func(c Config) bool { return len(c.Agents.Budgets) == 1 && c.Agents.Budgets[0].Fault != "" }
	for name, closed := range map[string]func(Config) bool{
		"CLAYBOT_BASE_URL": model, "CLAYBOT_MODEL_URL": model, "CLAYBOT_API_URL": model, "CLAYBOT_MODEL_BASE_URL": model, "CLAYBOT_OLLAMA_HOST": model, "CLAYBOT_LLM_ENDPOINT": model,
		"OPENAI_API_HOST": model, "OPENAI_API_ENDPOINT": model, "OPENAI_BASE_URI": model, "OPENAI_API_BSE": model,
		"CLAYBOT_HTTP_PORT": func(c Config) bool { return c.HTTP.Addr == Off }, "CLAYBOT_PORT": func(c Config) bool { return c.HTTP.Addr == Off },
		"OPENAI_SERVER": model, "OPENAI_BASEPATH": model, "OPENAI_BASE_PATH": model, "OPENAI_DOMAIN": model,
		"TELEGRAM_API_BASE": telegram, "TELEGRAM_API_SERVER": telegram, "TELEGRAM_HOST": telegram, "TELEGRAM_BOT_API_ENDPOINT": telegram,
		"SLACK_API_BASE": slack, "SLACK_URL": slack, "SLACK_API_HOST": slack, "CLAYBOT_MAX_USD": spent, "CLAYBOT_COST_LIMIT": spent,
		"CLAYBOT_BUDGET": func(c Config) bool { return len(c.Agents.Budgets) == 1 && c.Agents.Budgets[0].Fault != "" }, "CLAYBOT_WEB_FETCH": func(c Config) bool { return c.Tools.Web.NoFetch },
		"CLAYBOT_PROFILE": nil, "SLACK_API_KEY": nil, "CLAYBOT_FOO": nil, "CLAYBOT_IMAGE": nil, "CLAYBOT_LOGS": nil, "CLAYBOT_MODEL_KEY": nil,
	} {
		vars := map[string]string{"OPENAI_API_KEY": "o", "TELEGRAM_BOT_TOKEN": "1:x", "SLACK_BOT_TOKEN": "xoxb-1", name: "canary:1"}
		c, warnings, err := Load(write(t, ""), environ(vars), slices.Collect(maps.Keys(vars))...)
		if err != nil || len(warnings) != 1 || closed != nil && !closed(c) || (len(offWarnings(warnings)) == 1) != (closed != nil) || strings.Contains(warnings[0].String(), "canary") {
			t.Errorf("%s: %+v, %v", name, warnings, err)
			continue
		}
		if (name == "CLAYBOT_FOO" || name == "CLAYBOT_IMAGE" || name == "CLAYBOT_PROFILE") && warnings[0].Near != "" {
			t.Errorf("%s: did you mean %s?", name, warnings[0].Near)
		}
	}
	for _, name := range []string{"TELEGRAM_API_BASE", "SLACK_URL", "SLACK_BASE_URL"} { // another program's: nothing is sent without a token
		c, warnings, err := Load(write(t, ""), environ(map[string]string{name: "x"}), name)
		if err != nil || len(warnings) != 1 || warnings[0].Off || c.Connectors.Telegram.Wanted() || c.Connectors.Slack.Wanted() {
			t.Errorf("%s without a token: %v, %v", name, warnings, err)
		}
	}
	for name, value := range map[string]string{"SLACK_DOMAIN": "myteam", "SLACK_HOST": "myteam.slack.com", "TELEGRAM_SERVER": "eu", "OPENAI_DOMAIN": "lab", "CLAYBOT_COST_CENTER": "ab", "CLAYBOT_LIMIT": "512m"} {
		vars := map[string]string{"OPENAI_API_KEY": "o", "TELEGRAM_BOT_TOKEN": "1:x", "SLACK_BOT_TOKEN": "xoxb-1", name: value}
		_, warnings, err := Load(write(t, ""), environ(vars), name)
		if err != nil || len(warnings) != 1 || warnings[0].Off {
			t.Errorf("%s=%s: %v, %v", name, value, warnings, err)
		}
	}
	for _, name := range []string{"CLAYBOT_DATABASE_URL", "CLAYBOT_DATA_PATH"} {
		c, warnings, err := Load(write(t, ""), environ(map[string]string{name: "x"}), name)
		if err == nil && (!c.Storage.Shared() || c.Storage.URL.Value() != "" || len(warnings) == 0) {
			t.Errorf("%s: %v", name, warnings)
		}
	}
	for _, name := range []string{"ANTHROPIC_BASEURL", "ANTHROPIC_BASE_URI", "ANTHROPIC_ENDPOINT", "ANTHROPIC_HOST", "ANTHROPIC_API_HOST"} {
		vars := map[string]string{"ANTHROPIC_API_KEY": "a", name: "http://127.0.0.1:1"}
		if c, warnings, err := Load(write(t, ""), environ(vars), slices.Collect(maps.Keys(vars))...); err != nil || c.Model.Off() == "" {
			t.Errorf("%s: %v, %v", name, warnings, err)
		}
	}
}

// Variables of other programs leave alone what the file configures, and the demo.
func TestVariablesOfOthers(t *testing.T) {
	const own = "model: {name: m, base_url: http://h/v1}\n"
	for _, tt := range []struct {
		file string
		vars map[string]string
		off  bool
		demo bool
	}{
		{own, map[string]string{"ANTHROPIC_MODEL": "x"}, false, false},
		{own, map[string]string{"OPENAI_MODEL": "x"}, false, false},
		{own, map[string]string{"OPENAI_API_BASE": "http://i"}, false, false},
		{own, map[string]string{"OPENAI_HOST": "i"}, false, false},
		{own, map[string]string{"ANTHROPIC_BASE_URL": "http://i"}, false, false},
		{"", map[string]string{"OPENAI_MODEL": "x"}, false, true},
		{"", map[string]string{"ANTHROPIC_MODEL": "x"}, false, true},
		{"", map[string]string{"OPENAI_MODEL": "x", "OPENAI_API_KEY": "o"}, true, false},
		{"model: {base_url: http://h/v1}\n", map[string]string{"OPENAI_MODEL": "x"}, true, false},
		{"model: m\n", map[string]string{"OPENAI_API_BASE": "http://i", "OPENAI_API_KEY": "o"}, true, false},
		{own + "transcription: on\n", map[string]string{"OPENAI_API_BASE": "http://i", "OPENAI_API_KEY": "o"}, false, false},
	} {
		c, warnings, err := Load(write(t, tt.file), environ(tt.vars), slices.Collect(maps.Keys(tt.vars))...)
		if err != nil || (c.Model.Off() != "") != tt.off || c.Model.Demo() != tt.demo || len(warnings) != 1 {
			t.Errorf("%q, %v: off %q, demo %v, %v, %v", tt.file, tt.vars, c.Model.Off(), c.Model.Demo(), warnings, err)
		}
		if said, want := len(offWarnings(warnings)) > 0, tt.off || c.Transcription.Off() != ""; said != want {
			t.Errorf("%q, %v: it is said to be off: %v, want %v; %v", tt.file, tt.vars, said, want, warnings)
		}
	}
}

// Each refused value of a destination or a limit says that something is off, except
// where what was refused would have allowed more.
func TestEachRefusalSaysOff(t *testing.T) {
	wider := []string{
		"http_hosts", "http.trusted_proxies", "operators", "prompts.env", "web.private", "agents.default.allow", "skills_dir",
		"model.fallback[].max_tokens", // and the rest of an entry that is left out as a whole
	}
	for _, path := range Keys() {
		if !classOf(path).closes() || slices.Contains(wider, path) {
			continue
		}
		for _, bad := range []string{"{zz: {zz: zz}}", "[[zz]]", "-~- ~-", ""} {
			file, closing := "", ""
			for _, word := range strings.Split(path, ".") {
				name, list := strings.CutSuffix(word, "[]")
				file += name + ": "
				if list {
					file, closing = file+"[", "]"+closing
				}
				if word != lastName(path) || strings.Count(path, ".") == 0 {
					file, closing = file+"{", "}"+closing
				}
			}
			file = strings.TrimSuffix(file, "{") + bad
			if strings.Count(path, ".") == 0 {
				closing = strings.TrimPrefix(closing, "}")
			}
			_, warnings, err := Load(write(t, file+closing+"\n"), environ(nil))
			unknown := func(w Warning) bool { return strings.HasPrefix(w.Text, unreadUnknown) }
			if err == nil && !slices.ContainsFunc(warnings, unknown) && len(warnings) > 0 && len(offWarnings(warnings)) == 0 {
				t.Errorf("%s: %v", file+closing, warnings)
			}
		}
	}
}

// A profile whose agents are not known leaves none of those it may be for with another
// profile. One without a match that says nothing about agents is for those that name it.
func TestProfilesForUnknownAgents(t *testing.T) {
	terminal, slack, telegram := claybot.User("terminal", "operator", "operator"), claybot.User("slack", "T012/C012", "U1"), claybot.User("telegram", "123", "123")
	for profile, agent := range map[string]*claybot.Descriptor{ // one that it may be for; nil: none
		"private: {match: 'terminal, web'": &terminal, "private: {match: 'terminal,web'": &terminal, "private: {match: [telegarm]": &telegram, "private: {match: [tg]": &telegram,
		"private: {match: [slack: T012/C012]": &slack, "private: {match: {telegram: 123}": &telegram, "private: {match: ['*']": &slack, "private: {match: [all]": &slack,
		"private: {match: ['#general']": &slack, "private: {match: [C012ABC]": &slack, "private: {match: ['-100123456']": &telegram, "private: {match: ['']": &terminal,
		"private: {match: [telegarm, '*']": &slack, "private: {match: [web, all]": &terminal, "private: {match: terminal, match: slack": &slack, "private: {match: ": &terminal,
		"private: {matches: [terminal]": &terminal, "private: {mtach: [terminal]": &terminal, "private: {for: terminal": &terminal, "private: {connectors: [terminal]": &terminal,
		"private: {channel: 'slack:T012/C012'": &slack, "private: {applies_to: [slack]": &slack, "private: {match: web, users: [telegram/123]": &telegram,
		"telegram: {max_steps: 3": &telegram, "'telegram:123': {max_steps: 3": &telegram, "telegarm: {max_steps: 3": &telegram, "Terminal: {max_steps: 3": &terminal,
		"all: {max_steps: 3": &slack, "'*': {max_steps: 3": &slack, "slack/T012/C012: {max_steps: 3": &slack, "defualt: {max_steps: 3": &slack,
		"default: {match: {a: b}": &slack, "default: {match: [all]": &slack, "default: {for: telegram": &slack,

		"coder: {max_steps: 3": nil, "web_search: {max_steps: 3": nil, "web-search: {max_steps: 3": nil, "api: {max_steps: 3": nil, "coder: {promt: x": nil,
		"coder: {match: []": nil, "wiki: {max_steps: 3": nil, "black: {max_steps: 3": nil, "private: {match: [web, cron]": nil, "private: {match: web, colour: red": nil,
	} {
		c, warnings := load(t, "agents: {"+profile+", tools: [], model: {name: llama, base_url: 'http://h'}}}\n", nil)
		if agent == nil {
			for _, d := range []claybot.Descriptor{terminal, slack, telegram} {
				if p := c.Profile(d); p.Off() != "" || len(offWarnings(warnings)) > 0 {
					t.Errorf("%s: %s is off: %v", profile, d.Connector, warnings)
				}
			}
			continue
		}
		if p := c.Profile(*agent); p.Off() == "" || len(offWarnings(warnings)) == 0 {
			t.Errorf("%s: %s has the profile %s: %v", profile, agent.Connector, p.Name, warnings)
		}
	}
}

// What is merged into a group may be any of its keys, so nothing that the group decides
// stays in force.
func TestMergedGroups(t *testing.T) {
	groups := map[string]bool{"agents": true, profilePath: true, "mcp.m": true, "model.headers": true, "otlp.headers": true, "people": true, "agents.default.confirm": true, "agents.default.plan.rates": true, "model.prices": true, "model.prices.m": true, "web.fetch": true}
	for _, path := range append(Keys(), "agents.default.model.name", "agents.default.workspace.image") {
		if i := strings.LastIndexByte(path, '.'); i > 0 && classOf(path).closes() && path != "prompts.env" { // of which less is shown
			groups[path[:i]] = true
		}
	}
	for path := range groups {
		file, closing := "", ""
		for _, word := range strings.Split(path, ".") {
			if name, list := strings.CutSuffix(word, "[]"); list {
				file, closing = file+name+": [{", "}]"+closing
			} else {
				file, closing = file+name+": {", "}"+closing
			}
		}
		for _, merged := range []string{"{base_url: 'http://h'}", "[*a]", "[*a, {usd: 5}]", "x", "", "*a"} {
			text := "prompts: &a {strict: true}\n" + file + "<<: " + merged + closing + "\n"
			if path == "model.fallback[]" { // an entry without a name is left out
				text = strings.Replace(text, "<<", "name: f, <<", 1)
			}
			c, warnings, err := Load(write(t, text), environ(nil))
			if err == nil && (len(offWarnings(warnings)) == 0 || !strings.Contains(warnings[0].Text, unreadAlias)) || path == profilePath && c.Profile(claybot.User("web", "a", "b")).Off() == "" {
				t.Errorf("%q: %v, %v", text, warnings, err)
			}
		}
	}
	c, _ := load(t, "agents: {private: {<<: {match: [web]}, tools: []}}\n", nil)
	if c.Profile(claybot.User("web", "a", "b")).Off() == "" {
		t.Error("agents that a merged match may be about have the default profile")
	}
	for _, merged := range []string{"{base_url: 'http://h'}", "[*a]", "*a"} {
		if _, _, err := Load(write(t, "prompts: &a {strict: true}\n<<: "+merged+"\n"), environ(nil)); err == nil || !strings.Contains(err.Error(), ":2: "+unreadAlias) {
			t.Errorf("at the root %s: %v", merged, err)
		}
	}
}

// An unknown key that plainly says where something goes, what is allowed or
// what may be spent switches off what it was for; another one costs a warning.
func TestKeysByOtherWords(t *testing.T) {
	agent := claybot.User("web", "a", "b")
	model := func(c Config) bool { return c.Model.Off() != "" }
	own := func(c Config) bool { return c.Profile(agent).Model.Off() != "" && c.Model.Off() == "" }
	spent := func(c Config) bool { return len(c.Agents.Budgets) == 1 && c.Agents.Budgets[0].Fault != "" }
	profile := func(c Config) bool { return c.Profile(agent).Off() != "" }
	held := func(c Config) bool {
		p := c.Profile(agent)
		return p.Engine.Name == claybot.EnginePlan && p.Engine.Plan.Mode == PlanPreview
	}
	tools := func(c Config) bool { p := c.Profile(agent); return p.Tools != nil && len(p.Tools) == 0 }
	for file, closed := range map[string]func(Config) bool{
		"model: {site: 'http://h'}": model, "model: {location: 'https://h/v1'}": model, "model: {server: h}": model, "model: {host: h}": model, "model: {endpoint: 'http://h'}": model,
		"model: {url: 'http://h'}": model, "model: {at: 'localhost:11434'}": model, "model: {where: {is: ['http://h']}}": model, "model: {max_usd: 5}": model, "model: {budget: 5}": model,
		"telegram: {token: env:T, bridge: 'http://h'}":    func(c Config) bool { return c.Connectors.Telegram.Off() != "" },
		"transcription: {site: 'http://h'}":               func(c Config) bool { return c.Transcription.Off() != "" },
		"agents: {a: {match: web, endpoint: 'http://h'}}": own, "agents: {a: {match: web, site: 'http://h'}}": own, "agents: {a: {match: web, host: ollama}}": own, "agents: {a: {match: web, api_key: env:T}}": own,
		"agents: {default: {allowed_tools: []}}": tools, "agents: {default: {disallowed_tools: [shell]}}": tools, "agents: {default: {allowedTools: [a]}}": tools, "agents: {default: {tools_deny: [shell]}}": tools,
		"agents: {default: {deny: [shell]}}": tools, "agents: {default: {denylist: [shell]}}": tools, "agents: {default: {permissions: none}}": tools, "agents: {default: {no_tools: true}}": tools, "agents: {default: {sandbox: true}}": tools,
		"agents: {default: {limits: {usd: 5}}}": tools, "agents: {default: {limits: {timeout: 5s}}}": tools,
		"agents: {default: {approvers: [web/a]}}": held, "agents: {default: {mode: preview}}": held, "agents: {default: {quiet_hours: '22:00-07:00'}}": held, "agents: {default: {rates: {shell: 1/h}}}": held,
		"max_usd: 5": spent, "limits: {usd: 5}": spent, "limit: 5": spent, "daily_budget: 5": spent, "cost_limit: 5": spent, "spending: {max: 5}": spent,
		"agents: {default: {max_usd: 5}}": profile, "agents: {default: {budget: 5}}": profile, "agents: {a: {match: web, cost_limit: 5}}": profile,
		"profiles: {default: {tools: []}}": profile, "permissions: {shell: never}": profile, "allowed_tools: [a]": profile,
		"access: {mode: open, users: [telegram:1]}": func(c Config) bool { return c.Access.Mode == AccessAllowlist },
		"access: open\nallowed_users: [telegram:1]": func(c Config) bool { return c.Access.Mode == AccessAllowlist },
		"subagents: {max_total: 3}":                 func(c Config) bool { return c.Agents.Subagents.MaxChildren == 0 },

		"colour: red": nil, "timeout: 5s": nil, "model: {colour: red}": nil, "model: {comment: 'see http://h for more'}": nil, "telegram: {token: env:T, parse_mode: html}": nil,
		"agents: {default: {colour: red}}": nil, "agents: {default: {greeting: hello}}": nil, "agents: {default: {title: a tool for all}}": nil, "agents: {default: {temperature: 1}}": nil,
		"x-labels: {docs: 'http://wiki'}": nil,
	} {
		c, warnings := load(t, file+"\n", map[string]string{"T": "1:x"})
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0].Text, unreadUnknown) || (len(offWarnings(warnings)) == 1) != (closed != nil) || closed != nil && !closed(c) {
			t.Errorf("%s: %v", file, warnings)
		}
	}
}

// An operator is told the setting that says where the model is.
func TestAddressKey(t *testing.T) {
	for _, tt := range []struct {
		file string
		vars map[string]string
		want string
	}{
		{"", nil, "OPENAI_BASE_URL"},
		{"", map[string]string{"OPENAI_BASE_URL": "http://h"}, "OPENAI_BASE_URL"},
		{"", map[string]string{"ANTHROPIC_API_KEY": "a"}, "model.base_url"},
		{"model: {base_url: http://h}", nil, "model.base_url"},
		{"model: {base_url: http://h}", map[string]string{"OPENAI_BASE_URL": "http://i"}, "OPENAI_BASE_URL"},
		{"agents: {a: {match: web, model: {base_url: http://h}}}", nil, "agents.a.model.base_url"},
	} {
		c, _ := load(t, tt.file+"\n", tt.vars)
		if got := c.Profile(claybot.User("web", "a", "b")).Model.AddressKey(); got != tt.want {
			t.Errorf("%q, %v: %s, want %s", tt.file, tt.vars, got, tt.want)
		}
	}
}
