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
		"telegram.tokn": "telegram.token", "foo.token": "", "mcp.files.tokens": "mcp.files.token", "loglevel": "log_level", "nothing": "",
	} {
		if got := configs.Known(key); got != (near == "+") {
			t.Errorf("%s is known: %v", key, got)
		}
		if got := configs.NearestKey(nil, key); near != "+" && got != near {
			t.Errorf("%s: %q is nearest, want %q", key, got, near)
		}
	}
}

// Names that people have chosen are those of the file.
func TestNearestName(t *testing.T) {
	const text = "mcp: {files: {command: [x]}}\nrelay: [{name: log, file: a.log}]\nagents: {night: {match: [cron]}}\nconnectors: {sales: {type: telegram}}\n"
	for key, near := range map[string]string{
		"mcp.fils.timeout": "mcp.files.timeout", "mcp.files.tiemout": "mcp.files.timeout", "mcp.fils.tiemout": "mcp.files.timeout", "mcp.fils": "mcp.files",
		"mcp.files.oauth.grnt": "", "mcp.fils.env.HOME": "mcp.files.env.HOME", "mcp.other.timeout": "", "mcp.files.nothing": "",
		"relay.lgo.file": "relay.log.file", "relay.log.fil": "relay.log.file", "relay.lgo": "relay.log", "relay.other": "",
		"agents.nigt.max_steps": "agents.night.max_steps", "agents.nigt.maxsteps": "agents.night.max_steps", "agents.defalt.prompt": "agents.default.prompt", "agents.foreground_scop": "agents.foreground_scope",
		"connectors.sale.delivery": "connectors.sales.delivery", "connectors.sale.delivry": "connectors.sales.delivery", "connectors.sales.delivry": "connectors.sales.delivery", "connectors.far.delivery": "",
	} {
		if got := configs.NearestKey([]byte(text), key); got != near {
			t.Errorf("%s: %q is nearest, want %q", key, got, near)
		}
	}
}
