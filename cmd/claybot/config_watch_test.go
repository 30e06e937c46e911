package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/web"
)

// A change counts once the file stays as it is from one look to the next, and once only.
func TestFileWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.yaml")
	at := time.Now().Add(-time.Hour)
	write := func(text string) {
		t.Helper()
		at = at.Add(time.Second)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("log: json\n")
	w := newFileWatch(&env{cli: &cli{}, lookup: func(name string) (string, bool) { return path, name == "CLAYBOT_CONFIG" }}, configs.VersionOf([]byte("log: json\n")))
	look := func(what string, want ...bool) {
		t.Helper()
		for i, x := range want {
			if got, err := w.changed(); got != x || err != nil {
				t.Errorf("%s, look %d: %v, %v", what, i+1, got, err)
			}
		}
	}
	look("as it was loaded", false, false, false)
	write("log: te")
	look("half written", false)
	write("log: text\n")
	look("written", false, true, false, false)
	write("log: text\n")
	look("touched", false, false, false)
	at = at.Add(-time.Second)
	write("log: josn\n") // as copies with the time of their source are
	look("another file of the same size and time", true, false)
	at = at.Add(-time.Second)
	write("log: text\n")
	look("and back", true, false)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	look("removed", false, true, false, false)
	write("log: text\n")
	look("there again", false, true, false)
	write("log: json\n")
	w.tried() // by SIGHUP
	look("reloaded", false, false, false)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "claybot.yaml is not a regular file", "", ""} {
		if changed, err := w.changed(); changed || (err != nil) != (want != "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("no file, look %d: %v, %v", i+1, changed, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write("log: json\n") // as before
	look("a file again", false, true, false)
	// A change between the load and the first look is found.
	w = newFileWatch(w.env, "version of another text")
	look("a change before the first look", false, true, false)
}

// The daemon applies a changed file by itself; one that is broken changes nothing and is in the
// status until it is right.
func TestFileChangeReloads(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(h.dir, "claybot.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done := h.daemon.config.changed()
	write("model: demo\nlimits: {runs_per_minute: 7}\n")
	select {
	case <-done:
	case <-h.ctx.Done():
		t.Fatal("the file was not read")
	}
	if got := h.daemon.config.Load().Limits.RunsPerMinute; got != 7 {
		t.Errorf("the limit is %d", got)
	}
	write("model: [\n")
	for !strings.Contains(h.get("/status"), "configuration reload failed") {
		if h.ctx.Err() != nil {
			t.Fatal("the status does not name the broken file")
		}
	}
	if got := h.daemon.config.Load().Limits.RunsPerMinute; got != 7 {
		t.Errorf("with a broken file the limit is %d", got)
	}
	// A file that cannot be read is a fault as well, which is logged once.
	path := filepath.Join(h.dir, "claybot.yaml")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(h.get("/status"), "is not a regular file") {
		if h.ctx.Err() != nil {
			t.Fatal("the status does not name the file that cannot be read")
		}
	}
	var v web.ConfigView
	h.config(200, "GET", "/config", "", "", &v)
	if !strings.Contains(v.Broken, "is not a regular file") || v.File != path || len(v.Keys) == 0 || v.Version != "" {
		t.Errorf("the configuration is %q of %s, %d keys", v.Broken, v.File, len(v.Keys))
	}
	if got := h.config(400, "PUT", "/config/log_level", "", `{"value":"debug"}`, nil); !strings.Contains(got, "is not a regular file") {
		t.Errorf("the change is answered by %s", got)
	}
	h.config(400, "GET", "/config/history", "", "", nil)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	done = h.daemon.config.changed()
	write("model: demo\nlimits: {runs_per_minute: 7}\n") // as before it broke
	select {
	case <-done:
	case <-h.ctx.Done():
		t.Fatal("the mended file was not read")
	}
	if st := h.get("/status"); strings.Contains(st, "configuration reload failed") {
		t.Errorf("the status is %s", st)
	}
}
