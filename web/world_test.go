package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot/client"
	"github.com/claybot/claybot/web"
)

// treasure is in every answer that a stranger must not get.
const treasure = "the-treasure-of-the-owner"

// A world is a server with a few routes of each kind behind its door.
type world struct {
	srv   *web.Server
	dir   string
	links chan string
	ends  chan error // how requests to the streams ended

	mu      sync.Mutex
	log     strings.Builder
	ready   string // what is missing
	changes int    // that were made by requests
}

func (w *world) Ready() (bool, web.Problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready == "", web.Problem{Code: "connector-failing", Message: "not ready: " + w.ready, Fix: "Correct that."}
}

// Write takes lines of the log.
func (w *world) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

func (w *world) changed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes
}

// routes are what is behind the door.
func (w *world) routes() []web.Route {
	tell := func(rw http.ResponseWriter, r *http.Request) {
		web.Answer(rw, http.StatusOK, map[string]string{"name": web.CallerOf(r).Name, "user": web.User(r), "data": treasure, "from": r.RemoteAddr, "for": r.Header.Get("X-Forwarded-For"), "here": fmt.Sprint(web.Here(r.Context()))})
	}
	change := func(rw http.ResponseWriter, r *http.Request) {
		var in struct {
			Text string `json:"text"`
		}
		if r.Method == http.MethodPost && !web.Decode(rw, r, &in) {
			return
		}
		w.mu.Lock()
		w.changes++
		w.mu.Unlock()
		tell(rw, r)
	}
	raw := func(rw http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			web.Fail(rw, http.StatusRequestEntityTooLarge, "too_large", "Too much.", "")
			return
		}
		change(rw, r.WithContext(r.Context()))
	}
	chat := http.NewServeMux() // a handler with a mux of its own
	chat.HandleFunc("GET /stream", w.stream)
	return []web.Route{
		{Pattern: "GET /{$}", Scope: web.Read, Page: true, Handler: http.HandlerFunc(tell)},
		{Pattern: "GET /data", Scope: web.Read, Handler: http.HandlerFunc(tell)},
		{Pattern: "POST /data", Scope: web.Operate, Handler: http.HandlerFunc(change)},
		{Pattern: "DELETE /data", Scope: web.Admin, Handler: http.HandlerFunc(change)},
		{Pattern: "PUT /raw", Scope: web.Operate, Raw: true, Body: 16, Handler: http.HandlerFunc(raw)},
		{Pattern: "GET /stream", Scope: web.Read, Handler: http.HandlerFunc(w.stream)},
		{Pattern: "POST /stream", Scope: web.Operate, Handler: http.HandlerFunc(w.stream)},
		{Pattern: "GET /deaf", Scope: web.Read, Handler: http.HandlerFunc(w.deaf)},
		{Pattern: "GET /boom", Scope: web.Read, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") })},
		{Pattern: "/sub/", Scope: web.Read, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { web.Words(rw, 200, treasure+" "+r.URL.Path) })},
		{Pattern: "/chat/", Scope: web.Read, Handler: chat},
		{Pattern: "GET /local", Scope: web.Operate, Local: true, Handler: http.HandlerFunc(tell)},
		{Pattern: "GET /open", Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { web.Words(rw, 200, "for anyone"+web.User(r)) })},
	}
}

// stream sends one event and waits for the end.
func (w *world) stream(rw http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(rw)
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	rw.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(rw, "data: "+treasure+"\n\n")
	_ = rc.Flush()
	<-r.Context().Done()
	// What is said after the end must not arrive when the login has ended.
	_, err := io.WriteString(rw, "data: last words\n\n")
	if err == nil {
		err = rc.Flush()
	}
	w.ends <- err
}

// deaf writes to a client that does not read, and ignores the context.
func (w *world) deaf(rw http.ResponseWriter, _ *http.Request) {
	rc := http.NewResponseController(rw)
	_ = rc.SetReadDeadline(time.Time{})
	b := make([]byte, 1<<20)
	for {
		_ = rc.SetWriteDeadline(time.Time{})
		if _, err := rw.Write(b); err != nil {
			w.ends <- err
			return
		}
	}
}

