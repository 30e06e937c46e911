package web

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// policy lets the page load what the binary serves, and nothing else: no
// inline script, no foreign file, no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secured adds the security headers and checks to the handler of TCP.
func (s *Server) secured(next http.Handler, addr net.Addr) http.Handler {
	cross := http.NewCrossOriginProtection() // writes
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuseOrigin(w) }))
	next = cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if s.bypass(r, addr) {
			Fail(w, http.StatusForbidden, "proxy", "This server can only be reached through its proxy.", "Use the address of the proxy.")
			return
		}
		prefix := strings.Trim(r.Header.Get("X-Forwarded-Prefix"), "/")
		r = s.proxies.believe(withHere(r))
		if secure(r) && strict(r.Host) {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		switch {
		case !s.hostAllowed(r, addr):
			Fail(w, http.StatusMisdirectedRequest, "host", "Unknown host name.", "Use the address in the link that claybot printed, or add the name to http_hosts.")
		case prefix != "":
			Fail(w, http.StatusMisdirectedRequest, "prefix", "claybot cannot run below a path.", "Let the proxy give it a host name of its own.")
		case foreignRead(r):
			refuseOrigin(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuseScope(w http.ResponseWriter, have, need Scope) {
	fix := ""
	if have == Chat {
		fix = ChatReaches
	}
	Fail(w, http.StatusForbidden, "scope", "This needs a token with the scope "+string(need)+"; yours has the scope "+string(have)+".", fix)
}

// limitedFor answers that a limit of a token allows its next request after wait.
func limitedFor(w http.ResponseWriter, wait time.Duration, code, message string) {
	seconds := strconv.Itoa(int(wait.Seconds()) + 1)
	w.Header().Set("Retry-After", seconds)
	Fail(w, http.StatusTooManyRequests, code, message, "Try again in "+seconds+" seconds.")
}

// spent answers a request of a token whose budget is used up. Where the store does not
// answer, it lets the request pass: each model call reserves its cost.
func (s *Server) spent(w http.ResponseWriter, r *http.Request, token string) bool {
	if s.cfg.Spent == nil {
		return false
	}
	resets, spent, err := s.cfg.Spent(r.Context(), token)
	if err != nil {
		s.log.Warn("failed to look up the budget of a token", "token", token, "err", err)
	}
	if spent {
		limitedFor(w, time.Until(resets), "insufficient_quota", "The budget of this token for today is used up.")
	}
	return spent
}

// ChatReaches says what the scope chat allows.
const ChatReaches = "A token with the scope chat reaches only its own conversations, at /v1/chat/completions, /v1/responses, /v1/models, /conversations and /chat/."

func refuseOrigin(w http.ResponseWriter) {
	Fail(w, http.StatusForbidden, "cross_origin", "Cross-origin requests are refused.", "")
}

// bypass reports whether a request from another machine avoids the encrypting proxy.
func (s *Server) bypass(r *http.Request, addr net.Addr) bool {
	if !s.cfg.proxied(addr.String()) {
		return false
	}
	peer, ok := hop(r.RemoteAddr)
	return !ok || !peer.IsLoopback() && !s.proxies.have(peer)
}

func strict(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err != nil && host != "localhost"
}

// hostAllowed reports whether the Host header names us. An address literal that
// the connection really goes to is ours, too: only names can be rebound.
func (s *Server) hostAllowed(r *http.Request, addr net.Addr) bool {
	host := strings.ToLower(r.Host)
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return false
	}
	standard := "80"
	if secure(r) {
		standard = "443"
	}
	for _, own := range []string{"localhost", "127.0.0.1", "::1"} {
		if host == net.JoinHostPort(own, port) || port == standard && (host == own || host == "["+own+"]") {
			return true
		}
	}
	if host == strings.ToLower(s.cfg.Addr) {
		return true
	}
	for _, own := range s.cfg.Hosts {
		if host == strings.ToLower(own) {
			return true
		}
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	name, asked, err := net.SplitHostPort(host)
	if !ok || err != nil {
		return false
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.Equal(local.IP) && asked == strconv.Itoa(local.Port)
}

// foreignRead reports whether a page of another site tries to read, a stream for
// example. Following a link does not count.
func foreignRead(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false // CrossOriginProtection's part
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return true
	}
	switch r.Header.Get("Origin") {
	case "", "https://" + r.Host:
		return false
	case "http://" + r.Host:
		return secure(r)
	}
	return true
}

// unproven reports whether a request lacks the origin that a browser would send. A
// cookie is not enough then, because browsers add it to any request.
func unproven(r *http.Request) bool {
	switch {
	case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
		return false
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return true
	}
	// Browsers send no origin information to an unencrypted page of another
	// machine.
	return wantsStream(r) && (secure(r) || !exposed(r.Host))
}

func wantsStream(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// bearer is the token in a request's header. Two tokens count as none.
func bearer(h http.Header) (token string, given bool) {
	all := h.Values("Authorization")
	if len(all) != 1 {
		return "", len(all) > 1
	}
	scheme, token, _ := strings.Cut(all[0], " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", false
	}
	return strings.Trim(token, " "), true
}

// loggedIn serves requests with a session or a bearer token of the scope that the route
// needs, for as long as it is valid.
func (s *Server) loggedIn(route Route, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		p, ok := s.admit(w, r, route, end)
		if !ok {
			return
		}
		defer p.leave()
		if p.wait > 0 && !route.brief {
			limitedFor(w, p.wait, "rate_limit_exceeded", "This token has reached its rate of requests a minute.")
			return
		}
		if !p.Scope.Allows(route.Scope) && (p.Scope != Chat || !route.Chat) {
			refuseScope(w, p.Scope, route.Scope)
			return
		}
		if p.Bound() && !route.brief && !forOpenAI(r) {
			Fail(w, http.StatusForbidden, "scope", "This token is bound to one agent or profile: it reaches only /v1/chat/completions, /v1/responses and /v1/models.", "")
			return
		}
		if p.spend && r.Method == http.MethodPost && s.spent(w, r, p.Name) {
			return
		}
		if route.brief {
			next.ServeHTTP(w, withCaller(r, p.Caller))
			return
		}
		bound(next, w, withCaller(r.WithContext(ctx), p.Caller), p.until)
	})
}

// admit authenticates a request, or answers why it is refused.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, route Route, end context.CancelCauseFunc) (pass, bool) {
	if c, err := r.Cookie(s.cookieName(r)); err == nil {
		p, ok := s.auth.bySession(c.Value, end)
		if !ok && s.auth.catchUp(r.Context(), c.Value) {
			p, ok = s.auth.bySession(c.Value, end)
		}
		if ok {
			if p.full && !route.brief {
				return crowded(w)
			}
			if !unproven(r) {
				from, _ := r.Context().Value(hereKey{}).(bool)
				p.Here = p.Here && from
				return p, true
			}
			p.leave()
			Fail(w, http.StatusForbidden, "cross_origin", "A request with a cookie must have an Origin or Sec-Fetch-Site header.", "Programs use a token; create one with claybot token create.")
			return pass{}, false
		}
	}
	if secret, given := bearer(r.Header); given {
		// A valid token passes, whatever others behind the same address send.
		p, ok := s.auth.byToken(secret, end)
		wait := s.auth.guess.locked(caller(r))
		if !ok && wait == 0 && s.auth.catchUp(r.Context(), secret) {
			p, ok = s.auth.byToken(secret, end)
		}
		if !ok && wait > 0 {
			tooMany(w, wait)
			return pass{}, false
		}
		if ok {
			if p.full && !route.brief {
				return crowded(w)
			}
			return p, true
		}
		s.auth.guess.wrong(caller(r))
	}
	if route.Page && opensPage(r) {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return pass{}, false
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	switch _, given := bearer(r.Header); {
	case !forOpenAI(r):
		Fail(w, http.StatusUnauthorized, "login", "Log in first.", "Open the link that claybot printed at its start, or run claybot open for another. Programs send a token that claybot token create has made.")
	case given:
		Fail(w, http.StatusUnauthorized, "token", "Unknown token; create one with `claybot token create`.", "")
	default:
		Fail(w, http.StatusUnauthorized, "token", "A token is missing; create one with `claybot token create` and send it as a bearer token.", "")
	}
	return pass{}, false
}

func crowded(w http.ResponseWriter) (pass, bool) {
	w.Header().Set("Retry-After", "5")
	Fail(w, http.StatusTooManyRequests, "too_many", "Too many concurrent requests with this token or session: at most "+strconv.Itoa(maxRequests)+".", "Close some streams, or use another token.")
	return pass{}, false
}

func opensPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || wantsStream(r) || r.Header.Get("HX-Request") != "" {
		return false
	}
	mode := r.Header.Get("Sec-Fetch-Mode")
	return mode == "" || mode == "navigate"
}

func tooMany(w http.ResponseWriter, wait time.Duration) {
	seconds := strconv.Itoa(int(wait.Seconds()) + 1)
	w.Header().Set("Retry-After", seconds)
	Fail(w, http.StatusTooManyRequests, "locked", "Too many invalid tokens. Try again in "+seconds+" seconds, or run claybot open for a new link.", "")
}

func caller(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// local makes every caller the owner: only the owner can open the socket.
func local(_ Route, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, withCaller(r, Caller{Name: owner, Scope: Admin, Local: true}))
	})
}

