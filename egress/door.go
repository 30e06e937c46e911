package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	lookupLimit = 10 * time.Second
	dialLimit   = 10 * time.Second
	// firstLimit bounds the attempt at an address that others follow.
	firstLimit = 3 * time.Second
	// maxAddresses are tried of one name.
	maxAddresses = 8
)

// A Door lets out what its policy allows. It is safe for concurrent use.
type Door struct {
	rules    rules
	own      func(netip.AddrPort) bool
	resolver *net.Resolver
	log      func(Request)
}

// New makes the door of a policy. The error names the entries that are wrong.
func New(p Policy) (*Door, error) {
	all, err := p.rules()
	if err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	d := &Door{rules: all, own: p.Own, resolver: p.Resolver, log: p.Log}
	if d.own == nil {
		d.own = func(netip.AddrPort) bool { return false }
	}
	if d.resolver == nil {
		d.resolver = net.DefaultResolver
	}
	if d.log == nil {
		d.log = func(Request) {}
	}
	return d, nil
}

// Check says whether an address may be asked for, as far as that can be told
// without looking its name up; nil means that it may. The error is a
// *RefusedError.
func (d *Door) Check(u *url.URL) error {
	t, err := targetOf(u)
	if err != nil {
		return err
	}
	_, err = d.permit(t)
	return err
}

// permit is the part of the decision that needs no addresses, and for an address
// the whole of it.
func (d *Door) permit(t target) (exception bool, err error) {
	exception, why := d.rules.permit(t)
	if why == "" && t.addr.IsValid() {
		why = d.closed(t.addr, t.port, exception)
	}
	if why != "" {
		return false, &RefusedError{t.String(), why}
	}
	return exception, nil
}

// closed says why nothing connects to an address; empty when it may be.
func (d *Door) closed(a netip.Addr, port uint16, exception bool) string {
	if why := reachable(a, exception); why != "" {
		return why
	}
	if d.own(netip.AddrPortFrom(plain(a), port)) {
		return "is claybot itself"
	}
	return ""
}

// DialContext connects to "host:port" when the policy allows it: the name is
// looked up once, each of its addresses is checked, and the connection goes to
// one of those that were checked. One forbidden address among them refuses the
// name. The network is tcp, tcp4 or tcp6. The error is a *RefusedError when
// nothing was sent because of the policy.
func (d *Door) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, &RefusedError{shorten(addr), "is not asked for by tcp"}
	}
	t, err := parseTarget(addr)
	if err != nil {
		return nil, &RefusedError{shorten(addr), err.Error()}
	}
	exception, err := d.permit(t)
	if err != nil {
		return nil, err
	}
	found, err := d.lookup(ctx, t, exception)
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		if why := d.closed(a, t.port, exception); why != "" {
			return nil, &RefusedError{t.String(), why}
		}
	}
	return d.connect(ctx, network, t, found[:min(len(found), maxAddresses)], exception)
}

func (d *Door) lookup(ctx context.Context, t target, exception bool) ([]netip.Addr, error) {
	if t.addr.IsValid() {
		return []netip.Addr{t.addr}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	name := t.name
	if !exception && strings.Contains(name, ".") {
		// The dot at the end keeps the resolver from trying the name within the
		// domains of this machine's own network. Exceptions may be such names.
		name += "."
	}
	found, err := d.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		reason := "its name cannot be looked up now"
		if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
			reason = "there is no such host"
		}
		return nil, fmt.Errorf("%s: %s: %w", t.name, reason, errLookup{err})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: there is no such host", t.name)
	}
	for i := range found {
		found[i] = plain(found[i])
	}
	return found, nil
}

// errLookup keeps the cause of a failed lookup without its words, which repeat
// the name and name the resolver.
type errLookup struct{ err error }

func (e errLookup) Error() string { return "lookup failed" }
func (e errLookup) Unwrap() error { return e.err }

// connect tries the addresses in their order. What the system is about to connect
// to is compared once more with what was checked, in the last moment before.
func (d *Door) connect(ctx context.Context, network string, t target, list []netip.Addr, exception bool) (net.Conn, error) {
	var last error
	for i, a := range list {
		want := netip.AddrPortFrom(a, t.port)
		limit := dialLimit
		if i < len(list)-1 {
			limit = firstLimit
		}
		dialer := net.Dialer{
			Timeout: limit,
			Control: func(_, address string, _ syscall.RawConn) error {
				got, err := netip.ParseAddrPort(address)
				if err != nil || netip.AddrPortFrom(plain(got.Addr()), got.Port()) != want {
					return &RefusedError{t.String(), "leads elsewhere than what was checked"}
				}
				if why := d.closed(got.Addr(), got.Port(), exception); why != "" {
					return &RefusedError{t.String(), why}
				}
				return nil
			},
		}
		c, err := dialer.DialContext(ctx, network, want.String())
		if err == nil {
			return c, nil
		}
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			return nil, refused
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("%s cannot be reached: %w", t, last)
}

// Listeners makes a Policy.Own of the addresses "host:port" at which this program
// listens. One without a host, or with 0.0.0.0 or ::, is at every address of
// this machine, as they are when it is asked. What is no such address, for
// example the path of a socket, is left out.
func Listeners(addrs ...string) func(netip.AddrPort) bool {
	exact := make(map[netip.AddrPort]bool)
	anywhere := make(map[uint16]bool)
	for _, text := range addrs {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			continue
		}
		n, err := parsePort(port)
		if err != nil {
			continue
		}
		if host == "localhost" {
			exact[netip.AddrPortFrom(netip.IPv6Loopback(), n)] = true
			host = "127.0.0.1"
		}
		a, err := netip.ParseAddr(host)
		switch {
		case host == "" || err == nil && a.IsUnspecified():
			anywhere[n] = true
		case err == nil:
			exact[netip.AddrPortFrom(plain(a.WithZone("")), n)] = true
		}
	}
	return func(at netip.AddrPort) bool {
		a := plain(at.Addr().WithZone(""))
		if exact[netip.AddrPortFrom(a, at.Port())] {
			return true
		}
		return anywhere[at.Port()] && (a.IsLoopback() || a.IsUnspecified() || ofThisMachine(a))
	}
}

func ofThisMachine(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true // it cannot be told: refuse
	}
	for _, x := range all {
		if p, err := netip.ParsePrefix(x.String()); err == nil && plain(p.Addr().WithZone("")) == a {
			return true
		}
	}
	return false
}
