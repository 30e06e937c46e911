package web

import (
	"context"
	"embed"
	"encoding/hex"
	"hash/fnv"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed assets
var assets embed.FS

func (s *Server) pageHandler(ctx context.Context, addr net.Addr) http.Handler {
	mux := s.routes(s.loggedIn, false,
		Route{Pattern: "GET /readyz", Handler: s.readyz(false)},
		Route{Pattern: "GET /login", Handler: asset(func(*http.Request) string { return "login.html" })},
		Route{Pattern: "POST /login", Handler: http.HandlerFunc(s.login)},
		Route{Pattern: "GET /login/session", Handler: http.HandlerFunc(s.isIn)},
		Route{Pattern: "GET /login/{name}", Handler: asset(func(r *http.Request) string { return r.PathValue("name") })},
		Route{Pattern: "POST /logout", Scope: Read, Handler: http.HandlerFunc(s.logout), brief: true},
	)
	return numbered(openAI(s.secured(finite(ctx, mux), addr)))
}

func (s *Server) localHandler(ctx context.Context) http.Handler {
	return numbered(openAI(finite(ctx, s.routes(local, true,
		Route{Pattern: "GET /readyz", Handler: s.readyz(true)},
		Route{Pattern: "POST /login-link", Scope: Admin, Handler: http.HandlerFunc(s.loginLink)},
	))))
}

// routes returns the handler for TCP or the socket, with more routes. private guards those
// that need a scope.
func (s *Server) routes(private func(Route, http.Handler) http.Handler, socket bool, more ...Route) http.Handler {
	mux := http.NewServeMux()
	both := []Route{
		{Pattern: "GET /healthz", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { Words(w, http.StatusOK, "ok") })},
		{Pattern: "GET /session", Scope: Read, Chat: true, Handler: http.HandlerFunc(s.session), brief: true},
	}
	for _, r := range slices.Concat(both, tokenAPI{s.auth, s.log}.routes(), more, s.cfg.Routes) {
		if r.Local && !socket {
			continue
		}
		h := r.Handler
		if strings.HasSuffix(r.Pattern, "/") && !strings.Contains(r.Pattern, " ") {
			h = reshaped(http.StripPrefix(strings.TrimSuffix(r.Pattern, "/"), h))
		}
		h = survived(s.log, r.Pattern, capped(r, h))
		if r.Scope != Anyone {
			h = private(r, h)
		}
		mux.Handle(r.Pattern, h)
	}
	return shaped(mux)
}

// readyz reports whether the daemon is ready; only the socket shows what is missing.
func (s *Server) readyz(why bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		switch ok, missing := s.cfg.Ready(); {
		case ok:
			Words(w, http.StatusOK, "ready")
		case why:
			Fail(w, http.StatusServiceUnavailable, missing.Code, missing.Message, missing.Fix)
		default:
			Words(w, http.StatusServiceUnavailable, "not ready")
		}
	}
}

// session describes the caller. A page requests it when it opens, which is the moment
// to renew an old session: no other request is active then.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(s.cookieName(r)); err == nil {
		if fresh := s.auth.renew(c.Value); fresh != "" {
			s.setCookie(w, r, fresh, sessionLife)
		}
	}
	who := CallerOf(r)
	Answer(w, http.StatusOK, map[string]string{"name": who.Name, "scope": string(who.Scope)})
}

// isIn returns whether a browser has a session, for the login page. Without a session it
// does not fail: the page must make no request that fails.
func (s *Server) isIn(w http.ResponseWriter, r *http.Request) {
	c, err := r.Cookie(s.cookieName(r))
	Answer(w, http.StatusOK, map[string]bool{"in": err == nil && s.auth.session(c.Value)})
}

// asset serves a file of the login page. Only its script uses up a one-time link: chats and
// scanners that fetch a preview run no scripts.
func asset(name func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ServeAsset(w, r, assets, "assets/"+name(r)) })
}

// login accepts a token, a code, or a whole login link.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Token string `json:"token"`
	}
	if !Decode(w, r, &in) {
		return
	}
	// A whole link may have been pasted instead of its token.
	if _, after, ok := strings.Cut(in.Token, "token="); ok {
		in.Token = after
	}
	wait := s.auth.guess.locked(caller(r))
	secret := strings.TrimSpace(in.Token)
	here, _ := r.Context().Value(hereKey{}).(bool)
	cookie, ok := s.auth.login(secret, here)
	if !ok && wait == 0 && s.auth.catchUp(r.Context(), secret) {
		cookie, ok = s.auth.login(secret, here)
	}
	switch {
	case !ok && wait > 0:
		tooMany(w, wait)
	case !ok:
		s.auth.guess.wrong(caller(r))
		Fail(w, http.StatusUnauthorized, "token", "The token is invalid, already used, or older than 15 minutes.", "")
	default:
		s.setCookie(w, r, cookie, sessionLife)
		w.WriteHeader(http.StatusNoContent)
	}
}

// logout ends the login of a browser; with ?all=1, all logins.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	var err error
	c, none := r.Cookie(s.cookieName(r))
	switch all := r.URL.Query().Get("all"); {
	case all != "" && all != "1":
		Fail(w, http.StatusBadRequest, "bad_request", "all must be 1.", "")
		return
	case all == "1" && !CallerOf(r).Scope.Allows(Admin):
		Fail(w, http.StatusForbidden, "scope", "Logging out all browsers needs the scope admin.", "")
		return
	case all == "1":
		err = s.auth.logoutAll()
	case none == nil:
		err = s.auth.logout(c.Value)
	}
	s.setCookie(w, r, "", -time.Second)
	if err != nil {
		unwritten(w, s.log, "log out", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) loginLink(w http.ResponseWriter, _ *http.Request) {
	link := s.NewLoginLink()
	if link.URL == "" {
		Fail(w, http.StatusConflict, "page_off", "The web page is not available: see the log, or set CLAYBOT_HTTP_ADDR.", "")
		return
	}
	Answer(w, http.StatusOK, link)
}

// cookieName contains the port: browsers share cookies between all ports of a host, and two
// daemons must not log each other out. The members of a cluster share a name
// (Config.Cookie), whatever their ports behind a proxy. Over TLS the name has a prefix with
// which browsers accept it only from this host.
func (s *Server) cookieName(r *http.Request) string {
	name, end := "claybot", s.cfg.Cookie
	if _, port, err := net.SplitHostPort(s.Addr()); err == nil && end == "" {
		end = port
	}
	if end != "" {
		name += "-" + end
	}
	if secure(r) {
		return "__Host-" + name
	}
	return name
}

func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(r), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: secure(r), SameSite: http.SameSiteStrictMode,
	})
}

// ServeAsset serves one embedded file; browsers revalidate it every time.
func ServeAsset(w http.ResponseWriter, r *http.Request, fsys fs.FS, name string) {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		Fail(w, http.StatusNotFound, "not_found", "No such file.", "")
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
	_, _ = w.Write(b) // the client may have disconnected
}
