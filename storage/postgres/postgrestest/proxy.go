package postgrestest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// A Proxy stands between a client and a server and does what networks do. It passes
// bytes on in both directions, each direction in order.
type Proxy struct {
	listener net.Listener
	to       string
	done     chan struct{}
	work     sync.WaitGroup

	mu    sync.Mutex
	links map[*link]bool
	cut   bool
	delay time.Duration
	thaw  chan struct{} // closed while bytes flow
	taken int           // connections so far
}

// A link is one connection of a client, and the one to the server that belongs to
// it; nil until that is made.
type link struct{ client, server *net.TCPConn }

// NewProxy makes a way to addr (host:port) that lasts as long as the test.
func NewProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	p, err := StartProxy(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Proxy is a way to the server that can be broken, as long as the test lasts.
func (s *Server) Proxy(t testing.TB) *Proxy {
	t.Helper()
	return NewProxy(t, s.addr())
}

// Addr is where the server listens, as host:port.
func (s *Server) Addr() string { return s.addr() }

// StartProxy is NewProxy for programs that are no tests; Close ends it.
func StartProxy(addr string) (*Proxy, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		listener: l, to: addr, done: make(chan struct{}), thaw: make(chan struct{}),
		links: make(map[*link]bool),
	}
	close(p.thaw)
	p.work.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL is the same database by way of the proxy.
func (p *Proxy) URL(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return database
	}
	u.Host = p.Addr()
	return u.String()
}

// Cut resets all connections, and new ones at once, until Restore.
func (p *Proxy) Cut() {
	p.mu.Lock()
	p.cut = true
	p.mu.Unlock()
	p.Drop()
}

// Restore ends Cut.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// Drop resets all connections and lets new ones through. It returns their number.
func (p *Proxy) Drop() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		reset(l.client)
		if l.server != nil {
			reset(l.server)
		}
	}
	n := len(p.links)
	clear(p.links)
	return n
}

// Freeze holds all bytes back, in both directions, as a network does whose packets
// are lost: connections are accepted, stay open and are silent. Thaw passes on what
// was held back.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thaw:
		p.thaw = make(chan struct{})
	default:
	}
}

// Thaw ends Freeze.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thaw:
	default:
		close(p.thaw)
	}
}

// Delay makes each direction take d longer from now on; 0 ends that.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Connections are how many are open, and how many there were so far.
func (p *Proxy) Connections() (open, taken int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links), p.taken
}

// Close ends the proxy and all its connections. Twice is once.
func (p *Proxy) Close() error {
	p.mu.Lock()
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	p.mu.Unlock()
	err := p.listener.Close()
	p.Drop()
	p.work.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.work.Go(func() { p.serve(c.(*net.TCPConn)) })
	}
}

// serve passes the bytes of one connection on, until one side ends it.
func (p *Proxy) serve(client *net.TCPConn) {
	l := &link{client: client}
	if !p.open(l, nil) || !p.flows() {
		p.forget(l)
		reset(client)
		return
	}
	c, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.to)
	if err != nil {
		p.forget(l)
		reset(client)
		return
	}
	server := c.(*net.TCPConn)
	if !p.open(l, server) {
		p.forget(l)
		reset(client)
		reset(server)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pass(client, server) })
	both.Go(func() { p.pass(server, client) })
	both.Wait()
	p.forget(l)
	_ = client.Close()
	_ = server.Close()
}

// open keeps a link to be cut; first without its server, then with it. False when it
// has been cut already.
func (p *Proxy) open(l *link, server *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		return false
	default:
	}
	if p.cut || server != nil && !p.links[l] {
		return false
	}
	if server == nil {
		p.taken++
	}
	l.server = server
	p.links[l] = true
	return true
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// flows waits while the proxy is frozen, and is false when there is no way.
func (p *Proxy) flows() bool {
	p.mu.Lock()
	thaw, cut := p.thaw, p.cut
	p.mu.Unlock()
	select {
	case <-thaw:
		return !cut
	case <-p.done:
		return false
	}
}

// A piece is what one read brought, and when it is to arrive.
type piece struct {
	bytes []byte
	due   time.Time
}

// pass carries one direction. Reading goes on while pieces wait for their time, so a
// delay is one of time and not of bandwidth.
func (p *Proxy) pass(from, to *net.TCPConn) {
	pieces := make(chan piece, 1024)
	var writing sync.WaitGroup
	writing.Go(func() {
		broken := false
		for next := range pieces {
			broken = broken || !p.until(next.due) || !p.flows()
			if !broken {
				_, err := to.Write(next.bytes)
				broken = err != nil
			}
			if broken {
				_ = from.CloseRead() // and nothing more is read
			}
		}
		if broken {
			reset(to)
		} else {
			_ = to.CloseWrite()
		}
	})
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.mu.Lock()
			due := time.Now().Add(p.delay)
			p.mu.Unlock()
			pieces <- piece{append([]byte(nil), buffer[:n]...), due}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				reset(to)
			}
			break
		}
	}
	close(pieces)
	writing.Wait()
}

// until waits for a time; false when the proxy ends before.
func (p *Proxy) until(due time.Time) bool {
	left := time.Until(due)
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.done:
		return false
	}
}

// reset ends a connection so that the other side sees an error, not an end.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
