package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
)

// A brokenRun is a set-up with which a daemon runs and something does not work.
type brokenRun struct {
	brokenSetup
	later  string                            // the file that the running daemon reads
	change func(*testing.T, *setupBench)     // of the running daemon, before it reads the file again
	asks   func(*testing.T, *daemon, string) // what else says the same, with the code
	node   nodes.Key                         // the node that says the same; zero: none does

	besides []string // the codes of other causes
}

var brokenRuns = []brokenRun{
	{brokenSetup: brokenSetup{name: "a token that Telegram refuses at the start", env: map[string]string{"TELEGRAM_BOT_TOKEN": "1234567:FAKE-another-token-for-the-tests"}, breaks: withTelegram(nil), code: "credential-refused", next: "get the token from @BotFather"}},
	{brokenSetup: brokenSetup{name: "a token that Telegram refuses later", breaks: withTelegram(nil), code: "credential-refused", next: "get the token from @BotFather"}, change: func(_ *testing.T, b *setupBench) {
		b.env["TELEGRAM_BOT_TOKEN"] = "1234567:FAKE-another-token-for-the-tests"
	}, asks: testsConnector},
	{brokenSetup: brokenSetup{name: "a variable that is not set", file: "telegram: {token: 'env:MY_TOKEN'}\n", code: "config-secret-missing", next: "set the variable"}},
	{brokenSetup: brokenSetup{name: "a key of a model that is not set", file: "model: {base_url: 'http://127.0.0.1:1/v1', name: m, key: 'env:MY_KEY'}\n", code: "config-secret-missing", next: "set the variable"}},
	{brokenSetup: brokenSetup{name: "a value that switches a connector off", file: "telegram: {token: 'env:TOKEN', api_url: nonsense}\n", env: map[string]string{"TOKEN": "1234567:FAKE-telegram-token-for-tests-only"}, code: "config-value", next: "correct it, then run: claybot config check"}, node: keyOfConnector("telegram")},
	{brokenSetup: brokenSetup{name: "a mistyped connector", file: "telegarm: {}\n", code: "config-key-unknown", next: "correct it; claybot config show"}, node: keyOfConnector("telegram")},
	{brokenSetup: brokenSetup{name: "a connector without a token", file: "connectors: {sales: {type: telegram}}\n", code: "config-value", next: "correct it, then run: claybot config check"}, node: keyOfConnector("sales")},
	{brokenSetup: brokenSetup{name: "a part of a token", env: map[string]string{"TELEGRAM_BOT_TOKEN": "1234567"}, code: "credential-malformed", next: "get it from @BotFather"}, node: keyOfConnector("telegram")},
	{brokenSetup: brokenSetup{name: "a token in quotes", env: map[string]string{"TELEGRAM_BOT_TOKEN": "'1234567:FAKE-telegram-token-for-tests-only'"}, code: "credential-quoted", next: "get it from @BotFather (/mybots), and set it without them"}, node: keyOfConnector("telegram")},
	{brokenSetup: brokenSetup{name: "the tokens of Slack swapped", env: map[string]string{"SLACK_BOT_TOKEN": "xapp-FAKE", "SLACK_APP_TOKEN": "xoxb-FAKE"}, code: "credential-malformed", next: "copy it from api.slack.com"}, node: keyOfConnector("slack")},
	{brokenSetup: brokenSetup{name: "a value that switches the model off", file: "model: {provider: opnai, name: gpt-5}\n", code: "config-value", next: "correct it, then run: claybot config check"}, node: nodes.Key{Kind: nodes.Model, Name: "gpt-5"}},
	{brokenSetup: brokenSetup{name: "a variable that switches the model off", env: map[string]string{"OPENAI_BASE_URL": "nowhere", "OPENAI_API_KEY": "sk-FAKE"}, code: "config-value", next: "correct it, then run: claybot config check"}, node: nodes.Key{Kind: nodes.Model, Name: "gpt-5"}},
	{brokenSetup: brokenSetup{name: "a key of a model in quotes", env: map[string]string{"OPENAI_API_KEY": "'sk-test-not-a-key'"}, breaks: withModel(openaitest.Config{Key: "sk-test-not-a-key"}), code: "credential-quoted", next: "copy it from the provider, and set it without them"}, node: nodes.Key{Kind: nodes.Model, Name: "gpt-5"}},
	{brokenSetup: brokenSetup{name: "a provider without an address", file: "model: {provider: azure, name: m, key: 'env:K'}\n", env: map[string]string{"K": "sk-FAKE"}, code: "config-value", next: "correct it, then run: claybot config check"}, node: nodes.Key{Kind: nodes.Model, Name: "m"}},
	{brokenSetup: brokenSetup{name: "a value that switches schedules off", file: "cron: {enabled: 7}\n", code: "config-value", next: "correct it, then run: claybot config check"}, node: keyOfConnector("cron")},
	{brokenSetup: brokenSetup{name: "an MCP server that is left out", file: "mcp: {both: {command: [x], url: 'http://127.0.0.1:1'}}\n", code: "config-value", next: "correct it, then run: claybot config check"}, node: nodes.Key{Kind: nodes.MCP, Name: "both"}},
	{brokenSetup: brokenSetup{name: "a relay that is left out", file: "relay: [{name: crm, url: nowhere}]\n", code: "config-value", next: "correct it, then run: claybot config check"}, node: nodes.Key{Kind: nodes.Relay, Name: "crm"}},
	{brokenSetup: brokenSetup{name: "a provider of workspaces that does not exist", file: "workspaces: {provider: dokcer}\n", code: "config-value", next: "correct it, then run: claybot config check"}},
	{brokenSetup: brokenSetup{name: "a search without an engine", file: "web: {search: {provider: brave}}\n", code: "config-value", next: "correct it, then run: claybot config check"}},
	{brokenSetup: brokenSetup{name: "files at no address", file: "files: {url: nowhere}\n", code: "config-value", next: "correct it, then run: claybot config check"}},
	{brokenSetup: brokenSetup{name: "a key that is ignored", file: "frobnicate: 1\n", code: "config-key-unknown", next: "correct it; claybot config show"}},
	{brokenSetup: brokenSetup{name: "a webhook without a secret", file: "connectors: {ci: {type: webhook}}\n", env: map[string]string{"CLAYBOT_HTTP_ADDR": "127.0.0.1:0"}, code: "webhook-no-secret", next: "set connectors.ci.secret"}, node: keyOfConnector("ci")},
	{brokenSetup: brokenSetup{name: "a webhook whose secret is not set", file: "connectors: {ci: {type: webhook, secret: 'env:HOOK'}}\n", env: map[string]string{"CLAYBOT_HTTP_ADDR": "127.0.0.1:0"}, code: "config-secret-missing", next: "set the variable"}, node: keyOfConnector("ci")},
	{brokenSetup: brokenSetup{name: "a webhook without the server", file: "connectors: {ci: {type: webhook, secret: 'env:HOOK'}}\n", env: map[string]string{"HOOK": "FAKE"}, code: "http-off", next: "set http.addr"}, node: keyOfConnector("ci")},
	{brokenSetup: brokenSetup{name: "a template that is none", file: "connectors: {ci: {type: webhook, secret: 'env:HOOK', prompt: '{{.x'}}\n", env: map[string]string{"HOOK": "FAKE", "CLAYBOT_HTTP_ADDR": "127.0.0.1:0"}, code: "webhook-template", next: "correct the template"}, node: keyOfConnector("ci")},
	{brokenSetup: brokenSetup{name: "a template that is none beside a secret that is not set", file: "connectors: {ci: {type: webhook, secret: 'env:HOOK', callback: 'http://127.0.0.1:1/', callback_secret: 'env:NOTHING', prompt: '{{.x'}}\n", env: map[string]string{"HOOK": "FAKE", "CLAYBOT_HTTP_ADDR": "127.0.0.1:0"}, code: "webhook-template", next: "correct the template"}, node: keyOfConnector("ci"), besides: []string{"config-secret-missing"}},
	{brokenSetup: brokenSetup{name: "an MCP server that does not run", file: "mcp: {notes: {url: 'http://127.0.0.1:1/mcp'}}\n", code: "mcp-failing", next: "look whether its server runs"}, node: nodes.Key{Kind: nodes.MCP, Name: "notes"}},
	{brokenSetup: brokenSetup{name: "commands on the machine for anyone", file: "language: en\n", code: "local-refused", next: "set CLAYBOT_ACCESS=pairing, or workspaces.provider"}, later: "access: open\nworkspaces: {provider: local, network: full}\n", besides: []string{"access-open", "access-unlimited"}},
	{brokenSetup: brokenSetup{name: "a damaged history", breaks: inData(map[string]string{"agents/a1b2c3d4e5f6g7h8i9j0k1l2/history.jsonl": "{\"type\":\"user\"}\n{\"ty\n"}), code: "history-damaged", next: "put their folders from a backup"}, besides: []string{"check-failing"}},
	{brokenSetup: brokenSetup{name: "a port that is taken", file: "language: en\n", breaks: func(t *testing.T, b *setupBench) { b.env["CLAYBOT_HTTP_ADDR"] = takenAddress(t) }, code: "http-unusable", next: "set CLAYBOT_HTTP_ADDR to another one"}},
	{brokenSetup: brokenSetup{name: "a port of the file that is taken", breaks: func(t *testing.T, b *setupBench) {
		delete(b.env, "CLAYBOT_HTTP_ADDR")
		b.write(t, "claybot.yaml", "http: {addr: '"+takenAddress(t)+"'}\n")
	}, code: "http-unusable", next: "set http.addr to another one"}},
	{brokenSetup: brokenSetup{name: "a file that is gone", file: "limits: {runs_per_minute: 7}\n", code: "config-missing", next: "put the file back, or stop claybot and start anew with: claybot config init"}, change: func(t *testing.T, b *setupBench) {
		if err := os.Remove(b.path); err != nil {
			t.Fatal(err)
		}
	}},
	{brokenSetup: brokenSetup{name: "a file without a key", file: "limits: {runs_per_minute: 7}\n", code: "config-refused", next: "correct it, then run: claybot doctor"}, later: "# nothing\n"},
	{brokenSetup: brokenSetup{name: "a folder instead of the file", file: "limits: {runs_per_minute: 7}\n", code: "config-unreadable", next: "let this user read it"}, change: func(t *testing.T, b *setupBench) {
		if err := errors.Join(os.Remove(b.path), os.Mkdir(b.path, 0o700)); err != nil {
			t.Fatal(err)
		}
	}},
}

