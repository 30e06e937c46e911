package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/web"
)

// hidden is a proxy on the machine of claybot that hides itself, as proxy_pass of nginx does: it rewrites
// the host, and adds no header.
func hidden(t *testing.T, w *world) *httptest.Server {
	t.Helper()
	to, err := url.Parse(w.url(""))
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	p := httptest.NewServer(&httputil.ReverseProxy{Transport: tr, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
	t.Cleanup(p.Close)
	return p
}

// isHere reports whether a request of a browser counts as one from the machine.
func isHere(t *testing.T, b *http.Client, method, at string, head ...string) string {
	t.Helper()
	got := do(t, b, method, at+"/data", map[string]string{"POST": `{"text":"x"}`}[method], head...)
	var out struct{ Here string }
	if got.code != http.StatusOK {
		t.Fatalf("%s %s = %d %s", method, at, got.code, got.body)
	}
	decode(t, got.body, &out)
	return out.Here
}

// A browser that came by a hidden proxy is never on the machine, neither when it reads, which sends no
// origin, nor when a program has its cookie and claims the origin of the machine.
func TestHiddenProxy(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	p, origin := hidden(t, w), []string{"Origin", w.url("")}
	remote := browser(t)
	_, code, _ := strings.Cut(w.srv.NewLoginLink().URL, "token=")
	if got := do(t, remote, "POST", p.URL+"/login", `{"token":"`+code+`"}`, "Origin", "https://claybot.example", "Sec-Fetch-Site", "same-origin"); got.code != http.StatusNoContent {
		t.Fatalf("login = %d %s", got.code, got.body)
	}
	for _, method := range []string{"GET", "POST"} {
		if got := isHere(t, remote, method, p.URL, origin...); got != "false" {
			t.Errorf("%s by the proxy: here is %s", method, got)
		}
		if got := isHere(t, remote, method, w.url(""), origin...); got != "false" {
			t.Errorf("%s with the cookie of a session that began elsewhere: here is %s", method, got)
		}
	}
	if got := isHere(t, remote, "GET", p.URL); got != "false" {
		t.Errorf("a page by the proxy: here is %s", got)
	}
}

// A browser that has logged in on the machine stays there, also when its session is renewed and after a
// restart.
func TestHereLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a := web.NewAuthForTest(t, dir)
		here, _ := a.LoginHere(a.Code(), true)
		away, _ := a.LoginHere(a.Code(), false)
		time.Sleep(2 * time.Hour)
		renewed := []string{a.Renew(here), a.Renew(away)}
		for _, a := range []web.AuthForTest{a, web.NewAuthForTest(t, dir)} {
			if !a.Here(renewed[0]) || a.Here(renewed[1]) {
				t.Errorf("here is %v, away %v", a.Here(renewed[0]), a.Here(renewed[1]))
			}
		}
	})
}
