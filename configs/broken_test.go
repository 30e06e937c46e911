package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const canary = "123456:AAcanarycanarycanarycanarycanary"

// A fault is a broken file and what is said about it.
type fault struct {
	name, file string
	want       []string
}

// Each broken file gives exactly the warnings named: "line key: beginning of
// the text", with a suggestion after "?".
var broken = []fault{
	{"unknown key", "acess: open\n", []string{"1 acess: unknown key ?access"}},
	{"unknown key far from all", "\n\nzzzzzzzzzz: 1\n", []string{"3 zzzzzzzzzz: unknown key ?"}},
	{"key of another group", "debounceMs: 5\n", []string{"1 debounceMs: unknown key ?agents.default.debounceMs"}},
	{"nested unknown key", "telegram:\n  tokn: env:X\n", []string{"2 telegram.tokn: unknown key ?telegram.token"}},
	{"snake case in a profile", "agents:\n  default:\n    debounce_ms: 5\n", []string{"3 agents.default.debounce_ms: unknown key ?agents.default.debounceMs"}},
	{"key with a dot", "model:\n  a.name: x\n", []string{"2 model.a.name: unknown key ?model.name"}},
	{"key twice", "log: json\nlog: text\n", []string{"2 log: was given in line 1 already ?"}},
	{"list as key", "? [a, b]\n: 1\n", []string{"1 : a key must be a single word, found a list ?"}},
	{"alias", "log: &l json\nlog_level: *l\n", []string{"2 log_level: aliases are not supported ?"}},
	{"merge key", "agents:\n  default: &d {maxBatch: 3}\n  b:\n    match: web\n    <<: *d\n", []string{"5 agents.b.<<: aliases are not supported ?"}},
	{"list for a value", "log: [json]\n", []string{"1 log: want a single value, found a list ?"}},
	{"value for a group", "telegram: " + canary + "\n", []string{"1 telegram: want a group of keys (token, api_url, local_files, receive, delivery, on_ambiguous, rate), found a single value ?"}},
	{"http without port", "http: localhost\n", []string{`1 http: "localhost" is not an address such as 127.0.0.1:8420, and not off ?`}},
	{"http with a bad port", "http: :99999\n", []string{`1 http: ":99999" is not an address ?`}},
	{"http as url", "http: http://127.0.0.1:8420\n", []string{`1 http: "http://127.0.0.1:8420" is not an address ?`}},
	{"access", "access: evryone\n", []string{`1 access: "evryone" is not one of pairing, allowlist, open; new users are not admitted until this is corrected ?`}},
	{"access mode", "access:\n  mode: Open\n", []string{`2 access.mode: "Open" is not one of pairing, allowlist, open; new users are not admitted until this is corrected ?open`}},
	{"access list", "access: [open]\n", []string{"1 access: want a group of keys (mode, allow), found a list ?"}},
	{"allow by name", "access:\n  allow: [\"telegram:@bob\"]\n", []string{`2 access.allow: "@bob" is not a Telegram id such as 123456789, or -100123 for a group; names can change hands ?`}},
	{"allow slack name", "access:\n  allow:\n    - slack:U1\n    - slack:bob\n", []string{`4 access.allow: "bob" is not a Slack id ?`}},
	{"allow without connector", "access:\n  allow: [bob]\n", []string{`2 access.allow: "bob" is not connector:id ?`}},
	{"allow unknown connector", "access:\n  allow: [\"telegam:1\"]\n", []string{`2 access.allow: "telegam" is not a connector (telegram, slack, discord, web, terminal) ?telegram`}},
	{"allow star", "access:\n  allow: [\"web:*\"]\n", []string{`2 access.allow: "web:*" does not mean everybody ?`}},
	{"allow who logs in", "access:\n  allow: [\"web:operator\"]\n", []string{`2 access.allow: "web:operator" is not needed: every user who logs in there has access ?`}},
	{"http hosts", "http_hosts: [\"http://chat.example.org/\", ok.example.org, \"a b\"]\n", []string{
		`1 http_hosts: "http://chat.example.org/" is not a host such as chat.example.org ?`, `1 http_hosts: "a b" is not a host ?`,
	}},
	{"allow group", "access:\n  allow: {telegram: 1}\n", []string{"2 access.allow: want a list, found a group of keys ?"}},
	{"log", "log: xml\n", []string{`1 log: "xml" is not one of json, text ?`}},
	{"log level", "log_level: loud\n", []string{`1 log_level: "loud" is not one of debug, info, warn, error ?`}},
	{"model is a key", "model: sk-canary\n", []string{"1 model: a value that looks like a secret is not the name of a model ?"}},
	{"model with blanks", "model: {name: my model}\n", []string{`1 model.name: "my model" is not the name of a model ?`}},
	{"model url", "model:\n  base_url: localhost:8080\n", []string{"2 model.base_url: \"localhost:8080\" has no scheme: put https:// or http:// in front of it; the model is off until this is corrected ?"}},
	{"model url with password", "model:\n  base_url: https://me:canary@host/v1\n", []string{"2 model.base_url: an address must not hold a user name or password ?"}},
	{"model url with query", "model:\n  base_url: https://host/v1?key=canary\n", []string{"2 model.base_url: an address must not hold a query ?"}},
	{"literal key", "model:\n  key: sk-canary\n", []string{"2 model.key: a secret must not stand in the file; write env:NAME or file:path instead ?"}},
	{"literal header", "model:\n  headers:\n    Authorization: Bearer canary\n", []string{"3 model.headers.Authorization: a secret must not stand in the file ?"}},
	{"bad header", "model:\n  headers: {\"a b\": c}\n", []string{`2 model.headers.a b: "a b" is not the name of a header ?`}},
	{"headers", "model:\n  headers: x\n", []string{"2 model.headers: want header names with their values, found a single value ?"}},
	{"fallback", "model:\n  system_fallback: yes\n", []string{`2 model.system_fallback: "yes" is not one of auto, always, never ?`}},
	{"price", "model:\n  prices:\n    gpt-5: {input: cheap}\n", []string{`3 model.prices.gpt-5.input: "cheap" is not a price ?`}},
	{"price key", "model:\n  prices:\n    gpt-5: {inputs: 1}\n", []string{"3 model.prices.gpt-5.inputs: unknown key ?model.prices.gpt-5.input"}},
	{"prices", "model:\n  prices: 3\n", []string{"2 model.prices: want names of models with their prices ?"}},
	{"literal token", "telegram:\n  token: " + canary + "\n", []string{"2 telegram.token: a secret must not stand in the file ?"}},
	{"unset variable", "telegram:\n  token: env:NOT_SET\n", []string{`2 telegram.token: the environment variable "NOT_SET" is not set ?`}},
	{"missing file", "telegram:\n  token: file:none\n", []string{"2 telegram.token: the secret's file cannot be read ?"}},
	{"empty file", "telegram:\n  token: file:empty\n", []string{"2 telegram.token: "}},
	{"token as list", "telegram:\n  token: [" + canary + "]\n", []string{"2 telegram.token: want a single value, found a list ?"}},
	{"delivery", "telegram:\n  delivery: stram\n", []string{`2 telegram.delivery: "stram" is not one of stream, draft, placeholder, direct ?stream`}},
	{"receive", "telegram:\n  receive: push\n", []string{`2 telegram.receive: "push" is not one of poll, webhook ?`}},
	{"ambiguous", "telegram:\n  on_ambiguous: again\n", []string{`2 telegram.on_ambiguous: "again" is not one of auto, resend, notice ?`}},
	{"agents", "agents: default\n", []string{"1 agents: want profiles by name, such as default, found a single value ?"}},
	{"profile", "agents:\n  work: web\n", []string{"2 agents.work: want a group of keys ("}},
	{"no match", "agents:\n  work: {maxBatch: 3}\n", []string{"2 agents.work: has no match: only API clients that name it use it; for chats, add match: [telegram] or the like ?"}},
	{"match of default", "agents:\n  default: {match: web}\n", []string{"2 agents.default: the default profile takes what no other matches ?"}},
	{"match unknown", "agents:\n  work:\n    match: [web, slak]\n", []string{`3 agents.work.match: "slak" is not a connector (telegram, slack, discord, web, terminal) ?slack`}},
	{"match name", "agents:\n  work:\n    match: [web, \"slack:#general\"]\n", []string{`3 agents.work.match: "#general" is not a Slack id ?`}},
	{"match taken", "agents:\n  a: {match: web}\n  b: {match: [web, slack]}\n", []string{`3 agents.b: match "web" belongs to the profile "a" already ?`}},
	{"negative debounce", "agents:\n  default:\n    debounceMs: -1\n", []string{`3 agents.default.debounceMs: "-1" is not a whole number from 0 to 86400000 ?`}},
	{"fraction", "agents:\n  default:\n    debounceMs: 1.5\n", []string{`3 agents.default.debounceMs: "1.5" is not a whole number ?`}},
	{"max below debounce", "agents:\n  default:\n    debounceMaxMs: 10\n    debounceMs: 20\n", []string{"3 agents.default.debounceMaxMs: 10 is less than debounceMs, which is 20; using ten times debounceMs ?"}},
	{"busy", "agents:\n  default:\n    whenBusy: later\n", []string{`3 agents.default.whenBusy: "later" is not one of wait, injectAfterTools ?`}},
	{"buffer", "agents:\n  default:\n    processBuffer: onebyone\n", []string{`3 agents.default.processBuffer: "onebyone" is not one of allTogether, oneByOne ?oneByOne`}},
	{"batch", "agents:\n  default:\n    maxBatch: 1001\n", []string{`3 agents.default.maxBatch: "1001" is not a whole number from 1 to 1000 ?`}},
	{"steps", "agents:\n  default:\n    max_steps: 0\n", []string{`3 agents.default.max_steps: "0" is not a whole number from 1 to 1000 ?`}},
	{"progress", "agents:\n  default:\n    progress: loud\n", []string{`3 agents.default.progress: "loud" is not one of send, off ?`}},
	{"auto_send", "agents:\n  default:\n    auto_send: maybe\n", []string{`3 agents.default.auto_send: "maybe" is not one of on, off ?`}},
	{"auto_send without a tool", "agents:\n  default:\n    auto_send: off\n    tools: [shell]\n", []string{`2 agents.default: auto_send is off and tools does not name send_message, so its agents send no texts ?`}},
	{"require_tool", "agents:\n  default:\n    require_tool: 21\n", []string{`3 agents.default.require_tool: "21" is not a whole number from 0 to 20; ignored ?`}},
	{"memory", "agents:\n  default:\n    memory: 3\n", []string{`3 agents.default.memory: "3" is not one of on, off ?`}},
	{"tool", "agents:\n  default:\n    tools: [\"rm -rf\"]\n", []string{`3 agents.default.tools: "rm -rf" is not the name of a tool ?`}},
	{"window", "agents:\n  default:\n    context_window: 100\n", []string{`3 agents.default.context_window: "100" is not 0, nor a whole number from 2048 to 100000000; ignored ?`}},
	{"window in words", "agents:\n  default:\n    context_window: 128k\n", []string{`3 agents.default.context_window: "128k" is not 0 ?`}},
	{"negative window", "agents:\n  default:\n    context_window: -1\n", []string{`3 agents.default.context_window: "-1" is not 0 ?`}},
	{"match near cron", "agents:\n  work:\n    match: [web, corn]\n", []string{`3 agents.work.match: "corn" is not a connector (telegram, slack, discord, web, terminal), and not cron or heartbeat ?cron`}},
	{"match uid", "agents:\n  work:\n    match: [web, \"cron:report\"]\n", []string{`3 agents.work.match: "report" is not the uid of a task ?`}},
	{"match without uid", "agents:\n  work:\n    match: [web, \"cron:\"]\n", []string{`3 agents.work.match: "" is not the uid of a task ?`}},
	{"match one heartbeat", "agents:\n  work:\n    match: [web, \"heartbeat:1\"]\n", []string{"3 agents.work.match: there is one heartbeat only ?"}},
	{"match subagent", "agents:\n  work:\n    match: [web, subagent]\n", []string{"3 agents.work.match: a subagent has the profile of the agent that its chain begins with; ignored ?"}},
	{"match near subagent", "agents:\n  work:\n    match: [web, subagents]\n", []string{`3 agents.work.match: "subagents" is not a connector ?subagent`}},
	{"match heartbeat taken", "agents:\n  a: {match: heartbeat}\n  b: {match: [web, heartbeat]}\n", []string{`3 agents.b: match "heartbeat" belongs to the profile "a" already ?`}},
	{"several at once", "log: x\nhttp: y\n", []string{`1 log: "x" is not`, `2 http: "y" is not`}},
	{"long value", "log: " + strings.Repeat("é", 500) + "\n", []string{`1 log: "` + strings.Repeat("é", 80) + `…" is not one of ?`}},
}

