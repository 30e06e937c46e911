// Package web is claybot's HTTP server: authentication, health, and the Unix socket of the
// command line. It serves Routes: the API (web/api), the pages (web/dashboard), metrics
// (web/metrics) and the chats.
//
// It guarantees: over TCP only health and the login page are served without a login;
// foreign host names (DNS rebinding) and cross-origin requests are rejected; tokens are
// random, compared in constant time, never logged, and limited to ten guesses a minute.
// When a session or token ends, so do its requests, including streams. Other machines are
// served with TLS, through a configured proxy, or because the operator allows it without;
// New rejects everything else. The Unix socket is for the owner of the data directory and
// needs no login. A port in use stops neither the socket nor the daemon.
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
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	// DefaultAddr is the address of the page unless configured.
	DefaultAddr = "127.0.0.1:8420"
	// Off as an address means: no TCP, only the unix socket.
	Off = "off"
	// Operator is the user id of the owner.
	Operator = "operator"

	bodyLimit    = 1 << 20
	shutdownWait = 3 * time.Second
	retryListen  = 5 * time.Second
)

// A Config configures a Server.
type Config struct {
	// Addr is host:port, Off, or empty for DefaultAddr. Port 0 chooses a free one.
	Addr string
	// Setting tells how the operator sets Addr, once it cannot be listened at; nil: CLAYBOT_HTTP_ADDR.
	Setting func() string
	// Hosts are additional names by which browsers may reach the page, with the port unless
	// it is the standard one.
	Hosts []string
	// Dir is the data directory; it contains the socket and a readable copy of the owner's
	// token.
	Dir string
	// Tree stores tokens and sessions: those of the data directory (see Names and Load), or
	// those shared by the members of a cluster. It is required; the caller runs it if other
	// members change it.
	Tree *storage.Mirror
	// Cookie is the suffix of the session cookie's name if members share sessions. Empty:
	// the port of the page.
	Cookie string
	// TLSCert and TLSKey are PEM files; with both, the page requires TLS. They are reloaded
	// when they change.
	TLSCert, TLSKey string
	// Insecure allows an address that other machines can reach without TLS.
	Insecure bool
	// Proxies are the addresses of TLS proxies in front of the page. Only their statements
	// about the client are trusted; if the page has no TLS of its own and is not Insecure,
	// other machines can reach it only through them.
	Proxies []netip.Prefix
	// Ready reports whether the daemon is usable, or else what is missing, with its code and the next step.
	Ready func() (ok bool, missing Problem)
	// Spent reports whether the budget of an API token has no room for another request, and
	// when its next period begins. Optional: without it, only model calls are refused.
	Spent func(ctx context.Context, token string) (resets time.Time, spent bool, err error)
	// Routes are the routes behind the login.
	Routes []Route
	// Announce receives a new login link each time the page starts to listen. It is a secret:
	// print it, do not log it. Optional.
	Announce func(LoginLink)
	Log      *slog.Logger
}

// A Server serves TCP and the unix socket. Its methods are safe for concurrent use.
type Server struct {
	cfg   Config
	log   *slog.Logger
	pulse connectors.Pulse
	auth  *auth
	cert  *certificate  // nil: no TLS
	up    chan struct{} // closed after the first attempt to open both listeners
	grace time.Duration // for active requests at shutdown

	proxies proxies

	mu   sync.Mutex
	addr net.Addr // of the page; nil while it is not listening
}

// New returns a server. It creates the owner's token if the data directory has none. It
// returns a Refusal for settings with which it may not serve.
func New(cfg Config) (*Server, error) {
	if cfg.Addr == "" {
		cfg.Addr = DefaultAddr
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, log: cfg.Log.With("part", "web"), up: make(chan struct{}), proxies: cfg.Proxies, grace: shutdownWait}
	if cfg.Addr != Off {
		if err := s.safe(); err != nil {
			return nil, err
		}
	}
	var err error
	if s.auth, err = newAuth(cfg.Dir, cfg.Tree, s.log); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	return s, nil
}

func (s *Server) safe() (err error) {
	switch {
	case (s.cfg.TLSCert == "") != (s.cfg.TLSKey == ""):
		return Refusal("the web page needs both http.tls_cert and http.tls_key for TLS; set the missing one, or neither")
	case s.cfg.TLSCert != "":
		s.cert, err = openCertificate(s.cfg.TLSCert, s.cfg.TLSKey, s.log)
		return err
	}
	return s.cfg.guarded(s.cfg.Addr)
}

// Health reports whether the page is listening. With TCP off it is healthy.
func (s *Server) Health() connectors.Health { return s.pulse.Health() }

// Up returns a channel that is closed after Run first tried to open both listeners.
func (s *Server) Up() <-chan struct{} { return s.up }

// Addr returns the actual address of the page as host:port, or "" while it is not listening.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr == nil {
		return ""
	}
	return s.addr.String()
}

// A LoginLink logs one browser in, once, within 15 minutes.
type LoginLink struct {
	// URL has the public name if a proxy with a name stands in front; otherwise it is for
	// this machine. Empty: the page is not listening.
	URL string `json:"url"`
	// Local is the same link for this machine, if URL is another one. It does not need the
	// proxy.
	Local string `json:"local,omitempty"`
	// Elsewhere is a link of its own for other devices, if URL is for this machine and they
	// can connect to the page.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Alone reports that other members do not know the link: the store was unreachable.
	Alone bool `json:"thisNodeOnly,omitempty"`
}

