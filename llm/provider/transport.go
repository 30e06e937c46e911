package provider

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// NewTransport returns a transport for many calls at once to few hosts: one
// HTTP/1.1 connection for each call in flight, kept for the next ones. It
// honours the proxy and certificate settings of the environment.
func NewTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true) // a stuck HTTP/2 connection would stall every agent
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 512,
		IdleConnTimeout:     90 * time.Second,
		// Compression saves nothing on small pieces, delays them, and hides
		// how large an answer is.
		DisableCompression: true,
		Protocols:          &protocols,
	}
}

var errRedirect = errors.New("redirect refused")

// checkRedirect follows redirects on the same host only, without loss of
// encryption, and only those that repeat the POST. So the key goes nowhere else.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 3:
		return fmt.Errorf("%w: too many", errRedirect)
	case req.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: to another host", errRedirect)
	case first.URL.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("%w: to an address without encryption", errRedirect)
	case req.Method != first.Method:
		return fmt.Errorf("%w: it turns the request into another", errRedirect)
	}
	return nil
}
