package web

import (
	"net/http"
	"strings"
)

// shaped replaces the plain-text errors of a mux, for unknown paths and methods, by
// claybot's error format.
func shaped(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r) // sets the path values, too
			return
		}
		var said unsaid
		h.ServeHTTP(&said, r)
		if said.status != http.StatusNotFound && said.status != http.StatusMethodNotAllowed {
			h.ServeHTTP(w, r) // redirects to the clean path
			return
		}
		failMux(w, r, said.status, said.Header().Get("Allow"))
	})
}

// An unsaid is a response that is discarded.
type unsaid struct {
	head   http.Header
	status int
}

func (u *unsaid) Header() http.Header {
	if u.head == nil {
		u.head = make(http.Header)
	}
	return u.head
}

func (u *unsaid) WriteHeader(status int)      { u.status = status }
func (u *unsaid) Write(b []byte) (int, error) { return len(b), nil }

func failMux(w http.ResponseWriter, r *http.Request, status int, allow string) {
	if status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allow)
		Fail(w, status, "method", "This path does not support "+r.Method+".", "Use "+allow+".")
		return
	}
	Fail(w, status, "not_found", "No such path.", "See GET /openapi.json.")
}

// reshaped is shaped for a handler with its own mux.
func reshaped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&reshaper{ResponseWriter: w, r: r}, r)
	})
}

// A reshaper replaces a mux's plain-text errors by claybot's error format.
type reshaper struct {
	http.ResponseWriter
	r     *http.Request
	plain bool // the body is a mux's text
}

func (s *reshaper) WriteHeader(status int) {
	h := s.Header()
	if status != http.StatusNotFound && status != http.StatusMethodNotAllowed || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		s.ResponseWriter.WriteHeader(status)
		return
	}
	s.plain = true
	failMux(s.ResponseWriter, s.r, status, h.Get("Allow"))
}

func (s *reshaper) Write(b []byte) (int, error) {
	if s.plain {
		return len(b), nil
	}
	return s.ResponseWriter.Write(b)
}

// the interface returns no error
func (s *reshaper) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() } // the interface has no error

// Unwrap supports http.ResponseController.
func (s *reshaper) Unwrap() http.ResponseWriter { return s.ResponseWriter }
