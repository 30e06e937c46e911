// Package web is claybot's HTTP door: the chat page, the operator's few
// endpoints, health, and the unix socket that the command line uses.
//
// It guarantees: over TCP nothing but health and the login page is served
// without a login; names that are not ours (DNS rebinding) and requests from
// foreign pages are refused; tokens are random, compared in constant time,
// never logged, and guessed at most ten times a minute. The unix socket is
// for the owner of the data directory, who needs no login. A port that is taken
// stops neither the socket nor the daemon.
//
// Only cmd imports it.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	// DefaultAddr is where the page is when nothing else is configured.
	DefaultAddr = "127.0.0.1:8420"
	// Off as an address means: no TCP, only the unix socket.
	Off = "off"
	// Operator is the user id of everybody who is logged in: the owner.
	Operator = "operator"

	bodyLimit    = 1 << 20
	shutdownWait = 3 * time.Second
	retryListen  = 5 * time.Second
)

// A System is what the door opens to.
type System interface {
	Crew
	// Status is the value of `status --json`.
	Status(ctx context.Context) (any, error)
	// Ready reports whether every connector has had its first success, and in
	// words what is missing.
	Ready() (ok bool, words string)
	Pairings(ctx context.Context) ([]storage.Pairing, error)
	// Approve and Deny end a request by its code; storage.ErrNotFound.
	Approve(ctx context.Context, code string) (storage.Pairing, error)
	Deny(ctx context.Context, code string) error
	Grants(ctx context.Context) ([]storage.Grant, error)
	// Allow lets somebody in without a code.
	Allow(ctx context.Context, connector, subject string) error
	// Revoke takes that back; storage.ErrNotFound. still says in a sentence
	// what lets the person in all the same, if anything.
	Revoke(ctx context.Context, connector, subject string) (still string, err error)
}

// A Crew is the agents of a System, as an operator looks after them. Methods
// that name an agent return storage.ErrNotFound when there is none.
type Crew interface {
	Agents(ctx context.Context) ([]storage.IndexEntry, error)
	// StopAgent ends what an agent and those below it are doing, and returns
	// how many runs it asked to end.
	StopAgent(ctx context.Context, id claybot.AgentID) (int, error)
	// ResetAgent makes an agent forget its conversation.
	ResetAgent(ctx context.Context, id claybot.AgentID) error
	// DeleteAgent takes an agent away; its files move to the quarantine.
	DeleteAgent(ctx context.Context, id claybot.AgentID) error
	Inbox(ctx context.Context, id claybot.AgentID) (agentsystem.InboxView, error)
	// Drop takes waiting messages out of an inbox, all when none is named, and
	// returns those it took.
	Drop(ctx context.Context, id claybot.AgentID, ids ...claybot.MessageID) ([]claybot.MessageID, error)
	// AgentReminders lists what an agent will be reminded of, the next one first.
	AgentReminders(ctx context.Context, id claybot.AgentID) ([]storage.Reminder, error)
}

// A Refusal is an error of a System that is told to who asked, in these words.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// A Config says where to listen and what to serve.
type Config struct {
	// Addr is host:port, Off, or empty for DefaultAddr. Port 0 takes a free one.
	Addr string
	// Hosts are further names by which browsers may reach the page, with port
	// when it is not the standard one.
	Hosts []string
	// Dir is the data directory; it holds the socket, the token and sessions.
	Dir    string
	System System
	// Tasks and Beats are the cron tasks and the tasks of the heartbeat. Either
	// may be nil: it is off.
	Tasks connectors.Tasks
	Beats connectors.Beats
	// Chat and Terminal are the handlers of the two built-in chats, which ask
	// User who is there. Either may be nil.
	Chat     http.Handler
	Terminal http.Handler
	// Announce is told fresh one-time login links each time the page has come
	// up: the first is for this machine; where other machines reach the page,
	// a second is for them. They are secrets: print them, do not log them.
	// Optional.
	Announce func(links []string)
	Log      *slog.Logger
}

// A Server is the door. Its methods are safe for concurrent use.
type Server struct {
	cfg   Config
	log   *slog.Logger
	pulse connectors.Pulse
	auth  *auth
	up    chan struct{} // closed when both doors were tried once

	mu   sync.Mutex
	addr net.Addr // of the page, nil while it is not up
}

