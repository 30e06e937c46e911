// Package slacktest is Slack for tests: the part of the Web API and of Socket
// Mode that claybot uses, in one http.Handler, with people who write and
// faults on request.
//
// It is strict where Slack is. The app gets the events, commands and scopes of its
// manifest and nothing else, in channels that the bot is a member of. Calls have token
// roles, tiers, known channels and threads, limits in characters, the form of blocks and
// modals, one-time addresses, and short lives of triggers, streams and response addresses.
// A chat.update works on own messages only, metadata is shown only when asked for, and
// envelopes without an acknowledgement come again. Methods and arguments that Slack does not
// document are refused; Strange lists them. Time is that of package time, so that a synctest
// bubble rules it; connectorstest.Pipe is a network inside it.
//
// Known differences from the real platform: unacknowledged envelopes are
// repeated at a fixed pace, and at once when their socket closes, for ever unless
// Forget says otherwise; Slack ignores unknown arguments; a tier is exactly what Slack
// grants at least; any text that is given is stored as it is, without
// re-formatting; one workspace has one bot; a shared file is no message of its channel;
// there are no stacked modals, and only the blocks and
// elements that CheckBlocks and CheckView know; an edit with a text alone always
// keeps the blocks, of which Slack's documents say both; history goes from the
// newest message to older ones also when only its oldest is given.
//
// Only tests and commands import it.
package slacktest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config configures a Server. Zero fields mean the default.
type Config struct {
	Team     string // default T1
	BotUser  string // default UBOT
	BotID    string // default BBOT
	BotName  string // default claybot
	BotToken string // default xoxb-test
	AppToken string // default xapp-test

	Rotation *Rotation // nil: BotToken lasts
	Client   *Client   // nil: the app is installed by its owner, who copies BotToken

	// Manifest is the manifest of the app, as users paste it: which events and commands
	// the app gets, and what its bot token may do. New panics without one.
	Manifest string

	Redeliver      time.Duration  // until an unacknowledged envelope comes again, later than Patience; default 4 s
	Ping           time.Duration  // between pings on a socket; default 5 s
	ConnectionTime time.Duration  // what hello announces; default 1 h
	HistoryDelay   time.Duration  // until a post shows in history
	HistoryItems   int            // most messages in one page; default 100, and 15 for some apps
	Forget         time.Duration  // an event that was not acknowledged is lost after so long; 0: never
	PostEvery      time.Duration  // one chat.postMessage per channel in so long, after Burst; default 1 s, below 0: no limit
	Burst          int            // default 10
	PerMinute      map[string]int // calls of methods, in place of their tiers; 0: no limit
	Patience       time.Duration  // the life of a trigger, and how long a submitted modal waits; default 3 s
	Pick           Pick           // which socket gets an envelope
	NoEcho         bool           // own posts and edits do not come back as events
	// OnMessage is called after every new or edited message of the bot. It must be quick
	// and not call the server. Optional.
	OnMessage func(Message)
}

// Pick is how one of several sockets is chosen for an envelope.
type Pick int

// The ways to pick.
const (
	InTurn Pick = iota
	Oldest
	Newest
)

// A Server is one workspace with one app. Its methods may be called
// concurrently. It keeps its state while clients come and go.
type Server struct {
	cfg Config
	app app
	mux *http.ServeMux

	mu       sync.Mutex
	closed   bool
	channels map[string]*channel
	lastTS   int64
	lastID   int
	tickets  map[string]bool
	faults   map[string][]Fault
	journal  []Call
	changed  chan struct{} // closed and replaced at every change
	hangs    chan struct{} // closed at the end
	delivery
	desk
	cabinet
	archive
	rotating
	installing
	created []string // manifests
	down    bool
	running sync.WaitGroup
}

