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
