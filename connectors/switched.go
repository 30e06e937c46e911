package connectors

import (
	"errors"
	"net/http"
	"time"
)

// Switched returns a transport that refuses requests, without sending them, while
// off returns a reason. A nil off allows all requests.
func Switched(t http.RoundTripper, off func() string) http.RoundTripper {
	if off == nil {
		return t
	}
	return &switched{t, off}
}

type switched struct {
	next http.RoundTripper
	off  func() string
}

// RoundTrip implements http.RoundTripper.
func (s *switched) RoundTrip(r *http.Request) (*http.Response, error) {
	why := s.off()
	if why == "" {
		return s.next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close() // nothing was read
	}
	return nil, errors.New("switched off: " + why)
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the transport.
func (s *switched) CloseIdleConnections() {
	if c, ok := s.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
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