// New returns a workspace without people.
func New(cfg Config) *Server {
	for _, f := range []struct {
		field *string
		value string
	}{
		{&cfg.Team, "T1"},
		{&cfg.BotUser, "UBOT"},
		{&cfg.BotID, "BBOT"},
		{&cfg.BotName, "claybot"},
		{&cfg.BotToken, "xoxb-test"},
		{&cfg.AppToken, "xapp-test"},
	} {
		if *f.field == "" {
			*f.field = f.value
		}
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&cfg.Redeliver, 4 * time.Second}, {&cfg.Ping, 5 * time.Second}, {&cfg.ConnectionTime, time.Hour}, {&cfg.Patience, 3 * time.Second}, {&cfg.PostEvery, time.Second}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if cfg.Rotation != nil {
		c := *cfg.Rotation
		c.Life, c.Grace = cmp.Or(c.Life, 12*time.Hour), cmp.Or(c.Grace, time.Minute)
		cfg.Rotation = &c
	}
	if cfg.HistoryItems == 0 {
		cfg.HistoryItems = 100
	}
	if cfg.Burst == 0 {
		cfg.Burst = 10
	}
	described, err := readManifest(cfg.Manifest)
	if err != nil || !described.sockets {
		panic(fmt.Sprint("slacktest: an app with Socket Mode is needed: ", err)) // a mistake of the test
	}
	s := &Server{
		cfg: cfg, app: described, mux: http.NewServeMux(), channels: make(map[string]*channel), tickets: make(map[string]bool),
		faults: make(map[string][]Fault), changed: make(chan struct{}), hangs: make(chan struct{}),
	}
	s.open = make(map[string]*envelope)
	s.spent, s.left, s.archived, s.kinds = make(map[string][]time.Time), make(map[string]bool), make(map[string]bool), make(map[string]string)
	s.shared = make(map[string]bool)
	s.files, s.noScope, s.reactions = make(map[string]*held), make(map[string]bool), make(map[string]map[string][]string)
	s.triggers, s.views, s.replies = make(map[string]*trigger), make(map[string]*view), make(map[string]*reply)
	s.users, s.responses = make(map[string]User), make(map[string]*response)
	s.homes, s.published = make(map[string][]object), make(map[string]int)
	if c := cfg.Rotation; c != nil {
		s.refresh = map[string]time.Time{c.RefreshToken: {}}
	}
	s.mux.HandleFunc("POST /api/{method}", s.serveAPI)
	for _, kind := range []string{"commands", "actions", "app"} {
		s.mux.HandleFunc("POST /"+kind+"/{team}/{n}/{id}", s.serveResponse)
	}
	s.mux.HandleFunc("GET /socket", s.serveSocket)
	s.mux.HandleFunc("POST /upload/{team}/{ticket}", s.serveUpload)
	s.mux.HandleFunc("GET /files-pri/{id}", s.serveFile)
	return s
}

// ServeHTTP serves the Web API below /api/ and the sockets.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends all sockets and timers and everything that hangs, and waits for
// them.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.hangs)
	for _, e := range s.open {
		e.stop()
	}
	sockets := append([]*socket(nil), s.sockets...)
	s.mu.Unlock()
	for _, c := range sockets {
		c.close()
	}
	s.running.Wait()
}

// change wakes all waiters. The caller holds the lock.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// stamp is the ts of a new message: its time, never the same twice. The lock
// is held.
func (s *Server) stamp() string {
	s.lastTS = max(s.lastTS+1, time.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
}

// next numbers things. The lock is held.
func (s *Server) next(prefix string) string {
	s.lastID++
	return fmt.Sprintf("%s%08d", prefix, s.lastID)
}

// A Fault makes one call of a method fail. The method "socket" is the
// WebSocket handshake, where only Status counts.
type Fault struct {
	Error      string        // a code, with ok false
	Needed     string        // beside missing_scope
	Status     int           // an HTTP status and a page of HTML
	RetryAfter time.Duration // 429, rounded up to seconds
	Done       bool          // the work is done before it fails
	Cut        bool          // the work is done, the answer ends in the middle
	Lost       bool          // the work is done, the connection ends without an answer
	Hang       bool          // the work is done, no answer comes
	Skip       bool          // this call works: the fault is for the next one
	Channel    string        // the fault waits for a call about this channel; empty: for any call
}

// Fail lets the next calls of a method fail, each with one of the faults.
func (s *Server) Fail(method string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = append(s.faults[method], faults...)
}

// Heal drops the faults of a method that have not happened.
func (s *Server) Heal(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.faults, method)
}

// A Call is one request to the Web API, without its token.
type Call struct {
	At     time.Time
	Method string
	Form   url.Values
	Status int
	Answer string // "ok", an error code, or how it failed
}

// Journal returns all calls so far.
func (s *Server) Journal() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.journal...)
}

// Calls returns the calls of one method.
func (s *Server) Calls(method string) []Call {
	var calls []Call
	for _, c := range s.Journal() {
		if c.Method == method {
			calls = append(calls, c)
		}
	}
	return calls
}

func (s *Server) note(method string, form url.Values, status int, answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	form.Del("token")
	s.journal = append(s.journal, Call{At: time.Now(), Method: method, Form: form, Status: status, Answer: answer})
	s.change()
}

// fault takes the next fault of a method.
func (s *Server) fault(method, channel string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.faults[method], func(f Fault) bool { return f.Channel == "" || f.Channel == channel })
	if i < 0 {
		return Fault{}
	}
	f := s.faults[method][i]
	s.faults[method] = slices.Delete(s.faults[method], i, i+1)
	if f.Skip {
		return Fault{}
	}
	return f
}

// form reads the arguments of a call, in either form that Slack takes.
func form(r *http.Request) (url.Values, error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		err := r.ParseForm()
		return r.Form, err
	}
	values := url.Values{}
	var body map[string]any
	if r.ContentLength != 0 {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, err
		}
	}
	for k, v := range body {
		if text, ok := v.(string); ok {
			values.Set(k, text)
			continue
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		values.Set(k, string(b))
	}
	return values, nil
}
