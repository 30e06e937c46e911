package configs_test

import (
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
)

func TestKnown(t *testing.T) {
	for _, key := range configs.Keys() {
		own := strings.Replace(strings.Replace(key, "agents.default.", "agents.research.", 1), "telegram.", "connectors.sales.", 1)
		if list := strings.Contains(key, "[]"); !list && (!configs.Known(key) || !configs.Known(own)) {
			t.Errorf("%s or %s is not known", key, own)
		}
	}
	for key, near := range map[string]string{
		"model": "+", "http": "+", "agents.research": "+", "connectors.sales": "+", "connectors.sales.type": "+", "connectors.sales.token": "+",
		"connectors.hook.secret": "+", "mcp.files": "+", "mcp.files.headers.Authorization": "+", "mcp.files.env.A_TOKEN": "+", "mcp.files.oauth.client_secret": "+",
		"model.headers.X-Key": "+", "model.prices.large.input": "+", "otlp.headers.Authorization": "+", "agents.research.model.key": "+", "people.anna": "+",
		"agents.research.confirm.read_secret": "+", "agents.research.workspace.image": "+",
		"model.base_ulr": "model.base_url", "agents.research.whenBsy": "agents.research.whenBusy", "connectors.sales.tokn": "connectors.sales.token",
		"telegram.tokn": "telegram.token", "foo.token": "", "mcp.files.tokens": "", "loglevel": "log_level", "nothing": "",
	} {
		if got := configs.Known(key); got != (near == "+") {
			t.Errorf("%s is known: %v", key, got)
		}
		if got := configs.NearestKey(key); near != "+" && got != near {
			t.Errorf("%s: %q is nearest, want %q", key, got, near)
		}
	}
}
