package web

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
)

type hereKey struct{}

// here reports whether a request comes from a browser of this machine, as far as the server can see:
// its connection is from a loopback address, it names a loopback host, and so does its origin, and no
// proxy has added a header or speaks HTTP/1.0, as nginx may and no browser does. A proxy that hides
// itself leaves the origin, which every browser sends with a write, such as a login.
func here(r *http.Request) bool {
	peer, ok := hop(r.RemoteAddr)
	if !ok || !peer.IsLoopback() || !r.ProtoAtLeast(1, 1) || !loopbackHost(r.Host) || r.Header.Get("Via") != "" {
		return false
	}
	for _, name := range forwarded {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err == nil && u.Host == r.Host
	}
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// loopbackHost reports whether a Host header, with a port or without, is a name of this machine.
func loopbackHost(host string) bool {
	u, err := url.Parse("//" + host)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// withHere notes whether a request comes from this machine, before what proxies say is applied to it.
func withHere(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), hereKey{}, here(r)))
}

// Here reports whether ctx is of a request of the owner from the machine of claybot: by the unix
// socket, or from a browser there that has logged in there: a session that began behind a proxy never
// counts, even if its cookie is brought here. A bearer token is never enough.
func Here(ctx context.Context) bool {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c.Local || c.Here
}
