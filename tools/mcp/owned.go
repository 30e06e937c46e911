package mcp

import (
	"net/http"
	"sync"
)

// maxSessions is how many sessions are open at most; the door in front limits
// how fast they come.
const maxSessions = 1000

const sessionHeader = "Mcp-Session-Id"

// owned keeps each session for the caller that began it: knowing its id is not enough.
type owned struct {
	inner  http.Handler
	caller func(*http.Request) string

	mu    sync.Mutex
	owner map[string]string // of sessions
	order []string          // of sessions, the oldest first
}

func (o *owned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := o.caller(r)
	id := r.Header.Get(sessionHeader)
	if id != "" {
		o.mu.Lock()
		owner, known := o.owner[id]
		o.mu.Unlock()
		if !known || owner != who {
			http.Error(w, "there is no such session; begin a new one", http.StatusNotFound)
			return
		}
		if r.Method == http.MethodDelete {
			defer o.forget(id)
		}
	}
	o.inner.ServeHTTP(&sessionWriter{ResponseWriter: w, begun: func(id string) { o.keep(id, who) }}, r)
}

func (o *owned) keep(id, who string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owner == nil {
		o.owner = make(map[string]string)
	}
	if _, known := o.owner[id]; known {
		return
	}
	o.owner[id] = who
	o.order = append(o.order, id)
	for len(o.order) > maxSessions {
		delete(o.owner, o.order[0])
		o.order = o.order[1:]
	}
}

func (o *owned) forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.owner, id) // its place in the order goes with time
}

// A sessionWriter sees which session an answer begins.
type sessionWriter struct {
	http.ResponseWriter
	begun func(id string)
	told  bool
}

func (w *sessionWriter) tell() {
	if w.told {
		return
	}
	w.told = true
	if id := w.Header().Get(sessionHeader); id != "" {
		w.begun(id)
	}
}

func (w *sessionWriter) WriteHeader(status int) {
	w.tell()
	w.ResponseWriter.WriteHeader(status)
}

func (w *sessionWriter) Write(b []byte) (int, error) {
	w.tell()
	return w.ResponseWriter.Write(b)
}

func (w *sessionWriter) Flush() {
	w.tell()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a writer that cannot sends at the end
}

func (w *sessionWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
