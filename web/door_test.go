package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/web"
)

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
	if got := do(t, b, "GET", w.url("/readyz"), ""); got.code != 503 || !strings.Contains(got.body, "telegram") {
		t.Errorf("readyz = %v", got)
	}
}

func TestEverythingElseNeedsLogin(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	b := browser(t)
	for _, route := range []string{
		"GET /session", "GET /status", "GET /agents", "GET /conversations", "GET /pairing", "POST /pairing", "DELETE /pairing",
		"POST /logout", "GET /chat/stream", "GET /chat/transcript", "POST /chat/messages",
	} {
		method, path, _ := strings.Cut(route, " ")
		if got := do(t, b, method, w.url(path), ""); got.code != http.StatusUnauthorized {
			t.Errorf("%s without login = %d", route, got.code)
		}
	}
	if got := do(t, b, "GET", w.url("/"), ""); got.code != http.StatusSeeOther || got.head.Get("Location") != "/login" {
		t.Errorf("/ without login = %d", got.code)
	}
	for _, path := range []string{"/terminal/transcript", "/login-link"} {
		if got := do(t, w.loggedIn(t), "GET", w.url(path), ""); got.code != http.StatusNotFound {
			t.Errorf("%s over TCP = %d", path, got.code)
		}
	}
}

func TestLoginLinkWorksOnce(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	link := <-w.links
	if strings.Contains(w.logged(), link[strings.Index(link, "token=")+6:]) {
		t.Error("the link was logged")
	}
	b := browser(t)
	for _, probe := range []struct{ method, head, value string }{{"HEAD", "X-None", ""}, {"GET", "Sec-Purpose", "prefetch"}} {
		if got := do(t, b, probe.method, link, "", probe.head, probe.value); got.code != 200 || got.head.Get("Set-Cookie") != "" {
			t.Errorf("%s %s used the link: %d %s", probe.method, probe.value, got.code, got.head.Get("Set-Cookie"))
		}
	}
	got := do(t, b, "GET", link, "")
	if c := got.head.Get("Set-Cookie"); got.code != 303 || !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Strict") {
		t.Fatalf("login = %d, cookie %q", got.code, c)
	}
	if got := do(t, b, "GET", w.url("/"), ""); got.code != 200 || !strings.Contains(got.body, "<title>claybot</title>") {
		t.Errorf("page = %d", got.code)
	}
	if got := do(t, b, "GET", link, ""); got.head.Get("Location") != "/" {
		t.Errorf("the same browser with the same link goes to %q", got.head.Get("Location"))
	}
	other := browser(t)
	if got := do(t, other, "GET", link, ""); got.code != 303 || got.head.Get("Location") != "/login?used=1" || got.head.Get("Set-Cookie") != "" {
		t.Errorf("second use = %d %v", got.code, got.head)
	}
	if got := do(t, other, "GET", w.url("/login?used=1"), ""); got.code != 200 {
		t.Errorf("login page = %d", got.code)
	}
}