func TestBrokenFiles(t *testing.T) {
	for _, tt := range slices.Concat(broken, brokenSociety, brokenSchedule, brokenDeep, brokenTelemetry, brokenHTTP, brokenPlan, brokenExplore, brokenPrompts, brokenWeb) {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.file)
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), "empty"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			c, warnings, err := Load(path, environ(nil))
			if err != nil {
				t.Fatalf("Load: %v", err)
			}
			if len(warnings) != len(tt.want) {
				t.Fatalf("%d warnings, want %d: %v", len(warnings), len(tt.want), warnings)
			}
			for i, w := range warnings {
				want, near, exact := strings.Cut(tt.want[i], " ?")
				got := fmt.Sprintf("%d %s: %s", w.Line, w.Key, w.Text)
				want = strings.TrimSuffix(want, "; ignored")
				if classOf(w.path) == Harmless && w.Off {
					t.Errorf("%s switches something off", w)
				}
				if !strings.HasPrefix(got, want) || exact && w.Near != near || w.File != path {
					t.Errorf("warning %q (near %q)\nwant    %q (near %q)", got, w.Near, want, near)
				}
				if strings.Contains(w.String(), "canary") {
					t.Errorf("a secret is shown: %s", w)
				}
			}
			if got := Default(); c.Access.Mode != got.Access.Mode && c.Access.Mode != AccessAllowlist || c.HTTP.Addr != got.HTTP.Addr && c.HTTP.Addr != Off ||
				c.Connectors.Telegram.Delivery != got.Connectors.Telegram.Delivery || c.Agents.Scope != got.Agents.Scope ||
				c.Agents.Subagents != got.Agents.Subagents && c.Agents.Subagents.MaxDepth != 0 || c.Schedule.Cron.Zone != got.Schedule.Cron.Zone || c.Schedule.Heartbeat.Every != got.Schedule.Heartbeat.Every {
				t.Errorf("a refused value allows more: %+v", c)
			}
		})
	}
}

