package web_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/web"
)

// same is what browsers say about requests of our own page.
var same = []string{"Sec-Fetch-Site", "same-origin"}

func TestHealthNeedsNoLogin(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	b := browser(t)
	if got := do(t, b, "GET", w.url("/healthz"), ""); got.code != 200 || got.body != "ok\n" {
		t.Errorf("healthz = %v", got)
	}
	if got := do(t, b, "GET", w.url("/readyz"), ""); got.code != 200 {
		t.Errorf("readyz = %v", got)
	}
	w.mu.Lock()
	w.ready = "telegram: no success yet"
	w.mu.Unlock()
	if got := do(t, b, "GET", w.url("/readyz"), ""); got.code != 503 || got.body != "not ready\n" {
		t.Errorf("readyz = %v", got)
	}
	if got := w.ask(t, "GET", "/readyz", ""); got.code != 503 || got.body != `{"error":{"code":"connector-failing","message":"not ready: telegram: no success yet","fix":"Correct that."}}`+"\n" {
		t.Errorf("readyz for the owner = %v", got)
	}
}

func TestLoginLinkWorksOnce(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	link := <-w.links
	if strings.Contains(w.logged(), link[strings.Index(link, "token=")+6:]) {
		t.Error("the link was logged")
	}
	b := browser(t)
	// Previews use nothing up.
	for _, probe := range []struct{ method, head, value string }{
		{"HEAD", "X-None", ""}, {"GET", "Sec-Purpose", "prefetch"}, {"GET", "User-Agent", "TelegramBot (like TwitterBot)"},
	} {
		if got := do(t, b, probe.method, link, "", probe.head, probe.value); got.code != 200 || got.head.Get("Set-Cookie") != "" {
			t.Errorf("%s %s used the link: %d %s", probe.method, probe.value, got.code, got.head.Get("Set-Cookie"))
		}
	}
	got := enter(t, b, link)
	if c := got.head.Get("Set-Cookie"); got.code != 204 || !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Strict") {
		t.Fatalf("login = %d, cookie %q", got.code, c)
	}
	if got := do(t, b, "GET", w.url("/"), ""); got.code != 200 || !strings.Contains(got.body, treasure) {
		t.Errorf("page = %d", got.code)
	}
	if got := enter(t, browser(t), link); got.code != 401 || got.head.Get("Set-Cookie") != "" {
		t.Errorf("second use = %d %v", got.code, got.head)
	}
}