// capped bounds the body of a request and asks for JSON.
func capped(route Route, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !route.Raw && r.ContentLength != 0 && r.Method != http.MethodGet && r.Method != http.MethodHead {
			kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
			if err != nil || kind != "application/json" {
				Fail(w, http.StatusUnsupportedMediaType, "content_type", "The body must be JSON, with Content-Type: application/json.", "")
				return
			}
		}
		limit := cmp.Or(route.Body, bodyLimit)
		if r.ContentLength > limit && r.Header.Get("Expect") != "" {
			r.Body = refusedBody{r.Body, limit}
		} else {
			r.Body = http.MaxBytesReader(w, r.Body, limit)
		}
		next.ServeHTTP(w, r)
	})
}

// A refusedBody is refused before the first byte is read, because reading asks a client
// that expects 100 Continue for all of it.
type refusedBody struct {
	io.Closer
	limit int64
}

// Read implements io.Reader.
func (b refusedBody) Read([]byte) (int, error) { return 0, &http.MaxBytesError{Limit: b.limit} }

// survived logs a panic of a handler and closes the connection, since a part of the
// answer may have been written.
func survived(log *slog.Logger, pattern string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch x := recover(); x {
			case nil:
			case http.ErrAbortHandler:
				panic(x)
			default:
				log.Error("handler panicked; this is a bug", "pattern", pattern, "request", RequestID(r.Context()), "panic", x, "stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
