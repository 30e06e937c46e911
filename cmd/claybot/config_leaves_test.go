package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
)

// A change with which stored data is no longer found says so, and how to take it along; others say nothing.
func TestLeavesBehind(t *testing.T) {
	dir := t.TempDir()
	full, next, other := filepath.Join(dir, "full"), filepath.Join(dir, "next"), filepath.Join(dir, "other")
	for _, x := range []string{full, other} {
		if err := os.Mkdir(x, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(full, "claybot.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "postgres://a.example/claybot", "B": "postgres://b.example/claybot"}[name]
		return v, ok
	}
	load := func(text string) configs.Config {
		c, warnings, err := configs.LoadText("claybot.yaml", []byte(text), env)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%s: %v, %v", text, warnings, err)
		}
		return c
	}
	at := "data_dir: " + full + "\n"
	for _, tt := range []struct{ before, after, key, text, next string }{
		{at, "data_dir: " + next, "data_dir", "does not find them", "mv " + full + " " + next},
		{at, "data_dir: " + other, "data_dir", "with what " + other + " has", "to stay with " + full + ": claybot config revert"},
		{"data_dir: " + next, "data_dir: " + other, "", "", ""}, // nothing is stored yet
		{at, at + "storage: {url: env:A}", "storage.url", "does not find them", "claybot import " + full},
		{at + "storage: {url: env:A}", at + "storage: {url: env:B}", "storage.url", "does not find them", "claybot export"},
		{at + "storage: {url: env:A}", at, "storage.url", "does not find them", "claybot export"},
		{"data_dir: " + next, "data_dir: " + next + "\nstorage: {url: env:A}", "", "", ""},
		{at + "storage: {url: env:A}\nfiles: {url: 's3://one'}", at + "storage: {url: env:A}\nfiles: {url: 's3://two'}", "files.url", "does not find them", "docs/files.md"},
		{at, at + "workspaces: {provider: local}", "workspaces.provider", "do not find the files", "claybot config revert"},
		{at, at + "workspaces: {per: owner}", "workspaces.per", "do not find the files", "claybot config revert"},
		{"data_dir: " + next, "data_dir: " + next + "\nworkspaces: {provider: local}\nsessions: {group: shared}", "", "", ""},
		{at + "sessions: {threads: own}", at + "sessions: {threads: shared}", "sessions.threads", "all share one conversation", "claybot config revert"},
		{at, at + "sessions: {group: shared}", "sessions.group", "all share one conversation", "claybot config revert"},
		{at + "sessions: {group: shared}", at + "sessions: {group: own}", "sessions.group", "each member of a group has a conversation of its own", "claybot config revert"},
		{at + "model: {name: m1, base_url: 'http://llm.example/v1'}", at + "model: {name: m1}", "model.base_url", "goes to api.openai.com, where it went to llm.example", "claybot config revert"},
		{at + "model: {name: m1, base_url: 'http://llm.example/v1'}", at + "model: {name: m1, base_url: 'http://other.example/v1'}", "", "", ""}, // which the change names
		{at + "model: {name: m1}", at + "model: {name: m2}", "", "", ""},
		{at, at + "log_level: debug\nlimits: {runs_per_minute: 3}", "", "", ""},
	} {
		all := leavesBehind(load(tt.before), load(tt.after))
		switch {
		case tt.key == "" && len(all) > 0, tt.key != "" && len(all) != 1:
			t.Errorf("%q to %q: %v", tt.before, tt.after, all)
		case tt.key != "" && (all[0].Key != tt.key || !strings.Contains(all[0].Text, tt.text) || !strings.Contains(all[0].Next, tt.next)):
			t.Errorf("%q to %q: %+v", tt.before, tt.after, all[0])
		}
	}
}