func TestOwnersToken(t *testing.T) {
	dir := t.TempDir()
	w, _ := start(t, dir, nil)
	info, err := os.Stat(filepath.Join(dir, "web.token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("token file: %v %v", info, err)
	}
	token := w.owner(t)
	if len(token) < 43 { // 256 bit in base64
		t.Errorf("token of %d characters", len(token))
	}
	if got := do(t, browser(t), "GET", w.url("/session"), "", "Authorization", "bearer  "+token); got.code != 200 || got.body != `{"name":"owner","scope":"admin"}`+"\n" {
		t.Errorf("bearer = %v", got)
	}
	b := browser(t)
	if got := do(t, b, "POST", w.url("/login"), `{"token":"`+token+`"}`); got.code != 204 {
		t.Errorf("typed token = %d %s", got.code, got.body)
	}
	if got := do(t, b, "GET", w.url("/session"), ""); got.code != 200 {
		t.Errorf("session = %d", got.code)
	}
	if got := do(t, browser(t), "POST", w.url("/login"), `{"token":" `+w.srv.NewLoginLink().URL+` "}`); got.code != 204 {
		t.Errorf("pasted link = %d %s", got.code, got.body)
	}
	// Addresses end up in histories and logs: the token is not taken from one.
	for _, path := range []string{"/login?token=", "/data?token=", "/data?access_token=", "/?token=", "/stream?token="} {
		got := do(t, browser(t), "GET", w.url(path+token), "")
		if got.head.Get("Set-Cookie") != "" || got.head.Get("Location") == "/" || strings.Contains(got.body, treasure) {
			t.Errorf("%s took the token: %v", path, got)
		}
	}
}

func TestSessionsSurviveRestartUntilLogout(t *testing.T) {
	dir := t.TempDir()
	w, stop := start(t, dir, lasting)
	b, other := w.loggedIn(t), w.loggedIn(t)
	addr := w.srv.Addr()
	stop()
	w, stop = start(t, dir, func(c *web.Config) { c.Addr = addr })
	for _, each := range []*http.Client{b, other} {
		if got := do(t, each, "GET", w.url("/session"), ""); got.code != 200 {
			t.Errorf("after a restart = %d", got.code)
		}
	}
	stolen := w.cookie(t, b)
	if got := do(t, b, "POST", w.url("/logout"), "", same...); got.code != 204 {
		t.Errorf("logout = %d", got.code)
	}
	if got := do(t, browser(t), "GET", w.url("/session"), "", "Cookie", stolen.String()); got.code != 401 {
		t.Errorf("the cookie after logout = %d", got.code)
	}
	if got := do(t, other, "GET", w.url("/session"), ""); got.code != 200 {
		t.Errorf("another browser after the logout of one = %d", got.code)
	}
	third := w.loggedIn(t)
	if got := do(t, third, "POST", w.url("/logout?all=perhaps"), "", same...); got.code != 400 {
		t.Errorf("logout of perhaps all = %d", got.code)
	}
	if got := do(t, third, "POST", w.url("/logout?all=1"), "", same...); got.code != 204 {
		t.Errorf("logout of all = %d", got.code)
	}
	if got := do(t, other, "GET", w.url("/session"), ""); got.code != 401 {
		t.Errorf("another browser after the logout of all = %d", got.code)
	}
	stop()
	path := filepath.Join(dir, "web.sessions.json")
	stored, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(stored), stolen.Value) {
		t.Errorf("sessions file: %s, %v", stored, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("sessions file: %v %v", info, err)
	}
}

func TestGuessingIsLocked(t *testing.T) {
	dir := t.TempDir()
	w, _ := start(t, dir, nil)
	known := w.loggedIn(t)
	b := browser(t)
	for i := range 10 {
		if got := do(t, b, "POST", w.url("/login"), fmt.Sprintf(`{"token":"guess%d"}`, i)); got.code != 401 {
			t.Fatalf("guess %d = %d", i, got.code)
		}
	}
	token := w.owner(t)
	for name, got := range map[string]answer{
		"wrong link":  enter(t, b, w.url("/login?token=guess")),
		"wrong code":  do(t, b, "POST", w.url("/login"), `{"token":"guess"}`),
		"wrong token": do(t, b, "GET", w.url("/data"), "", "Authorization", "Bearer x"),
	} {
		if got.code != http.StatusTooManyRequests || got.head.Get("Retry-After") == "" {
			t.Errorf("%s while locked = %d", name, got.code)
		}
	}
	if got := do(t, known, "GET", w.url("/data"), ""); got.code != 200 {
		t.Errorf("who is logged in = %d", got.code)
	}
	// Behind a proxy the guesser may be another person: nothing that is valid waits.
	if got := do(t, browser(t), "GET", w.url("/data"), "", "Authorization", "Bearer "+token); got.code != 200 {
		t.Errorf("a valid token while locked = %d", got.code)
	}
	if got := do(t, browser(t), "POST", w.url("/login"), `{"token":"`+token+`"}`); got.code != 204 {
		t.Errorf("the owner's token while locked = %d", got.code)
	}
	if got := enter(t, browser(t), w.srv.NewLoginLink().URL); got.code != 204 {
		t.Errorf("a fresh link while locked = %d", got.code)
	}
	if got := do(t, browser(t), "POST", w.url("/login"), `{"token":"`+w.srv.NewLoginLink().URL+`"}`); got.code != 204 {
		t.Errorf("a fresh code while locked = %d", got.code)
	}
}

func TestHeadersAndBodies(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	b := w.loggedIn(t)
	for _, path := range []string{"/", "/login", "/login/login.js", "/nowhere", "/healthz"} {
		got := do(t, b, "GET", w.url(path), "")
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'", "Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if !strings.HasPrefix(got.head.Get(name), want) {
				t.Errorf("%s: %s: %q", path, name, got.head.Get(name))
			}
		}
		if strings.Contains(got.head.Get("Content-Security-Policy"), "unsafe") || got.head.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: %v", path, got.head)
		}
	}
	for name, tc := range map[string]struct {
		method, path, kind, body string
		want                     int
		code                     string
	}{
		"no JSON type":  {"POST", "/data", "text/plain", `{"text":"x"}`, 415, "content_type"},
		"form":          {"POST", "/data", "application/x-www-form-urlencoded", "text=x", 415, "content_type"},
		"too large":     {"POST", "/data", "application/json", `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "too_large"},
		"unknown field": {"POST", "/data", "application/json", `{"texd":"x"}`, 400, "bad_request"},
		"no object":     {"POST", "/data", "application/json", `[`, 400, "bad_request"},
		"raw too large": {"PUT", "/raw", "application/octet-stream", strings.Repeat("x", 17), 413, "too_large"},
		"login":         {"POST", "/login", "application/json", `{"token":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "too_large"},
		"login form":    {"POST", "/login", "text/plain", `{"token":"x"}`, 415, "content_type"},
	} {
		got := do(t, b, tc.method, w.url(tc.path), tc.body, "Content-Type", tc.kind, "Sec-Fetch-Site", "same-origin")
		if got.code != tc.want || got.errorCode() != tc.code {
			t.Errorf("%s = %d %s, want %d", name, got.code, got.body, tc.want)
		}
	}
	if got := do(t, b, "PUT", w.url("/raw"), strings.Repeat("x", 16), "Content-Type", "application/octet-stream", "Sec-Fetch-Site", "same-origin"); got.code != 200 {
		t.Errorf("raw = %d", got.code)
	}
	if got := do(t, b, "GET", w.url("/sub/a/b"), ""); got.body != treasure+" /a/b\n" {
		t.Errorf("prefix: %s", got.body)
	}
}

// A visitor who is not logged in sees a page that needs nothing from behind the login
// and says nothing about this daemon.
func TestLoginPage(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	b := browser(t)
	page := do(t, b, "GET", w.url("/login"), "")
	if page.code != 200 || strings.Contains(page.body, "<style") || strings.Contains(page.body, " style=") || strings.Contains(page.body, "<script>") || strings.Contains(page.body, "http:") {
		t.Errorf("login page: %v", page)
	}
	parts := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page.body, -1)
	if len(parts) < 3 {
		t.Errorf("parts of the login page: %v", parts)
	}
	for _, m := range parts {
		got := do(t, b, "GET", w.url(m[1]), "")
		if got.code != 200 || !strings.HasPrefix(m[1], "/login/") || got.head.Get("Content-Type") == "" {
			t.Errorf("%s = %d %v", m[1], got.code, got.head)
		}
		if again := do(t, b, "GET", w.url(m[1]), "", "If-None-Match", got.head.Get("ETag")); again.code != 304 {
			t.Errorf("unchanged %s = %d", m[1], again.code)
		}
	}
	if got := do(t, b, "GET", w.url("/login/session"), ""); got.code != 200 || got.body != `{"in":false}`+"\n" {
		t.Errorf("without a session: %d %s", got.code, got.body)
	}
	if got := do(t, w.loggedIn(t), "GET", w.url("/login/session"), ""); got.code != 200 || got.body != `{"in":true}`+"\n" {
		t.Errorf("with a session: %d %s", got.code, got.body)
	}
	for _, name := range []string{"none.js", "..%2fweb.go", "..%2f..%2fgo.mod", "%2e%2e", "login.html%00"} {
		if got := do(t, b, "GET", w.url("/login/"+name), ""); got.code != 404 || got.errorCode() != "not_found" {
			t.Errorf("%s = %d %s", name, got.code, got.body)
		}
	}
	if got := do(t, b, "GET", w.url("/"), ""); got.code != 303 || got.head.Get("Location") != "/login" {
		t.Errorf("a page without login = %d", got.code)
	}
	for name, value := range map[string]string{"HX-Request": "true", "Accept": "text/event-stream", "Sec-Fetch-Mode": "cors"} {
		if got := do(t, b, "GET", w.url("/"), "", name, value); got.code != 401 {
			t.Errorf("a part of a page without login, %s = %d", name, got.code)
		}
	}
}