// A bad value costs itself and nothing beside it.
func TestSmallestFeature(t *testing.T) {
	c, warnings := load(t, `
http: nonsense
log: json
telegram: {token: env:TG, delivery: nonsense, nonsense: 1}
agents:
  default: {maxBatch: 0, max_steps: 5}
  bad: nonsense
  good: {match: web, whenBusy: nonsense, processBuffer: oneByOne}
`, map[string]string{"TG": "1:x", "CLAYBOT_LOG_LEVEL": "nonsense"})
	if len(warnings) != 7 {
		t.Errorf("%d warnings: %v", len(warnings), warnings)
	}
	p := c.Agents.Profiles["good"]
	if c.Log.Format != "json" || c.Connectors.Telegram.Token.Value() != "1:x" || p.MaxSteps != 5 || p.Inbox.ProcessBuffer != "oneByOne" || p.Inbox.WhenBusy != "wait" || p.Inbox.MaxBatch != 100 {
		t.Errorf("got %+v, profile %+v", c, p)
	}
	if _, ok := c.Agents.Profiles["bad"]; ok {
		t.Error("the bad profile exists")
	}
}

// A mistyped mode admits no new people, even when the file allows everyone.
func TestBadAccessInEnvironmentClosesIt(t *testing.T) {
	c, warnings := load(t, "access: open\n", map[string]string{"CLAYBOT_ACCESS": "allowlst", "CLAYBOT_ALLOW": "telegram:@bob,telegram:5"})
	if c.Access.Mode != AccessAllowlist || c.Access.Off() == "" || len(c.Access.Allow) != 1 || len(warnings) != 2 {
		t.Errorf("access %+v, warnings %v", c.Access, warnings)
	}
	if got := warnings[0].String(); !strings.HasPrefix(got, "CLAYBOT_ACCESS: ") {
		t.Errorf("warning %q does not begin with the variable", got)
	}
}

