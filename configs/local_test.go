package configs

import (
	"os"
	"strings"
	"testing"
)

// Only the machine may change where secrets and texts go, what runs, and who decides.
func TestLocalChange(t *testing.T) {
	const before = "model: {name: demo}\nworkspaces: {provider: docker}\n"
	for name, test := range map[string]struct {
		before, after, want string
	}{
		"nothing":          {before, before, ""},
		"comment":          {before, "# x\n" + before, ""},
		"name":             {before, "model: {name: other}\nworkspaces: {provider: docker}\n", ""},
		"address":          {before, "model: {name: demo, base_url: \"https://a.example\"}\nworkspaces: {provider: docker}\n", "model.base_url"},
		"no address":       {"model: {base_url: \"https://a.example\"}\n", "model: {name: demo}\n", "model.base_url"},
		"workspace":        {before, "model: {name: demo}\nworkspaces: local\n", "workspaces.provider"},
		"no workspace":     {before, "model: {name: demo}\n", "workspaces.provider"},
		"of a profile":     {"", "agents: {x: {workspace: {provider: local}}}\n", "agents.x.workspace.provider"},
		"whole workspace":  {"", "agents: {x: {workspace: local}}\n", "agents.x.workspace"},
		"model of profile": {"", "agents: {x: {model: {base_url: \"https://a.example\"}}}\n", "agents.x.model.base_url"},
		"group of agents":  {"", "agents: {x: {max_steps: 3, prompt: hi}}\n", ""},
		"fallback":         {"", "model: {name: demo, fallback: [{name: a, base_url: \"https://a.example\"}]}\n", "model.fallback"},
		"plain fallback":   {"", "model: {name: demo, fallback: [a, {name: b}]}\n", ""},
		"less fallback":    {"model: {fallback: [{name: a, base_url: \"https://a.example\"}]}\n", "", "model.fallback"},
		"merged":           {"", "model: {name: demo, fallback: [{<<: {base_url: \"https://a.example\"}}]}\n", "model.fallback"},
		"connector":        {"", "connectors: {x: {type: slack, api_url: \"https://a.example\"}}\n", "connectors.x.api_url"},
		"without a type":   {"", "connectors: {x: {api_url: \"https://a.example\"}}\n", "connectors.x"},
		"feedback":         {"", "slack: {feedback_buttons: true}\n", ""},
		"callback":         {"", "connectors: {x: {type: webhook, callback: \"https://a.example\"}}\n", "connectors.x.callback"},
		"mcp":              {"", "mcp: {x: {command: [sh]}}\n", "mcp.x"},
		"http":             {"", "http: \"0.0.0.0:1\"\n", "http.addr"},
		"hosts":            {"", "http_hosts: [a.example]\n", "http_hosts"},
		"data":             {"", "data_dir: /tmp\n", "data_dir"},
		"storage":          {"", "storage: {copies: 1}\n", "storage.copies"},
		"files":            {"", "files: {max_inline: 1k}\n", "files.max_inline"},
		"relay":            {"", "relay: [{name: x, url: \"https://a.example\"}]\n", "relay"},
		"otlp":             {"", "otlp: {endpoint: \"https://a.example\"}\n", "otlp.endpoint"},
		"gates":            {"", "cron: {gates: true}\n", "cron.gates"},
		"gates of beat":    {"", "heartbeat: {gates: true}\n", "heartbeat.gates"},
		"cron":             {"", "cron: {max_tasks: 3}\n", ""},
		"operators":        {"", "operators: [telegram/1]\n", "operators"},
		"people":           {"", "people: {ann: [telegram/1]}\n", "people.ann"},
		"rules":            {"", "agents: {x: {confirm: [{match: shell, action: allow}]}}\n", "agents.x.confirm"},
		"tools that ask":   {"agents: {x: {approve: [shell]}}\n", "agents: {x: {approve: []}}\n", "agents.x.approve"},
		"approvers":        {"", "agents: {x: {approvals: {approvers: [telegram/1]}}}\n", "agents.x.approvals.approvers"},
		"allowed calls":    {"", "agents: {x: {allow: [shell]}}\n", "agents.x.allow"},
		"chats to write":   {"", "agents: {x: {send_to: ['telegram:1']}}\n", "agents.x.send_to"},
		"agents of others": {"", "agents: {foreground_scope: all}\n", "agents.foreground_scope"},
		"whole profile":    {"", "agents: {x: {prompt: hi, allow: ['*']}}\n", "agents.x.allow"},
		"unlisted":         {"", "web: {unlisted: allow}\n", "web.unlisted"},
		"listed":           {"", "web: {fetch: {allow: [a.example]}}\n", "web.fetch"},
		"pages a minute":   {"", "web: {fetches_per_minute: 3}\n", ""},
		"quorum":           {"agents: {x: {approvals: {quorum: 2}}}\n", "", "agents.x.approvals.quorum"},
		"steps of a plan":  {"", "agents: {x: {plan: {approvals: 1}}}\n", "agents.x.plan.approvals"},
		"emoji":            {"", "agents: {x: {reactions: {approve: [x]}}}\n", ""},
		"allowed":          {"", "access: {allow: [telegram/1]}\n", ""},
		"prompt variables": {"", "prompts: {env: [HOME]}\n", "prompts.env"},
		"skills":           {"", "skills_dir: /etc\n", "skills_dir"},
		"local files":      {"", "telegram: {local_files: /etc}\n", "telegram.local_files"},
		"search":           {"", "web: {search: [{provider: brave, base_url: \"https://a.example\"}]}\n", "web.search"},
		"engine of search": {"", "web: {search: [{provider: brave, key: env:A}]}\n", ""},
	} {
		got, err := LocalChange([]byte(test.before), []byte(test.after))
		if err != nil || got != test.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.want)
		}
	}
}