// testsConnector looks at what the test of Telegram says.
func testsConnector(t *testing.T, d *daemon, _ string) {
	n, err := nodeDesk{d}.node(t.Context(), keyOfConnector("telegram"))
	if err != nil {
		t.Fatal(err)
	}
	if done, err := d.test(t.Context(), n); err != nil || done.OK || !strings.Contains(done.Text, "refused") {
		t.Errorf("the test of the connector says %+v, %v", done, err)
	}
}

// A cause has the same code and the same next step in the status, the doctor, the answer to /status and the
// readiness, and it is there once.
func TestOneCauseOneCode(t *testing.T) {
	for _, x := range brokenRuns {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			t.Cleanup(cancel)
			b := newSetupBench(t, x.brokenSetup)
			d, client := b.runs(ctx, t)
			if x.change != nil {
				x.change(t, b)
			}
			if x.later != "" {
				b.write(t, "claybot.yaml", x.later)
			}
			if x.later != "" || x.change != nil {
				d.reload(ctx, d.env, false)
			}
			d.probe(ctx, 0)
			var st overview.Status
			for st.Findings = nil; len(st.Findings) == 0 && ctx.Err() == nil; connectors.Sleep(ctx, 10*time.Millisecond) {
				if err := client.call(ctx, "GET", "/status", nil, &st); err != nil {
					t.Fatal(err)
				}
			}
			said := map[string][]overview.Finding{"status": st.Findings}
			for what, flags := range map[string][]string{"doctor": nil, "doctor --online": online} {
				for _, f := range bads(b.doctor(t, flags...)) {
					said[what] = append(said[what], overview.Finding{What: f.What, Code: f.Code, Text: f.Text, Next: f.Next})
				}
			}
			if ok, why := d.readiness(); !ok {
				said["readiness"] = []overview.Finding{{Code: why.Code, Next: strings.TrimPrefix(why.Fix, "Next step: ")}}
			}
			for what, all := range said {
				all = slices.DeleteFunc(all, func(f overview.Finding) bool {
					return ambient[f.Code] || f.What == "limits" || slices.Contains(x.besides, f.Code)
				})
				if len(all) != 1 || all[0].Code != x.code || !strings.HasPrefix(all[0].Next, x.next) || all[0].Next != said["status"][0].Next {
					t.Errorf("the %s says %+v, want %s → %s once", what, all, x.code, x.next)
				}
			}
			if x.node.Name != "" {
				n, err := nodeDesk{d}.node(ctx, x.node)
				if first := said["status"][0]; err != nil || n.State == nodes.Running || n.Code != x.code || n.Next != first.Next || n.Text != strings.TrimPrefix(first.Text, n.State+": ") {
					t.Errorf("the node says %s %q → %s [%s], %v; the status %+v", n.State, n.Text, n.Next, n.Code, err, first)
				}
			}
			var out bytes.Buffer
			_ = (&talk{client: client, out: &out, errs: &out}).once(ctx, "/status") // it says what it does
			if want := "[" + x.code + "]"; !strings.Contains(unmarked(out.String()), want) || strings.Contains(out.String(), "FAKE") {
				t.Errorf("the chat has no %s: %s", want, &out)
			}
			if x.asks != nil {
				x.asks(t, d, x.code)
			}
		})
	}
}

// ambient are the codes about the machine and about the demo model.
var ambient = map[string]bool{"model-demo": true, "docker-unusable": true, "disk-full": true, "disk-low": true, "disk-slow": true}