func TestUnreadable(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"syntax", "log: json\naccess: [open\nhttp: off\n", ":2: did not find expected"},
		{"indent", "telegram:\n  token: env:X\n delivery: direct\n", ":3: did not find expected key"},
		{"tab", "telegram:\n\ttoken: env:X\n", ":2: "},
		{"colon", "data_dir: a: b\n", ":1: mapping values are not allowed"},
		{"anchor", "telegram:\n  token: *" + canary + "\n", "unknown anchor"},
		{"binary", "log: json\n\x00\x01\n", ":2: not a text in UTF-8"},
		{"latin 1", "a: b\n\nprompt: caf\xe9\n", ":3: not a text in UTF-8"},
		{"list", "\n- log: json\n", ":2: want lines such as \"access: pairing\", found a list"},
		{"word", "hello\n", ":1: want lines such as"},
		{"second document", "log: json\n---\n[\n", ":3: "},
		{"too large", strings.Repeat("# comment\n", 200_000), "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.file)
			_, _, err := Load(path, environ(nil))
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Load = %v, want %s and %q", err, path, tt.want)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
	for text, want := range map[string]string{"[\n": ":1: ", "a: b\n}\n": ":2: ", "a: 'b\n\n\nc: d\n": ":4: ", "\n\n%YAML 9.9\n---\n": ":3: ", "a: \"\\x\"\n": ":1: "} {
		if _, _, err := Load(write(t, text), environ(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want line %s", text, err, want)
		}
	}
	if _, _, err := Load(t.TempDir(), environ(nil)); err == nil {
		t.Error("a directory was read as a file")
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# only a comment\n", "---\n", "telegram:\nslack:\nweb:\nagents:\n  default:\n    limits:\n", "~\n"} {
		if _, warnings := load(t, text, nil); len(warnings) != 0 {
			t.Errorf("%q: %v", text, warnings)
		}
	}
}
