package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxSessions is how many sessions are open at most; the server in front limits
// how fast they come.
const maxSessions = 1000

const (
	sessionHeader = "Mcp-Session-Id"
	// lineHeader leads from a call to the connection that it came by. Clients cannot set it.
	lineHeader = "X-Claybot-Connection"
)

// sessions keeps each session for the caller that began it: knowing its id is not enough.
// It knows which sessions are connected, and by which connection a call came.
type sessions struct {
	inner  http.Handler
	caller func(*http.Request) string

	mu    sync.Mutex
	owner map[string]string // of sessions
	order []string          // of sessions, the oldest first
	open  map[string]int    // requests of sessions, by sessionMark
	lines map[string]*line  // by lineHeader
}

// A line is a connection that calls came by. nil: that of stdio.
type line struct {
	gone context.Context // ends with the connection

	mu     sync.Mutex
	closed bool
	broken bool // a part of the answer was not written
	after  []func(written bool)
}

// atEnd calls f when the answer was written, or could not be.
func (l *line) atEnd(f func(written bool)) {
	if l == nil {
		f(true)
		return
	}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.after = append(l.after, f)
	}
	l.mu.Unlock()
	if closed {
		f(false)
	}
}

// close ends the line when the answer was written, or could not be.
func (l *line) close() {
	l.mu.Lock()
	l.closed = true
	written := !l.broken && l.gone.Err() == nil
	after := l.after
	l.mu.Unlock()
	for _, f := range after {
		f(written)
	}
}

// sessionMark names a session where its id may be read.
func sessionMark(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// connected reports whether a session, by its sessionMark, has a connection.
func (s *sessions) connected(mark string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[mark] > 0
}

// connection returns the context of a call, which ends with the connection that it came
// by, and that connection.
func (d desk) connection(ctx context.Context, r *sdk.CallToolRequest) (context.Context, *line, func()) {
	if d.over == nil || r.Extra == nil {
		return ctx, nil, func() {}
	}
	d.over.mu.Lock()
	l := d.over.lines[r.Extra.Header.Get(lineHeader)]
	d.over.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	if l == nil { // it is closed already
		cancel()
		return ctx, &line{closed: true}, func() {}
	}
	stop := context.AfterFunc(l.gone, cancel)
	return ctx, l, func() { stop(); cancel() }
}

func (s *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := s.caller(r)
	id := r.Header.Get(sessionHeader)
	if id != "" {
		s.mu.Lock()
		owner, known := s.owner[id]
		s.mu.Unlock()
		if !known || owner != who {
			http.Error(w, "there is no such session; begin a new one", http.StatusNotFound)
			return
		}
		if r.Method == http.MethodDelete {
			defer s.forget(id)
		}
	}
	l := &line{gone: r.Context()}
	name, end := s.enter(l, sessionMark(id))
	defer end()
	r = r.Clone(r.Context())
	r.Header.Set(lineHeader, name)
	s.inner.ServeHTTP(&sessionWriter{ResponseWriter: w, begun: func(id string) { s.keep(id, who) }, line: l}, r)
}

// enter notes a request until end is called.
func (s *sessions) enter(l *line, session string) (name string, end func()) {
	name = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines, s.open = make(map[string]*line), make(map[string]int)
	}
	s.lines[name] = l
	s.open[session]++
	return name, func() {
		l.close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.lines, name)
		if s.open[session]--; s.open[session] <= 0 { // below 0: the session is forgotten
			delete(s.open, session)
		}
	}
}

func (s *sessions) keep(id, who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner == nil {
		s.owner = make(map[string]string)
	}
	if _, known := s.owner[id]; known {
		return
	}
	s.owner[id] = who
	s.order = append(s.order, id)
	for len(s.order) > maxSessions {
		delete(s.owner, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *sessions) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owner, id)             // its place in the order goes with time
	delete(s.open, sessionMark(id)) // its other connections are about to end
}

// A sessionWriter sees which session an answer begins, and whether all of it is written.
type sessionWriter struct {
	http.ResponseWriter
	begun func(id string)
	line  *line
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
	n, err := w.ResponseWriter.Write(b)
	w.check(err)
	return n, err
}

func (w *sessionWriter) Flush() {
	w.tell()
	_ = w.FlushError() // a writer that cannot sends at the end
}

// FlushError is Flush for http.ResponseController.
func (w *sessionWriter) FlushError() error {
	w.tell()
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.check(err)
	return err
}

func (w *sessionWriter) check(err error) {
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		return
	}
	w.line.mu.Lock()
	w.line.broken = true
	w.line.mu.Unlock()
}

func (w *sessionWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
