package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/overview"
)

// The setting that is why a relay takes nothing is that of its entry, or of the list; a relay in force has none.
func TestRelaySetting(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"relay: [{name: crm, file: a.jsonl}, {name: crm, file: b.jsonl}]\n":                               {"crm": ""},
		"relay: [{name: crm, url: nowhere}, {name: crm, file: b.jsonl}]\n":                                {"crm": ""},
		"relay: [{name: crm, url: nowhere}, {name: log, file: b.jsonl}, {name: both, file: x, url: y}]\n": {"crm": "relay[0].url", "log": "", "both": "relay[2].url", "gone": "relay[0].url"},
		"relay: [{name: a, file: a.jsonl}, {nmae: b, file: b.jsonl}]\n":                                   {"a": "", "b": "relay[1].nmae"},
		"relay: {name: a}\n":                  {"a": "relay"},
		"relya: [{name: a, file: a.jsonl}]\n": {"a": "relya"},
		"language: xx\n":                      {"a": ""},
	} {
		path := filepath.Join(t.TempDir(), "claybot.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, warnings, err := configs.Load(path, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		c.Source.Warnings = warnings
		for relay, key := range want {
			if w, ofSetting := relaySetting(&c, relay); w.Key != key || ofSetting != (key != "") {
				t.Errorf("%s: %s is off by %q, want %q", text, relay, w.Key, key)
			}
		}
	}
}

// What a setting says of what is allowed is in the status, and is no finding.
func TestAdviceIsNoFinding(t *testing.T) {
	b := newSetupBench(t, brokenSetup{file: "agents: {helper: {max_steps: 7}}\n"})
	d, _ := b.runs(t.Context(), t)
	st, err := d.system.Overview.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Settings) != 1 || st.Settings[0].Text == "" || st.Settings[0].Code != "" {
		t.Errorf("the settings are %+v", st.Settings)
	}
	for _, f := range st.Findings {
		if f.Code == configs.CodeValue && f.Level != overview.LevelOK {
			t.Errorf("a finding: %+v", f)
		}
	}
}
