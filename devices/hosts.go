package devices

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot/lazyregexp"
)

// Hosts are the only places that an application may reach: names with ports.
// The zero Hosts allow nothing.
type Hosts struct{ entries []host }

// A host is a name in small letters, with any name below it where below is set.
// No port means the usual ones, 80 and 443.
type host struct {
	name  string
	below bool
	port  string
}

// ParseHosts reads a list of hosts, such as "example.com" and "localhost:3000".
// "*.example.com" stands for all names below that one; "*.com" is refused, as it
// is no one's. Without a port, the usual ports of http and https are meant.
func ParseHosts(list []string) (Hosts, error) {
	var all Hosts
	for _, text := range list {
		h, err := parseHost(text)
		if err != nil {
			return Hosts{}, err
		}
		if !slices.Contains(all.entries, h) {
			all.entries = append(all.entries, h)
		}
	}
	return all, nil
}

func parseHost(text string) (host, error) {
	fault := func(why string) (host, error) {
		return host{}, fmt.Errorf("host %.80q: %s", text, why)
	}
	h := host{name: strings.TrimSpace(text)}
	if strings.Contains(h.name, "/") {
		return fault(`a host is a name like "example.com" or "localhost:3000", not an address`)
	}
	h.name, h.below = strings.CutPrefix(h.name, "*.")
	if name, port, err := net.SplitHostPort(h.name); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fault("the port is not a number from 1 to 65535")
		}
		h.name, h.port = name, strconv.FormatUint(n, 10)
	}
	h.name = canonical(strings.Trim(h.name, "[]"))
	switch {
	case h.name == "" || h.name == "*":
		return fault("the name is missing")
	case !ascii(h.name):
		return fault("write a name with other letters in its form of xn--…")
	case net.ParseIP(h.name) == nil && !hostName.MatchString(h.name), h.below && net.ParseIP(h.name) != nil:
		return fault("this is not a host name")
	case h.below && !strings.Contains(h.name, "."):
		return fault(`that is too much of the web; name a host below it, like "*.example.com"`)
	}
	return h, nil
}

var hostName = lazyregexp.New(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*$`)

// Len is how many entries there are.
func (a Hosts) Len() int { return len(a.entries) }

// String lists the hosts, for people.
func (a Hosts) String() string {
	texts := make([]string, 0, len(a.entries))
	for _, h := range a.entries {
		text := h.name
		if h.below {
			text = "*." + text
		}
		if h.port != "" {
			text = net.JoinHostPort(text, h.port)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// Allows reports whether an address is within the hosts: http or https (ws or
// wss), no name and password, and a host of the list.
func (a Hosts) Allows(u *url.URL) bool {
	if u == nil || u.User != nil || u.Opaque != "" {
		return false
	}
	port := u.Port()
	switch u.Scheme {
	case "http", "ws":
		port = orDefault(port, "80")
	case "https", "wss":
		port = orDefault(port, "443")
	default:
		return false
	}
	return a.allows(u.Hostname(), port)
}

// AllowsURL is Allows for an address as text.
func (a Hosts) AllowsURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && a.Allows(u)
}

// AllowsAddr reports whether "name:port" is within the hosts.
func (a Hosts) AllowsAddr(addr string) bool {
	name, port, err := net.SplitHostPort(addr)
	return err == nil && a.allows(name, port)
}

func (a Hosts) allows(name, port string) bool {
	name = canonical(name)
	if name == "" || !ascii(name) {
		return false
	}
	return slices.ContainsFunc(a.entries, func(h host) bool {
		if h.port == "" && port != "80" && port != "443" || h.port != "" && h.port != port {
			return false
		}
		if h.below {
			return strings.HasSuffix(name, "."+h.name)
		}
		return name == h.name
	})
}

// HostOf is the host of an address as it stands in a list of hosts: with its
// port, where the address names one. ok is false when it is no address of the web.
func HostOf(address string) (entry string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", false
	}
	return u.Host, true
}

// canonical is a name of a host as it is compared.
func canonical(name string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if ip := net.ParseIP(name); ip != nil {
		return ip.String()
	}
	return name
}

func orDefault(port, usual string) string {
	if port == "" {
		return usual
	}
	return port
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || r <= ' ' })
}
