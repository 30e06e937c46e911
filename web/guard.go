package web

import (
	"context"
	"errors"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// policy lets the page load what the binary serves, and nothing else: no
// inline script, no foreign file, no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

type userKey struct{}

// User is who makes the request, as the door found out; empty for nobody.
func User(r *http.Request) string {
	user, _ := r.Context().Value(userKey{}).(string)
	return user
}

func withUser(r *http.Request, user string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), userKey{}, user))
}

// secured puts what every answer needs around the page's handler.
func (s *Server) secured(next http.Handler, addr net.Addr) http.Handler {
	cross := http.NewCrossOriginProtection() // writes
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, "cross_origin", "Requests from other sites are refused.")
	}))
	next = cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case !s.hostAllowed(r, addr):
			fail(w, http.StatusMisdirectedRequest, "host", "This server does not answer to that name. Use the address in the link that claybot printed.")
		case foreignRead(r):
			fail(w, http.StatusForbidden, "cross_origin", "Requests from other sites are refused.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hostAllowed reports whether the Host header names us. An address literal that
// the connection really goes to is ours, too: only names can be rebound.
func (s *Server) hostAllowed(r *http.Request, addr net.Addr) bool {
	host := strings.ToLower(r.Host)
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return false
	}
	for _, own := range []string{"localhost", "127.0.0.1", "::1"} {
		if host == net.JoinHostPort(own, port) || port == "80" && (host == own || host == "["+own+"]") {
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

// foreignRead reports whether a page of another site tries to read, a stream
// for example. Following a link to us is no reading.
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
	origin := r.Header.Get("Origin")
	return origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host
}

// loggedIn lets in whoever has a session or the bearer token.
func (s *Server) loggedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie(s.cookieName()); err == nil && s.auth.session(c.Value) {
			next.ServeHTTP(w, withUser(r, Operator))
			return
		}
		if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
			if !s.mayGuess(w, r) {
				return
			}
			if s.auth.isToken(strings.TrimSpace(token)) {
				next.ServeHTTP(w, withUser(r, Operator))
				return
			}
			s.auth.guess.wrong(caller(r))
		}
		if r.Method == http.MethodGet && r.URL.Path == "/" {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		fail(w, http.StatusUnauthorized, "login", "Log in first: open the link that claybot printed at its start.")
	})
}

// mayGuess refuses whoever tried too many wrong secrets.
func (s *Server) mayGuess(w http.ResponseWriter, r *http.Request) bool {
	wait := s.auth.guess.locked(caller(r))
	if wait > 0 {
		tooMany(w, wait)
	}
	return wait == 0
}

// tooMany says how long to wait after too many wrong secrets.
func tooMany(w http.ResponseWriter, wait time.Duration) {
	seconds := strconv.Itoa(int(wait.Seconds()) + 1)
	w.Header().Set("Retry-After", seconds)
	fail(w, http.StatusTooManyRequests, "locked", "Too many wrong tokens. Try again in "+seconds+" seconds, or use a fresh link: claybot open prints one.")
}

// caller is the address a request came from, without the port.
func caller(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// local lets everybody in: the socket belongs to the owner.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, withUser(r, Operator))
	})
}

// bounded caps bodies, asks for JSON, and ends what only reads, streams above
// all, when ctx ends. Writes are left to finish.
func bounded(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			inner, cancel := context.WithCancelCause(r.Context())
			defer cancel(nil)
			defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
			r = r.WithContext(inner)
		}
		if r.ContentLength != 0 && r.Method != http.MethodGet && r.Method != http.MethodHead {
			kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
			if err != nil || kind != "application/json" {
				fail(w, http.StatusUnsupportedMediaType, "content_type", "The body must be JSON, with Content-Type: application/json.")
				return
			}
		}
		r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
		next.ServeHTTP(w, r)
	})
}

// tooLarge reports whether err says that a body was cut at the cap.
func tooLarge(err error) bool {
	var big *http.MaxBytesError
	return errors.As(err, &big)
}
