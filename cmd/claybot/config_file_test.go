package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
)

// putConfig sets a key as claybot config set does, whose lock ends with the process.
func putConfig(e *env, key, value string) error {
	f, err := e.configFile()
	if err != nil {
		return err
	}
	defer f.unlock()
	_, err = f.put(e, key, value, "")
	return err
}

// A change that makes the file larger than what is read is refused before anything is written, by the commands and the
// API: claybot would not start again.
func TestConfigTooLarge(t *testing.T) {
	text := "model: demo\n# " + strings.Repeat("x", 1<<20-100) + "\n"
	h := startDaemon(t, text, nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	file, prompt := filepath.Join(h.dir, "claybot.yaml"), strings.Repeat("p", 200)
	const want = "nothing was changed: with this change, the file is larger than 1048576 bytes"
	if err := putConfig(h.env, "agents.p1.prompt", prompt); exitCode(err) != exitConfig || !strings.Contains(err.Error(), want) {
		t.Errorf("by command: %v", err)
	}
	if got := h.config(400, "PUT", "/config/agents.p1.prompt", "", `{"value":"`+prompt+`"}`, nil); !strings.Contains(strings.ToLower(got), want) {
		t.Errorf("by the API: %s", got)
	}
	history, err := os.ReadFile(file + ".history")
	if got, _ := os.ReadFile(file); string(got) != text || len(history) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file has %d bytes, the history is %s, %v", len(got), history, err)
	}
	h.config(200, "PUT", "/config/log_level", "", `{"value":"debug"}`, nil) // for which there is room
}

