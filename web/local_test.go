package web_test

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

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
			if _, _, err := web.Dial(dir); !errors.Is(err, web.ErrNoDaemon) {
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
			hc, base, err := web.Dial(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := do(t, hc, "GET", base+"/status", ""); got.code != 200 || !strings.Contains(got.body, `"version":"test"`) {
				t.Errorf("status = %v", got)
			}
			if got := do(t, hc, "POST", base+"/terminal/messages", `{"id":"x","text":"hi"}`); got.code != 202 || !strings.Contains(got.body, "terminal/main/x") {
				t.Errorf("terminal = %v", got)
			}
			var link struct{ URL string }
			decode(t, do(t, hc, "POST", base+"/login-link", "").body, &link)
			if got := do(t, browser(t), "GET", link.URL, ""); got.code != 303 || got.head.Get("Location") != "/" {
				t.Errorf("login by %s = %d", link.URL, got.code)
			}
			if w.posts[0].From.UserID != web.Operator {
				t.Errorf("the terminal's user is %q", w.posts[0].From.UserID)
			}
			hc.CloseIdleConnections()
			stop()
			if _, _, err := web.Dial(dir); !errors.Is(err, web.ErrNoDaemon) {
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
	start(t, dir, nil)
	hc, base, err := web.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer hc.CloseIdleConnections()
	if got := do(t, hc, "GET", base+"/healthz", ""); got.code != 200 {
		t.Errorf("healthz = %d", got.code)
	}
}

func TestLiveSocketIsKept(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, nil)
	second, _ := start(t, dir, nil)
	if !strings.Contains(second.logged(), "another daemon answers") {
		t.Errorf("the second daemon logged %s", second.logged())
	}
	hc, base, err := web.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer hc.CloseIdleConnections()
	if got := do(t, hc, "GET", base+"/healthz", ""); got.code != 200 {
		t.Errorf("healthz = %d", got.code)
	}
}

func TestPairing(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	b := w.loggedIn(t)
	w.mu.Lock()
	w.pairings = []storage.Pairing{
		{Code: "AAAA", Connector: "telegram", UserID: "1", Name: "<b>Ann</b>"},
		{Code: "BBBB", Connector: "slack", UserID: "U2"},
		{Code: "OLD1", Connector: "slack", UserID: "U3", Expires: 1},
	}
	w.mu.Unlock()
	type lists struct {
		Pairings []storage.Pairing
		Grants   []storage.Grant
	}
	list := func() (l lists) {
		decode(t, do(t, b, "GET", w.url("/pairing"), "").body, &l)
		return l
	}
	if l := list(); len(l.Pairings) != 2 || l.Grants == nil {
		t.Errorf("pairings %+v", l)
	}
	for _, tc := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/pairing", `{"code":" AAAA ","approve":true}`, 200},
		{"POST", "/pairing", `{"code":"AAAA","approve":true}`, 404},
		{"POST", "/pairing", `{"code":"BBBB","approve":false}`, 200},
		{"POST", "/pairing", `{"code":"ZZZZ","approve":false}`, 404},
		{"POST", "/pairing", `{"code":"BBBB"}`, 400},
		{"POST", "/pairing", `{"code":"BBBB","approve":true,"subject":"x"}`, 400},
		{"POST", "/pairing", `{"connector":"slack","subject":"U9"}`, 200},
		{"DELETE", "/pairing?connector=telegram&subject=1", "", 204},
		{"DELETE", "/pairing?connector=telegram&subject=1", "", 404},
		{"DELETE", "/pairing?connector=telegram", "", 400},
	} {
		if got := do(t, b, tc.method, w.url(tc.path), tc.body); got.code != tc.want {
			t.Errorf("%s %s %s = %d %s, want %d", tc.method, tc.path, tc.body, got.code, got.body, tc.want)
		}
	}
	if l := list(); len(l.Pairings) != 0 || len(l.Grants) != 1 || l.Grants[0].Subject != "U9" {
		t.Errorf("in the end %+v", l)
	}
	w.mu.Lock()
	w.locked = true
	w.mu.Unlock()
	for _, approve := range []string{"true", "false"} {
		got := do(t, b, "POST", w.url("/pairing"), `{"code":"BBBB","approve":`+approve+`}`)
		if got.code != http.StatusTooManyRequests || !strings.Contains(got.body, "too many wrong codes; try again in some minutes") {
			t.Errorf("a code while codes are locked: %v", got)
		}
	}
	w.mu.Lock()
	w.still = "the list lets him in"
	w.mu.Unlock()
	if got := do(t, b, "DELETE", w.url("/pairing?connector=slack&subject=U9"), ""); got.code != 200 || got.body != `{"still":"the list lets him in"}`+"\n" {
		t.Errorf("revoked, but on the list: %v", got)
	}
	w.mu.Lock()
	w.refusal = "that is no id"
	w.mu.Unlock()
	if got := do(t, b, "POST", w.url("/pairing"), `{"connector":"slack","subject":"bob"}`); got.code != 400 || !strings.Contains(got.body, "that is no id") {
		t.Errorf("refused: %v", got)
	}
	if got := do(t, b, "DELETE", w.url("/pairing?connector=slack&subject=U9"), ""); got.code != 409 || !strings.Contains(got.body, "that is no id") {
		t.Errorf("refused: %v", got)
	}
	w.mu.Lock()
	w.broken = errors.New("inner detail")
	w.mu.Unlock()
	for _, path := range []string{"/status", "/pairing"} {
		if got := do(t, b, "GET", w.url(path), ""); got.code != http.StatusInternalServerError || strings.Contains(got.body, "inner detail") {
			t.Errorf("%s of a broken store = %v", path, got)
		}
	}
}

func TestAgentsAndConversations(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	b := w.loggedIn(t)
	var agents struct {
		Agents []struct {
			ID         string
			Descriptor struct{ Connector string }
		}
	}
	decode(t, do(t, b, "GET", w.url("/agents"), "").body, &agents)
	if len(agents.Agents) != 4 || agents.Agents[0].ID != "a4" || agents.Agents[3].Descriptor.Connector != "telegram" {
		t.Errorf("agents %+v", agents)
	}
	if got := do(t, b, "GET", w.url("/conversations"), "").body; got != `{"conversations":[{"id":"main","at":30},{"id":"old","at":20}]}`+"\n" {
		t.Errorf("conversations %s", got)
	}
}
