package web

import (
	"net/http"
	"strings"
)

// shaped answers in the one shape of errors where a mux would in plain text: for
// paths and methods that it does not know.
func shaped(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r) // which sets the parts of the path, too
			return
		}
		var said unsaid
		h.ServeHTTP(&said, r)
		if said.status != http.StatusNotFound && said.status != http.StatusMethodNotAllowed {
			h.ServeHTTP(w, r) // on to the clean form of a path
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

// reshaped does the same for a handler with a mux of its own.
func reshaped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&reshaper{ResponseWriter: w, r: r}, r)
	})
}

// A reshaper puts the one shape of errors in the place of a mux's plain text.
type reshaper struct {
	http.ResponseWriter
	r     *http.Request
	plain bool // what comes is the text of a mux
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

// Flush sends what was written.
func (s *reshaper) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() } // the interface has no error

// Unwrap is for http.ResponseController.
func (s *reshaper) Unwrap() http.ResponseWriter { return s.ResponseWriter }
