package configs_test

import (
	"testing"

	"github.com/claybot/claybot/configs"
)

func TestCheckNames(t *testing.T) {
	for entry, want := range map[string]string{
		"CLAYBOT_STORAGE_URL=postgres://x":                       "",
		"CLAYBOT_NODE_LEASE=5s":                                  "",
		"CLAYBOT_MODELS=x":                                       "",
		"PATH=/bin":                                              "",
		"CLAYBOT_NODES_SERVICE_HOST=10.0.0.1":                    "",
		"CLAYBOT_NODES_SERVICE_PORT_HTTP=8420":                   "",
		"CLAYBOT_NODES_PORT=tcp://10.0.0.1:8420":                 "",
		"CLAYBOT_NODES_PORT_8420_TCP_ADDR=10.0.0.1":              "",
		"CLAYBOT_STORAGE_UR=postgres://claybot:not-a-pw@h/x":     "CLAYBOT_STORAGE_UR: there is no such variable; perhaps CLAYBOT_STORAGE_URL is meant",
		"CLAYBOT_NODE_LEAS=5s":                                   "CLAYBOT_NODE_LEAS: there is no such variable; perhaps CLAYBOT_NODE_LEASE is meant",
		"CLAYBOT_NODES_NAME=a":                                   "CLAYBOT_NODES_NAME: there is no such variable; perhaps CLAYBOT_NODE_NAME is meant",
		"CLAYBOT_NODE_SOMETHING_ELSE_THAT_NOBODY_EVER_NAMED=a=b": "CLAYBOT_NODE_SOMETHING_ELSE_THAT_NOBODY_EVER_NAMED: there is no such variable; docs/scaling.md names those that there are",
	} {
		got := ""
		if err := configs.CheckNames([]string{"HOME=/root", entry}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}
