package mcp_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/mcp"
)

// open is a client that reaches everything; the real one is guarded.
func open(string) *http.Client { return &http.Client{Transport: &http.Transport{}} }

func streamable(s *sdk.Server) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

func TestHTTP(t *testing.T) {
	calls := make(chan string, 10)
	good := streamable(goodServer(calls))
	var down atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case down.Load():
			w.WriteHeader(http.StatusNotFound)
		case r.Header.Get("Authorization") != "Bearer not-real-token" || r.Header.Get("X-Team") != "a":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			good.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() }) // after the Manager, which would connect again
	s := mcp.Server{Name: "srv", URL: web.URL, Token: "not-real-token", Headers: map[string]string{"X-Team": "a"}}
	stranger := mcp.Server{Name: "stranger", URL: web.URL, Token: "another-one"}
	r := run(t, mcp.Config{Servers: []mcp.Server{s, stranger}, HTTP: open})
	r.up("srv")
	r.want("srv_echo", `{"text":"hello"}`, "hello")
	<-calls
	r.want("srv_more", `{"text":"later"}`, "added")
	<-calls
	r.await(func() bool { return len(r.status("srv").Off) == 1 })
	r.up("srv")
	r.await(func() bool { return len(r.names()) == len(goodTools)+1 })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-calls; cancel() }()
	r.fault(ctx, "srv_wait", `{"text":""}`, tools.FaultInterrupted, "stopped")
	r.await(func() bool { return r.status("stranger").State == mcp.StateWaiting })
	if st := r.status("stranger"); !strings.Contains(st.LastError, "Unauthorized") || strings.Contains(st.LastError, "another-one") {
		t.Errorf("%+v", st)
	}
	if st := r.status("srv"); st.Transport != "http" || st.Target != web.URL {
		t.Errorf("%+v", st)
	}
	down.Store(true)
	if o := r.call(t.Context(), "srv_echo", `{"text":"x"}`); o.Fault == nil {
		t.Errorf("%+v", o)
	}
	down.Store(false)
	r.await(func() bool {
		_ = r.Retry("srv")
		return r.call(t.Context(), "srv_echo", `{"text":"x"}`).Record.OK
	})
}

// A call names its span in _meta, if it has one.
func TestTraceparent(t *testing.T) {
	good := streamable(goodServer(nil))
	bodies := make(chan string, 10)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(body), "tools/call") {
			bodies <- string(body)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		good.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	r := run(t, mcp.Config{Servers: []mcp.Server{{Name: "srv", URL: web.URL}}, HTTP: open})
	r.up("srv")
	const span = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for ctx, want := range map[context.Context]bool{t.Context(): false, claybot.WithTrace(t.Context(), claybot.ParseTrace(span)): true} {
		if o := r.call(ctx, "srv_echo", `{"text":"x"}`); !o.Record.OK {
			t.Fatalf("%+v", o)
		}
		if body := <-bodies; strings.Contains(body, `"traceparent":"`+span+`"`) != want || strings.Contains(body, "traceparent") != want {
			t.Errorf("with a span %v: %s", want, body)
		}
	}
}

// A server by HTTP cannot send too much, send elsewhere, or hold up the end.
func TestHostileHTTP(t *testing.T) {
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked.Store(true) }))
	defer other.Close()
	big := func(w http.ResponseWriter, head, kind string) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, head)
		chunk := strings.Repeat("x", 1<<20)
		for range 100 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "sends to another one"},
		"100 MiB of JSON":     {func(w http.ResponseWriter, _ *http.Request) { big(w, `{"x":"`, "application/json") }, "more than 4194304 bytes"},
		"100 MiB of a stream": {func(w http.ResponseWriter, _ *http.Request) { big(w, "data: ", "text/event-stream") }, "exceeded"},
		"100 MiB of an error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			big(w, "", "text/plain")
		}, "teapot"},
		"a page":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "unsupported content type"},
		"nothing": {func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(tt.h)
			t.Cleanup(web.Close) // after the Manager
			s := mcp.Server{Name: "srv", URL: web.URL, Headers: map[string]string{"X-Key": "not-real"}}
			r := run(t, mcp.Config{Servers: []mcp.Server{s}, HTTP: open})
			if tt.want != "" {
				r.await(func() bool { return r.status("srv").State == mcp.StateWaiting })
				if st := r.status("srv"); !strings.Contains(st.LastError, tt.want) {
					t.Errorf("%+v", st)
				}
			}
			r.stop()
		})
	}
	if leaked.Load() {
		t.Error("another server was asked")
	}
}

