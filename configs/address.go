package configs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/lazyregexp"
)

// address accepts an http or https address whose host is exactly what stands there. The
// error never shows credentials.
func address(v string) (string, error) {
	if fault := addressFault(v); fault != "" {
		return "", errors.New(fault)
	}
	return v, nil
}

const addressExample = "such as https://host/path"

// addressFault says what is wrong with an address; empty for nothing.
func addressFault(v string) string {
	u, err := url.Parse(v)
	switch {
	case strings.Contains(v, "@"):
		return "an address must not hold a user name or password"
	case !strings.Contains(v, "://") && shownAddress(v) != "":
		return shownAddress(v) + " has no scheme: put https:// or http:// in front of it"
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "the value is not an http or https address " + addressExample
	case strings.ContainsAny(v, "?#"):
		return "an address must not hold a query or a fragment"
	}
	if fault := hostFault(u.Host); fault != "" {
		return fault
	}
	if strings.ContainsFunc(v, func(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f }) {
		return "an address must not hold spaces"
	}
	return ""
}

// hostFault says what is wrong with the host of an address, with or without a port;
// empty for nothing.
func hostFault(host string) string {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
		if !portNumber(port) {
			return "the port of an address is a number from 1 to 65535"
		}
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	ip, err := netip.ParseAddr(strings.ReplaceAll(bare, "%25", "%"))
	switch {
	case err == nil && (ip.Is4() == (bare == name)):
		return ""
	case strings.HasSuffix(name, "."):
		return "the host of an address must not end in a dot"
	case !ascii(name):
		return "the host of an address has letters that look like others: write it in its form of xn--"
	case !hostLabels(strings.ToLower(name)):
		return "the host of an address is not a name such as api.example.org, nor an IP address"
	}
	return ""
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= 0x80 })
}

// shownAddress is the host of an address without a scheme as a warning may show it,
// with an ellipsis for a path; empty where it may be something else, a secret above
// all.
func shownAddress(v string) string {
	host, path, _ := strings.Cut(v, "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, ""
	}
	_, ipErr := netip.ParseAddr(name)
	switch {
	case len(host) > 80 || secretive(v) || port != "" && !digits(port) || name == "":
		return ""
	case ipErr != nil && (!hostLabels(strings.ToLower(strings.TrimSuffix(name, "."))) || !strings.Contains(name, ".") && name != "localhost" && port == ""):
		return ""
	case path != "":
		return quote(host + "/…")
	}
	return quote(host)
}

func digits(s string) bool { return s != "" && len(s) <= 6 && strings.Trim(s, "0123456789") == "" }

// listen accepts host:port with a numeric port, and off.
func listen(v string) (string, error) {
	if v == Off || v == "false" {
		return Off, nil
	}
	name, port, err := net.SplitHostPort(v)
	n, portErr := strconv.Atoi(port)
	_, ipErr := netip.ParseAddr(name)
	if err != nil || portErr != nil || n < 0 || n > 65535 || !digits(port) || name != "" && ipErr != nil && !hostLabels(strings.ToLower(name)) {
		return "", fmt.Errorf("%s is not an address such as %s, and not off", quote(v), DefaultHTTP)
	}
	return v, nil
}

// host is a name or an address as browsers send it, with or without a port.
var host = lazyregexp.New(`^([a-z0-9_]([a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)

func browserHost(v string) (string, error) {
	name := strings.ToLower(v)
	if !host.MatchString(name) {
		return "", fmt.Errorf("%s is not a host such as chat.example.org or chat.example.org:8443", quote(v))
	}
	return name, nil
}

// hostPattern returns a parser of hosts that may begin with "*.".
func hostPattern(examples string) func(string) (string, error) {
	return func(v string) (string, error) {
		name := strings.ToLower(v)
		if !host.MatchString(strings.TrimPrefix(name, "*.")) {
			return "", fmt.Errorf("%s is not a host such as %s", quote(v), examples)
		}
		return name, nil
	}
}

// webHost returns an entry of the list of hosts that agents may fetch from.
func webHost(text string) (string, error) {
	bad := fmt.Errorf(`%s is not a host such as docs.example.org, "*.example.org" or example.org:8443`, quote(text))
	entry := strings.ToLower(strings.TrimSpace(text))
	name, below := strings.CutPrefix(entry, "*.")
	if h, port, err := net.SplitHostPort(name); err == nil {
		if !portNumber(port) {
			return "", bad
		}
		name = h
	}
	name = strings.TrimSuffix(name, ".")
	switch {
	case below && !strings.Contains(name, "."):
		return "", fmt.Errorf("%s stands for too much of the web; name a host below it", quote(text))
	case !hostLabels(name):
		return "", bad
	}
	return entry, nil
}

// privatePair returns a host with its port.
func privatePair(text string) (string, error) {
	bad := fmt.Errorf("%s is not a host with its port, such as wiki.internal:8080 or 10.0.0.5:80", quote(text))
	h, port, err := net.SplitHostPort(strings.ToLower(strings.TrimSpace(text)))
	if err != nil || !portNumber(port) {
		return "", bad
	}
	if a, err := netip.ParseAddr(h); err == nil {
		a = a.Unmap()
		if a.Zone() != "" || !a.IsLoopback() && !a.IsPrivate() && !carrier.Contains(a) || egress.Metadata(a) {
			return "", fmt.Errorf("%s is not an address of a private network", quote(text))
		}
		return net.JoinHostPort(a.String(), port), nil
	}
	if !hostLabels(strings.TrimSuffix(h, ".")) {
		return "", bad
	}
	return net.JoinHostPort(strings.TrimSuffix(h, "."), port), nil
}

var carrier = netip.MustParsePrefix("100.64.0.0/10")

func portNumber(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == text
}

// lookup is how names of hosts are looked up.
var lookup = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule())

// hostLabels reports whether name is a DNS name that cannot be mistaken for an
// IP address. Internationalized names must be in their xn-- form.
func hostLabels(name string) bool {
	if ascii, err := lookup.ToASCII(name); err != nil || ascii != name {
		return false
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	if rest, ok := strings.CutPrefix(last, "0x"); ok {
		return len(name) <= 253 && strings.Trim(rest, "0123456789abcdef") != ""
	}
	return len(name) <= 253 && strings.Trim(last, "0123456789") != ""
}
