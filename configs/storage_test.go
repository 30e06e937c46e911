package configs

import (
	"strings"
	"testing"
)

// What makes a process one of several nodes must not be half understood: a variable
// that breaks its rule stops the start, with the variable and the rule.
func TestNodeVariables(t *testing.T) {
	tests := []struct {
		name, value string
		want        string // empty: it is taken
	}{
		{"CLAYBOT_NODE_LEASE", "10", `"10" is not a duration such as 90s or 30m, from 2s to 5m`},
		{"CLAYBOT_NODE_LEASE", "1s", `"1s" is not a duration such as 90s or 30m, from 2s to 5m`},
		{"CLAYBOT_NODE_LEASE", "-10s", "is not a duration"},
		{"CLAYBOT_NODE_LEASE", "10s", ""},
		{"CLAYBOT_NODE_LEASE", " ", ""}, // not set
		{"CLAYBOT_NODE_NAME", "a b", `"a b" is not a name of letters, digits and ._- of at most 63`},
		{"CLAYBOT_NODE_NAME", "../x", "is not a name"},
		{"CLAYBOT_NODE_NAME", "sk-test-not-a-key x", "a value that looks like a secret is not a name"},
		{"CLAYBOT_NODE_MAX_RUNS", "0", `"0" is not a whole number from 1 to 100000`},
		{"CLAYBOT_NODE_MAX_RUNS", "many", "is not a whole number"},
		{"CLAYBOT_NODE_HANDOVER", "2h", "is not a duration such as 90s or 30m, from 0s to 1h"},
		{"CLAYBOT_NODE_HANDOVER", "0s", ""},
		{"CLAYBOT_STORAGE_POOLER", "maybe", `"maybe" is not one of true, false`},
		{"CLAYBOT_STORAGE_LISTEN", "2", `"2" is not one of true, false`},
		{"CLAYBOT_STORAGE_LISTEN", "no", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			c, warnings, err := Load(write(t, "node: {lease: 20s}\n"), environ(map[string]string{tt.name: tt.value}))
			if tt.want == "" {
				if err != nil || len(warnings) != 0 {
					t.Errorf("%v, %v", err, warnings)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.name+": ") || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "ignored") {
				t.Errorf("%v, want %s: … %s", err, tt.name, tt.want)
			}
			if c.Node.Lease != 0 {
				t.Error("a configuration was returned besides")
			}
		})
	}
}
