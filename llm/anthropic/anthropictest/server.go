// Package anthropictest is an emulator of Anthropic's Messages API, for tests.
//
// It answers as scripted, by default with an echo, and refuses what the real
// service refuses: unknown fields, a missing version header, a missing or too
// large max_tokens, turns that do not alternate, calls without results, results
// that do not stand first, blank texts, more than four cache marks, bad tool
// names and schemas, bytes that are no picture or no PDF. It counts tokens and what its
// cache would do, keeps a journal, and each Fault can be
// scripted for a single call.
//
// Known differences from the real service: tokens are bytes divided by four,
// the cache holds for ever and for beginnings of any length, turns of the same
// role are refused where the service would join them, there is no limit of the
// context, of rates or of money unless a reply says so, and only the fields that
// claybot may send are known.
//
// Only tests import it.
package anthropictest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot/llm"
)

// A Config says how an emulator behaves. The zero value echoes at once.
type Config struct {
	Key       string   // the x-api-key that is asked for; any when empty
	Models    []string // the models there are; any when empty
	MaxTokens int64    // the most that a request may ask for; 128,000 when 0
	// Thinks: answers come with reasoning, and those with calls have to come back with it, unchanged.
	Thinks bool
	Reply  func(Request) Reply // answers what Script does not; Echo when nil
}

// A Server is the emulator, an http.Handler for /v1/messages.
type Server struct {
	cfg Config
	mux *http.ServeMux

	mu       sync.Mutex
	script   []Reply
	requests []Request
	refused  []string
	cache    map[string]bool // beginnings that were written
	usage    Usage           // sums
	thoughts map[string]bool // that were given
}

// New returns an emulator.
func New(cfg Config) *Server {
	if cfg.Reply == nil {
		cfg.Reply = Echo
	}
	if cfg.MaxTokens == 0 {
		cfg.MaxTokens = 128_000
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), cache: map[string]bool{}, thoughts: map[string]bool{}}
	s.mux.HandleFunc("POST /v1/messages", s.messages)
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Start serves on a free port of the loopback address and returns the base URL
// for clients. stop ends all connections and returns when nothing runs any more.
func (s *Server) Start() (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // ends with stop
	}()
	return "http://" + l.Addr().String(), func() {
		_ = srv.Close() // no caller is left to report an error to
		<-done
	}, nil
}

// Script sets how the next calls are answered, in order, before Config.Reply is
// asked again. Calls that are refused use nothing up.
func (s *Server) Script(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, replies...)
}

// Echo answers "echo: " and the text of the newest user message.
func Echo(r Request) Reply { return Reply{Text: "echo: " + r.LastUser()} }

// Calls returns how many requests were accepted.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// Requests returns the accepted requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Refused returns why requests were refused for what they contain.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// Spent returns the sums of what answers said they took.
func (s *Server) Spent() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

func (s *Server) messages(w http.ResponseWriter, hr *http.Request) {
	req, err := s.decode(w, hr)
	if err != nil {
		var bad *apiError
		if !errors.As(err, &bad) {
			bad = refuse("the body cannot be read: %v", err)
		}
		s.mu.Lock()
		s.refused = append(s.refused, bad.Message)
		s.mu.Unlock()
		bad.write(w)
		return
	}
	s.mu.Lock()
	req.N = len(s.requests) + 1
	s.requests = append(s.requests, req)
	var reply Reply
	scripted := len(s.script) > 0
	if scripted {
		reply, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	if !scripted {
		reply = s.cfg.Reply(req)
	}
	if !pause(hr.Context(), reply.Delay) {
		return
	}
	s.answer(w, hr, req, reply)
}

// count returns what a call takes and keeps it. Of the input, what was marked
// for the cache before is read from it, what is marked anew is written.
func (s *Server) count(req Request, reply Reply) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := reply.Usage
	if u == nil {
		u = &Usage{Output: (reply.size() + 3) / 4}
		read, written := 0, 0
		for _, begin := range req.marks {
			if s.cache[begin] {
				read = max(read, len(begin))
			}
			written = max(written, len(begin))
			s.cache[begin] = true
		}
		written -= read
		u.CacheRead, u.CacheWrite = read/4, written/4
		u.Input = max(req.Size-read-written, 4) / 4
	}
	s.usage.Input += u.Input
	s.usage.CacheRead += u.CacheRead
	s.usage.CacheWrite += u.CacheWrite
	s.usage.Output += u.Output
	return *u
}

// An apiError is an error in the shape that Anthropic gives it.
type apiError struct {
	status  int
	header  map[string]string
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (e *apiError) Error() string { return e.Message }

func refuse(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...)}
}

func (e *apiError) body() []byte {
	b, _ := json.Marshal(map[string]any{"type": "error", "error": e, "request_id": "req_fake"}) // always marshals
	return b
}

func (e *apiError) write(w http.ResponseWriter) {
	for k, v := range e.header {
		w.Header().Set(k, v)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_, _ = w.Write(e.body()) // the client may have left
}

// pause waits and reports whether the client is still there.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// LastUser is the text of the newest user message as its sender wrote it.
func (r Request) LastUser() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == llm.RoleUser {
			return llm.Unwrap(m.Content)
		}
	}
	return ""
}
