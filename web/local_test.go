package web_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/client"
	"github.com/claybot/claybot/web"
)

func TestSocketIsTheOwners(t *testing.T) {
	for name, dir := range map[string]string{
		"short": t.TempDir(),
		"long":  filepath.Join(t.TempDir(), strings.Repeat("d", 100)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Dial(dir); !errors.Is(err, client.ErrNoDaemon) {
				t.Errorf("Dial without a daemon = %v", err)
			}
			w, stop := start(t, dir, nil)
			path := filepath.Join(dir, "claybot.sock")
			if b, err := os.ReadFile(path + ".path"); err == nil {
				path = strings.TrimSpace(string(b))
				if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("directory of the socket: %v %v", info, err)
				}
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("socket: %v %v", info, err)
			}
			for _, tc := range []struct{ method, path string }{{"GET", "/data"}, {"DELETE", "/data"}, {"GET", "/local"}} {
				got := w.ask(t, tc.method, tc.path, "")
				var out struct{ Name, User string }
				decode(t, got.body, &out)
				if got.code != 200 || out.Name != "owner" || out.User != web.Operator {
					t.Errorf("%s %s = %d %s", tc.method, tc.path, got.code, got.body)
				}
			}
			if got := w.ask(t, "GET", "/session", ""); got.body != `{"name":"owner","scope":"admin"}`+"\n" {
				t.Errorf("session = %v", got)
			}
			if got := w.ask(t, "GET", "/nowhere", ""); got.code != 404 || got.errorCode() != "not_found" {
				t.Errorf("unknown path = %v", got)
			}
			var link struct{ URL string }
			decode(t, w.ask(t, "POST", "/login-link", "").body, &link)
			if got := enter(t, browser(t), link.URL); got.code != 204 {
				t.Errorf("login by %s = %d", link.URL, got.code)
			}
			stop()
			if _, err := client.Dial(dir); !errors.Is(err, client.ErrNoDaemon) {
				t.Errorf("Dial after the end = %v", err)
			}
			left, err := os.ReadDir(os.TempDir())
			if err != nil || len(left) != 0 {
				t.Errorf("left in the temporary directory: %v %v", left, err)
			}
		})
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "claybot.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as after kill -9
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	w, _ := start(t, dir, nil)
	if got := w.ask(t, "GET", "/healthz", ""); got.code != 200 {
		t.Errorf("healthz = %d", got.code)
	}
}

func TestLiveSocketIsKept(t *testing.T) {
	dir := t.TempDir()
	w, _ := start(t, dir, nil)
	second, _ := start(t, dir, nil)
	if !strings.Contains(second.logged(), "another daemon answers") {
		t.Errorf("the second daemon logged %s", second.logged())
	}
	if got := w.ask(t, "GET", "/healthz", ""); got.code != 200 {
		t.Errorf("healthz = %d", got.code)
	}
}
