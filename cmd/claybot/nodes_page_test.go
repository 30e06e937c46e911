package main

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In a browser on the machine, the form adds what only the machine may change, and its history undoes that; a token
// cannot, and is offered less.
func TestAddNodeOnThePage(t *testing.T) {
	g := newGuided(t)
	file := filepath.Join(g.dir, "claybot.yaml")
	if err := os.WriteFile(file, []byte("# mine\nrelay:\n  - name: first # kept\n    file: first.jsonl\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.kill()
	g.start()
	read := func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	version := func() string {
		_, page := g.send("GET", "/ui/nodes/add?kind=profile", "", "")
		_, after, _ := strings.Cut(page, `name="version" value="`)
		v, _, _ := strings.Cut(after, `"`)
		return v
	}
	add := func(kind string, fields ...string) (int, string) {
		form := url.Values{"kind": {kind}, "version": {version()}}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		return g.send("POST", "/ui/nodes/add", "application/x-www-form-urlencoded", form.Encode())
	}
	if code, body := add("relay", "f.name", "first", "f.file", "other.jsonl"); code != http.StatusBadRequest || !strings.Contains(body, `"f.name":`) || !strings.Contains(body, "the file has relay.first already") {
		t.Errorf("a name that is taken: %d %s", code, body)
	}
	if code, body := add("relay", "f.name", "audit"); code != http.StatusBadRequest || !strings.Contains(body, "either url or file") {
		t.Errorf("no file: %d %s", code, body)
	}
	if code, body := add("relay", "f.name", "hook", "f.url", "ftp://x", "f.secret", "FAKE-secret-for-tests-only"); code != http.StatusBadRequest || !strings.Contains(body, `"f.url":`) {
		t.Errorf("a wrong address: %d %s", code, body)
	}
	before := read()
	for what, fields := range map[string][]string{
		"a file":                  {"relay", "f.name", "audit", "f.file", "audit.jsonl"},
		"a program here":          {"mcp", "key", "shell", "f.command", "/bin/sh", "f.where", "host"},
		"a secret of the machine": {"relay", "f.name", "audit", "f.url", "https://audit.example.org", "f.secret", "file:/etc/hostname"},
		"a variable":              {"relay", "f.name", "audit", "f.url", "https://audit.example.org", "f.secret", "env:HOME"},
	} {
		if code, body := add(fields[0], fields[1:]...); code != http.StatusForbidden || read() != before {
			t.Errorf("%s: %d %s\n%s", what, code, body, read())
		}
	}
	if code, body := add("relay", "f.name", "audit", "f.url", "https://audit.example.org", "f.secret", "FAKE-secret-for-tests-only"); code != http.StatusNoContent || !strings.HasPrefix(read(), before+"  - {name: audit, url: 'https://audit.example.org', secret: 'file:claybot.secrets/") {
		t.Errorf("a relay: %d %s\n%s", code, body, read())
	}
	if code, body := add("mcp", "key", "files", "f.command", "nonesuch, --root"); code != http.StatusNoContent || !strings.Contains(read(), "mcp:\n  files: {command: [nonesuch, --root]}\n") {
		t.Errorf("an MCP server: %d %s\n%s", code, body, read())
	}
	if code, body := add("fallback", "f.name", "gpt-5-mini", "f.key", "FAKE-secret-for-tests-only"); code != http.StatusNoContent || !strings.Contains(read(), "fallback: [{name: gpt-5-mini, key: 'file:claybot.secrets/") {
		t.Errorf("a fallback: %d %s\n%s", code, body, read())
	}
	if code, body := add("profile", "key", "night", "f.match", "cron"); code != http.StatusNoContent || !strings.Contains(read(), "agents:\n  night:\n    match: [cron]\n") {
		t.Errorf("a profile: %d %s\n%s", code, body, read())
	}
	steps := url.Values{"key": {"agents.night.max_steps"}, "value": {"7"}, "kind": {"number"}, "version": {version()}}
	if code, page := g.send("GET", "/ui/nodes/profile/night", "", ""); code != http.StatusOK || !strings.Contains(page, "claybot.yaml:") || !strings.Contains(page, "agents.night.max_steps") {
		t.Errorf("its page: %d %s", code, page)
	}
	if code, body := g.send("POST", "/ui/config/set", "application/x-www-form-urlencoded", steps.Encode()); code != http.StatusNoContent || !strings.Contains(read(), "    match: [cron]\n    max_steps: 7\n") {
		t.Errorf("a key of it that was not set: %d %s\n%s", code, body, read())
	}
	for _, n := range []string{"5", "4", "3", "2", "1"} {
		if code, body := g.send("POST", "/ui/config/revert?n="+n, "application/x-www-form-urlencoded", ""); code != http.StatusNoContent {
			t.Errorf("undo %s: %d %s", n, code, body)
		}
	}
	if got := read(); strings.Contains(got, "audit") || strings.Contains(got, "nonesuch") || strings.Contains(got, "gpt-5-mini") || strings.Contains(got, "night") || !strings.Contains(got, "first.jsonl") {
		t.Errorf("after the undo:\n%s", got)
	}
	for _, set := range []string{`operators ["telegram:1"]`, "operators []"} {
		cmd := exec.Command("claybot", append([]string{"config", "set"}, strings.Fields(set)...)...)
		cmd.Dir, cmd.Env = g.dir, g.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", set, err, out)
		}
	}
	if code, body := g.send("POST", "/ui/config/revert?n=12", "application/x-www-form-urlencoded", ""); code != http.StatusForbidden || strings.Contains(read(), "telegram:1") {
		t.Errorf("an operator that the machine removed: %d %s\n%s", code, body, read())
	}
	code, body := g.send("POST", "/tokens", "application/json", `{"name":"ci","scope":"admin"}`)
	_, after, _ := strings.Cut(body, `"token":"`)
	token, _, _ := strings.Cut(after, `"`)
	form := url.Values{"kind": {"mcp"}, "version": {version()}, "key": {"files"}, "f.command": {"nonesuch"}}
	g.http = new(http.Client)
	away := []string{"Authorization", "Bearer " + token}
	if _, page := g.send("GET", "/ui/nodes/add", "", "", away...); !strings.Contains(page, "kind=webhook") || strings.Contains(page, "kind=mcp") || strings.Contains(page, "kind=relay") {
		t.Errorf("a token is offered other kinds: %d %s", code, page)
	}
	if code, body := g.send("POST", "/ui/nodes/add", "application/x-www-form-urlencoded", form.Encode(), away...); code != http.StatusForbidden || strings.Contains(read(), "nonesuch") {
		t.Errorf("a token: %d %s", code, body)
	}
}

// In a browser on the machine, the page of a node removes its whole entry, which the history brings back, but no single
// key of what only the machine may change; a token removes neither, and reads where it is done.
func TestRemoveNodeOnThePage(t *testing.T) {
	g := newGuided(t)
	file := filepath.Join(g.dir, "claybot.yaml")
	const text = "relay:\n  - name: first # kept\n    file: first.jsonl\n  - {name: second, url: 'http://127.0.0.1:1', secret: 'file:claybot.secrets/second'}\nmcp:\n  files:\n    command: [nonesuch]\n    where: workspace\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(g.dir, "claybot.secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "claybot.secrets", "second"), []byte("FAKE-secret-for-tests-only"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.kill()
	g.start()
	read := func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	remove := func(kind, name, key string, headers ...string) (int, string) {
		_, page := g.send("GET", "/ui/nodes/"+kind+"/"+name, "", "", headers...)
		_, after, there := strings.Cut(page, `id="remove-form"`)
		if !there {
			t.Errorf("the page of %s/%s has no button", kind, name)
		}
		_, after, _ = strings.Cut(after, `name="version" value="`)
		version, _, _ := strings.Cut(after, `"`)
		form := url.Values{"key": {key}, "version": {version}}
		return g.send("POST", "/ui/config/unset", "application/x-www-form-urlencoded", form.Encode(), headers...)
	}
	if code, body := remove("mcp", "files", "mcp.files.where"); code != http.StatusForbidden || read() != text {
		t.Errorf("a key: %d %s\n%s", code, body, read())
	}
	if code, body := remove("relay", "second", "relay.second"); code != http.StatusNoContent || read() != strings.Replace(text, "  - {name: second, url: 'http://127.0.0.1:1', secret: 'file:claybot.secrets/second'}\n", "", 1) {
		t.Errorf("a relay: %d %s\n%s", code, body, read())
	}
	if code, body := remove("relay", "first", "relay.first"); code != http.StatusNoContent || strings.Contains(read(), "relay") {
		t.Errorf("the last relay: %d %s\n%s", code, body, read())
	}
	if code, body := g.send("POST", "/ui/config/revert?n=2", "application/x-www-form-urlencoded", ""); code != http.StatusForbidden || !strings.Contains(body, "claybot config revert 2") {
		t.Errorf("undo of a relay that writes a file: %d %s", code, body)
	}
	cmd := exec.Command("claybot", "config", "revert", "2")
	cmd.Dir, cmd.Env = g.dir, g.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if code, body := remove("mcp", "files", "mcp.files"); code != http.StatusNoContent || strings.Contains(read(), "mcp") || !strings.Contains(read(), "first.jsonl") {
		t.Errorf("an MCP server: %d %s\n%s", code, body, read())
	}
	for _, n := range []string{"4", "1"} {
		if code, body := g.send("POST", "/ui/config/revert?n="+n, "application/x-www-form-urlencoded", ""); code != http.StatusNoContent {
			t.Errorf("undo %s: %d %s", n, code, body)
		}
	}
	before := read()
	if !strings.Contains(before, "name: second") || !strings.Contains(before, "nonesuch") {
		t.Errorf("after the undo:\n%s", before)
	}
	_, body := g.send("POST", "/tokens", "application/json", `{"name":"ci","scope":"admin"}`)
	_, after, _ := strings.Cut(body, `"token":"`)
	token, _, _ := strings.Cut(after, `"`)
	g.http = new(http.Client)
	if code, body := remove("relay", "second", "relay.second", "Authorization", "Bearer "+token); code != http.StatusForbidden || !strings.Contains(body, "claybot config unset relay.second") || read() != before {
		t.Errorf("a token: %d %s\n%s", code, body, read())
	}
}