// start runs a server on a free port over dir until the test ends or stop is
// called. change may edit the configuration.
func start(t *testing.T, dir string, change func(*web.Config)) (w *world, stop func()) {
	t.Helper()
	w = &world{dir: dir, links: make(chan string, 10), ends: make(chan error, 10)}
	cfg := web.Config{
		Addr: "127.0.0.1:0", Dir: dir, Ready: w.Ready, Routes: w.routes(),
		Announce: func(l web.LoginLink) { w.links <- l.URL },
		Log:      slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&cfg)
	}
	srv, err := newServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.srv = srv
	srv.WaitForTest(time.Minute) // for the last words of streams on a loaded machine
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := srv.Run(ctx); ctx.Err() == nil {
			t.Errorf("Run ended early: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	select {
	case <-srv.Up():
	case <-time.After(time.Minute):
		t.Fatal("the server did not come up")
	}
	return w, stop
}

// newServer makes a server, of a single machine unless its configuration has a tree.
func newServer(cfg web.Config) (*web.Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Tree == nil {
		cfg.Tree = web.DirectoryForTest(cfg.Dir, cfg.Log)
	}
	return web.New(cfg)
}

// lasting is an address for a server that is to be started again at its port: on
// Linux one that no other program uses, which could take the port meanwhile.
func lasting(c *web.Config) {
	if runtime.GOOS == "linux" {
		c.Addr = "127.0.0.2:0"
	}
}

// logged is what was logged so far.
func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func (w *world) url(path string) string { return "http://" + w.srv.Addr() + path }

// owner is the token of the owner.
func (w *world) owner(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, "web.token"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// ask makes a request over the unix socket.
func (w *world) ask(t *testing.T, method, path, body string) answer {
	t.Helper()
	tr, err := client.Transport(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.CloseIdleConnections()
	return do(t, &http.Client{Transport: tr}, method, "http://claybot"+path, body)
}

// token makes a token for a program.
func (w *world) token(t *testing.T, name string, scope web.Scope) string {
	t.Helper()
	got := w.ask(t, "POST", "/tokens", fmt.Sprintf(`{"name":%q,"scope":%q}`, name, scope))
	var out struct{ Token string }
	decode(t, got.body, &out)
	if got.code != http.StatusCreated || len(out.Token) < 43 {
		t.Fatalf("create %s: %d %s", name, got.code, got.body)
	}
	return out.Token
}

// An answer is a response that was read.
type answer struct {
	code int
	head http.Header
	body string
}

// errorCode is the code of an answer in the one shape of errors.
func (a answer) errorCode() string {
	var out struct {
		Error struct{ Code, Message string }
	}
	if a.head.Get("Content-Type") != "application/json" || json.Unmarshal([]byte(a.body), &out) != nil || out.Error.Message == "" {
		return "not an error: " + a.body
	}
	return out.Error.Code
}

// do makes a request; head are pairs of names and values.
func do(t *testing.T, hc *http.Client, method, url, body string, head ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(head); i += 2 {
		if head[i] == "Host" {
			req.Host = head[i+1]
			continue
		}
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// browser keeps cookies and does not follow redirects.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// loggedIn is a browser that used a link.
func (w *world) loggedIn(t *testing.T) *http.Client {
	t.Helper()
	b := browser(t)
	if got := enter(t, b, w.srv.NewLoginLink().URL); got.code != http.StatusNoContent {
		t.Fatalf("login = %d %s", got.code, got.body)
	}
	return b
}

// enter opens a link as a browser does: the page, and what its script sends.
func enter(t *testing.T, b *http.Client, link string) answer {
	t.Helper()
	if got := do(t, b, "GET", link, ""); got.code != http.StatusOK || got.head.Get("Set-Cookie") != "" {
		t.Errorf("the page of a link = %d, cookie %q", got.code, got.head.Get("Set-Cookie"))
	}
	page, code, _ := strings.Cut(link, "?token=")
	return do(t, b, "POST", page, `{"token":"`+code+`"}`)
}

// cookie is the one that a browser has for the page.
func (w *world) cookie(t *testing.T, b *http.Client) *http.Cookie {
	t.Helper()
	u, err := url.Parse(w.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	all := b.Jar.Cookies(u)
	if len(all) != 1 {
		t.Fatalf("cookies %v", all)
	}
	return all[0]
}

func decode(t *testing.T, s string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), v); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
}
