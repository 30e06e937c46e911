package configs

import (
	"slices"
	"strings"
	"testing"
)

// A new entry of each kind comes from a form that the declarations make, and the file with it loads
// without a warning. What is wrong is said of its field.
func TestEntry(t *testing.T) {
	for _, tt := range []struct {
		kind, name string
		values     map[string]string
		value      string
		faults     []string
	}{
		{"telegram", "sales", map[string]string{"token": "env:SALES_TOKEN", "delivery": "direct", "api_url": ""}, "{type: telegram, token: 'env:SALES_TOKEN', delivery: direct}", nil},
		{"webhook", "orders", map[string]string{"secret": "file:orders.secret", "scheme": "github", "prompt": "{{ trigger.payload }}: \"x\""}, "", nil},
		{"mcp", "files", map[string]string{"command": "npx, -y, server"}, "{command: [npx, -y, server]}", nil},
		{"mcp", "far", map[string]string{"url": "https://mcp.example/x", "trusted": "true", "timeout": "5s"}, "{url: 'https://mcp.example/x', timeout: 5s, trusted: true}", nil},
		{"profile", "sales", map[string]string{"match": "[telegram]", "model": "gpt-5", "max_steps": "20"}, "{match: [telegram], model: gpt-5, max_steps: 20}", nil},
		{"telegram", "Sales!", map[string]string{"token": "1234567:FAKE-telegram-token-for-tests-only", "delivery": "pigeon"}, "", []string{"delivery", "name", "token"}},
		{"profile", "digits", map[string]string{"model": "123", "match": "[telegram]"}, `{match: [telegram], model: "123"}`, nil},
		{"profile", "word", map[string]string{"model": "null"}, `{model: "null"}`, nil},
		{"mcp", "files", map[string]string{"command": "[a"}, "", []string{"command"}},
		{"mcp", "quoted", map[string]string{"command": `sh, -c, "echo a, b; exec 'x'" , 'it''s, c'`}, `{command: [sh, -c, 'echo a, b; exec ''x''', 'it''s, c']}`, nil},
		{"mcp", "escaped", map[string]string{"command": `sh, "a \"b\", c", don't, d"e`}, `{command: [sh, 'a "b", c', don't, d"e]}`, nil},
		{"mcp", "open", map[string]string{"command": `sh, "a, b`}, "", []string{"command"}},
		{"mcp", "after", map[string]string{"command": `sh, "a" b`}, "", []string{"command"}},
		{"dish", "x", nil, "", []string{"kind"}},
	} {
		t.Run(tt.kind+" "+tt.name, func(t *testing.T) {
			key, value, faults := Entry(tt.kind, tt.name, tt.values)
			var got []string
			for field, why := range faults {
				got = append(got, field)
				if strings.Contains(why, "FAKE") {
					t.Errorf("it shows the secret: %s", why)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.faults) {
				t.Fatalf("faults %q", faults)
			}
			if len(got) > 0 {
				return
			}
			if tt.value != "" && value != tt.value {
				t.Errorf("value %s, want %s", value, tt.value)
			}
			text, err := Set([]byte("log_level: info\n"), key, value)
			if err != nil {
				t.Fatal(err)
			}
			if again, ok := Written(text, key); !ok || again != value {
				t.Errorf("the file has %q", again)
			}
		})
	}
}

// No form asks for what a single field cannot hold, and each secret is asked for first.
func TestEntryKinds(t *testing.T) {
	for _, k := range EntryKinds() {
		more := false
		for _, f := range k.Fields {
			if f.Form.Kind == FormGroup {
				t.Errorf("%s.%s is a group", k.Name, f.Name)
			}
			if f.Form.Kind == FormSecret && !f.Main || more && f.Main {
				t.Errorf("%s.%s stands in the wrong place", k.Name, f.Name)
			}
			more = more || !f.Main
		}
		if len(k.Fields) < 2 {
			t.Errorf("%s has %d fields", k.Name, len(k.Fields))
		}
	}
}
