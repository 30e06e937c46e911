package configs

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// setHTTP reads an address alone, or the group of keys.
func setHTTP(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind == yaml.ScalarNode {
		r.listen(at, strings.TrimSpace(n.Value), c)
		return
	}
	group(r, at, n, c, httpKeys())
}

// httpKeys are the settings of the web page beside its names.
func httpKeys() []key[Config] {
	return []key[Config]{
		text("addr", func(r *reader, at place, v string, c *Config) { r.listen(at, v, c) }),
		text("tls_cert", func(r *reader, at place, v string, c *Config) { c.HTTP.Guard.TLSCert = r.path(v) }),
		text("tls_key", func(r *reader, at place, v string, c *Config) { c.HTTP.Guard.TLSKey = r.path(v) }),
		{"trusted_proxies", func(r *reader, at place, n *yaml.Node, c *Config) {
			items, ok := r.list(at, n)
			store(&c.HTTP.Guard.Proxies, r.prefixes(items), ok)
		}},
		text("insecure", func(r *reader, at place, v string, c *Config) { r.truth(at, v, &c.HTTP.Guard.Insecure) }),
	}
}

func (r *reader) listen(at place, v string, c *Config) {
	addr, ok := r.address(at, v)
	store(&c.HTTP.Addr, addr, ok)
}

// NamelessProxy reports whether there is a proxy before the web page, and no name by
// which people may come: names that are not listed are turned away.
func (c Config) NamelessProxy() bool {
	return c.HTTP.Addr != Off && len(c.HTTP.Guard.Proxies) > 0 && len(c.HTTP.Hosts) == 0
}

// path is that of a file beside the configuration, unless it is whole.
func (r *reader) path(v string) string {
	if v == "" || filepath.IsAbs(v) {
		return v
	}
	return filepath.Join(r.dir, v)
}

// prefixes reads addresses and networks and leaves out bad ones, and those that
// mean everybody: what a stranger says about himself is not to be believed.
func (r *reader) prefixes(items []item) []netip.Prefix {
	var list []netip.Prefix
	for _, it := range items {
		p, err := netip.ParsePrefix(it.text)
		if addr, alone := netip.ParseAddr(it.text); alone == nil {
			addr = addr.Unmap()
			p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		switch {
		case err != nil || !p.IsValid() || p.Addr().Is4In6():
			r.warn(it.at, "%s is not an address such as 10.0.0.5, nor a network such as 10.0.0.0/8; ignored", quote(it.text))
		case p.Bits() == 0:
			r.warn(it.at, "%s means everybody; name the proxy alone; ignored", quote(it.text))
		case !slices.Contains(list, p.Masked()):
			list = append(list, p.Masked())
		}
	}
	return list
}
