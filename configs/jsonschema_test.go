package configs

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write help.tsv")

var (
	helpRow  = regexp.MustCompile("(?m)^\\| `([a-z][^`]*)` \\| (.*) \\| ?(.*?) ?\\|$")
	helpSee  = regexp.MustCompile(`[,;.]? ?\b[Ss]ee \[[^\]]*\]\([^)]*\)`)
	helpLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// helpRows returns the text of help.tsv for the guide: links, which lead nowhere outside of
// it, are plain words.
func helpRows(guide string) string {
	var b strings.Builder
	for _, m := range helpRow.FindAllStringSubmatch(guide, -1) {
		for i, cell := range m[1:] {
			if i > 0 {
				b.WriteByte('\t')
				cell = helpLink.ReplaceAllString(helpSee.ReplaceAllString(cell, ""), "$1")
			}
			b.WriteString(cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// serverRows are the rows of docs/mcp.md about the keys of a server, as those of docs/configuration.md.
func serverRows(guide string) string {
	_, table, _ := strings.Cut(guide, "| key of a server |")
	table, _, _ = strings.Cut(table, "\n\n")
	return strings.ReplaceAll(table, "\n| `", "\n| `mcp.<name>.")
}

// The help of keys is that of docs/configuration.md and docs/mcp.md, and every key has one.
func TestHelp(t *testing.T) {
	guide, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	servers, err := os.ReadFile("../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	want := helpRows(string(guide) + serverRows(string(servers)))
	if *update {
		if err := os.WriteFile("help.tsv", []byte(want), 0o644); err != nil { //nolint:gosec // part of the source
			t.Fatal(err)
		}
		helpText = want
	}
	if helpText != want {
		t.Error("help.tsv differs from docs/configuration.md: run go test -run TestHelp ./configs -update")
	}
	for _, path := range append(Keys(), "budgets", "relay", "model.fallback") {
		if HelpOf(path).Values == "" && HelpOf(path).Default == "" {
			t.Errorf("%s has no help", path)
		}
	}
	for key, part := range map[string]string{
		"agents.sales.max_steps": "model calls", "agents.sales.model.base_url": "address", "connectors.work.bot_token": "env:NAME",
		"connectors.hook.scheme": "standard", "agents.sales.workspace.ttl": "lives",
	} {
		if got := HelpOf(key).Values; !strings.Contains(got, part) {
			t.Errorf("the help of %s is %q", key, got)
		}
	}
	if strings.Contains(helpText, "](") {
		t.Error("help.tsv has links")
	}
}

// A fileSchema checks texts of files.
type fileSchema struct {
	t        testing.TB
	resolved *jsonschema.Resolved
}

func newFileSchema(t testing.TB) fileSchema {
	text, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return fileSchema{t, resolved}
}

// refuses returns why the schema refuses a text, which editors read as YAML 1.2.
func (s fileSchema) refuses(text []byte) error {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		s.t.Fatalf("%v in:\n%s", err, text)
	}
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	v = nil
	if err := json.Unmarshal(b, &v); err != nil {
		s.t.Fatal(err)
	}
	return s.resolved.Validate(v)
}

// exampleVariables are those that claybot.example.yaml names.
func exampleVariables(name string) (string, bool) {
	if name == "CLAYBOT_STORAGE_URL" {
		return "postgres://claybot@db.example.org/claybot", strings.HasPrefix(name, "CLAYBOT_STORAGE")
	}
	known := strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_SECRET") || name == "AWS_ACCESS_KEY_ID"
	return "not-real-" + name, known
}

func TestJSONSchema(t *testing.T) {
	s := newFileSchema(t)
	text, err := os.ReadFile("claybot.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.refuses(text); err != nil {
		t.Errorf("the example: %v", err)
	}
	for _, good := range []string{
		"", "# nothing", "model: gpt-5", "access: open", "http: off", "http: false", "workspaces: off", "transcription: true", "speech: off", "speech: tts-1",
		"log_level: DEBUG", "metrics: Yes", "pprof: 1", "limits: {runs_per_minute: \"20\", files_per_owner: 0}", "retention: {runs: 0, events: 36h}",
		"model: {name: gpt-5, fallback: [claude-x, {name: llama3, base_url: \"http://127.0.0.1:11434/v1\"}]}", "model: {fallback: claude-x}",
		"agents: {default: , sales: {match: [slack], deep: true, memory: off, model: {name: x1}, workspace: local}}", "agents: ", "telegram: ",
		"connectors: {work: {type: slack, receive: socket}, slack: {receive: http}, hook: {type: webhook, scheme: bearer}}",
		"mcp: {x: {url: \"https://mcp.example.org\", oauth: true, tools: {allow: get_*}}}", "web: {fetch: {allow: [example.org]}}", "web: {fetch: off}",
		"people: {ann: [telegram/1], bob: slack/U1}", "node: {name: 5}", "telegram: {rate: {chat: 5}}",
	} {
		if err := s.refuses([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
		if _, warnings := load(t, good, nil); slices.ContainsFunc(warnings, func(w Warning) bool { return strings.Contains(w.Text, "; ignored") && w.Line > 0 }) {
			t.Logf("%s: %v", good, warnings)
		}
	}
	for _, bad := range []string{
		"- a", "modle: x", "model: [a]", "model: {nmae: x}", "model: {name: {}}", "access: {mode: 5}", "access: everyone", "log_level: loud", "log: [json]",
		"data_dir: {}", "http: {addr: 8420}", "http_hosts: {}", "metrics: maybe", "metrics: 1", "limits: {runs_per_minute: -1}", "limits: {runs_per_minute: many}",
		"limits: {runs_per_minute: 1.5}", "limits: {files_per_owner: lots}", "retention: {runs: 90}", "retention: {runs: soon}", "workspaces: {cpus: many}",
		"workspaces: {memory: true}", "storage: {check_at: [3]}", "telegram: {token: \"1:a\"}", "telegram: {token: 5}", "cron: {timezone: 5}",
		"agents: {foreground_scope: none}", "agents: {sales: {max_steps: no}}", "agents: {sales: 5}", "agents: {sales: {model: {nmae: x}}}",
		"connectors: {work: {type: slack, token: \"env:X\"}}", "connectors: {work: {bot_token: \"env:X\"}}", "connectors: {Work: {type: slack}}", "connectors: [slack]",
		"budgets: {per: run}", "budgets: [{per: everybody}]", "relay: [{nmae: x}]", "mcp: {x: {comand: [a]}}", "people: [ann]", "web: {fetch: 5}", "web: {search: brave}",
		"agents: {default: {plan: {rates: {a: 5}}}}", "agents: {default: {confirm: {shell: perhaps}}}", "heartbeat: {every: 30}", "language: fr", "otlp: {interval: 5}",
	} {
		if s.refuses([]byte(bad)) == nil {
			t.Errorf("accepted: %s", bad)
		}
	}
}

// otherKinds are values of every type, as YAML; the texts at the end may have the type of a
// key and still not be what it takes.
var otherKinds = []string{"7", "1.5", "true", "[1]", "[]", "{some: thing}", "~", "some words", `"5"`}

// TestJSONSchemaAgrees puts values of every type in the place of every key of the example: what
// Load takes without a warning, the schema takes; what Load refuses for its type, it refuses.
func TestJSONSchemaAgrees(t *testing.T) {
	s := newFileSchema(t)
	changed := 0
	for group, doc := range exampleGroups(t) {
		check := func(key string, n *yaml.Node) {
			was := *n
			defer func() { *n = was }()
			for i, kind := range otherKinds {
				var value yaml.Node
				if err := yaml.Unmarshal([]byte(kind), &value); err != nil {
					t.Fatal(err)
				}
				*n = *value.Content[0]
				next, err := yaml.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}
				_, warnings, err := LoadText(FileName, next, exampleVariables)
				refused := s.refuses(next)
				own := slices.DeleteFunc(slices.Clone(warnings), func(w Warning) bool {
					return w.File == "" || !within(w.Key, key) || strings.HasPrefix(w.Text, "has no match") // of a whole profile
				})
				changed++
				if err == nil && len(warnings) == 0 && refused != nil {
					t.Errorf("%s: %s: Load takes it, the schema says: %v", key, kind, refused)
				}
				if refused == nil && len(own) > 0 && i < 7 && (was.Kind != n.Kind || was.ShortTag() != n.ShortTag()) && !patterned(key) {
					t.Errorf("%s: %s: the schema takes it, Load says: %v", key, kind, own[0])
				}
			}
		}
		walkKeys("", doc, func(key string, n *yaml.Node) {
			if key == group || strings.HasPrefix(key, group+".") || strings.HasPrefix(key, group+"[") {
				check(key, n)
			}
		})
	}
	if changed < 1500 {
		t.Errorf("only %d changes were tried", changed)
	}
}

// patterned are keys whose form some numbers have.
func patterned(key string) bool { return key == "slack.client_id" }

// exampleGroups are files with one group of the example each, or one profile.
func exampleGroups(t testing.TB) map[string]*yaml.Node {
	text, err := os.ReadFile("claybot.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*yaml.Node)
	root := doc.Content[0]
	for i := 0; i < len(root.Content); i += 2 {
		if root.Content[i].Value != "agents" {
			all[root.Content[i].Value] = &yaml.Node{Kind: yaml.MappingNode, Content: root.Content[i : i+2]}
			continue
		}
		profiles := root.Content[i+1]
		for j := 0; j < len(profiles.Content); j += 2 {
			alone := &yaml.Node{Kind: yaml.MappingNode, Content: profiles.Content[j : j+2]}
			all["agents."+profiles.Content[j].Value] = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{root.Content[i], alone}}
		}
	}
	return all
}

// walkKeys calls f with each key below n.
func walkKeys(key string, n *yaml.Node, f func(key string, n *yaml.Node)) {
	if key != "" {
		f(key, n)
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		walkKeys(joinPath(key, n.Content[i].Value), n.Content[i+1], f)
	}
	for i := 0; n.Kind == yaml.SequenceNode && i < len(n.Content); i++ {
		if n.Content[i].Kind == yaml.MappingNode {
			walkKeys(fmt.Sprintf("%s[%d]", key, i), n.Content[i], f)
		}
	}
}
