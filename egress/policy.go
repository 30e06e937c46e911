// Package egress is the only way out to hosts that come from configuration, models or
// users. It looks a name up once, checks every address that it got, and connects to
// exactly the address that it checked. So DNS rebinding, redirects and unusual spellings
// of an address reach nothing that the policy does not allow.
//
// Only http and https go out, without user names in addresses and without proxies from
// the environment. Policy.Log gets each request without its path and query.
//
// Proxy lets programs in a container use the same policy; Relay and
// Proxy.ServeTunnel carry their connections over a pipe, so that the container
// needs no network at all.
//
// It imports nothing of claybot.
package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A Policy says what may be reached. The zero Policy allows nothing.
type Policy struct {
	// Public allows every host whose addresses are all public, at the ports of
	// the web and at those from 1024 that no other well-known service has.
	Public bool
	// AnyPort: Public holds for every port.
	AnyPort bool
	// Allow lists hosts: "example.com" and "*.example.com", which is all names
	// below that one, mean the ports 80 and 443; "example.com:8080" that port
	// alone. Their addresses must be public too.
	Allow []string
	// Private lists pairs "host:port", names or addresses, which may be on this
	// machine or in a private network. They are allowed by being here. Link-local
	// addresses, those of cloud metadata and multicast stay refused.
	Private []string
	// Own reports addresses at which claybot itself listens; nothing reaches
	// them, not even by Private. Nil for none. See Listeners.
	Own func(netip.AddrPort) bool
	// Resolver looks names up; nil is that of the system.
	Resolver *net.Resolver
	// Log is told about each request and each connection of a proxy when it has
	// ended. It must not block. Nil discards.
	Log func(Request)
}

// A Request is what became of one request, or one connection through a proxy.
type Request struct {
	Method   string
	Host     string // name:port; shortened where it is no host
	Sent     int64  // bytes of bodies, or through a tunnel
	Received int64
	Decision Decision
	Why      string // of one that is refused or failed; never a path or query
	Took     time.Duration
}

// A Decision is what the door did with a request.
type Decision string

// The decisions.
const (
	Allowed Decision = "allowed"
	Refused Decision = "refused" // by the policy: nothing was sent
	Failed  Decision = "failed"  // it was allowed, and did not work
)

// A RefusedError says that the policy does not allow something. Its text is fit
// for a model or a person; it has a host, and never a path or a query.
type RefusedError struct {
	Host string // as it was written, shortened; may be empty
	Why  string
}

func (e *RefusedError) Error() string {
	if e.Host == "" {
		return "refused: the address " + e.Why
	}
	return "refused: " + e.Host + " " + e.Why
}

// A rule allows one host, or all below it. Port 0 stands for 80 and 443.
type rule struct {
	target
	below bool
}

func (r rule) matches(t target) bool {
	if r.port == 0 && t.port != 80 && t.port != 443 || r.port != 0 && r.port != t.port {
		return false
	}
	if r.below {
		return !t.addr.IsValid() && strings.HasSuffix(t.name, "."+r.name)
	}
	return r.name == t.name
}

// rules are the lists of a policy as they are asked.
type rules struct {
	public  bool
	ports   bool // all of them
	allow   []rule
	private []rule
}

func (p Policy) rules() (rules, error) {
	all := rules{public: p.Public, ports: p.AnyPort}
	var errs []error
	for _, text := range p.Allow {
		r, err := parseRule(text)
		if err == nil && r.addr.IsValid() {
			if why := reachable(r.addr, false); why != "" {
				err = fmt.Errorf("host %.80q: it %s; what is private is listed as such, with its port", text, why)
			}
		}
		errs = append(errs, err)
		all.allow = append(all.allow, r)
	}
	for _, text := range p.Private {
		t, err := parseTarget(strings.TrimSpace(text))
		if err != nil {
			err = fmt.Errorf(`private host %.80q: it %w; want a name or an address with its port, such as "10.0.0.5:8080"`, text, err)
		} else if t.addr.IsValid() {
			if why := reachable(t.addr, true); why != "" {
				err = fmt.Errorf("private host %.80q: it %s", text, why)
			}
		}
		errs = append(errs, err)
		all.private = append(all.private, rule{target: t})
	}
	if err := errors.Join(errs...); err != nil {
		return rules{}, err
	}
	return all, nil
}

func parseRule(text string) (rule, error) {
	fault := func(why error) (rule, error) {
		return rule{}, fmt.Errorf(`host %.80q: it %w; write a host like "example.com", "*.example.com" or "example.com:8080"`, text, why)
	}
	var r rule
	rest, below := strings.CutPrefix(strings.TrimSpace(text), "*.")
	host := rest
	if h, port, err := net.SplitHostPort(rest); err == nil {
		n, err := parsePort(port)
		if err != nil {
			return fault(err)
		}
		host, r.port = h, n
	} else if b, ok := strings.CutPrefix(rest, "["); ok {
		host = strings.TrimSuffix(b, "]")
	}
	name, addr, err := parseHost(host)
	if err != nil {
		return fault(err)
	}
	r.name, r.addr, r.below = name, addr, below
	if below && (addr.IsValid() || !strings.Contains(name, ".")) {
		return fault(errors.New("stands for too much"))
	}
	return r, nil
}

// permit says whether a target may be asked for, before its addresses are known,
// and whether these may be private.
func (r rules) permit(t target) (exception bool, why string) {
	is := func(x rule) bool { return x.matches(t) }
	switch {
	case slices.ContainsFunc(r.private, is):
		return true, ""
	case slices.ContainsFunc(r.allow, is):
		return false, ""
	case !r.public:
		return false, "is not on the list of hosts"
	case !r.ports && !webPort(t.port):
		return false, "has a port that is not for the web"
	}
	return false, ""
}

// services are ports from 1024 at which something listens that takes a request
// of the web for commands of its own. Browsers refuse them as well.
var services = []uint16{
	1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211,
}

func webPort(port uint16) bool {
	return port == 80 || port == 443 || port >= 1024 && !slices.Contains(services, port)
}

// targetOf is where an address of the web leads. The error is a *RefusedError.
func targetOf(u *url.URL) (target, error) {
	if u == nil {
		return target{}, &RefusedError{Why: "is empty"}
	}
	shown := shorten(u.Hostname())
	refuse := func(why string) (target, error) { return target{}, &RefusedError{shown, why} }
	port := uint16(80)
	switch u.Scheme {
	case "http":
	case "https":
		port = 443
	default:
		return target{}, &RefusedError{Why: "does not begin with http:// or https://"}
	}
	if u.User != nil {
		return refuse("has a user name in its address")
	}
	if u.Opaque != "" || strings.HasSuffix(u.Host, ":") {
		return refuse(errOdd.Error())
	}
	if text := u.Port(); text != "" {
		n, err := parsePort(text)
		if err != nil {
			return refuse(err.Error())
		}
		port = n
	}
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") && !strings.Contains(host, ":") {
		return refuse(errOdd.Error())
	}
	t, err := newTarget(host, port)
	if err != nil {
		return refuse(err.Error())
	}
	return t, nil
}

// shorten is a host as it may stand in an error or a log.
func shorten(host string) string { return shortenTo(host, 80) }

func shortenTo(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Zs) && r != ' ' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