// An authServer is an authorization server and, at /mcp, the server it is for.
type authServer struct {
	*httptest.Server
	mu       sync.Mutex
	clients  map[string]string // id -> redirect
	codes    map[string]url.Values
	valid    map[string]bool // access tokens
	refresh  map[string]bool
	n        int
	lifetime int // seconds
	grants   []string
}

func newAuthServer(t *testing.T) *authServer {
	a := &authServer{clients: make(map[string]string), codes: make(map[string]url.Values), valid: make(map[string]bool), refresh: make(map[string]bool), lifetime: 3600}
	mux := http.NewServeMux()
	good := streamable(goodServer(nil))
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		ok := a.valid[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		a.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		good.ServeHTTP(w, r)
	})
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"resource": a.URL + "/mcp", "authorization_servers": []string{a.URL}, "scopes_supported": []string{"tools"}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{
			"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token", "registration_endpoint": a.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"grant_types_supported":                 []string{"authorization_code", "refresh_token", "client_credentials"},
			"token_endpoint_auth_methods_supported": []string{"none", "client_secret_post"},
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			RedirectURIs []string `json:"redirect_uris"`
		}
		if json.NewDecoder(r.Body).Decode(&in) != nil || len(in.RedirectURIs) != 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		a.mu.Lock()
		a.clients["client-1"] = in.RedirectURIs[0]
		a.mu.Unlock()
		answer(w, http.StatusCreated, map[string]any{"client_id": "client-1", "redirect_uris": in.RedirectURIs, "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		a.mu.Lock()
		a.n++
		code := fmt.Sprintf("code-%d", a.n)
		a.codes[code] = q
		known := a.clients[q.Get("client_id")] == q.Get("redirect_uri")
		a.mu.Unlock()
		if !known || q.Get("code_challenge_method") != "S256" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		a.mu.Lock()
		defer a.mu.Unlock()
		ok := false
		switch grant := r.Form.Get("grant_type"); grant {
		case "authorization_code":
			sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
			asked := a.codes[r.Form.Get("code")]
			ok = asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) && asked.Get("scope") == "tools" && asked.Get("state") != "" &&
				asked.Get("resource") == a.URL+"/mcp" && r.Form.Get("resource") == a.URL+"/mcp" && r.Form.Get("redirect_uri") == asked.Get("redirect_uri")
			delete(a.codes, r.Form.Get("code"))
		case "refresh_token":
			ok = a.refresh[r.Form.Get("refresh_token")] && r.Form.Get("client_id") == "client-1" && r.Form.Get("resource") == a.URL+"/mcp"
			delete(a.refresh, r.Form.Get("refresh_token"))
		case "client_credentials":
			ok = r.Form.Get("client_id") == "machine" && r.Form.Get("client_secret") == "not-a-real-secret"
		}
		if !ok {
			answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		a.n++
		access, fresh := fmt.Sprintf("access-%d", a.n), fmt.Sprintf("refresh-%d", a.n)
		a.valid[access], a.refresh[fresh] = true, true
		a.grants = append(a.grants, r.Form.Get("grant_type"))
		answer(w, 200, map[string]any{"access_token": access, "refresh_token": fresh, "token_type": "Bearer", "expires_in": a.lifetime})
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(func() { a.CloseClientConnections(); a.Close() })
	return a
}

// browse is what a browser does. It is told that all went well, also when the login
// is over by then.
func browse(t *testing.T, link string) {
	resp, err := http.Get(link) //nolint:noctx // a browser
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), "claybot has the answer") {
		t.Errorf("the browser shows %q, %v", b, err)
	}
}

