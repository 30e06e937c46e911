// Package discordtest is Discord for tests: the part of the gateway and of the REST API that
// claybot uses, in one http.Handler, with people who write and faults on request.
//
// It is strict where Discord is. The gateway wants one identify in five seconds and a number of
// them in a day, intents that the app may use, heartbeats in time, at most 120 payloads in a minute
// and a known sequence; a session is resumed for some minutes (Config.Keep), with the events behind
// the last that a heartbeat named. Events and contents follow the intents. Calls need the token,
// have buckets of channels and a number in a second for the bot, the limits of texts, embeds,
// components and files, and work on own messages; a nonce is enforced for some minutes; messages
// that are read show none. Interactions want a response within three seconds, once, and their
// tokens end after 15 minutes; addresses of files are signed. Calls that Discord does not document
// are refused, and so are parameters that the table of shapes lacks; Strange lists them. Time is
// that of package time.
//
// Documentation: docs.discord.com/developers, events/gateway, events/gateway-events,
// resources/message, topics/rate-limits, interactions/receiving-and-responding and
// components/reference, read 2026-11-28.
//
// Known differences from the real platform: one bot, which sees every channel unless it was
// removed; contents are stored as they are sent; permissions are all or nothing, but for Read Message History; an emoji is any
// text; ids only grow.
//
// Only tests and commands import it.
package discordtest

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/lazyregexp"
)

// Token is the token of the bot, and Bot its id.
const (
	Token = "OTAwMDAwMDAwMDAwMDAwMDAx.FAKE00.FAKE-discord-token-for-tests-only"
	Bot   = "900000000000000001"
)

// Config configures a Server. Zero fields mean the default.
type Config struct {
	Token string // default Token
	Bot   string // default Bot
	// NoContent: the app may not use the Message Content intent. ClaimContent: it says that it
	// may, and the gateway refuses it.
	NoContent, ClaimContent bool
	Heartbeat               time.Duration // default 41.25 s
	Keep                    time.Duration // of a session without a connection; default 5 min
	Sessions                int           // that may be started in a day; default 1,000
	Sends                   int           // messages of a channel in five seconds; default 5
	Requests                int           // of the bot in a second; default 50
}

// A Server is Discord with one bot. Its methods may be called concurrently. It keeps its state
// while clients come and go.
type Server struct {
	cfg Config

	mu       sync.Mutex
	closed   bool
	down     bool
	revoked  bool
	lastID   int64
	born     time.Time
	lastName int
	channels map[string]*channel
	names    map[string]string // of people
	nonces   map[string]nonce
	limits   map[string]*bucket
	made     []time.Time // calls of the bot within a second
	faults   []*Fault
	calls    map[string]int
	strange  []string
	commands []any
	puts     int // of commands
	asks     map[string]*asked
	whispers map[string][]string
	modals   map[string]*asked
	typing   map[string]int
	gateway
	changed chan struct{} // closed and replaced at every change
	hangs   chan struct{} // closed at the end
	running sync.WaitGroup
	stops   []func()
}

const firstID = 100_000_000_000_000_000

// New returns a platform without people.
func New(cfg Config) *Server {
	if cfg.Token == "" {
		cfg.Token = Token
	}
	if cfg.Bot == "" {
		cfg.Bot = Bot
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 41_250 * time.Millisecond
	}
	if cfg.Keep == 0 {
		cfg.Keep = 5 * time.Minute
	}
	if cfg.Sessions == 0 {
		cfg.Sessions = 1000
	}
	if cfg.Sends == 0 {
		cfg.Sends = 5
	}
	if cfg.Requests == 0 {
		cfg.Requests = 50
	}
	return &Server{
		cfg: cfg, lastID: firstID, born: time.Now(), channels: make(map[string]*channel), names: make(map[string]string), nonces: make(map[string]nonce), limits: make(map[string]*bucket),
		calls: make(map[string]int), asks: make(map[string]*asked), whispers: make(map[string][]string), modals: make(map[string]*asked), typing: make(map[string]int),
		gateway: gateway{sessions: make(map[string]*session)}, changed: make(chan struct{}), hangs: make(chan struct{}),
	}
}

// Start serves on a port of the loopback and returns the base of the REST API.
func (s *Server) Start() (string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) }) // ends with the listener
	s.mu.Lock()
	s.stops = append(s.stops, func() { _ = server.Close(); serving.Wait() })
	s.mu.Unlock()
	return "http://" + l.Addr().String() + "/api/v10", nil
}

// Close ends all connections.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.hangs)
	}
	s.drop(0)
	stops := s.stops
	s.stops = nil
	s.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	s.running.Wait()
}

// id returns a new id: that of Discord at this time, or the next one. Before Discord's epoch, as
// in tests with a time of their own, ids grow with time as well. The lock is held.
func (s *Server) id() string {
	const epoch = 1_420_070_400_000
	s.lastID = max(s.lastID+1, (time.Now().UnixMilli()-epoch)<<22, firstID+time.Since(s.born).Milliseconds()<<22)
	return strconv.FormatInt(s.lastID, 10)
}

// next returns a new name. The lock is held.
func (s *Server) next(prefix string) string {
	s.lastName++
	return fmt.Sprintf("%s%d", prefix, s.lastName)
}

// change wakes those who wait. The lock is held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Strange returns the calls that Discord does not document.
func (s *Server) Strange() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.strange...)
}

// Calls counts the calls of a route, such as "POST messages".
func (s *Server) Calls(route string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[route]
}

// Typed counts the typing signs in a channel.
func (s *Server) Typed(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typing[channel]
}

// Commands returns how many commands are registered, and how often they were.
func (s *Server) Commands() (n, puts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.commands), s.puts
}

// mention is how a text names a command.
var mention = lazyregexp.New(`</([a-z]+):[0-9]+>`)

// Visible is a text of Discord's Markdown without its escapes, and with /NAME for each command that
// can be pressed.
func Visible(content string) string {
	content = mention.ReplaceAllString(content, "/$1")
	var b strings.Builder
	for i := 0; i < len(content); i++ {
		if content[i] == '\\' && i+1 < len(content) && strings.IndexByte("\\*_~`|<", content[i+1]) >= 0 {
			i++
		}
		b.WriteByte(content[i])
	}
	return b.String()
}

// TokenOf returns a token of the bot with an id.
func TokenOf(bot string) string {
	return base64.RawStdEncoding.EncodeToString([]byte(bot)) + ".FAKE00.FAKE-discord-token-for-tests-only"
}

// BotID is the id of the bot.
func (s *Server) BotID() string { return s.cfg.Bot }
