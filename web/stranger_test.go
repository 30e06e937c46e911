package web_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claybot/claybot/web"
)

// knocks are requests with all kinds of credentials, origins and hosts, and how
// they are answered. Whatever is refused shows nothing and changes nothing.
var knocks = []struct {
	name, method, path, who string
	head                    []string
	want                    int
	code                    string // of the error
}{
	{"anonymous reads", "GET", "/data", "", nil, 401, "login"},
	{"anonymous looks", "HEAD", "/data", "", nil, 401, "-"},
	{"anonymous writes", "POST", "/data", "", nil, 401, "login"},
	{"anonymous deletes", "DELETE", "/data", "", nil, 401, "login"},
	{"anonymous puts", "PUT", "/raw", "", nil, 401, "login"},
	{"anonymous streams", "GET", "/stream", "", []string{"Accept", "text/event-stream"}, 401, "login"},
	{"anonymous below a prefix", "GET", "/sub/x", "", nil, 401, "login"},
	{"anonymous lists tokens", "GET", "/tokens", "", nil, 401, "login"},
	{"anonymous creates a token", "POST", "/tokens", "", nil, 401, "login"},
	{"anonymous rotates", "POST", "/tokens/owner/rotate", "", nil, 401, "login"},
	{"anonymous revokes", "DELETE", "/tokens/reader", "", nil, 401, "login"},
	{"anonymous logs out", "POST", "/logout", "", nil, 401, "login"},
	{"anonymous asks for the session", "GET", "/session", "", nil, 401, "login"},
	{"anonymous on a page", "GET", "/", "", nil, 303, "-"},
	{"what anyone may see", "GET", "/open", "", nil, 200, ""},

	{"wrong token", "GET", "/data", "wrong", nil, 401, "login"},
	{"revoked token", "GET", "/data", "revoked", nil, 401, "login"},
	{"rotated token", "POST", "/data", "rotated", nil, 401, "login"},
	{"wrong cookie", "GET", "/data", "wrong cookie", nil, 401, "login"},
	{"cookie of a login that ended", "GET", "/data", "old cookie", nil, 401, "login"},
	{"token as a cookie", "GET", "/data", "token cookie", nil, 401, "login"},
	{"cookie as a token", "GET", "/data", "cookie token", nil, 401, "login"},
	{"token twice", "GET", "/data", "twice", nil, 401, "login"},
	{"basic", "GET", "/data", "", []string{"Authorization", "Basic b3duZXI6b3duZXI="}, 401, "login"},
	{"no token after bearer", "GET", "/data", "", []string{"Authorization", "Bearer"}, 401, "login"},
	{"other headers", "GET", "/data", "", []string{"X-Api-Key", "owner", "X-Forwarded-User", "owner", "X-Scope", "admin"}, 401, "login"},
	{"forged way", "GET", "/data", "", []string{"X-Forwarded-For", "127.0.0.1", "X-Real-Ip", "127.0.0.1", "Forwarded", "for=127.0.0.1"}, 401, "login"},

	{"reader reads", "GET", "/data", "reader", nil, 200, ""},
	{"reader writes", "POST", "/data", "reader", nil, 403, "scope"},
	{"reader deletes", "DELETE", "/data", "reader", nil, 403, "scope"},
	{"reader lists tokens", "GET", "/tokens", "reader", nil, 403, "scope"},
	{"reader asks for more", "DELETE", "/data?scope=admin", "reader", []string{"X-Scope", "admin"}, 403, "scope"},
	{"reader logs all out", "POST", "/logout?all=1", "reader", nil, 403, "scope"},
	{"operator writes", "POST", "/data", "operator", nil, 200, ""},
	{"operator deletes", "DELETE", "/data", "operator", nil, 403, "scope"},
	{"operator makes a token", "POST", "/tokens", "operator", nil, 403, "scope"},
	{"operator rotates", "POST", "/tokens/owner/rotate", "operator", nil, 403, "scope"},
	{"admin deletes", "DELETE", "/data", "admin", nil, 200, ""},
	{"admin lists tokens", "GET", "/tokens", "admin", nil, 200, ""},
	{"owner deletes", "DELETE", "/data", "owner", nil, 200, ""},
	{"local route", "GET", "/local", "owner", nil, 404, "not_found"},
	{"login link", "POST", "/login-link", "owner", nil, 404, "not_found"},

	{"own page reads", "GET", "/data", "cookie", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, 200, ""},
	{"own page writes", "POST", "/data", "cookie", []string{"Sec-Fetch-Site", "same-origin", "Origin", "self"}, 200, ""},
	{"own origin alone writes", "POST", "/data", "cookie", []string{"Origin", "self"}, 200, ""},
	{"typed address", "GET", "/data", "cookie", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200, ""},
	{"followed link", "GET", "/", "cookie", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200, ""},
	{"foreign origin reads", "GET", "/data", "cookie", []string{"Origin", "https://evil.example"}, 403, "cross_origin"},
	{"null origin reads", "GET", "/data", "cookie", []string{"Origin", "null"}, 403, "cross_origin"},
	{"foreign origin streams", "GET", "/stream", "cookie", []string{"Origin", "https://evil.example", "Accept", "text/event-stream"}, 403, "cross_origin"},
	{"null origin streams", "GET", "/stream", "cookie", []string{"Origin", "null", "Accept", "text/event-stream"}, 403, "cross_origin"},
	{"missing origin streams", "GET", "/stream", "cookie", []string{"Accept", "text/event-stream"}, 403, "cross_origin"},
	{"foreign origin streams by token", "GET", "/stream", "owner", []string{"Origin", "https://evil.example"}, 403, "cross_origin"},
	{"cross-site image", "GET", "/data", "cookie", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403, "cross_origin"},
	{"same-site fetch", "GET", "/data", "cookie", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, 403, "cross_origin"},
	{"other port", "GET", "/data", "cookie", []string{"Origin", "http://127.0.0.1:1"}, 403, "cross_origin"},
	{"other scheme and port", "POST", "/data", "cookie", []string{"Origin", "https://127.0.0.1"}, 403, "cross_origin"},
	{"foreign write", "POST", "/data", "cookie", []string{"Origin", "https://evil.example"}, 403, "cross_origin"},
	{"null write", "POST", "/data", "cookie", []string{"Origin", "null"}, 403, "cross_origin"},
	{"missing origin writes", "POST", "/data", "cookie", nil, 403, "cross_origin"},
	{"missing origin deletes", "DELETE", "/data", "cookie", nil, 403, "cross_origin"},
	{"cross-site form", "POST", "/data", "cookie", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403, "cross_origin"},
	{"foreign delete", "DELETE", "/data", "cookie", []string{"Origin", "http://localhost:1"}, 403, "cross_origin"},
	{"foreign login", "POST", "/login", "", []string{"Origin", "https://evil.example"}, 403, "cross_origin"},
	{"preflight", "OPTIONS", "/data", "cookie", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "DELETE"}, 405, "method"},

	{"by name", "GET", "/data", "owner", []string{"Host", "localhost:PORT"}, 200, ""},
	{"by IPv6", "GET", "/data", "owner", []string{"Host", "[::1]:PORT"}, 200, ""},
	{"by a name of the configuration", "GET", "/data", "owner", []string{"Host", "Chat.example.org"}, 200, ""},
	{"rebound name", "GET", "/data", "owner", []string{"Host", "evil.example:PORT"}, 421, "host"},
	{"rebound name in health", "GET", "/healthz", "", []string{"Host", "evil.example:PORT"}, 421, "host"},
	{"rebound name at the login", "POST", "/login", "", []string{"Host", "evil.example"}, 421, "host"},
	{"forged host", "GET", "/data", "owner", []string{"Host", "evil.example", "X-Forwarded-Host", "localhost:PORT"}, 421, "host"},
	{"name with more", "GET", "/data", "owner", []string{"Host", "localhost.evil.example:PORT"}, 421, "host"},
	{"no port", "GET", "/data", "owner", []string{"Host", "localhost"}, 421, "host"},
	{"other port of the host", "GET", "/data", "owner", []string{"Host", "chat.example.org:PORT"}, 421, "host"},
	{"foreign address", "GET", "/data", "owner", []string{"Host", "192.0.2.1:PORT"}, 421, "host"},

	{"path that a proxy cut off", "GET", "/data", "owner", []string{"X-Forwarded-Prefix", "/claybot/"}, 421, "prefix"},
	{"no path that a proxy cut off", "GET", "/data", "owner", []string{"X-Forwarded-Prefix", "/"}, 200, ""},

	{"unknown path", "GET", "/nowhere", "", nil, 404, "not_found"},
	{"unknown path of a reader", "GET", "/data/more", "reader", nil, 404, "not_found"},
	{"unknown path below a prefix", "GET", "/chat/nowhere", "reader", nil, 404, "not_found"},
	{"wrong method below a prefix", "DELETE", "/chat/stream", "reader", nil, 405, "method"},
	{"path that is not clean", "GET", "/sub/../data", "", nil, 307, "-"},
	{"wrong method", "PATCH", "/data", "", nil, 405, "method"},
	{"trace", "TRACE", "/data", "owner", nil, 405, "method"},
}

