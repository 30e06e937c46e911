package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
)

// What is configured is a node, also where a bad value leaves it out.
func TestUnmadeNodes(t *testing.T) {
	h := startDaemon(t, "model: demo\nrelay: [{name: first, file: first.jsonl}]\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	text := "model: demo\nrelay:\n  - {name: first, file: first.jsonl}\n  - {name: late, file: late.jsonl}\n  - {name: lost, url: nowhere}\n  - {file: x.jsonl}\n  - {name: first, file: twice.jsonl}\n" +
		"connectors:\n  telegram: {}\n  sales: {type: telegram}\n  foo: {type: pigeon}\nmcp:\n  both: {command: [x], url: 'http://127.0.0.1:1'}\n"
	if err := os.WriteFile(filepath.Join(h.dir, "claybot.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, ok := h.daemon.askReload(h.ctx, false); !ok || out.Failed != "" {
		t.Fatalf("%+v, %v", out, ok)
	}
	all, err := nodeDesk{h.daemon}.Nodes(h.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ kind, name, state, text string }{
		{nodes.Connector, "sales", nodes.Off, "connectors.sales: has no token"},
		{nodes.Connector, "foo", nodes.Off, "pigeon"},
		{nodes.MCP, "both", nodes.Off, "wants either command or url"},
		{nodes.Relay, "first", nodes.Running, ""},
		{nodes.Relay, "late", nodes.Running, ""},
		{nodes.Relay, "lost", nodes.Off, "is not an http or https address"},
		{nodes.Relay, "relay[3]", nodes.Off, "has no name"},
		{nodes.Connector, "telegram", nodes.Off, "connectors.telegram: has no token"},
	} {
		k := nodes.Key{Kind: want.kind, Name: want.name}
		i := slices.IndexFunc(all, func(n nodes.View) bool { return n.Key == k })
		if i < 0 || all[i].State != want.state || !strings.Contains(all[i].Text, want.text) {
			t.Errorf("%s: want %+v in %+v", k, want, all)
		}
	}
	both := nodes.Key{Kind: nodes.MCP, Name: "both"}
	if _, err := h.daemon.stores.orders.Stop(h.ctx, both, "an operator"); err != nil {
		t.Fatal(err)
	}
	n, err := nodeDesk{h.daemon}.node(h.ctx, both)
	if err != nil || n.State != nodes.Stopped || !strings.Contains(n.Text, "wants either command or url") || !n.Has(nodes.Start) {
		t.Errorf("stopped as well: %+v, %v", n, err)
	}
	said := fmt.Sprint(h.daemon.config.status())
	for _, part := range []string{"connectors.sales", "connectors.foo", "mcp.both"} {
		if !strings.Contains(said, part) {
			t.Errorf("the status has no %s: %s", part, said)
		}
	}
}

// A connector that keeps its old settings says so, with what to do, though it runs.
func TestKeptNode(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	status := keptStatus("terminal", &connectors.PermanentError{Err: errors.New("the token is wrong")})
	kept := []overview.SettingStatus{status}
	h.daemon.config.kept.Store(&kept)
	n, err := nodeDesk{h.daemon}.node(h.ctx, nodes.Key{Kind: nodes.Connector, Name: "terminal"})
	if err != nil || n.State != nodes.Running || !strings.Contains(n.Text, "the new ones were refused: the token is wrong") || n.Text != status.Text || n.Next != status.Next || n.Code != status.Code {
		t.Errorf("%+v, %v", n, err)
	}
}

// A node has the cause, the next step and the code of the finding about it; a stopped one says by whom, and how it
// is started.
func TestAdvise(t *testing.T) {
	stopped := nodes.View{Key: nodes.Key{Kind: nodes.Connector, Name: "c"}, State: nodes.Stopped, Text: "stopped; start it", Stopped: new(nodes.Order)}
	all := []nodes.View{
		{Key: nodes.Key{Kind: nodes.MCP, Name: "a"}, State: nodes.Failed, Text: "raw"},
		{Key: nodes.Key{Kind: nodes.Model, Name: "m"}, State: nodes.Failed, Text: "raw"},
		stopped,
		{Key: nodes.Key{Kind: nodes.Connector, Name: "r"}, State: nodes.Running},
		{Key: nodes.Key{Kind: nodes.Skills, Name: "skills"}, State: nodes.Failed, Text: "raw"},
		{Key: nodes.Key{Kind: nodes.Relay, Name: "off"}, State: nodes.Off, Text: "its setting", Code: "config-value"},
		{Key: nodes.Key{Kind: nodes.Relay, Name: "well"}, State: nodes.Running},
	}
	advise(all, []overview.Finding{
		{What: "MCP server a", Code: "mcp-failing", Text: "failed: it has none", Next: "install it"},
		{What: "model m", Code: "credential-refused", Text: "no", Next: "set a key"},
		{What: "c", Code: "node-stopped", Text: "stopped", Next: "start it"},
		{What: "credentials of r", Code: "credential-refused", Text: "no", Next: "copy it"},
		{What: "r", Code: "webhook-refused", Text: "another one", Next: "look"},
		{What: "skills", Code: "skills-missing", Text: "none", Next: "make the folder"},
		{What: "relay off", Code: "relay-failing", Text: "another one", Next: "look"},
	})
	for i, want := range [][3]string{
		{"it has none", "install it", "mcp-failing"},
		{"no", "set a key", "credential-refused"},
		{"stopped; start it", "", "node-stopped"},
		{"no", "copy it", "credential-refused"},
		{"none", "make the folder", "skills-missing"},
		{"its setting", "", "config-value"},
		{},
	} {
		if n := all[i]; [3]string{n.Text, n.Next, n.Code} != want {
			t.Errorf("%s: %+v, want %q", n.Key, n, want)
		}
	}
}