func TestLogin(t *testing.T) {
	a := newAuthServer(t)
	a.lifetime = 1 // which counts as expired at once
	dir := filepath.Join(t.TempDir(), "mcp")
	tokens := files.NewSecrets(dir)
	s := mcp.Server{Name: "srv", URL: a.URL + "/mcp", OAuth: &mcp.OAuth{}}
	r := run(t, mcp.Config{Servers: []mcp.Server{s}, HTTP: open, Tokens: tokens})
	r.await(func() bool { return r.status("srv").State == mcp.StateLogin })
	if st := r.status("srv"); !strings.Contains(st.LastError, "claybot mcp login srv") {
		t.Errorf("%+v", st)
	}
	var browsers sync.WaitGroup
	visit := mcp.Visit{Server: s, HTTP: open(""), Tokens: tokens, Show: func(link string) {
		u, _ := url.Parse(link)
		forged, _ := url.Parse(u.Query().Get("redirect_uri"))
		forged.RawQuery = "code=evil&state=guessed"
		browse(t, forged.String()) // a stranger
		browsers.Go(func() { browse(t, link) })
	}}
	err := mcp.Login(t.Context(), visit)
	browsers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "srv.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := r.Retry("srv"); err != nil {
		t.Fatal(err)
	}
	r.up("srv")
	r.want("srv_echo", `{"text":"in"}`, "in")
	r.stop()
	a.mu.Lock()
	grants := strings.Join(a.grants, " ")
	a.refresh = make(map[string]bool)
	a.valid = make(map[string]bool)
	a.mu.Unlock()
	if !strings.HasPrefix(grants, "authorization_code refresh_token") {
		t.Errorf("tokens by %s", grants)
	}
	// A login that no longer counts must be made again; one for another address
	// is not used.
	for _, s := range []mcp.Server{s, {Name: "srv", URL: a.URL + "/mcp?x", OAuth: &mcp.OAuth{}}} {
		r := run(t, mcp.Config{Servers: []mcp.Server{s}, HTTP: open, Tokens: tokens})
		r.await(func() bool { return r.status("srv").State == mcp.StateLogin })
		if b, _ := json.Marshal(r.Status()); strings.Contains(string(b), "refresh-") || strings.Contains(string(b), "access-") {
			t.Errorf("a token is shown: %s", b)
		}
		r.stop()
	}
}

// Where the browser is elsewhere, the operator pastes the address it ended at.
func TestLoginPasted(t *testing.T) {
	a := newAuthServer(t)
	pasted := make(chan string, 3)
	tokens := files.NewSecrets(filepath.Join(t.TempDir(), "mcp"))
	s := mcp.Server{Name: "srv", URL: a.URL + "/mcp", OAuth: &mcp.OAuth{}}
	err := mcp.Login(t.Context(), mcp.Visit{Server: s, HTTP: open(""), Tokens: tokens, Pasted: pasted, Show: func(link string) {
		c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := c.Get(link) //nolint:noctx // a browser
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		pasted <- "what?"
		pasted <- "http://127.0.0.1/?code=x&state=y"
		pasted <- " " + resp.Header.Get("Location") + "\r"
	}})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := tokens.Get("srv"); err != nil || !strings.Contains(string(b), "access-") {
		t.Errorf("%s, %v", b, err)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the operator went away")
	err = mcp.Login(ctx, mcp.Visit{Server: s, HTTP: open(""), Tokens: tokens, Show: func(string) { cancel(gone) }})
	if err == nil || !strings.Contains(err.Error(), gone.Error()) {
		t.Errorf("given up: %v", err)
	}
	for _, bad := range []mcp.Server{
		{Name: "srv", URL: a.URL + "/mcp"},
		{Name: "srv", URL: a.URL + "/mcp", OAuth: &mcp.OAuth{Grant: mcp.GrantClient}},
		{Name: "srv", URL: a.URL + "/mcp", OAuth: &mcp.OAuth{Redirect: "http://0.0.0.0:9/x"}},
		{Name: "srv", URL: a.URL + "/mcp", OAuth: &mcp.OAuth{Redirect: "https://example.org/x"}},
	} {
		if err := mcp.Login(t.Context(), mcp.Visit{Server: bad, HTTP: open(""), Tokens: tokens, Show: func(string) {}}); err == nil {
			t.Errorf("%+v: no error", bad.OAuth)
		}
	}
}

func TestClientCredentials(t *testing.T) {
	a := newAuthServer(t)
	s := mcp.Server{Name: "srv", URL: a.URL + "/mcp", OAuth: &mcp.OAuth{Grant: mcp.GrantClient, ClientID: "machine", ClientSecret: "not-a-real-secret"}}
	wrong := s
	wrong.Name, wrong.OAuth = "wrong", &mcp.OAuth{Grant: mcp.GrantClient, ClientID: "machine", ClientSecret: "guessed-secret"}
	r := run(t, mcp.Config{Servers: []mcp.Server{s}, HTTP: open})
	r.up("srv")
	r.want("srv_echo", `{"text":"in"}`, "in")
	w := run(t, mcp.Config{Servers: []mcp.Server{wrong}, HTTP: open})
	w.await(func() bool { return w.status("wrong").State == mcp.StateWaiting })
	if st := w.status("wrong"); strings.Contains(st.LastError, "guessed") {
		t.Errorf("%+v", st)
	}
}
