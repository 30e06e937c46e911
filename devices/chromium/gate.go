package chromium

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/claybot/claybot/devices"
)

// A gate is the one way out of a browser: a proxy on this machine that connects to
// the hosts and to nothing else. Redirects are the browser's to follow, through
// the gate again.
type gate struct {
	hosts    devices.Hosts
	log      *slog.Logger
	listener net.Listener
	server   *http.Server
	out      *http.Transport
	forward  *httputil.ReverseProxy
	tunnels  sync.WaitGroup
	done     chan struct{}

	mu     sync.Mutex
	conns  map[net.Conn]bool // of tunnels; nil: closed
	passed int
	shut   int
}

func openGate(ctx context.Context, hosts devices.Hosts, log *slog.Logger) (*gate, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{hosts: hosts, log: log, listener: listener, conns: make(map[net.Conn]bool), done: make(chan struct{})}
	g.out = &http.Transport{ // no proxy: what is allowed is reached directly
		DialContext: g.dial, MaxIdleConnsPerHost: 6, IdleConnTimeout: 30 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second, DisableCompression: true,
	}
	g.forward = &httputil.ReverseProxy{
		Rewrite:       func(*httputil.ProxyRequest) {}, // it names its target itself
		Transport:     g.out,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // as if there were no gate
		},
	}
	g.server = &http.Server{Handler: g, ReadHeaderTimeout: 30 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() {
		defer close(g.done)
		if err := g.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("browser gate stopped", "err", err)
		}
	}()
	return g, nil
}

// dial connects to a host of the list. It is asked for each connection, so nothing
// gets around it.
func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if !g.hosts.AllowsAddr(addr) {
		return nil, devices.Failed("%s is not within the hosts", addr)
	}
	return (&net.Dialer{Timeout: 15 * time.Second}).DialContext(ctx, network, addr)
}

func (g *gate) address() string { return "http://" + g.listener.Addr().String() }

func (g *gate) count(allowed bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if allowed {
		g.passed++
	} else {
		g.shut++
	}
	return allowed
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		if !g.count(g.hosts.AllowsAddr(r.Host)) {
			http.Error(w, "not within the hosts", http.StatusForbidden)
			return
		}
		g.tunnel(w, r)
	case !g.count(r.URL.Host != "" && g.hosts.Allows(&url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host})):
		http.Error(w, "not within the hosts", http.StatusForbidden)
	default:
		g.forward.ServeHTTP(w, r)
	}
}

func (g *gate) tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := g.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, "the host cannot be reached", http.StatusBadGateway)
		return
	}
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	if !g.hold(here, there) {
		return
	}
	go func() {
		defer g.tunnels.Done()
		defer g.drop(here, there)
		_, _ = io.Copy(there, buffered) // it ends when either side does
	}()
	defer g.tunnels.Done()
	defer g.drop(here, there)
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	_, _ = io.Copy(here, there)
}

// hold remembers the two connections of a tunnel, so that Close can end them and
// wait for the two that copy; it closes them at once when the gate is closed.
func (g *gate) hold(here, there net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns == nil {
		_ = here.Close()
		_ = there.Close()
		return false
	}
	g.conns[here], g.conns[there] = true, true
	g.tunnels.Add(2)
	return true
}

func (g *gate) drop(conns ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(g.conns, c)
	}
}

func (g *gate) Close() error {
	err := g.server.Close()
	g.mu.Lock()
	for c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
	g.mu.Unlock()
	g.tunnels.Wait()
	<-g.done
	g.out.CloseIdleConnections()
	return err
}