func TestStreamsEndWithTheServer(t *testing.T) {
	w, stop := start(t, t.TempDir(), nil)
	s := open(t, w.loggedIn(t), "GET", w.url("/stream"))
	s.first(t)
	stop()
	if rest := s.rest(); !strings.Contains(rest, "last words") {
		t.Errorf("the end of a stream: %q", rest)
	}
	if w.srv.Addr() != "" || w.srv.NewLoginLink().URL != "" {
		t.Error("a server that is down has an address")
	}
}

// A bug in a handler is told in the log, and not to the client.
func TestPanic(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	req, err := http.NewRequestWithContext(t.Context(), "GET", w.url("/boom"), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.owner(t))
	if resp, err := browser(t).Do(req); err == nil {
		t.Errorf("a broken handler answered %s", resp.Status)
		_ = resp.Body.Close()
	}
	if log := w.logged(); !strings.Contains(log, "a bug") || !strings.Contains(log, "GET /boom") {
		t.Errorf("logged %s", log)
	}
}

func TestTakenPort(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	dir := t.TempDir()
	w, _ := start(t, dir, func(c *web.Config) { c.Addr = l.Addr().String() })
	h := w.srv.Health()
	if h.State != connectors.StateFailing || !strings.Contains(h.Err, l.Addr().String()) || !strings.Contains(h.Err, "CLAYBOT_HTTP_ADDR") {
		t.Errorf("health %+v", h)
	}
	if got := w.ask(t, "GET", "/data", ""); got.code != 200 {
		t.Errorf("the command line without the page = %d", got.code)
	}
	if got := w.ask(t, "POST", "/login-link", ""); got.code != http.StatusConflict {
		t.Errorf("link without a page = %d", got.code)
	}
}

