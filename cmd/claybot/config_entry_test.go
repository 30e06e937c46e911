package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// What the form of a kind offers over the network can be set over the network: MCP servers, addresses and paths
// were offered and always refused.
func TestConfigEntryOffersWhatItTakes(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	desk := configDesk{h.daemon}
	view, err := desk.Configuration(h.ctx)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, k := range view.Kinds {
		kinds = append(kinds, k.Name)
		for i, x := range k.Fields {
			value := "1"
			switch {
			case len(x.Words) > 0:
				value = x.Words[0]
			case x.Kind == "secret":
				value = "FAKE-secret-for-tests-only"
			}
			out, err := desk.ChangeConfig(h.ctx, web.ConfigEdit{Kind: k.Name, Key: fmt.Sprintf("x%d", i), Fields: map[string]string{x.Key: value}})
			var problem *web.Problem
			if errors.As(err, &problem) && problem.Code == "values" { // the file would be wrong, not the caller
				continue
			}
			if err != nil {
				t.Errorf("%s.%s: %v", k.Name, x.Key, err)
				continue
			}
			if _, err := desk.RevertConfig(h.ctx, out.Changes[0].N, "ann", ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"telegram", "slack", "discord", "webhook", "profile", "fallback", "search", "budget"}; !slices.Equal(kinds, want) {
		t.Errorf("kinds %q, want %q", kinds, want)
	}
	if all := entryKinds(true); len(all) != len(kinds)+2 {
		t.Errorf("on the machine: %d kinds", len(all))
	}
}

// A fault of callback_secret stands at that field, never at callback.
func TestFaultOfEntryAtItsField(t *testing.T) {
	edit := web.ConfigEdit{Kind: "webhook", Key: "connectors.a", Fields: map[string]string{"callback": "x", "callback_secret": "y", "secret": "z"}}
	for range 20 {
		var problem *web.Problem
		err := ofEntry(edit, &web.Problem{Fields: map[string]string{"value": "connectors.a.callback_secret: want env:NAME"}})
		if !errors.As(err, &problem) || problem.Fields["callback_secret"] == "" {
			t.Fatalf("the fault stands at %v", problem.Fields)
		}
	}
}

// Each of several faults stands at its field.
func TestFaultsOfEntryAtTheirFields(t *testing.T) {
	edit := web.ConfigEdit{Kind: "relay", Key: "relay", Fields: map[string]string{"url": "ftp://x", "secret": "y", "name": "!"}}
	var problem *web.Problem
	err := ofEntry(edit, &web.Problem{Fields: map[string]string{"value": "nothing was changed: c.yaml:2: relay[1].url: no address\nc.yaml:2: relay[1].secret: want env:NAME"}})
	if !errors.As(err, &problem) || len(problem.Fields) != 2 || !strings.Contains(problem.Fields["url"], "no address") || problem.Fields["secret"] != "c.yaml:2: relay[1].secret: want env:NAME" {
		t.Errorf("the faults stand at %q", problem.Fields)
	}
}

// A form adds a node of a kind in one change, which its revert undoes: a secret goes into a file of its own, what is
// wrong is said of its field, and then nothing is written, no secret either.
func TestConfigEntry(t *testing.T) {
	h := startDaemon(t, "# mine\nmodel: demo\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	file, secrets := filepath.Join(h.dir, "claybot.yaml"), filepath.Join(h.dir, "claybot.secrets")
	desk := configDesk{h.daemon}
	const token = "1234567:FAKE-telegram-token-for-tests-only"
	for _, tt := range []struct {
		name   string
		edit   web.ConfigEdit
		fields string // that are wrong
	}{
		{"a name", web.ConfigEdit{Kind: "telegram", Key: "Sales", Fields: map[string]string{"token": token}}, "name"},
		{"a word", web.ConfigEdit{Kind: "telegram", Key: "sales", Fields: map[string]string{"token": token, "delivery": "pigeon"}}, "delivery"},
		{"what the schema refuses", web.ConfigEdit{Kind: "webhook", Key: "orders", Fields: map[string]string{"max_body": "99g"}}, "max_body"},
		{"a profile that is there", web.ConfigEdit{Kind: "profile", Key: "default"}, "name"},
		{"nothing", web.ConfigEdit{Kind: "budget"}, "per"},
		{"no kind", web.ConfigEdit{Kind: "dish", Key: "x"}, "kind"},
	} {
		_, err := desk.ChangeConfig(h.ctx, tt.edit)
		var problem *web.Problem
		if !errors.As(err, &problem) || len(problem.Fields) != 1 || problem.Fields[tt.fields] == "" || strings.Contains(problem.Fields[tt.fields], "FAKE") {
			t.Errorf("%s: %v, %+v", tt.name, err, problem)
		}
	}
	if list, err := filepath.Glob(filepath.Join(secrets, "connectors.*")); err != nil || len(list) > 0 {
		t.Errorf("secrets of refused entries are left: %v, %v", list, err)
	}
	out, err := desk.ChangeConfig(h.ctx, web.ConfigEdit{Kind: "webhook", Key: "sales", Fields: map[string]string{"secret": "FAKE-webhook-secret-for-tests", "scheme": "github"}, By: "ann"})
	if err != nil || len(out.Changes) != 1 || out.Changes[0].Key != "connectors.sales" || out.Changes[0].By != "ann" {
		t.Fatalf("%+v, %v", out, err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "  sales:\n    type: webhook\n    scheme: github\n    secret: 'file:claybot.secrets/") || strings.Contains(string(text), "FAKE") || !strings.HasPrefix(string(text), "# mine\n") {
		t.Fatalf("the file is %s, %v", text, err)
	}
	if s, ok := h.daemon.config.Load().Connectors.Instance("sales"); !ok || s.Off() != "" {
		t.Errorf("the daemon has not the new connector: %v", s)
	}
	if list, err := filepath.Glob(filepath.Join(secrets, "connectors.sales.secret*")); err != nil || len(list) != 1 {
		t.Errorf("the secrets are %v, %v", list, err)
	}
	_, err = desk.ChangeConfig(h.ctx, web.ConfigEdit{Kind: "slack", Key: "sales"})
	var problem *web.Problem
	if !errors.As(err, &problem) || problem.Fields["name"] == "" {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, err := desk.RevertConfig(h.ctx, out.Changes[0].N, "ann", ""); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(file); err != nil || strings.Contains(string(text), "sales") {
		t.Errorf("after the undo, the file is %s, %v", text, err)
	}
}

// Over the API, nodes are added, removed and brought back while claybot runs, each as one change of the history.
func TestEntriesOverTheAPI(t *testing.T) {
	h := startDaemon(t, "model: demo\nrelay:\n  - {name: stays, file: stays.jsonl}\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	there := func(k nodes.Key) bool {
		_, err := nodeDesk{h.daemon}.node(h.ctx, k)
		return err == nil
	}
	for _, tt := range []struct{ kind, body, key, changes string }{
		{nodes.Relay, `{"fields":{"name":"crm","file":"crm.jsonl"}}`, "relay.crm", "relay.crm"},
		{nodes.MCP, `{"name":"crm","fields":{"url":"http://127.0.0.1:1"}}`, "mcp.crm", "mcp.crm"},
		{nodes.Profile, `{"name":"crm","fields":{"match":"web","max_steps":"7"}}`, "agents.crm", "agents.crm"},
		{nodes.Connector, `{"name":"crm","fields":{"secret":"` + base64.StdEncoding.EncodeToString(make([]byte, 32)) + `"}}`, "connectors.crm", "connectors.crm"},
	} {
		kind := map[string]string{nodes.Relay: "relay", nodes.Connector: "webhook"}[tt.kind]
		if kind == "" {
			kind = tt.kind
		}
		k := nodes.Key{Kind: tt.kind, Name: "crm"}
		var added, removed, back web.ConfigChanged
		h.config(200, "POST", "/config/entries/"+kind, "", tt.body, &added)
		if len(added.Changes) != 1 || added.Changes[0].Key != tt.changes || len(added.Restart) != 0 || !there(k) {
			t.Errorf("%s: added with %+v, there: %v", k, added, there(k))
		}
		h.config(412, "DELETE", "/config/"+tt.key, "0", "", nil)
		h.config(200, "DELETE", "/config/"+tt.key, added.Version, "", &removed)
		if len(removed.Changes) != 1 || removed.Changes[0].Key != tt.changes || len(removed.Restart) != 0 || there(k) {
			t.Errorf("%s: removed with %+v, there: %v", k, removed, there(k))
			continue
		}
		h.config(200, "POST", fmt.Sprintf("/config/history/%d/revert", removed.Changes[0].N), "", "", &back)
		if len(back.Restart) != 0 || !there(k) {
			t.Errorf("%s: undone with %+v, there: %v", k, back, there(k))
		}
		if !there(nodes.Key{Kind: nodes.Relay, Name: "stays"}) {
			t.Errorf("%s: another node is gone", k)
		}
	}
	if got := h.config(400, "POST", "/config/entries/pigeon", "", `{"name":"a","fields":{}}`, nil); !strings.Contains(got, "no such kind") {
		t.Errorf("another kind: %s", got)
	}
	if got := h.config(400, "DELETE", "/config/relay.gone", "", "", nil); !strings.Contains(got, "there is no key") {
		t.Errorf("no such relay: %s", got)
	}
	if got := h.config(400, "PUT", "/config/relay.stays.file", "", `{"value":"other.jsonl"}`, nil); !strings.Contains(got, "change the entry relay.stays as a whole") {
		t.Errorf("a key of a relay: %s", got)
	}
}

// A relay with a secret in its address makes its own removal final, which the answer says, and that of no other relay.
func TestSecretOfAnotherEntry(t *testing.T) {
	h := startDaemon(t, "model: demo\nrelay:\n  - {name: hook, url: 'http://127.0.0.1:1/hooks/FAKE-path', secret: 'env:HOOK'}\n  - {name: crm, file: crm.jsonl}\n", map[string]string{"HOOK": "FAKE-secret"})
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	for _, tt := range []struct {
		key   string
		final bool
	}{{"relay.crm", false}, {"relay.hook", true}} {
		var out web.ConfigChanged
		h.config(200, "DELETE", "/config/"+tt.key, "", "", &out)
		if len(out.Changes) != 1 || out.Changes[0].Key != tt.key || out.Changes[0].After != nil || strings.Contains(strings.Join(out.Warnings, " "), tt.key+" had a secret") != tt.final {
			t.Errorf("%s: removed with %+v", tt.key, out)
			continue
		}
		revert, code := fmt.Sprintf("/config/history/%d/revert", out.Changes[0].N), 200
		if tt.final {
			code = 409
		}
		h.config(code, "POST", revert, "", "", nil)
	}
	if c := h.daemon.config.Load(); len(c.Telemetry.Relay) != 1 || c.Telemetry.Relay[0].Name != "crm" {
		t.Errorf("the relays are %+v", c.Telemetry.Relay)
	}
}