// NewLoginLink creates a link that logs one browser in.
func (s *Server) NewLoginLink() LoginLink {
	addr := s.Addr()
	if addr == "" {
		return LoginLink{}
	}
	code, shared := s.auth.newCode() // the failure to share it is logged
	at := s.links(addr, s.interfaces())
	l := LoginLink{URL: loginAt(at[0], code), Alone: !shared}
	switch {
	case s.cfg.fronted():
		l.URL, l.Local = loginAt(s.cfg.front(), code), loginAt(s.here(addr), code)
	case len(at) > 1 && !exposedURL(at[0]):
		code, _ = s.auth.newCode()
		l.Elsewhere = loginAt(at[1], code)
	}
	return l
}

func loginAt(base, code string) string { return base + "/login?token=" + code }

// Run serves until ctx is done; then it ends streams, lets active requests finish for 3 s
// and returns the cause. It returns earlier only on a fatal error.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	sock, err := listenUnix(ctx, s.cfg.Dir)
	if err != nil {
		s.log.Error("failed to open the socket for the command line", "err", err)
	} else {
		wg.Go(func() {
			defer sock.cleanup()
			if err := s.serve(ctx, sock.Listener, s.localHandler(ctx), nil); err != nil {
				s.log.Error("socket for the command line closed", "err", err)
			}
		})
	}
	wg.Go(func() { s.auth.follow(ctx) })
	if s.cfg.Addr == Off {
		s.pulse.OK()
		close(s.up)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	wg.Go(func() { s.auth.keep(ctx) })
	s.page(ctx)
	return context.Cause(ctx)
}

// page serves the page and retries while the port is in use.
func (s *Server) page(ctx context.Context) {
	first := sync.OnceFunc(func() { close(s.up) })
	said := ""
	for {
		l, err := new(net.ListenConfig).Listen(ctx, network(s.cfg.Addr), s.cfg.Addr)
		if err == nil {
			err = s.opened(ctx, l, first)
		}
		if err != nil && ctx.Err() == nil {
			setting := SettingAddr
			if s.cfg.Setting != nil {
				setting = s.cfg.Setting()
			}
			sentence := listenSentence("web page", setting, s.cfg.Addr, DefaultAddr, err)
			s.pulse.Fail(sentence)
			if sentence != said {
				said = sentence
				s.log.Error("web page not available", "problem", sentence)
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

// opened serves the page on an open listener. It checks the actual address: a name may
// resolve differently than before.
func (s *Server) opened(ctx context.Context, l net.Listener, up func()) error {
	if err := s.cfg.guarded(l.Addr().String()); err != nil {
		return errors.Join(err, l.Close())
	}
	s.open(l.Addr())
	up()
	defer s.setAddr(nil)
	return s.serve(ctx, limited(l, maxConns), s.pageHandler(ctx, l.Addr()), s.cert)
}

// open records that the page is listening and announces it.
func (s *Server) open(addr net.Addr) {
	s.setAddr(addr)
	s.pulse.OK()
	s.log.Info("web page started", "url", s.links(addr.String(), nil)[0]+"/")
	if exposed(addr.String()) && s.cert == nil && !s.cfg.proxied(addr.String()) {
		s.log.Warn("the web page is reachable from other machines and not encrypted: set http.tls_cert and http.tls_key, or use it in a network you trust", "addr", addr.String())
	}
	if s.cfg.Announce != nil {
		s.cfg.Announce(s.NewLoginLink())
	}
}

func (s *Server) setAddr(a net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr = a
}

// serve serves one listener and closes it: until ctx is done, or the error that
// ended it earlier. cert is nil where there is no TLS.
func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler, cert *certificate) error {
	return serve(ctx, l, h, cert, s.log, s.grace)
}

func serve(ctx context.Context, l net.Listener, h http.Handler, cert *certificate, log *slog.Logger, grace time.Duration) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if held, ok := l.(*limit); ok {
		srv.ConnState = held.watch
	}
	ended := make(chan error, 1)
	if cert == nil {
		go func() { ended <- srv.Serve(l) }()
	} else {
		srv.TLSConfig = cert.config()
		go func() { ended <- srv.ServeTLS(l, "", "") }()
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := srv.Shutdown(ending); err != nil {
		_ = srv.Close() // cut off requests that did not end in time
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Listenable returns an error with the next step if the page cannot listen at the addr of a setting. It
// listens for a moment.
func Listenable(ctx context.Context, addr, setting string) error {
	l, err := new(net.ListenConfig).Listen(ctx, network(addr), addr)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return errors.New(listenSentence("web page", setting, addr, DefaultAddr, err))
	}
	return nil
}

// SettingAddr is the variable that says where the page is.
const SettingAddr = "CLAYBOT_HTTP_ADDR"

// listenSentence explains why a listener does not listen at the address that a setting
// has, and how to fix it.
func listenSentence(what, setting, addr, example string, err error) string {
	var unsafe Refusal
	switch {
	case errors.As(err, &unsafe):
		return string(unsafe)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf("the %s cannot use %s: another program uses that port; set %s to another one", what, addr, setting)
	case errors.Is(err, syscall.EACCES):
		return fmt.Sprintf("the %s cannot use %s: no right to use that port; set %s to one above 1023", what, addr, setting)
	default:
		return fmt.Sprintf("the %s cannot use the address %q; set %s to host:port, for example %s, or to off", what, addr, setting, example)
	}
}
