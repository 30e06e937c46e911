package web

import (
	"context"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"mime"
	"net"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var assets embed.FS

// pageHandler is what TCP serves.
func (s *Server) pageHandler(ctx context.Context, addr net.Addr) http.Handler {
	mux := s.routes(s.loggedIn)
	mux.HandleFunc("GET /login", s.openLink)
	mux.HandleFunc("POST /login", s.login)
	mux.Handle("POST /logout", s.loggedIn(http.HandlerFunc(s.logout)))
	return s.secured(bounded(ctx, mux), addr)
}

// localHandler is what the unix socket serves.
func (s *Server) localHandler(ctx context.Context) http.Handler {
	mux := s.routes(local)
	mux.HandleFunc("POST /login-link", s.loginLink)
	if s.cfg.Terminal != nil {
		mux.Handle("/terminal/", local(http.StripPrefix("/terminal", s.cfg.Terminal)))
	}
	return bounded(ctx, mux)
}

// routes are the paths that both doors have. private decides who may use those
// that show or change anything.
func (s *Server) routes(private func(http.Handler) http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { words(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /assets/{name}", func(w http.ResponseWriter, r *http.Request) { serveAsset(w, r, r.PathValue("name")) })
	for pattern, fn := range s.operations() {
		mux.Handle(pattern, private(fn))
	}
	if s.cfg.Chat != nil {
		mux.Handle("/chat/", private(http.StripPrefix("/chat", s.cfg.Chat)))
	}
	return mux
}

// operations are the paths for whoever is logged in.
func (s *Server) operations() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /{$}":           s.index,
		"GET /session":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"GET /status":        s.status,
		"GET /conversations": s.conversations,
		"GET /pairing":       s.pairing,
		"POST /pairing":      s.decide,
		"DELETE /pairing":    s.revoke,

		"GET /agents":                s.agents,
		"DELETE /agents/{id}":        s.deleteAgent,
		"POST /agents/{id}/stop":     s.stopAgent,
		"POST /agents/{id}/reset":    s.resetAgent,
		"GET /agents/{id}/inbox":     s.inbox,
		"DELETE /agents/{id}/inbox":  s.drop,
		"GET /agents/{id}/reminders": s.reminders,

		"GET /cron":              s.withTasks(s.tasks),
		"POST /cron":             s.withTasks(s.addTask),
		"PATCH /cron/{ref}":      s.withTask(s.changeTask),
		"DELETE /cron/{ref}":     s.withTask(s.removeTask),
		"POST /cron/{ref}/run":   s.withTask(s.runTask),
		"GET /cron/{ref}/ledger": s.withTask(s.ledger),
		"GET /heartbeat":         s.withBeats(s.beats),
		"POST /heartbeat/run":    s.withBeats(s.beat),
	}
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	ok, why := s.cfg.System.Ready()
	if !ok {
		words(w, http.StatusServiceUnavailable, "not ready: "+why)
		return
	}
	words(w, http.StatusOK, "ready")
}

// index is the chat page. Opening it is the moment to renew an old session:
// nothing else is under way then.
func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(s.cookieName()); err == nil {
		fresh, err := s.auth.rotate(c.Value)
		switch {
		case err != nil:
			s.log.Warn("session not renewed", "err", err)
		case fresh != "":
			s.setCookie(w, r, fresh, sessionLife)
		}
	}
	serveAsset(w, r, "index.html")
}

// openLink takes a one-time link. Previews of links must not use it up, so HEAD
// and prefetching do nothing.
func (s *Server) openLink(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	if token == "" || r.Method == http.MethodHead || strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") {
		serveAsset(w, r, "login.html")
		return
	}
	wait := s.auth.guess.locked(caller(r))
	cookie, ok, err := s.auth.login(token, wait == 0)
	switch {
	case err != nil:
		s.internal(w, "log in", err)
	case !ok && wait > 0:
		tooMany(w, wait)
	case !ok:
		if c, err := r.Cookie(s.cookieName()); err == nil && s.auth.session(c.Value) {
			http.Redirect(w, r, "/", http.StatusSeeOther) // the same link again in the browser that used it
			return
		}
		s.auth.guess.wrong(caller(r))
		http.Redirect(w, r, "/login?used=1", http.StatusSeeOther)
	default:
		s.setCookie(w, r, cookie, sessionLife)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// login takes a token or code that was typed.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Token string `json:"token"`
	}
	if !decode(w, r, &in) {
		return
	}
	// A whole link may have been pasted instead of its token.
	if _, after, ok := strings.Cut(in.Token, "token="); ok {
		in.Token = after
	}
	wait := s.auth.guess.locked(caller(r))
	cookie, ok, err := s.auth.login(strings.TrimSpace(in.Token), wait == 0)
	switch {
	case err != nil:
		s.internal(w, "log in", err)
	case !ok && wait > 0:
		tooMany(w, wait)
	case !ok:
		s.auth.guess.wrong(caller(r))
		fail(w, http.StatusUnauthorized, "token", "That token is wrong, was used already, or is older than 15 minutes.")
	default:
		s.setCookie(w, r, cookie, sessionLife)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(s.cookieName()); err == nil {
		if err := s.auth.logout(c.Value); err != nil {
			s.internal(w, "log out", err)
			return
		}
	}
	s.setCookie(w, r, "", -time.Second)
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) loginLink(w http.ResponseWriter, _ *http.Request) {
	link := s.NewLoginLink()
	if link == "" {
		fail(w, http.StatusConflict, "page_off", "The web page is not up: see the log, or set CLAYBOT_HTTP_ADDR.")
		return
	}
	answer(w, http.StatusOK, map[string]string{"url": link})
}

// cookieName has the port in it: browsers share cookies between all ports of a
// host, and two daemons must not log each other out.
func (s *Server) cookieName() string {
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return "claybot"
	}
	return "claybot-" + port
}

func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}

// serveAsset serves one embedded file; browsers ask each time whether it
// changed.
func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		fail(w, http.StatusNotFound, "not_found", "There is no such file.")
		return
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b) // a hash never fails
	etag := `"` + hex.EncodeToString(sum.Sum(nil)) + `"`
	h := w.Header()
	h.Set("ETag", etag)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(b) // a client that is gone needs no file
}

// words answers in plain text.
func words(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // a client that is gone needs no answer
}

// answer answers in JSON.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}

// fail answers with an error in words.
func fail(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

// internal logs an error and answers without its text.
func (s *Server) internal(w http.ResponseWriter, what string, err error) {
	s.log.Error("request failed", "doing", what, "err", err)
	fail(w, http.StatusInternalServerError, "internal", "That did not work; the log says why. Try again in a moment.")
}

// decode reads one JSON object, or answers why it cannot.
func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	switch {
	case err == nil:
		return true
	case tooLarge(err):
		fail(w, http.StatusRequestEntityTooLarge, "too_large", "The request is larger than 1 MiB.")
	default:
		fail(w, http.StatusBadRequest, "bad_request", "The body is not the JSON object that is expected here.")
	}
	return false
}