// No key with an address or a path is left to the network.
func TestLocalKeys(t *testing.T) {
	for _, path := range Keys() {
		name := lastName(path)
		if address := strings.HasSuffix(name, "url") || strings.HasSuffix(name, "_dir") || name == "endpoint" || name == "callback" || name == "file"; address && !localPath(path) {
			t.Errorf("the network may change %s", path)
		}
	}
}

func TestNewReferences(t *testing.T) {
	got, err := NewReferences([]byte("model: {key: env:A}\n"), []byte("model: {key: env:A, keys: [env:A, \" file:b\"], headers: {x: env:B}}\ntelegram: {token: env:TELEGRAM_BOT_TOKEN}\n"))
	want := []Reference{{"model.keys", "file:b", false}, {"model.headers.x", "env:B", false}, {"telegram.token", "env:TELEGRAM_BOT_TOKEN", true}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, r := range got {
		if r != want[i] && (r.Key != "model.headers" || r.Text != "env:B") {
			t.Errorf("%+v, want %+v", r, want[i])
		}
	}
}

// Which keys are an operator's powers, which a token of the network may change, and which need the
// machine, is decided, and stated in docs/configuration.md.
func TestPowersOfOperators(t *testing.T) {
	operator := []string{
		"access.allow", "agents.default.match", "agents.default.tools", "agents.default.dry_run", "agents.x.match", "agents.x.tools", "agents.x.dry_run",
		"agents.default.limits.tool_time", "agents.default.limits.tool_output", "agents.default.limits.step_calls", "agents.default.limits.run_calls",
		"limits.runs_per_minute", "limits.files_per_owner", "budgets",
	}
	machine := []string{
		"operators", "people", "agents.foreground_scope", "agents.default.approve", "agents.default.confirm", "agents.default.allow", "agents.default.send_to",
		"agents.default.approvals.quorum", "agents.default.approvals.approvers", "agents.default.plan.approvals", "agents.default.plan.approvers",
		"agents.default.workspace", "web.fetch", "web.unlisted", "web.private", "mcp", "workspaces.provider", "cron.gates", "heartbeat.gates",
		"prompts.env", "pprof", "data_dir", "http.addr", "http_hosts", "storage.url", "files.url", "skills_dir",
	}
	for _, key := range operator {
		if IsLocal(key) {
			t.Errorf("the network may not change %s", key)
		}
	}
	for _, key := range machine {
		if !IsLocal(key) {
			t.Errorf("the network may change %s", key)
		}
	}
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range []string{
		"All other keys are an operator's powers",
		"Among them are `access.allow` and `access.mode: pairing` or `allowlist`, `match`, `tools` and `dry_run`\nof a profile, `limits` and `budgets`.",
	} {
		if !strings.Contains(string(page), sentence) {
			t.Errorf("docs/configuration.md does not say: %s", sentence)
		}
	}
}
