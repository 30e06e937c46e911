package connectors

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// A Pool is the transport of a connector. From Wake to Rest, while the connector runs or stands by for another
// member, it keeps connections for later calls. At other times no connection outlives the calls that use it,
// such as a check of credentials before that, the rest of a delivery afterwards, and a test while the connector
// is stopped. While a setting switches the connector off, it refuses requests without sending them. It is safe
// for concurrent use.
type Pool struct {
	next http.RoundTripper
	off  func() string

	mu    sync.Mutex
	awake bool
	busy  int // requests whose answers are not read yet
}

// NewPool returns a pool at rest over a transport, which it alone uses. off says why requests are refused; empty: they
// are not. A nil off allows all.
func NewPool(next http.RoundTripper, off func() string) *Pool { return &Pool{next: next, off: off} }

// Wake says that the connector runs or stands by.
func (p *Pool) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awake = true
}

// Rest says that the connector neither runs nor stands by any more.
func (p *Pool) Rest() {
	p.mu.Lock()
	p.awake = false
	p.mu.Unlock()
	p.CloseIdleConnections()
}

// CloseIdleConnections closes the connections that no call uses.
func (p *Pool) CloseIdleConnections() {
	if c, ok := p.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (p *Pool) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.off != nil {
		if why := p.off(); why != "" {
			if r.Body != nil {
				_ = r.Body.Close() // nothing was read
			}
			return nil, errors.New("switched off: " + why)
		}
	}
	p.mu.Lock()
	p.busy++
	p.mu.Unlock()
	resp, err := p.next.RoundTrip(r)
	if err != nil {
		p.done()
		return nil, err //nolint:wrapcheck // as of the transport
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // its body is the connection
		p.done()
		return resp, nil
	}
	resp.Body = &pooledBody{ReadCloser: resp.Body, done: sync.OnceFunc(p.done)}
	return resp, nil
}

// done ends a request.
func (p *Pool) done() {
	p.mu.Lock()
	p.busy--
	last := !p.awake && p.busy == 0
	p.mu.Unlock()
	if last {
		p.CloseIdleConnections()
	}
}

// A pooledBody is the body of an answer. The transport has its connection back before Close returns.
type pooledBody struct {
	io.ReadCloser
	done func()
}

func (b *pooledBody) Close() error {
	err := b.ReadCloser.Close()
	b.done()
	return err //nolint:wrapcheck // as of the transport
}

// Transport returns a transport of its own for the API of a platform.
func Transport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}
}
