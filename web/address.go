package web

import "net"

// network is what to listen on for a configured address: 0.0.0.0 means IPv4
// alone, which Go would take for every interface of both kinds.
func network(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip.To4() != nil {
		return "tcp4"
	}
	return "tcp"
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
