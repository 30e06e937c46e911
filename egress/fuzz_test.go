package egress

import (
	"math/big"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// What is reached is public by the words of net/netip, also within the forms that
// carry one address in another.
func FuzzReachable(f *testing.F) {
	for _, text := range []string{"127.0.0.1", "8.8.8.8", "::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:a00:1::", "2001:0:7f00:1::", "fd00::1", "fe80::1", "100.64.0.1", "255.255.255.255", "2606:4700::1111"} {
		a := netip.MustParseAddr(text).As16()
		f.Add(a[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		for _, exception := range []bool{false, true} {
			if reachable(a, exception) != "" {
				continue
			}
			for _, inner := range within(a) {
				bad := !inner.IsGlobalUnicast() && !inner.IsLoopback() || inner.IsUnspecified() || inner.IsMulticast() || inner.IsLinkLocalUnicast() ||
					inner == netip.MustParseAddr("255.255.255.255")
				if !exception {
					bad = bad || inner.IsLoopback() || inner.IsPrivate()
				}
				if bad {
					t.Errorf("%s (exception %v) is reached, and %s with it", a, exception, inner)
				}
			}
		}
	})
}

// within are all addresses that a may stand for.
func within(a netip.Addr) []netip.Addr {
	all := []netip.Addr{a.Unmap()}
	if a.Is4() {
		return all
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("::ffff:0:0:0/96").Contains(a), netip.MustParsePrefix("::/96").Contains(a) && b[12] != 0:
		all = append(all, netip.AddrFrom4([4]byte(b[12:])))
	case netip.MustParsePrefix("2002::/16").Contains(a):
		all = append(all, netip.AddrFrom4([4]byte(b[2:6])))
	case netip.MustParsePrefix("2001::/32").Contains(a):
		all = append(all, netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	return all
}

// A host that old programs read as an address is refused, unless it is that
// address in its usual form.
func FuzzHost(f *testing.F) {
	for _, text := range []string{"127.0.0.1", "127.1", "0x7f.1", "017700000001", "2130706433", "example.com", "[::1]", "a.0x1", "１２７.0.0.1", "8.8.8.8", "08.8.8.8", "0x", "1.2.3.4.", "user@x", "a%41b", "::1", "x..y", "0\xe500", "00--0.test"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, host string) {
		u, err := url.Parse("http://" + host + "/")
		if err != nil {
			return
		}
		got, err := targetOf(u)
		if err != nil {
			if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Errorf("%q", err)
			}
			return
		}
		if a, err := netip.ParseAddr(got.name); (err == nil) != got.addr.IsValid() || err == nil && a != got.addr {
			t.Errorf("%q: name %q, address %v", host, got.name, got.addr)
		}
		if a, ok := aton(strings.TrimSuffix(got.name, ".")); ok && (!got.addr.IsValid() || got.addr != a) {
			t.Errorf("%q is %+v, and to some programs %s", host, got, a)
		}
		again, err := newTarget(got.name, got.port)
		if err != nil || again != got {
			t.Errorf("%q: %+v, then %+v, %v", host, got, again, err)
		}
		if got.name != strings.ToLower(got.name) || strings.HasSuffix(got.name, ".") {
			t.Errorf("%q: %q is not the usual form", host, got.name)
		}
	})
}

// aton reads an address as inet_aton of C does.
func aton(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	sum := new(big.Int)
	for i, p := range parts {
		base := 10
		switch {
		case strings.HasPrefix(p, "0x") || strings.HasPrefix(p, "0X"):
			p, base = p[2:], 16
		case len(p) > 1 && p[0] == '0':
			p, base = p[1:], 8
		}
		n, ok := new(big.Int).SetString(p, base)
		if p == "" && base == 16 {
			n, ok = new(big.Int), true
		}
		if !ok || strings.ContainsAny(p, "+-_") {
			return netip.Addr{}, false
		}
		room := 8
		if i == len(parts)-1 {
			room = 8 * (5 - len(parts))
		}
		if n.BitLen() > room {
			return netip.Addr{}, false
		}
		sum.Lsh(sum, uint(room)).Add(sum, n)
	}
	var b [4]byte
	sum.FillBytes(b[:])
	return netip.AddrFrom4(b), true
}
