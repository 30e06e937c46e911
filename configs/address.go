package configs

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// url accepts an http or https address whose host is exactly what stands there. Any
// other value is refused with what is wrong with it; credentials are never shown.
func (r *reader) url(at place, v string) (string, bool) {
	if fault := addressFault(v); fault != "" {
		r.warn(at, "%s; ignored", fault)
		return "", false
	}
	return v, true
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