func TestKnocks(t *testing.T) {
	w, _ := start(t, t.TempDir(), func(c *web.Config) { c.Hosts = []string{"chat.example.org"} })
	_, port, err := net.SplitHostPort(w.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	b, gone := w.loggedIn(t), w.loggedIn(t)
	cookie, old := w.cookie(t, b), w.cookie(t, gone)
	do(t, gone, "POST", w.url("/logout"), "", same...)
	tokens := map[string]string{
		"owner": w.owner(t), "reader": w.token(t, "reader", web.Read), "operator": w.token(t, "operator", web.Operate),
		"admin": w.token(t, "admin", web.Admin), "revoked": w.token(t, "revoked", web.Admin), "rotated": w.token(t, "rotated", web.Admin),
		"wrong": "claybot_wrong-wrong-wrong-wrong-wrong-wrong-wrong-w",
	}
	w.ask(t, "DELETE", "/tokens/revoked", "")
	w.ask(t, "POST", "/tokens/rotated/rotate", "")
	changes := 0
	for i, tc := range knocks {
		body := ""
		if tc.method == "POST" && tc.path == "/data" {
			body = `{"text":"x"}`
		}
		req, err := http.NewRequestWithContext(t.Context(), tc.method, w.url(tc.path), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		switch tc.who {
		case "":
		case "cookie":
			req.AddCookie(cookie)
		case "old cookie":
			req.AddCookie(old)
		case "wrong cookie":
			req.AddCookie(&http.Cookie{Name: cookie.Name, Value: strings.Repeat("A", 43)})
		case "token cookie":
			req.AddCookie(&http.Cookie{Name: cookie.Name, Value: tokens["owner"]})
		case "cookie token":
			req.Header.Set("Authorization", "Bearer "+cookie.Value)
		case "twice":
			req.Header["Authorization"] = []string{"Bearer " + tokens["owner"], "Bearer " + tokens["owner"]}
		default:
			req.Header.Set("Authorization", "Bearer "+tokens[tc.who])
		}
		for j := 0; j+1 < len(tc.head); j += 2 {
			value := strings.ReplaceAll(tc.head[j+1], "PORT", port)
			switch {
			case tc.head[j] == "Host":
				req.Host = value
			case value == "self":
				req.Header.Set(tc.head[j], w.url(""))
			default:
				req.Header.Set(tc.head[j], value)
			}
		}
		// Each from an address of its own, as far as the lock-out is concerned.
		got := knock(t, w, req, i)
		if got.code != tc.want {
			t.Errorf("%s: %s %s = %d %s, want %d", tc.name, tc.method, tc.path, got.code, got.body, tc.want)
			continue
		}
		if tc.code != "" && tc.code != "-" && got.errorCode() != tc.code {
			t.Errorf("%s: error %s, want %s", tc.name, got.errorCode(), tc.code)
		}
		if got.code >= 300 {
			for name, secret := range tokens {
				if strings.Contains(got.body, secret) {
					t.Errorf("%s: the answer has the token of %s", tc.name, name)
				}
			}
			if strings.Contains(got.body, treasure) || got.head.Get("Set-Cookie") != "" || got.head.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: a refusal gives something away: %v", tc.name, got)
			}
		} else if tc.method != "GET" {
			changes++
		}
	}
	if got := w.changed(); got != changes {
		t.Errorf("%d requests changed something, want %d", got, changes)
	}
}

// knock serves a request as if it came from the i-th address of a network.
func knock(t *testing.T, w *world, req *http.Request, i int) answer {
	t.Helper()
	addr, err := net.ResolveTCPAddr("tcp", w.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	req.RemoteAddr = fmt.Sprintf("192.0.2.%d:1234", i+1)
	req.RequestURI, req.URL.Scheme = req.URL.RequestURI(), ""
	if req.Host == "" {
		req.Host = req.URL.Host
	}
	req.URL.Host = ""
	w.srv.PageForTest(t.Context(), addr).ServeHTTP(rec, req)
	return answer{rec.Code, rec.Header(), rec.Body.String()}
}

// The refusals of all kinds of wrong tokens are equal.
func TestRefusalsAreEqual(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	w.token(t, "reader", web.Read)
	secret := w.token(t, "other", web.Read)
	w.ask(t, "DELETE", "/tokens/other", "")
	want := do(t, browser(t), "GET", w.url("/data"), "")
	if !strings.Contains(want.body, "claybot token create") {
		t.Errorf("the refusal does not say how programs get a token: %s", want.body)
	}
	for _, token := range []string{"", "x", "reader", secret, w.owner(t)[1:], strings.Repeat("x", 9000)} {
		if got := do(t, browser(t), "GET", w.url("/data"), "", "Authorization", "Bearer "+token); got.code != want.code || got.body != want.body {
			t.Errorf("%.20q: %d %s, without a token %d %s", token, got.code, got.body, want.code, want.body)
		}
	}
}