func TestBadAddressesAndOff(t *testing.T) {
	for _, addr := range []string{"no port", "127.0.0.1:99999", "203.0.113.7:8420"} {
		w, stop := start(t, t.TempDir(), func(c *web.Config) { c.Addr, c.Insecure = addr, true })
		if h := w.srv.Health(); h.State != connectors.StateFailing || !strings.Contains(h.Err, "CLAYBOT_HTTP_ADDR") {
			t.Errorf("%s: %+v", addr, h)
		}
		stop()
	}
	w, _ := start(t, t.TempDir(), func(c *web.Config) { c.Addr = web.Off })
	if h := w.srv.Health(); h.State != connectors.StateLive || w.srv.Addr() != "" || len(w.links) != 0 {
		t.Errorf("off: %+v at %q", h, w.srv.Addr())
	}
}

func TestLoginLinkEnds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := web.NewAuthForTest(t, dir)
		early, late := a.Code(), a.Code()
		time.Sleep(15*time.Minute - time.Second)
		if _, ok := a.Login(early); !ok {
			t.Error("refused within 15 minutes")
		}
		time.Sleep(2 * time.Second)
		if _, ok := a.Login(late); ok {
			t.Error("taken after 15 minutes")
		}
	})
}

func TestSessionsEndAndRenew(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := web.NewAuthForTest(t, dir)
		cookie, _ := a.Login(a.Code())
		if got := a.Renew(cookie); got != "" {
			t.Error("a young session was replaced")
		}
		time.Sleep(2 * time.Hour)
		fresh := a.Renew(cookie)
		if fresh == "" || !a.Session(fresh) || !a.Session(cookie) {
			t.Error("no overlap of the old and the new session")
		}
		if a.Renew(cookie) != "" {
			t.Error("a session was replaced twice")
		}
		time.Sleep(2 * time.Minute)
		if a.Session(cookie) || !a.Session(fresh) {
			t.Error("after the overlap the old one works, or the new one does not")
		}
		time.Sleep(12 * time.Hour)
		if a.Session(fresh) {
			t.Error("a session of more than 12 hours")
		}
	})
}

func TestLockEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := web.NewGuessesForTest()
		for range 9 {
			g.Wrong("a")
		}
		time.Sleep(time.Minute)
		g.Wrong("a")
		if g.Locked("a") != 0 {
			t.Error("locked by guesses of more than a minute")
		}
		for range 9 {
			g.Wrong("a")
		}
		if g.Locked("a") != 5*time.Minute || g.Locked("b") != 0 {
			t.Errorf("locked for %v, another for %v", g.Locked("a"), g.Locked("b"))
		}
		for i := range 10 { // a caller with one address of a network has all
			g.Wrong(fmt.Sprintf("2001:db8:1:2::%d", i))
		}
		if g.Locked("2001:db8:1:2:ffff::1") == 0 || g.Locked("2001:db8:1:3::1") != 0 || g.Locked("::ffff:192.0.2.1") != 0 {
			t.Error("IPv6 is not counted by network")
		}
		for i := range 5000 {
			g.Wrong(fmt.Sprint(i))
		}
		if g.People() > 1024 {
			t.Errorf("%d addresses remembered", g.People())
		}
		time.Sleep(5 * time.Minute)
		if g.Locked("a") != 0 {
			t.Error("locked for ever")
		}
	})
}
