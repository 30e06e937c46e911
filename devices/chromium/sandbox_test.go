package chromium_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/chromium"
)

// A browser without a sandbox does not come about in silence, and not at all for
// an ordinary user.
func TestSandbox(t *testing.T) {
	for uid, want := range map[int]int{0: 1, 1000: 0} {
		var log bytes.Buffer
		chromium.WarnOfRoot(slog.New(slog.NewTextHandler(&log, nil)), uid)
		if got := strings.Count(log.String(), "level=WARN"); got != want || want > 0 && !strings.Contains(log.String(), "without its sandbox") {
			t.Errorf("uid %d: %s", uid, log.String())
		}
	}
	root := os.Getuid() == 0
	dir := t.TempDir()
	path, args := filepath.Join(dir, "chromium"), filepath.Join(dir, "args")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"$@\" >> '"+args+"'\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	hosts, err := devices.ParseHosts([]string{"a.test"})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	b := chromium.Browser{Path: path, Log: slog.New(slog.NewTextHandler(&log, nil))}
	d, err := b.Open(t.Context(), devices.Spec{URL: "http://a.test/", Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Starter().Launch(t.Context()); err == nil {
			t.Fatal("a browser that ends at once is launched")
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(args)
	if err != nil || !strings.Contains(string(got), "--headless") {
		t.Fatalf("it was started with %s, %v", got, err)
	}
	if strings.Contains(string(got), "--no-sandbox") != root {
		t.Errorf("root: %v, started with %s", root, got)
	}
	if got := strings.Count(log.String(), "without its sandbox"); got > 1 || (got == 1) != root {
		t.Errorf("root: %v, %d warnings", root, got)
	}
}
