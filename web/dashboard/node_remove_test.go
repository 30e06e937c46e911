package dashboard

import (
	"strings"
	"testing"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// What the file has as an entry is removed there, what something else sets says where, and all others are no entries.
func TestRemovalOf(t *testing.T) {
	c := web.ConfigView{Version: "7", Keys: []web.ConfigKey{
		{Key: "relay", Origin: "claybot.yaml:2"},
		{Key: "mcp.files.url", Origin: "claybot.yaml:4"},
		{Key: "mcp.far.url", Origin: "default"},
		{Key: "connectors.sales.token", Origin: "claybot.yaml:6"},
		{Key: "telegram.token", Origin: "TELEGRAM_BOT_TOKEN"},
		{Key: "telegram.delivery", Origin: "claybot.yaml:8"},
		{Key: "slack.bot_token", Origin: "SLACK_BOT_TOKEN"},
		{Key: "agents.default.max_steps", Origin: "claybot.yaml:9"},
		{Key: "agents.ops.match", Origin: "claybot.yaml:9"},
		{Key: "http.addr", Origin: "claybot.yaml:10"},
	}}
	for _, tt := range []struct{ kind, name, typ, key, away string }{
		{nodes.Relay, "crm", "", "relay.crm", ""},
		{nodes.MCP, "files", "http", "mcp.files", ""},
		{nodes.MCP, "far", "http", "", ""},
		{nodes.Connector, "sales", "telegram", "connectors.sales", ""},
		{nodes.Connector, "telegram", "telegram", "telegram", "TELEGRAM_BOT_TOKEN"},
		{nodes.Connector, "slack", "slack", "", "SLACK_BOT_TOKEN"},
		{nodes.Connector, "web", "", "", ""},
		{nodes.Profile, "default", "react", "", ""},
		{nodes.Profile, "ops", "react", "agents.ops", ""},
		{nodes.Model, "gpt-5", "openai", "", ""},
	} {
		r := removalOf(c, nodes.View{Key: nodes.Key{Kind: tt.kind, Name: tt.name}, Type: tt.typ})
		if r.Key != tt.key || (tt.key != "") != (r.Version == "7") || (tt.away == "") != (r.Away == "") || !strings.Contains(r.Away, tt.away) {
			t.Errorf("%s/%s: %+v", tt.kind, tt.name, r)
		}
	}
}

// The question says what is lost: events that wait for a relay, and what the history cannot bring back.
func TestRemovalLoses(t *testing.T) {
	for _, tt := range []struct {
		kind, value, origin string
		waiting, undone     bool
	}{
		{nodes.Relay, "[{name: crm, file: a.jsonl}]", "claybot.yaml:2", true, true},
		{nodes.Relay, "[{name: crm, file: a.jsonl}, {name: far, url: https://a.example/(secret)}]", "claybot.yaml:2", true, true},
		{nodes.Relay, "[{name: crm, url: https://a.example/(secret)}]", "claybot.yaml:2", true, false},
		{nodes.MCP, "https://a.example/mcp", "claybot.yaml:2", false, true},
		{nodes.MCP, "https://a.example/(secret)", "claybot.yaml:2", false, false},
		{nodes.MCP, "(secret)", "A_VARIABLE", false, true},
	} {
		key := map[string]string{nodes.Relay: "relay", nodes.MCP: "mcp.crm.url"}[tt.kind]
		c := web.ConfigView{Keys: []web.ConfigKey{{Key: "mcp.crm.headers", Origin: "claybot.yaml:3", Value: "{}"}, {Key: key, Value: tt.value, Origin: tt.origin}}}
		if tt.kind == nodes.Relay {
			own, _, _ := strings.Cut(strings.Trim(tt.value, "[]"), ", {")
			c.Items = map[string]string{"relay.crm": own, "relay.far": "{name: far, url: https://a.example/(secret)}"}
		}
		r := removalOf(c, nodes.View{Key: nodes.Key{Kind: tt.kind, Name: "crm"}})
		if r.Key == "" || strings.Contains(r.Loses, "forgotten") != tt.waiting || strings.Contains(r.Loses, "undoes it") != tt.undone || strings.Contains(r.Loses, "cannot be undone") == tt.undone {
			t.Errorf("%s %s: %q", key, tt.value, r.Loses)
		}
	}
}