func TestTokenAndBearer(t *testing.T) {
	dir := t.TempDir()
	w, _ := start(t, dir, nil)
	info, err := os.Stat(filepath.Join(dir, "web.token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("token file: %v %v", info, err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "web.token"))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(file))
	if len(token) < 43 { // 256 bit in base64
		t.Errorf("token of %d characters", len(token))
	}
	if got := do(t, browser(t), "GET", w.url("/status"), "", "Authorization", "Bearer "+token); got.code != 200 {
		t.Errorf("bearer = %d", got.code)
	}
	if got := do(t, browser(t), "GET", w.url("/status"), "", "Authorization", "Bearer "+token+"x"); got.code != 401 {
		t.Errorf("wrong bearer = %d", got.code)
	}
	b := browser(t)
	if got := do(t, b, "POST", w.url("/login"), `{"token":"`+token+`"}`); got.code != 204 {
		t.Errorf("typed token = %d %s", got.code, got.body)
	}
	if got := do(t, b, "GET", w.url("/session"), ""); got.code != 204 {
		t.Errorf("session = %d", got.code)
	}
	c := browser(t)
	if got := do(t, c, "POST", w.url("/login"), `{"token":" `+w.srv.NewLoginLink()+` "}`); got.code != 204 {
		t.Errorf("pasted link = %d %s", got.code, got.body)
	}
}

func TestSessionsSurviveRestartUntilLogout(t *testing.T) {
	dir := t.TempDir()
	w, stop := start(t, dir, nil)
	b := w.loggedIn(t)
	addr := w.srv.Addr()
	stop()
	w, stop = start(t, dir, func(c *web.Config) { c.Addr = addr })
	if got := do(t, b, "GET", w.url("/session"), ""); got.code != 204 {
		t.Errorf("after a restart = %d", got.code)
	}
	stolen := b.Jar
	cookies := stolen.Cookies(mustURL(t, w.url("/")))
	if got := do(t, b, "POST", w.url("/logout"), ""); got.code != 204 {
		t.Errorf("logout = %d", got.code)
	}
	if got := do(t, browser(t), "GET", w.url("/session"), "", "Cookie", cookies[0].String()); got.code != 401 {
		t.Errorf("the cookie after logout = %d", got.code)
	}
	stop()
	stored, err := os.ReadFile(filepath.Join(dir, "web.sessions.json"))
	if err != nil || strings.Contains(string(stored), cookies[0].Value) {
		t.Errorf("sessions file: %s, %v", stored, err)
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
	file, err := os.ReadFile(filepath.Join(dir, "web.token"))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(file))
	for name, got := range map[string]answer{
		"wrong link":  do(t, b, "GET", w.url("/login?token=guess"), ""),
		"wrong code":  do(t, b, "POST", w.url("/login"), `{"token":"guess"}`),
		"right token": do(t, b, "POST", w.url("/login"), `{"token":"`+token+`"}`),
		"token link":  do(t, b, "GET", w.url("/login?token="+token), ""),
		"bearer":      do(t, b, "GET", w.url("/status"), "", "Authorization", "Bearer "+token),
		"wrong token": do(t, b, "GET", w.url("/status"), "", "Authorization", "Bearer x"),
	} {
		if got.code != http.StatusTooManyRequests || got.head.Get("Retry-After") == "" {
			t.Errorf("%s while locked = %d", name, got.code)
		}
	}
	if got := do(t, known, "GET", w.url("/status"), ""); got.code != 200 {
		t.Errorf("who is logged in = %d", got.code)
	}
	// Behind a proxy the guesser may be somebody else.
	if got := do(t, browser(t), "GET", w.srv.NewLoginLink(), ""); got.code != 303 || got.head.Get("Location") != "/" {
		t.Errorf("a fresh link while locked = %d to %q", got.code, got.head.Get("Location"))
	}
	if got := do(t, browser(t), "POST", w.url("/login"), `{"token":"`+w.srv.NewLoginLink()+`"}`); got.code != 204 {
		t.Errorf("a fresh code while locked = %d", got.code)
	}
}

func TestHostsAndOrigins(t *testing.T) {
	w, _ := start(t, t.TempDir(), func(c *web.Config) { c.Hosts = []string{"chat.example.org"} })
	b := w.loggedIn(t)
	_, port, err := net.SplitHostPort(w.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, method, path string
		head               []string
		want               int
	}{
		{"localhost", "GET", "/healthz", []string{"Host", "localhost:" + port}, 200},
		{"IPv6", "GET", "/healthz", []string{"Host", "[::1]:" + port}, 200},
		{"own name", "GET", "/healthz", []string{"Host", "Chat.example.org"}, 200},
		{"rebound name", "GET", "/healthz", []string{"Host", "evil.example:" + port}, 421},
		{"no port", "GET", "/healthz", []string{"Host", "localhost"}, 421},
		{"foreign address", "GET", "/healthz", []string{"Host", "192.0.2.1:" + port}, 421},
		{"same origin", "GET", "/status", []string{"Origin", w.url("")}, 200},
		{"foreign read", "GET", "/status", []string{"Origin", "https://evil.example"}, 403},
		{"null origin", "GET", "/chat/stream", []string{"Origin", "null"}, 403},
		{"cross-site fetch", "GET", "/status", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"same-site fetch", "GET", "/chat/transcript", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"followed link", "GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"foreign write", "POST", "/logout", []string{"Origin", "https://evil.example"}, 403},
		{"cross-site write", "POST", "/logout", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"foreign delete", "DELETE", "/pairing", []string{"Origin", "http://localhost:1"}, 403},
		{"own write", "POST", "/logout", []string{"Origin", w.url(""), "Sec-Fetch-Site", "same-origin"}, 204},
	} {
		if got := do(t, b, tc.method, w.url(tc.path), "", tc.head...); got.code != tc.want {
			t.Errorf("%s: %s %s = %d, want %d", tc.name, tc.method, tc.path, got.code, tc.want)
		}
	}
}

func TestHeadersAndBodies(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	b := w.loggedIn(t)
	got := do(t, b, "GET", w.url("/"), "")
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
	} {
		if !strings.HasPrefix(got.head.Get(name), want) {
			t.Errorf("%s: %q", name, got.head.Get(name))
		}
	}
	if strings.Contains(got.head.Get("Content-Security-Policy"), "unsafe") || strings.Contains(got.body, "<script>") || strings.Contains(got.body, " style=") || strings.Contains(got.body, "http:") {
		t.Error("the page needs something that its policy forbids")
	}
	if again := do(t, b, "GET", w.url("/assets/app.js"), "", "If-None-Match", do(t, b, "GET", w.url("/assets/app.js"), "").head.Get("ETag")); again.code != 304 {
		t.Errorf("unchanged file = %d", again.code)
	}
	if got := do(t, b, "GET", w.url("/assets/..%2fweb.go"), ""); got.code != 404 {
		t.Errorf("outside of the assets = %d", got.code)
	}
	for name, tc := range map[string]struct {
		kind, body string
		want       int
	}{
		"no JSON type":  {"text/plain", `{"code":"x","approve":true}`, 415},
		"form":          {"application/x-www-form-urlencoded", "code=x", 415},
		"too large":     {"application/json", `{"code":"` + strings.Repeat("x", 1<<20) + `"}`, 413},
		"unknown field": {"application/json", `{"kode":"x"}`, 400},
		"no object":     {"application/json", `[`, 400},
	} {
		if got := do(t, b, "POST", w.url("/pairing"), tc.body, "Content-Type", tc.kind); got.code != tc.want {
			t.Errorf("%s = %d, want %d", name, got.code, tc.want)
		}
	}
}

func TestStreamsEndWithTheServer(t *testing.T) {
	w, stop := start(t, t.TempDir(), nil)
	b := w.loggedIn(t)
	req, err := http.NewRequestWithContext(t.Context(), "GET", w.url("/chat/stream"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() {
		t.Fatal("the stream is empty")
	}
	begin := time.Now()
	stop()
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("an open stream held the server up for %v", d)
	}
	for lines.Scan() {
	}
	if w.srv.Addr() != "" || w.srv.NewLoginLink() != "" {
		t.Error("a server that is down has an address")
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
	hc, base, err := web.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer hc.CloseIdleConnections()
	if got := do(t, hc, "GET", base+"/status", ""); got.code != 200 {
		t.Errorf("the command line without the page = %d", got.code)
	}
	if got := do(t, hc, "POST", base+"/login-link", ""); got.code != http.StatusConflict {
		t.Errorf("link without a page = %d", got.code)
	}
}

func TestBadAddressesAndOff(t *testing.T) {
	for _, addr := range []string{"no port", "127.0.0.1:99999", "203.0.113.7:8420"} {
		w, stop := start(t, t.TempDir(), func(c *web.Config) { c.Addr = addr })
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

func TestSessionsEndAndRotate(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := web.NewAuthForTest(t, dir)
		cookie, _ := a.Login(a.Code())
		if got := a.Rotate(cookie); got != "" {
			t.Error("a young session was replaced")
		}
		time.Sleep(2 * time.Hour)
		fresh := a.Rotate(cookie)
		if fresh == "" || !a.Session(fresh) || !a.Session(cookie) {
			t.Error("no overlap of the old and the new session")
		}
		if a.Rotate(cookie) != "" {
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
