package web

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
)

// network returns the network to listen on for a configured address: tcp4 for
// 0.0.0.0, which Go would otherwise treat as all IPv4 and IPv6 interfaces.
func network(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip.To4() != nil {
		return "tcp4"
	}
	return "tcp"
}

// exposed reports whether other machines can reach a listener at addr. A host
// name counts as exposed, whatever it resolves to.
func exposed(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "localhost" {
		return false // invalid, or reachable from this machine only
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.Unmap().IsLoopback()
}

// guarded returns an error with the next step if addr is reachable from other
// machines and no encryption is configured.
func (c *Config) guarded(addr string) error {
	return Guarded(addr, c.TLSCert != "" || c.Insecure || len(c.Proxies) > 0)
}

// Guarded returns an error with the next step if addr is reachable from other machines and
// not protected.
func Guarded(addr string, protected bool) error {
	if addr == Off || !exposed(addr) || protected {
		return nil
	}
	return Refusal(fmt.Sprintf("the web page at %s would be reachable from other machines without encryption; set http.tls_cert and http.tls_key, "+
		"or http.trusted_proxies to the proxy in front of it, or listen on %s; CLAYBOT_HTTP_INSECURE=1 allows it all the same, for a network you trust", addr, DefaultAddr))
}

// exposedURL is exposed for the URL of a page.
func exposedURL(page string) bool {
	u, err := url.Parse(page)
	return err == nil && exposed(net.JoinHostPort(u.Hostname(), "0"))
}

// interfaces returns the addresses of this machine, of which other devices can use those that
// are no loopback. In a container there are none: its addresses end at the machine around it.
func (s *Server) interfaces() []net.Addr {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return nil
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		s.log.Debug("failed to list the addresses of this machine", "err", err)
	}
	return own
}

func (c *Config) proxied(addr string) bool {
	return exposed(addr) && c.TLSCert == "" && !c.Insecure && len(c.Proxies) > 0
}

func (c *Config) fronted() bool { return len(c.Proxies) > 0 && len(c.Hosts) > 0 }

// front returns the URL of the page behind a TLS proxy, whose name is the first
// of Hosts.
func (c *Config) front() string { return "https://" + c.Hosts[0] }

// here returns the URL of the page for a browser on this machine, preferring names in
// the certificate.
func (s *Server) here(addr string) string {
	at := reachable(addr, nil)[0]
	if s.cert != nil {
		return "https://" + at
	}
	return "http://" + at
}

func (s *Server) links(addr string, own []net.Addr) []string {
	scheme, at := "http://", reachable(addr, own)
	switch {
	case s.cert != nil:
		scheme = "https://"
		at = append(at, s.cfg.Hosts...)
		// A browser warns about names that are not in the certificate: they come last.
		slices.SortStableFunc(at, func(a, b string) int { return cmp.Compare(s.foreign(a), s.foreign(b)) })
		at = slices.Compact(at)
		at = at[:min(len(at), 2)]
	case s.cfg.fronted():
		return []string{scheme + at[0], s.cfg.front()}
	case s.cfg.proxied(addr):
		at = at[:1] // other machines cannot connect directly
	}
	for i := range at {
		at[i] = scheme + at[i]
	}
	return at
}

// foreign returns 1 for a host that is not in the certificate, else 0.
func (s *Server) foreign(addr string) int {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if s.cert.names(host) {
		return 0
	}
	return 1
}

// reachable lists where a browser finds what listens at addr. An address that
// means every interface is replaced by the one for this machine, followed by
// the first that others can reach, if own (the machine's addresses) has one.
func reachable(addr string, own []net.Addr) []string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return []string{addr}
	}
	at := []string{net.JoinHostPort("127.0.0.1", port)}
	for _, a := range own {
		n, ok := a.(*net.IPNet)
		if ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return append(at, net.JoinHostPort(n.IP.String(), port))
		}
	}
	return at
}