// New makes a server. It creates the token of the data directory when there is
// none; that is the only thing that can fail.
func New(cfg Config) (*Server, error) {
	if cfg.Addr == "" {
		cfg.Addr = DefaultAddr
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a, err := newAuth(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	return &Server{cfg: cfg, log: cfg.Log.With("part", "web"), auth: a, up: make(chan struct{})}, nil
}

// Health tells whether the page is up. With TCP off it is live at once.
func (s *Server) Health() connectors.Health { return s.pulse.Health() }

// Up is closed when Run has tried to open both doors for the first time:
// those that can be open are.
func (s *Server) Up() <-chan struct{} { return s.up }

// Addr is the actual address of the page as host:port, empty while it is not
// up.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr == nil {
		return ""
	}
	return s.addr.String()
}

// NewLoginLink makes a link that logs one browser in, once, within 15 minutes.
// It is empty while the page is not up.
func (s *Server) NewLoginLink() string {
	addr := s.Addr()
	if addr == "" {
		return ""
	}
	return s.linkTo(reachable(addr, nil)[0])
}

func (s *Server) linkTo(addr string) string {
	return "http://" + addr + "/login?token=" + s.auth.newCode()
}

// Run serves until ctx is done; then it ends streams, lets requests under way
// finish for 3 s and returns the cause. It returns earlier only when it cannot
// go on at all.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	sock, err := listenUnix(ctx, s.cfg.Dir)
	if err != nil {
		s.log.Error("the command line cannot reach this daemon", "err", err)
	} else {
		wg.Go(func() {
			defer sock.cleanup()
			if err := s.serve(ctx, sock.Listener, s.localHandler(ctx)); err != nil {
				s.log.Error("the command line cannot reach this daemon any more", "err", err)
			}
		})
	}
	if s.cfg.Addr == Off {
		s.pulse.OK()
		close(s.up)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	s.page(ctx)
	return context.Cause(ctx)
}

// page keeps the page up: it tries again when the port is taken.
func (s *Server) page(ctx context.Context) {
	first := sync.OnceFunc(func() { close(s.up) })
	said := ""
	for {
		l, err := new(net.ListenConfig).Listen(ctx, network(s.cfg.Addr), s.cfg.Addr)
		if err == nil {
			s.open(l.Addr())
			first()
			err = s.serve(ctx, l, s.pageHandler(ctx, l.Addr()))
			s.setAddr(nil)
		}
		if err != nil && ctx.Err() == nil {
			sentence := listenSentence(s.cfg.Addr, err)
			s.pulse.Fail(sentence)
			if sentence != said {
				said = sentence
				s.log.Error("web page is not up", "problem", sentence)
			}
		}
		first()
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryListen):
		}
	}
}

// open notes that the page is up and says where.
func (s *Server) open(addr net.Addr) {
	s.setAddr(addr)
	s.pulse.OK()
	own, err := net.InterfaceAddrs()
	if err != nil {
		s.log.Debug("the addresses of this machine are not known", "err", err)
	}
	at := reachable(addr.String(), own)
	s.log.Info("web page is up", "url", "http://"+at[0]+"/")
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		s.log.Warn("the web page is reachable from other machines and not encrypted: put a TLS proxy in front of it, or use it in a network you trust", "addr", addr.String())
	}
	if s.cfg.Announce != nil {
		links := make([]string, len(at))
		for i, a := range at {
			links[i] = s.linkTo(a)
		}
		s.cfg.Announce(links)
	}
}

func (s *Server) setAddr(a net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr = a
}

// serve serves one listener and closes it: until ctx is done, or the error that
// ended it earlier.
func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWait)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // what did not end in time is cut
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listenSentence says why the page is not up and what to do.
func listenSentence(addr string, err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf("the web page cannot use %s: another program uses that port; set CLAYBOT_HTTP_ADDR to another one, for example 127.0.0.1:8421", addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Sprintf("the web page cannot use %s: no right to use that port; set CLAYBOT_HTTP_ADDR to one above 1023", addr)
	default:
		return fmt.Sprintf("the web page cannot use the address %q; set CLAYBOT_HTTP_ADDR to host:port, for example %s, or to off", addr, DefaultAddr)
	}
}
