package configs

import (
	"errors"
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
		{"relay", "", map[string]string{"name": "log", "file": "events.jsonl"}, "{name: log, file: events.jsonl}", nil},
		{"fallback", "", map[string]string{"name": "gpt-5-mini", "provider": "openai", "key": "env:SPARE"}, "{name: gpt-5-mini, provider: openai, key: 'env:SPARE'}", nil},
		{"search", "", map[string]string{"provider": "brave", "key": "file:brave.key"}, "{provider: brave, key: 'file:brave.key'}", nil},
		{"budget", "", map[string]string{"per": "all", "every": "day", "usd": "5"}, `{per: all, every: day, usd: "5"}`, nil},
		{"budget", "", map[string]string{"per": "dish", "tokens": "1000"}, "", []string{"per"}},
		{"relay", "", nil, "", []string{"name"}},
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
			text, err := Add([]byte("log_level: info\n"), key, value)
			if err != nil {
				t.Fatal(err)
			}
			if again, ok := Written(text, key); !ok || strings.Trim(again, "[]") != strings.Trim(value, "[]") {
				t.Errorf("the file has %q", again)
			}
		})
	}
}

// An entry is added to a list in each form that a file can give it; all other lines stay as they are.
func TestAdd(t *testing.T) {
	const entry = "{name: b, file: b.log}"
	for name, tt := range map[string]struct{ text, want string }{
		"no file":           {"", "relay: [{name: b, file: b.log}]\n"},
		"no list":           {"# mine\nlog_level: info # loud\n", "# mine\nlog_level: info # loud\nrelay: [{name: b, file: b.log}]\n"},
		"an empty value":    {"relay:\n", "relay: [{name: b, file: b.log}]\n"},
		"an empty list":     {"relay: []\n", "relay: [{name: b, file: b.log}]\n"},
		"within brackets":   {"relay: [{name: a, file: a.log}]\n", "relay: [{name: a, file: a.log}, {name: b, file: b.log}]\n"},
		"brackets in lines": {"relay:\n  [\n    {name: a, file: 'a.log'}, # of a\n  ]\nlog: json\n", "relay: [{name: a, file: 'a.log'}, {name: b, file: b.log}]\nlog: json\n"},
		"lines":             {"relay:\n  - name: a # first\n    file: a.log\n\n# next\nlog_level: info\n", "relay:\n  - name: a # first\n    file: a.log\n  - {name: b, file: b.log}\n\n# next\nlog_level: info\n"},
		"lines at the key":  {"relay:\n- name: a\n  file: a.log\nlog_level: info\n", "relay:\n- name: a\n  file: a.log\n- {name: b, file: b.log}\nlog_level: info\n"},
		"Windows":           {"relay:\r\n  - name: a\r\n    file: a.log\r\n", "relay:\r\n  - name: a\r\n    file: a.log\r\n  - {name: b, file: b.log}\r\n"},
	} {
		if got, err := Add([]byte(tt.text), "relay", entry); err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, tt := range map[string]struct{ text, key, entry, want string }{
		"a profile":         {"agents:\n  default: {max_steps: 3}\n", "agents.sales", `{match: [web, "a, b"], prompt: "yes: *no"}`, "agents:\n  default: {max_steps: 3}\n  sales:\n    match: [web, \"a, b\"]\n    prompt: \"yes: *no\"\n"},
		"a connector":       {"", "connectors.sales", "{type: telegram, token: 'env:T'}", "connectors:\n  sales:\n    type: telegram\n    token: 'env:T'\n"},
		"an empty profile":  {"", "agents.sales", "{}", "agents:\n  sales: {}\n"},
		"what is set whole": {"", "mcp.files", "{command: [x]}", "mcp:\n  files: {command: [x]}\n"},
	} {
		if got, err := Add([]byte(tt.text), tt.key, tt.entry); err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := Add([]byte("model: gpt-5\n"), "model.fallback", "{name: b}"); err != nil || string(got) != "model:\n  name: gpt-5\n  fallback: [{name: b}]\n" {
		t.Errorf("a group that is written as a value: %q, %v", got, err)
	}
	if got, err := Add([]byte("agents: {default: {max_steps: 3}}\n"), "agents.sales", "{match: [web]}"); err != nil || string(got) != "agents:\n  default: {max_steps: 3}\n  sales:\n    match: [web]\n" {
		t.Errorf("a group within braces: %q, %v", got, err)
	}
	for _, text := range []string{"relay: none\n", "relay:\n  a: b\n"} {
		if got, err := Add([]byte(text), "relay", entry); !errors.Is(err, ErrByHand) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// The entry of a name in a list is set in each form that a file can give it; all other lines stay as they are.
func TestSetInList(t *testing.T) {
	const entry = "{name: b, file: new.log}"
	for name, tt := range map[string]struct{ text, was, want string }{
		"no file":            {"", "", "relay: [{name: b, file: new.log}]\n"},
		"another name":       {"relay:\n  - name: a\n    file: a.log\n# next\nlog: json\n", "", "relay:\n  - name: a\n    file: a.log\n  - {name: b, file: new.log}\n# next\nlog: json\n"},
		"within brackets":    {"relay: [{name: b, file: b.log}, {name: a, file: a.log}]\n", "{name: b, file: b.log}", "relay: [{name: b, file: new.log}, {name: a, file: a.log}]\n"},
		"brackets in lines":  {"relay:\n  [\n    {name: a, file: a.log}, # of a\n    # of b\n    {name: b, file: 'b.log'},\n  ]\n", "{name: b, file: 'b.log'}", "relay: [{name: a, file: a.log}, {name: b, file: new.log}]\n"},
		"a text of lines":    {"relay: [{name: b, file: b.log}, {name: c, file: \"c\\nd\"}]\n", "{name: b, file: b.log}", "relay: [{name: b, file: new.log}, {name: c, file: \"c\\nd\"}]\n"},
		"a comment after it": {"relay:\n  - name: b\n    file: b.log\n    # of b\n\n  # of the list\n  # as well\nlog: json\n", "{name: b, file: b.log}", "relay:\n  - {name: b, file: new.log}\n\n  # of the list\n  # as well\nlog: json\n"},
		"the only one":       {"relay:\n- name: b # mine\n  file: b.log\n", "{name: b, file: b.log}", "relay:\n- {name: b, file: new.log}\n"},
		"between":            {"relay:\n  - {name: a, file: a.log}\n  - name: b\n    file: b.log\n\n  # of c\n  - {name: c, file: c.log}\n", "{name: b, file: b.log}", "relay:\n  - {name: a, file: a.log}\n  - {name: b, file: new.log}\n\n  # of c\n  - {name: c, file: c.log}\n"},
		"Windows":            {"relay:\r\n  - {name: b, file: b.log}\r\n  - {name: c, file: c.log}\r\n", "{name: b, file: b.log}", "relay:\r\n  - {name: b, file: new.log}\r\n  - {name: c, file: c.log}\r\n"},
		"a secret":           {"relay:\n  - name: b\n    url: https://hooks.example/hooks/T0123456/abc\n    secret: plain\n", "{name: b, url: 'https://hooks.example/(secret)', secret: (secret)}", "relay:\n  - {name: b, file: new.log}\n"},
	} {
		was, there := Written([]byte(tt.text), "relay.b")
		if was != tt.was || there != (tt.was != "") || Items([]byte(tt.text))["relay.b"] != tt.was {
			t.Errorf("%s: written is %q", name, was)
		}
		got, err := Set([]byte(tt.text), "relay.b", entry)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if now, ok := Written(got, "relay.b"); now != entry || !ok {
			t.Errorf("%s: then written is %q", name, now)
		}
	}
	for text, value := range map[string]string{
		"relay: [{name: a, file: a.log}]\n": "{name: a, file: b.log}",
		"relay: []\n":                       "b.log",
		"relay: none\n":                     entry,
		"relay: [{name: b, file: b.log}, {name: b, file: c.log}]\n":  entry,
		"relay:\n  -\n    name: b\n    file: b.log\n  - {name: c}\n": entry,
	} {
		if got, err := Set([]byte(text), "relay.b", value); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got, err := Unset([]byte("relay: [{name: b, file: b.log}, {name: b, file: c.log}]\n"), "relay.b"); !errors.Is(err, ErrByHand) {
		t.Errorf("two of the name: %q, %v", got, err)
	}
	if _, _, ok := ListOf("relay.b.file"); ok || IsSecret("relay.token") || !IsSecret("relay[].secret") {
		t.Error("a key of an entry counts as the entry, or a relay as a secret")
	}
}

// What differs in a list is its entries, where each has a name of its own.
func TestParted(t *testing.T) {
	const before = "relay:\n  - {name: a, url: https://x.example/hooks/1}\n  - {name: b, file: b.log}\n"
	for after, want := range map[string]string{
		"":     "relay.a relay.b",
		before: "relay",
		"relay: [{name: b, file: b.log}, {name: a, url: https://x.example/hooks/1}]\n":                     "relay",
		"relay: [{name: c, file: c.log}, {name: a, url: https://x.example/hooks/2}]\n":                     "relay.c relay.a relay.b",
		"relay: [{name: b, file: b.log}, {name: b, file: c.log}]\n":                                        "relay",
		"relay: [{name: a, url: https://x.example/hooks/1}, {name: b, file: b.log}, {file: c.log}]\n":      "relay",
		"relay: [{name: a, url: https://x.example/hooks/1}, {name: b, file: b.log}, {name: c.d}]\n":        "relay",
		"relay: [{name: a, url: https://x.example/hooks/1}, {name: b, file: b.log}, {name: c, file: c}]\n": "relay.c",
	} {
		if got := strings.Join(Parted([]byte(before), []byte(after), []string{"log", "relay"}), " "); got != "log "+want {
			t.Errorf("%q: %s, want %s", after, got, want)
		}
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
			if f.Help.Values == "" {
				t.Errorf("%s.%s has no help", k.Name, f.Name)
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

// An entry is taken out of a list by its name; all other lines stay as they are.
func TestTakeFromList(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"no list":            {"log_level: info\n", "log_level: info\n"},
		"another name":       {"relay: [{name: a, file: a.log}]\n", "relay: [{name: a, file: a.log}]\n"},
		"the only one":       {"log_level: info\nrelay:\n  - {name: b, file: b.log}\n", "log_level: info\n"},
		"within brackets":    {"relay: [{name: a, file: a.log}, {name: b, file: b.log}]\n", "relay: [{name: a, file: a.log}]\n"},
		"the first":          {"relay:\n  - name: b # first\n    file: b.log\n  # of a\n  - name: a\n    file: a.log\n", "relay:\n  # of a\n  - name: a\n    file: a.log\n"},
		"between":            {"relay:\n- {name: a, file: a.log}\n- file: b.log\n  name: b\n\n- {name: c, file: c.log}\n", "relay:\n- {name: a, file: a.log}\n- {name: c, file: c.log}\n"},
		"the last":           {"relay:\n  - name: a\n    file: a.log\n  - name: b\n    file: b.log\n\n# next\nlog_level: info\n", "relay:\n  - name: a\n    file: a.log\n\n# next\nlog_level: info\n"},
		"brackets in lines":  {"relay:\n  [\n    {name: a, file: a.log}, # of a\n    {name: b, file: b.log},\n  ]\n", "relay: [{name: a, file: a.log}]\n"},
		"a comment after it": {"relay:\n  - {name: a, file: a.log}\n  - {name: b, file: b.log}\n  # of the list\nlog: json\n", "relay:\n  - {name: a, file: a.log}\n  # of the list\nlog: json\n"},
		"after a blank":      {"relay:\n  - name: b\n    file: b.log\n    # of b\n\n  # of a\n\n  - name: a\n    file: a.log\n", "relay:\n  # of a\n\n  - name: a\n    file: a.log\n"},
		"no comment":         {"relay:\n  - name: b\n    file: |\n      foo\n      # bar\n  # of a\n  - name: a\n    file: a.log\n", "relay:\n  # of a\n  - name: a\n    file: a.log\n"},
		"Windows":            {"relay:\r\n  - {name: a, file: a.log}\r\n  - {name: b, file: b.log}\r\n", "relay:\r\n  - {name: a, file: a.log}\r\n"},
		"no list of those":   {"relay: none\n", "relay: none\n"},
	} {
		if got, err := Unset([]byte(tt.text), "relay.b"); err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := Unset([]byte("relay:\n  -\n    name: a\n    file: a.log\n  -\n    name: b\n    file: b.log\n"), "relay.b"); !errors.Is(err, ErrByHand) {
		t.Errorf("its dash has a line of its own: %q, %v", got, err)
	}
	for key, want := range map[string]bool{"relay.b": true, "mcp.files": true, "connectors.sales": true, "agents.x": true, "relay": false, "mcp.files.url": false, "budgets": false, "model.name": false, "mcp.": false} {
		if WholeEntry(key) != want {
			t.Errorf("%s: want %v", key, want)
		}
	}
}