// A change by the API or the page is refused while the daemon has settings of a file that is missing or has no key.
func TestConfigLost(t *testing.T) {
	h := startDaemon(t, "model: demo\nlimits: {runs_per_minute: 7}\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	file := filepath.Join(h.dir, "claybot.yaml")
	h.config(200, "PUT", "/config/log_level", "", `{"value":"debug"}`, nil)
	page := guide{env: h.env, ctx: h.ctx, by: "web:operator", say: func(string, ...any) {}, within: func() configs.Config { return *h.daemon.config.Load() }}
	for text, want := range map[string]string{"": "is missing", "# nothing\n": "has no key"} {
		err := os.Remove(file)
		if text != "" {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for path, method := range map[string]string{"/config/log_level": "PUT", "/config/limits": "DELETE", "/config/history/1/revert": "POST"} {
			if got := h.config(400, method, path, "", `{"value":"warn"}`, nil); !strings.Contains(got, "Nothing was changed") && !strings.Contains(got, "nothing was changed") || !strings.Contains(got, want) || !strings.Contains(got, "claybot config init") {
				t.Errorf("%q: %s %s: %s", text, method, path, got)
			}
		}
		if err := page.save(setting{key: "log_level", value: "warn"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: setup on the page: %v", text, err)
		}
		if got, _ := os.ReadFile(file); string(got) != text {
			t.Errorf("the file is %q", got)
		}
		if got := h.daemon.config.Load().Limits.RunsPerMinute; got != 7 {
			t.Errorf("in force is %d", got)
		}
	}
}

// fileEnv is an env with a configuration file in a directory, and no daemon.
func fileEnv(dir string) *env {
	vars := map[string]string{"CLAYBOT_CONFIG": filepath.Join(dir, "claybot.yaml"), "CLAYBOT_DATA_DIR": filepath.Join(dir, "data"), "HOME": dir}
	e := &env{cli: &cli{}, out: new(bytes.Buffer), err: new(bytes.Buffer)}
	e.lookup = func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	return e
}

// After a crash between any two steps of a change, the history has it if the file does.
func TestConfigCrash(t *testing.T) {
	e := fileEnv(t.TempDir())
	open := func() *configFile {
		t.Helper()
		f, err := e.configFile()
		if err == nil {
			err = f.lock(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	recorded := func(when, want string) {
		t.Helper()
		f, err := e.configFile() // without a lock, as config history does
		if err != nil {
			t.Fatal(err)
		}
		all, err := f.history()
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, c := range all {
			got += c.Key + "=" + orNone(c.After) + " "
		}
		if got != want {
			t.Errorf("%s: the history is %s, want %s", when, got, want)
		}
	}
	set := func(value string) {
		t.Helper()
		if err := putConfig(e, "log_level", value); err != nil {
			t.Fatal(err)
		}
	}
	set("debug")
	next, value := []byte("log_level: warn\nlog: json\n"), "warn"
	made := []change{{Key: "log_level", After: &value}, {Key: "log", After: new("json")}}
	f := open()
	if ok, _, err := f.announce(made); err != nil || !ok {
		t.Fatal(ok, err)
	}
	f.unlock()
	recorded("before the file", "log_level=debug ")
	if err := os.WriteFile(f.path, []byte("log_level: debug\nlanguage: de\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	recorded("and an edit by hand of another key", "log_level=debug ")
	set("info")
	recorded("and the next change", "log_level=debug log_level=info ")
	if f = open(); f.text == nil {
		t.Fatal("the file is gone")
	}
	if _, _, err := f.announce(made); err != nil {
		t.Fatal(err)
	}
	if err := f.replace(next); err != nil {
		t.Fatal(err)
	}
	f.unlock()
	recorded("after the file", "log_level=debug log_level=info log_level=warn log=json ")
	set("error")
	const all = "log_level=debug log_level=info log_level=warn log=json log_level=error "
	recorded("and the next change", all)
	// Who puts an older file back does not take changes out of the history.
	for _, text := range []string{"log_level: warn\nlog: json\n", "log_level: info\n", "log_level: debug\n"} {
		if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		recorded("after "+text, all)
	}
	// A file that cannot be replaced has no change.
	f = open()
	f.path = filepath.Join(f.path, "none")
	if _, err := f.record(made, next); err == nil {
		t.Error("a file below a file was written")
	}
	f.unlock()
	recorded("after a failure", all)
}

// Who removes a value of which the history keeps only a part learns that nothing undoes it. A secret in another entry of
// the list is no such part.
func TestConfigUnsetForGood(t *testing.T) {
	const text = "relay:\n  - {name: a, url: https://hooks.example/hooks/T0123456/abc, secret: 'env:HOOK'}\n  - {name: b, file: b.jsonl}\n"
	for key, lost := range map[string]bool{"relay.a": true, "relay.b": false, "relay": true} {
		e, f := historied(t, text, "")
		if err := (configUnsetCmd{Key: key}).Run(e); err != nil {
			t.Fatal(err)
		}
		if got := e.err.(*bytes.Buffer).String(); strings.Contains(got, "config revert cannot undo this") != lost {
			t.Errorf("%s: the command says %q", key, got)
		}
		if all, err := f.history(); err != nil || len(all) != 1 || all[0].Key != key || all[0].After != nil {
			t.Errorf("%s: the history is %+v, %v", key, all, err)
		}
		if err := f.read(); err != nil {
			t.Fatal(err)
		}
		if _, next, err := f.reverted(nil); (err != nil) != lost || !lost && !strings.HasSuffix(string(next), "  - {name: b, file: b.jsonl}\n") {
			t.Errorf("%s: the revert: %s, %v", key, next, err)
		}
	}
}

// historied is a file with a text and a history.
func historied(t *testing.T, text, history string) (*env, *configFile) {
	t.Helper()
	e := fileEnv(t.TempDir())
	f, err := e.configFile()
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{f.path: text, f.historyPath(): history} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.read(); err != nil {
		t.Fatal(err)
	}
	return e, f
}

// A history that has a list as a whole stays readable, and is undone as before.
func TestConfigHistoryOfLists(t *testing.T) {
	const text = "relay:\n  - {name: a, file: a.jsonl}\n"
	_, f := historied(t, text, `{"at":"2026-01-02T15:04:05Z","by":"ann","key":"relay","before":"[{name: a, file: a.jsonl}, {name: b, file: b.jsonl}]","after":"[{name: a, file: a.jsonl}]","from":"x"}`+"\n"+madeLine)
	if all, err := f.history(); err != nil || len(all) != 1 || all[0].Key != "relay" {
		t.Fatalf("the history is %+v, %v", all, err)
	}
	key, next, err := f.reverted(nil)
	if err != nil || key != "relay" || string(next) != "relay: [{name: a, file: a.jsonl}, {name: b, file: b.jsonl}]\n" {
		t.Errorf("the revert of %s: %s, %v", key, next, err)
	}
}

// An edit that changes several entries of a list is as many changes, each of which is undone alone.
func TestConfigEditOfLists(t *testing.T) {
	const text = "relay:\n  - {name: a, url: https://hooks.example/hooks/T0123456/abc, secret: 'env:HOOK'}\n  - {name: b, file: b.jsonl}\n  - {name: c, file: c.jsonl}\n"
	const next = "relay:\n  - {name: a, url: https://hooks.example/hooks/T0123456/abc, secret: 'env:HOOK'}\n  - {name: b, file: other.jsonl}\n  - {name: d, file: d.jsonl}\n"
	_, f := historied(t, text, "")
	keys, err := changedKeys(f.text, []byte(next))
	if err == nil {
		err = f.lock(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.unlock()
	if _, _, err := f.write(keys, []byte(next)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"relay.b", "relay.d", "relay.c"} {
		key, next, err := f.reverted(new(i + 1))
		if err != nil || key != want {
			t.Fatalf("change %d of %s: %v", i+1, key, err)
		}
		if err := f.replace(next); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(f.text); got != text {
		t.Errorf("after all reverts, the file is\n%s", got)
	}
}

// An entry of a list goes although another one, which is not valid, gets its number.
func TestConfigUnsetBeforeBroken(t *testing.T) {
	e, f := historied(t, "relay:\n  - {name: a, file: a.jsonl}\n  - {name: b}\n", "")
	if err := (configUnsetCmd{Key: "relay.a"}).Run(e); err != nil {
		t.Error(err)
	}
	if err := f.read(); err != nil || string(f.text) != "relay:\n  - {name: b}\n" {
		t.Errorf("the file is %s, %v", f.text, err)
	}
	if err := putConfig(e, "relay", "[{name: b}, {name: c}]"); err == nil {
		t.Error("a further entry that is not valid was added")
	}
}

// The next change, or start, removes what a crash has left beside the file, and nothing else.
func TestConfigLeftovers(t *testing.T) {
	for name, do := range map[string]func(e *env) error{
		"change": func(e *env) error { return putConfig(e, "log_level", "debug") },
		"start":  func(e *env) error { e.tidy(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			e := fileEnv(dir)
			left := []string{nextName("claybot.yaml"), filepath.Join("claybot.secrets", nextName("telegram.token-20260102T150405.000000000"))}
			stay := []string{"claybot.yaml", ".claybot.yaml-backup", ".claybot.yaml-configbackup", nextName("other.yaml"), "claybot.secrets/.gitignore", "claybot.secrets/telegram.token-20260102T150405.000000000"}
			if err := os.Mkdir(filepath.Join(dir, "claybot.secrets"), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, path := range slices.Concat(left, stay) {
				if err := os.WriteFile(filepath.Join(dir, path), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := do(e); err != nil {
				t.Fatal(err)
			}
			for _, path := range left {
				if _, err := os.Stat(filepath.Join(dir, path)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is left: %v", path, err)
				}
			}
			for _, path := range stay {
				if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
