package web_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/web"
)

// block keeps a file of the data directory from being written, as a full disk
// does: a directory is in its place. A full one cannot be removed either.
func block(t *testing.T, dir, name string, firmly bool) (unblock func()) {
	t.Helper()
	path := filepath.Join(dir, name)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(path, path+".aside"); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	must(os.Mkdir(path, 0o700))
	if firmly {
		must(os.Mkdir(filepath.Join(path, "x"), 0o700))
	}
	return func() {
		t.Helper()
		must(os.RemoveAll(path))
		if err := os.Rename(path+".aside", path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

const sessionsFile = "web.sessions.json"

// A full disk neither throws out who is logged in nor keeps out who has a link.
func TestFullDiskKeepsLogins(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := web.NewAuthForTest(t, dir)
		cookie, _ := a.Login(a.Code())
		time.Sleep(2 * time.Hour)
		unblock := block(t, dir, sessionsFile, true)
		fresh := a.Renew(cookie)
		if fresh == "" {
			t.Fatal("no new cookie")
		}
		late, ok := a.Login(a.Code())
		if !ok {
			t.Fatal("no login")
		}
		time.Sleep(2 * time.Minute)
		if !a.Session(fresh) || !a.Session(late) || a.Session(cookie) {
			t.Error("the new sessions do not work, or the old one does")
		}
		// As soon as there is space, they are written down.
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { a.Keep(ctx) })
		// Between two tries, so that none of them falls into unblock.
		time.Sleep(time.Minute + time.Second)
		unblock()
		time.Sleep(time.Minute)
		if b := web.NewAuthForTest(t, dir); !b.Session(fresh) || !b.Session(late) {
			t.Error("a restart forgets logins although there was space again")
		}
		cancel()
		wg.Wait()
	})
	w, _ := start(t, t.TempDir(), nil)
	defer block(t, w.dir, sessionsFile, true)()
	if got := do(t, w.loggedIn(t), "GET", w.url("/session"), ""); got.code != http.StatusOK {
		t.Errorf("logged in with a full disk = %d", got.code)
	}
}

// What ends with a full disk ends at once. Where the file can be removed, it
// stays at an end after a restart; else the answer says so.
func TestFullDiskEndsLogins(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *world, b *http.Client) answer{
		"logout": func(t *testing.T, w *world, b *http.Client) answer {
			return do(t, b, "POST", w.url("/logout"), "", same...)
		},
		"logout of all": func(t *testing.T, w *world, b *http.Client) answer {
			return do(t, b, "POST", w.url("/logout?all=1"), "", same...)
		},
		"owner": func(t *testing.T, w *world, _ *http.Client) answer {
			return w.ask(t, "POST", "/tokens/owner/rotate", "")
		},
	} {
		for _, firmly := range []bool{false, true} {
			dir := t.TempDir()
			w, stop := start(t, dir, lasting)
			b := w.loggedIn(t)
			cookie := w.cookie(t, b).String()
			unblock := block(t, dir, sessionsFile, firmly)
			got := end(t, w, b)
			if firmly && (got.code != http.StatusServiceUnavailable || got.errorCode() != "disk_full") || !firmly && got.code >= 300 {
				t.Errorf("%s, firmly %v: %d %s", name, firmly, got.code, got.body)
			}
			if got := do(t, browser(t), "GET", w.url("/session"), "", "Cookie", cookie); got.code != http.StatusUnauthorized {
				t.Errorf("%s, firmly %v: the cookie still works: %d", name, firmly, got.code)
			}
			addr := w.srv.Addr()
			if firmly {
				unblock() // there is space again before the daemon ends
			}
			stop()
			w, stop = start(t, dir, func(c *web.Config) { c.Addr = addr })
			if got := do(t, browser(t), "GET", w.url("/session"), "", "Cookie", cookie); got.code != http.StatusUnauthorized {
				t.Errorf("%s, firmly %v: the cookie works after a restart: %d", name, firmly, got.code)
			}
			stop()
		}
	}
}

// Tokens that cannot be written down stay as they are.
func TestFullDiskAndTokens(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	reader, owner := w.token(t, "reader", web.Read), w.owner(t)
	unblock := block(t, w.dir, "web.tokens.json", true)
	defer block(t, w.dir, "web.token", true)()
	for _, x := range [][2]string{{"POST", "/tokens/owner/rotate"}, {"POST", "/tokens/reader/rotate"}, {"DELETE", "/tokens/reader"}} {
		if got := w.ask(t, x[0], x[1], ""); got.code != http.StatusServiceUnavailable || got.errorCode() != "disk_full" {
			t.Errorf("%s %s = %d %s", x[0], x[1], got.code, got.body)
		}
	}
	for _, secret := range []string{reader, owner} {
		if got := do(t, browser(t), "GET", w.url("/data"), "", "Authorization", "Bearer "+secret); got.code != http.StatusOK {
			t.Errorf("a token that was not changed = %d", got.code)
		}
	}
	unblock()
	if got := w.ask(t, "DELETE", "/tokens/reader", ""); got.code != http.StatusNoContent {
		t.Errorf("with space again = %d %s", got.code, got.body)
	}
}
