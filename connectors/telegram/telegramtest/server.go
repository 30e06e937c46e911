// Package telegramtest is an emulator of Telegram's Bot API for tests and
// demonstrations: one bot, its chats, and people whom the test lets speak.
//
// It stands apart from the daemon, so its state survives the daemon's
// restarts. It refuses what Telegram refuses, in Telegram's words: unknown
// chats and messages, texts over 4,096 UTF-16 units, broken HTML, polls that
// compete. It may be used over TCP (Start) or in memory (Transport), there
// also inside a synctest bubble; its only clock is time.Now.
//
// Known differences from the real platform:
//
//   - One bot and one token. The bot is a member of every group and may write unless it
//     was kicked. It is in privacy mode unless the test says otherwise (Config.SeesAll,
//     Promote).
//   - The methods of the table in methods.go, with their parameters and no others;
//     Telegram ignores unknown ones. Everything else is 404. Files are sent as
//     multipart/form-data only.
//   - Webhooks may be without TLS on loopback.
//   - Of a picture the form and the size are checked, of a voice message the
//     first bytes only, and one of another type is refused where Telegram shows
//     a document. Of the reactions that Telegram knows, some are known.
//   - Parse modes are none and HTML. Entities of plain text (addresses,
//     hashtags) are not found. Adjacent and nested entities are kept as they
//     were written, without Telegram's merging and sorting.
//   - Limits are exact: for a chat, a group and the bot as Telegram's FAQ says. Typing
//     signs do not count.
//   - An update below the offset is forgotten at once, also when ids jumped
//     down after a quiet week.
//   - Below a message there may be inline buttons with data or an address, or a
//     forced reply; other keyboards are refused. Buttons without a text, rows
//     of more than 8, more than 100 in all and hints of more than 64
//     characters are refused in words of our own, where Telegram cuts or drops.
//   - A button press waits 150 s to be fetched and, unless the test says otherwise, may
//     be answered for 15 s; Telegram names no time for that.
//   - Messages become inaccessible to button presses when the test says so, not by age.
//   - No inline queries, reactions of people, stickers or albums of
//     the bot.
//
// Only tests and cmd import this package.
package telegramtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Config configures a Server. The zero value is a bot named claybot with the
// token Token.
type Config struct {
	Token    string // default the constant Token
	Username string // default "claybot"
	// ChatRate is how many messages and edits per second a chat takes, default 1, and
	// ChatBurst how many at once, default 20. Groups take 20 a minute as well, and all
	// chats together 30 a second. NoLimits switches all of that off, for measurements.
	ChatRate  float64
	ChatBurst int
	NoLimits  bool
	// Local is the directory of a server that runs with --local: it writes the files of people
	// there and names them by absolute paths.
	Local string
	// NoDrafts is a server older than Bot API 9.3, which does not know sendMessageDraft.
	NoDrafts bool
	// SeesAll switches privacy mode off.
	SeesAll bool
	// Hooks carries updates to a webhook; default http.DefaultTransport.
	Hooks http.RoundTripper
	// PressAge is how old a button press may be when it is answered; default 15 s.
	PressAge time.Duration
	// OnMessage is called after every new or edited message of the bot, and
	// must be quick. Optional.
	OnMessage func(Message)
	// NoJournal switches the journal off, for measurements.
	NoJournal bool
}

// Token is the default token: obviously a fake.
const Token = "1234567:FAKE-telegram-token-for-tests-only"

// A Server is the emulated Telegram. It is safe for concurrent use.
type Server struct {
	cfg  Config
	bot  int64
	done chan struct{} // closed by Close

	mu       sync.Mutex
	token    string // the valid one
	queue    queue
	presses  presses
	chats    map[int64]*chat
	people   map[int64]*person
	messages int64 // last message id of private chats and basic groups
	faults   []*Fault
	calls    map[string]int
	log      journal
	menus    map[string][]Command // by scope and language
	files    map[string]*held     // by their ids
	// reactions are the emoji that are taken.
	reactions map[string]bool
	business  map[string]bool // connections to business accounts, whether they are enabled
	hook      hook
	hooking   sync.WaitGroup
	all       rate // of all chats together
	strange   []string
	broken    int           // violations of a silence
	changed   chan struct{} // closed when something happens; nil while no call waits

	listener net.Listener
	addr     string
	http     *http.Server
	pipes    *pipeListener
	refusing bool
}

