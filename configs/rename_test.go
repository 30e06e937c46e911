package configs

import (
	"fmt"
	"strings"
	"testing"
)

// mistyped are forms of a name with a slip.
func mistyped(name string) []string {
	i := len(name) / 2
	return []string{
		name[:i] + name[i+1:], name[:len(name)-1], name[:i] + name[i:i+1] + name[i:], name[:i] + "q" + name[i+1:],
		name[:i-1] + name[i:i+1] + name[i-1:i] + name[i+1:], name + "s", name + "qq",
	}
}

// fileWith is a file that sets the key with a path, under another name.
func fileWith(path, name string) string {
	path = strings.Replace(path, "connectors.default", "connectors.x", 1)
	group, _ := cutLast(path)
	text := "{" + name + ": x}"
	for group != "" {
		var last string
		group, last = cutLast(group)
		if own, list := strings.CutSuffix(last, "[]"); list {
			text, last = "["+text+"]", own
		}
		text = "{" + last + ": " + text + "}"
	}
	return text + "\n"
}

// A key is renamed where its mistyped form can mean nothing but a harmless key: none that says who may
// do what, where something goes or what is spent, and none that only the machine may change.
func TestRename(t *testing.T) {
	renamed := 0
	for path, k := range declarations().keys {
		for _, name := range mistyped(lastName(path)) {
			if name == lastName(path) {
				continue
			}
			text := fileWith(path, name)
			_, warnings, err := LoadText(FileName, []byte(text), func(string) (string, bool) { return "", false })
			if err != nil {
				continue // nothing starts
			}
			for _, w := range warnings {
				next, ok := w.Rename([]byte(text))
				if ok && (k.class != Harmless || localPath(path)) {
					t.Errorf("%s, mistyped, is renamed: %s", path, next)
				}
				if ok {
					renamed++
				}
			}
		}
	}
	if renamed < 300 {
		t.Errorf("%d names are renamed", renamed)
	}
	for text, want := range map[string]string{ // empty: it stays
		"log_levle: debug\n":                        "log_level: debug\n",
		"agents: {x: {debouncMs: 100}}\n":           "agents: {x: {debounceMs: 100}}\n",
		"agents: {default: {maxBtach: 2}}\n":        "agents: {default: {maxBatch: 2}}\n",
		"operator: [telegram/1]\n":                  "",
		"agents: {x: {alow: [shell]}}\n":            "",
		"web: {privat: ['127.0.0.1:80']}\n":         "",
		"prompts: {envs: [HOME]}\n":                 "",
		"http: {trusted_proxys: [10.0.0.0/8]}\n":    "",
		"http_host: [a.example]\n":                  "",
		"crn: {gates: true}\n":                      "",
		"agents: {x: {send_too: ['telegram:1']}}\n": "",
		"agents: {x: {pni: [web]}}\n":               "agents: {x: {pin: [web]}}\n",
		"agents: {x: {pqq: [web]}}\n":               "",
	} {
		_, warnings, err := LoadText(FileName, []byte(text), func(string) (string, bool) { return "", false })
		if err != nil || len(warnings) == 0 {
			t.Errorf("%s: %v, %v", text, warnings, err)
			continue
		}
		next, ok := warnings[0].Rename([]byte(text))
		if ok != (want != "") || string(next) != want {
			t.Errorf("%s: %q, want %q; %v", strings.TrimSpace(text), next, want, fmt.Sprint(warnings))
		}
	}
}
