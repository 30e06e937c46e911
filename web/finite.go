package web

import (
	"context"
	"net/http"
)

// finite ends what only reads, and what streams, when ctx ends. Writes are left
// to finish.
func finite(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		end := func() { cancel(context.Cause(ctx)) }
		if r.Method == http.MethodGet {
			defer context.AfterFunc(ctx, end)()
		} else {
			f := &flushes{ResponseWriter: w, first: func() func() bool { return context.AfterFunc(ctx, end) }}
			defer f.done()
			w = f
		}
		next.ServeHTTP(w, r.WithContext(inner))
	})
}

type flushes struct {
	http.ResponseWriter
	first func() (stop func() bool)
	stop  func() bool
}

func (f *flushes) done() {
	if f.stop != nil {
		f.stop()
	}
}

func (f *flushes) written() {
	if f.stop == nil {
		f.stop = f.first()
	}
}

// Flush and FlushError send what was written.
func (f *flushes) Flush() { _ = f.FlushError() } // the interface has no error

// FlushError is Flush with its error.
func (f *flushes) FlushError() error {
	f.written()
	return http.NewResponseController(f.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (f *flushes) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// Written declares that the request has stored all it will store. From now on it only
// waits for its answer, and its context ends when the server stops, as for a read.
func Written(w http.ResponseWriter) {
	for {
		switch x := w.(type) {
		case *flushes:
			x.written()
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = x.Unwrap()
		default:
			return
		}
	}
}
