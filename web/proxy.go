package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// forwarded are the headers with which proxies report the client. Handlers
// never see them: trusted values are applied to the request itself.
var forwarded = []string{
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server",
	"X-Forwarded-Ssl", "X-Forwarded-Scheme", "X-Forwarded-Prefix", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip",
}

type proxies []netip.Prefix

func (p proxies) have(addr netip.Addr) bool {
	for _, each := range p {
		if each.Contains(addr) {
			return true
		}
	}
	return false
}

type secureKey struct{}

// secure reports whether the browser's end of a request is encrypted, as far as
// is known.
func secure(r *http.Request) bool {
	said, _ := r.Context().Value(secureKey{}).(bool)
	return said || r.TLS != nil
}

// believe returns the request as the client sent it, if a trusted proxy
// forwarded it: with the client's address, host and scheme. Headers from other
// peers are ignored.
func (p proxies) believe(r *http.Request) *http.Request {
	peer, ok := hop(r.RemoteAddr)
	if ok && p.have(peer) {
		said := last(r.Header.Values("X-Forwarded-Proto"))
		inner := r.WithContext(context.WithValue(r.Context(), secureKey{}, strings.EqualFold(said, "https")))
		inner.RemoteAddr = net.JoinHostPort(p.client(peer, r.Header.Values("X-Forwarded-For")).String(), "0")
		if host := last(r.Header.Values("X-Forwarded-Host")); host != "" {
			inner.Host = host
		}
		r = inner
	}
	for _, name := range forwarded {
		r.Header.Del(name)
	}
	return r
}

// client returns the first address, starting from the nearest, that is not a
// trusted proxy. Earlier entries are untrusted.
func (p proxies) client(peer netip.Addr, values []string) netip.Addr {
	hops := strings.Split(strings.Join(values, ","), ",")
	for i := len(hops) - 1; i >= 0 && p.have(peer); i-- {
		next, ok := hop(hops[i])
		if !ok {
			break
		}
		peer = next
	}
	return peer
}

func last(values []string) string {
	all := strings.Join(values, ",")
	return strings.TrimSpace(all[strings.LastIndexByte(all, ',')+1:])
}

func hop(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if withPort, err := netip.ParseAddrPort(s); err == nil {
		return withPort.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return addr.Unmap().WithZone(""), err == nil
}