// New returns a Server that serves requests as an http.Handler; Start and
// Transport make it reachable.
func New(cfg Config) *Server {
	if cfg.Token == "" {
		cfg.Token = Token
	}
	if cfg.Username == "" {
		cfg.Username = "claybot"
	}
	if cfg.ChatRate == 0 {
		cfg.ChatRate = chatRate
	}
	if cfg.ChatBurst == 0 {
		cfg.ChatBurst = chatBurst
	}
	if cfg.PressAge <= 0 {
		cfg.PressAge = defaultPressAge
	}
	s := &Server{
		token: cfg.Token,
		cfg:   cfg, done: make(chan struct{}), chats: make(map[int64]*chat), people: make(map[int64]*person),
		calls: make(map[string]int), reactions: knownReactions(),
	}
	_, _ = fmt.Sscanf(cfg.Token, "%d:", &s.bot) // a token without an id is a bot without one
	s.queue.next = 100_000_001
	return s
}

// Start listens on a port of 127.0.0.1, the same one when it was stopped
// before, and returns the base address for the Bot API.
func (s *Server) Start() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return "http://" + s.addr, nil
	}
	addr := s.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("telegramtest: listen: %w", err)
	}
	s.listener, s.addr = l, l.Addr().String()
	s.http = s.newHTTP()
	go func(h *http.Server) { _ = h.Serve(l) }(s.http) // ends with Stop
	return "http://" + s.addr, nil
}

// Stop refuses connections until Start is called again, and cuts those there
// are. The state is kept.
func (s *Server) Stop() {
	s.mu.Lock()
	h, l := s.http, s.listener
	s.http, s.listener = nil, nil
	s.mu.Unlock()
	if h != nil {
		_, _ = h.Close(), l.Close() // a listener that is closed already
	}
}

// Close ends everything.
func (s *Server) Close() {
	s.Stop()
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	if s.pipes != nil {
		_ = s.pipes.http.Close() // only the listener's own error
	}
	s.mu.Unlock()
	s.hooking.Wait()
}

// RefuseConnections makes dials of Transport fail, as an unreachable host.
func (s *Server) RefuseConnections(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusing = refuse
}

// Transport reaches the server in memory, whatever the host of an address.
// All uses of one Server must be in the same synctest bubble or in none.
func (s *Server) Transport() *http.Transport {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pipes == nil {
		s.pipes = &pipeListener{conns: make(chan net.Conn), done: s.done, http: s.newHTTP()}
		go func(l *pipeListener) { _ = l.http.Serve(l) }(s.pipes) // ends with Close
	}
	l := s.pipes
	return &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			s.mu.Lock()
			refusing := s.refusing
			s.mu.Unlock()
			if refusing {
				return nil, errors.New("connection refused")
			}
			here, there := net.Pipe()
			select {
			case l.conns <- there:
				return here, nil
			case <-l.done:
				return nil, net.ErrClosed
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

func (s *Server) newHTTP() *http.Server {
	return &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
}

// A pipeListener hands in-memory connections to an http.Server.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	http  *http.Server
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { return nil }
func (l *pipeListener) Addr() net.Addr { return &net.IPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// maxRequest is the largest request that is read.
const maxRequest = 1 << 20

// Reissue gives the bot another token, as @BotFather does with /revoke: the one before is refused
// from now on.
func (s *Server) Reissue(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// valid returns the valid token.
func (s *Server) valid() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// ServeHTTP answers /bot<token>/<method>.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := strings.Index(r.URL.Path, "/bot")
	if at < 0 {
		http.NotFound(w, r)
		return
	}
	rest := r.URL.Path[at+len("/bot"):]
	if strings.HasSuffix(r.URL.Path[:at], "/file") {
		s.serveFile(w, r, rest)
		return
	}
	token, method, _ := strings.Cut(rest, "/")
	body, file, err := read(r, int64(s.maxUpload()))
	c := call{method: strings.ToLower(method), ctx: r.Context(), params: body, file: file}
	f := s.begin(&c)
	if f != nil && f.before(s, w, r, &c) {
		return
	}
	var status int
	var answer []byte
	switch {
	case err != nil:
		status, answer = encode(nil, &apiError{Code: 400, Description: "Bad Request: can't parse the request"})
	case token != s.valid() && strings.Contains(token, ":"):
		status, answer = encode(nil, &apiError{Code: 401, Description: "Unauthorized"})
	case token != s.valid():
		status, answer = encode(nil, &apiError{Code: 404, Description: "Not Found"})
	default:
		status, answer = encode(s.handle(&c))
	}
	if f != nil {
		f.after(s, w, &c, answer)
	}
	s.end(&c, status, answer)
	write(w, status, "application/json", answer)
}

func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away gets nothing
}

// read takes a request in. A client that goes away meanwhile is no request.
func read(r *http.Request, most int64) ([]byte, *upload, error) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		body, file, err := form(r, most)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			panic(http.ErrAbortHandler)
		}
		return body, file, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	body, err = params(r, body)
	return body, nil, err
}

// params brings the parameters, which Telegram takes as JSON, as a form or in
// the address, into JSON.
func params(r *http.Request, body []byte) ([]byte, error) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return body, nil
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	for key, v := range r.URL.Query() {
		values[key] = append(values[key], v...)
	}
	return formJSON(values), nil
}
