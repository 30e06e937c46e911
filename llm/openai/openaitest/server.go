// Package openaitest is an emulator of OpenAI's chat completions, transcriptions
// and speech API, for tests, benchmarks and the demo.
//
// It answers as scripted, by default with an echo, and refuses what the real
// service or a strict server like it would refuse: unknown fields, wrong roles,
// calls without results, bad tool names, parameters that are no schema. Every
// fault of servers and networks that claybot has to survive has a name and can
// be scripted for a single call. It keeps a journal and notices when one agent
// has two calls at once.
//
// Known differences from the real service: tokens are counted as bytes divided
// by four, there is no limit of the context, of rates or of budget unless a
// reply says so, only the fields that claybot may send are known, and a chat
// that ends with the assistant's turn is refused, as some servers do.
//
// Only tests, main's demo and benchmarks import it.
package openaitest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/llm"
)

// A Config says how an emulator behaves. The zero value echoes at once.
type Config struct {
	Key     string              // the bearer token that is asked for; any when empty
	Models  []string            // the models there are; any when empty
	Latency time.Duration       // before each answer
	Reply   func(Request) Reply // answers what Script does not; Echo when nil
	Dialect Dialect             // OpenAI's own when empty
	Keep    int                 // how many requests the journal holds; 1000 when 0
	Idle    time.Duration       // after that long, Start's server closes a connection that is not used; 0: never
}

// A Server is the emulator, an http.Handler for /v1/chat/completions, /v1/responses,
// /v1/audio/transcriptions, /v1/audio/speech and /v1/models, with and without /v1, and below /openai/v1 as Azure has them.
type Server struct {
	cfg Config
	mux *http.ServeMux

	mu      sync.Mutex
	revoked bool // no key is taken
	script  []Reply
	given   given
	journal journal

	audioScript []Reply
	audios      []Audio

	speechScript []Reply
	spoken       []Spoken
}

// New returns an emulator.
func New(cfg Config) *Server {
	if cfg.Reply == nil {
		cfg.Reply = Echo
	}
	if cfg.Keep == 0 {
		cfg.Keep = 1000
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux()}
	s.journal.keep = cfg.Keep
	for _, base := range [...]string{"", "/v1", "/openai/v1"} {
		s.mux.HandleFunc("POST "+base+"/chat/completions", s.chat)
		s.mux.HandleFunc("POST "+base+"/responses", s.responses)
		s.mux.HandleFunc("POST "+base+"/audio/transcriptions", s.transcriptions)
		s.mux.HandleFunc("POST "+base+"/audio/speech", s.speech)
		s.mux.HandleFunc("GET "+base+"/models", s.models)
	}
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
	srv := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, IdleTimeout: s.cfg.Idle}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // ends with stop
	}()
	return "http://" + l.Addr().String() + "/v1", func() {
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

func (s *Server) reply(r Request) Reply {
	s.mu.Lock()
	if len(s.script) > 0 {
		defer s.mu.Unlock()
		next := s.script[0]
		s.script = s.script[1:]
		return next
	}
	s.mu.Unlock()
	return s.cfg.Reply(r)
}

func (s *Server) chat(w http.ResponseWriter, hr *http.Request) {
	at := time.Now()
	req, err := s.decode(w, hr)
	if err != nil {
		var bad *apiError
		if !errors.As(err, &bad) {
			bad = refuse("", "the body cannot be read: %v", err)
		}
		s.journal.refuse(bad.Message)
		s.cfg.Dialect.write(w, bad)
		return
	}
	req.At = at
	call := s.journal.begin(hr.Context(), &req)
	defer call.end()
	reply := s.reply(req)
	if !reply.free(hr.Context()) || !pause(hr.Context(), s.cfg.Latency+reply.Delay) {
		return
	}
	s.answer(w, hr, req, reply, call)
}

func (s *Server) models(w http.ResponseWriter, hr *http.Request) {
	if bad := s.authorize(hr); bad != nil {
		bad.write(w)
		return
	}
	type model struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list", Data: []model{}}
	for _, m := range s.cfg.Models {
		list.Data = append(list.Data, model{ID: m, Object: "model"})
	}
	writeJSON(w, http.StatusOK, list)
}

// Revoke makes the server refuse every key from now on, or take the configured one again.
func (s *Server) Revoke(revoked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = revoked
}

// Swap puts another model behind the name: it takes nothing back that the one before gave with its answers. From then on,
// /responses takes calls without reasoning, as the real service always does.
func (s *Server) Swap() {
	s.given.mu.Lock()
	defer s.given.mu.Unlock()
	s.given.all, s.given.swapped = nil, true
}

func (s *Server) authorize(hr *http.Request) *apiError {
	s.mu.Lock()
	revoked := s.revoked
	s.mu.Unlock()
	if !revoked && (s.cfg.Key == "" || s.cfg.Dialect.key(hr.Header) == s.cfg.Key) {
		return nil
	}
	return &apiError{
		status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key",
		Message: "Incorrect API key provided: " + strings.TrimPrefix(hr.Header.Get("Authorization"), "Bearer ") +
			". You can find your API key at https://platform.openai.com/account/api-keys.",
	}
}

// free waits for Until and reports whether the client is still there.
func (r Reply) free(ctx context.Context) bool {
	return r.Until == nil || wait(ctx, r.Until)
}

// wait waits until a channel is closed and reports whether the client is still there.
func wait(ctx context.Context, until <-chan struct{}) bool {
	select {
	case <-until:
		return true
	case <-ctx.Done():
		return false
	}
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

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may have left
}

// LastUser is the text of the newest user message as its sender wrote it.
func (r Request) LastUser() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == llm.RoleUser {
			return llm.Unwrap(r.Messages[i].Content)
		}
	}
	return ""
}
