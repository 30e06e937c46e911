package egress

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// A target is a host and a port in the one form in which they are compared: a
// name in small letters of ASCII without a dot at the end, or an address.
type target struct {
	name string     // of an address its usual text
	addr netip.Addr // valid when the host is an address
	port uint16
}

func (t target) String() string {
	return net.JoinHostPort(t.name, strconv.Itoa(int(t.port)))
}

var (
	errNoHost  = errors.New("has no host")
	errOdd     = errors.New("is not a host name or an address in its usual form")
	errZone    = errors.New("names an interface of this machine")
	errNumber  = errors.New("is a number, not the name of a host; write an address with its four parts")
	errPort    = errors.New("has no port from 1 to 65535")
	errNoNames = errors.New("has too long a name")
)

// names is how host names are brought to ASCII: as browsers look them up.
var names = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule())

func parseTarget(text string) (target, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return target{}, errPort
	}
	n, err := parsePort(port)
	if err != nil {
		return target{}, err
	}
	return newTarget(host, n)
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != text {
		return 0, errPort
	}
	return uint16(n), nil
}

func newTarget(host string, port uint16) (target, error) {
	name, addr, err := parseHost(host)
	return target{name, addr, port}, err
}

// parseHost reads a host without its port: an address without brackets, or a
// name. What some programs read as an address and others as a name, such as
// 127.1, 0x7f.1, 017700000001 and 2130706433, is refused, so that what was checked
// is what is meant.
func parseHost(host string) (name string, addr netip.Addr, err error) {
	if host == "" {
		return "", addr, errNoHost
	}
	if len(host) > 512 {
		return "", addr, errNoNames
	}
	if strings.Contains(host, ":") {
		return parseV6(host)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String(), a, nil
	}
	ascii, err := names.ToASCII(host)
	if err != nil {
		return "", addr, errOdd
	}
	ascii = strings.TrimSuffix(ascii, ".")
	if again, err := names.ToASCII(ascii); err != nil || again != ascii {
		return "", addr, errOdd // a name that some programs look up and others refuse
	}
	if _, err := netip.ParseAddr(ascii); err == nil {
		return "", addr, errOdd // written in letters that only look like it
	}
	if err := checkName(ascii); err != nil {
		return "", addr, err
	}
	return ascii, addr, nil
}

func parseV6(host string) (string, netip.Addr, error) {
	a, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "", netip.Addr{}, errOdd
	case a.Zone() != "":
		return "", netip.Addr{}, errZone
	}
	a = plain(a)
	return a.String(), a, nil
}

func checkName(name string) error {
	if name == "" || len(name) > 253 {
		return errNoNames
	}
	label := ""
	for label = range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return errOdd
		}
		if strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return errOdd
		}
	}
	if numeric(label) {
		return errNumber
	}
	return nil
}

// numeric reports the last part of a name that makes programs read all of it as
// an address: digits alone, or 0x with digits of base 16 or none.
func numeric(label string) bool {
	digits, base := label, "0123456789"
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		digits, base = rest, base+"abcdef"
	}
	return strings.Trim(digits, base) == ""
}

// HostOf is the host of an http or https address as lists of hosts have it: in
// the form in which names are compared, with its port unless that is the usual
// one. The error is a *RefusedError for what leads nowhere.
func HostOf(address string) (string, error) {
	u, t, err := parseAddress(address)
	if err != nil {
		return "", err
	}
	return hostOf(t, u.Scheme), nil
}

// PairOf is HostOf with the port always, as Policy.Private has it.
func PairOf(address string) (string, error) {
	_, t, err := parseAddress(address)
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

func parseAddress(address string) (*url.URL, target, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, target{}, &RefusedError{Why: "is not a valid one"}
	}
	t, err := targetOf(u)
	return u, t, err
}
