package web_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/claybot/claybot/web"
)

// A token comes out of a header only as it was put in.
func FuzzBearer(f *testing.F) {
	for _, s := range []string{"", "Bearer", "Bearer ", "bearer x", "BEARER  x ", "Basic x", "Bearer\tx", "Bearer x y", "x", " Bearer x", "Bearer \x00"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, value string, twice bool) {
		h := http.Header{"Authorization": {value}}
		if twice {
			h.Add("Authorization", value)
		}
		token, given := web.Bearer(h)
		switch {
		case twice && (token != "" || !given):
			t.Errorf("two headers: %q %v", token, given)
		case !given && token != "":
			t.Errorf("%q was not given", token)
		case token != "" && (!strings.HasSuffix(strings.TrimRight(value, " "), token) || !strings.EqualFold(value[:7], "bearer ")):
			t.Errorf("%q became %q", value, token)
		}
	})
}

var addr8420 = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8420}

// Without a token nothing behind the door is shown, whatever the headers say.
func FuzzStranger(f *testing.F) {
	w := &world{dir: f.TempDir()}
	srv, err := newServer(web.Config{
		Addr: "127.0.0.1:8420", Dir: w.dir, Ready: w.Ready, Routes: w.routes(), Hosts: []string{"chat.example.org"},
		Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")},
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"127.0.0.1:8420", "localhost:8420", "[::1]:8420", "chat.example.org", "", ":", "[", "[::1", "a:b:c", "127.0.0.1:8420:1", "\x00", "127.1:8420"} {
		f.Add("192.0.2.7:1", s, "203.0.113.5", "https", "Bearer x", "claybot-8420=x")
		f.Add(s, s, s, s, s, s)
	}
	f.Fuzz(func(t *testing.T, peer, host, hops, proto, auth, cookie string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/data", nil)
		r.RemoteAddr, r.Host = peer, host
		r.Header = http.Header{
			"X-Forwarded-For": {hops}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {proto}, "Authorization": {auth}, "Cookie": {cookie},
		}
		rec := httptest.NewRecorder()
		srv.PageForTest(t.Context(), addr8420).ServeHTTP(rec, r)
		switch rec.Code {
		case 401, 403, 421, 429:
		default:
			t.Errorf("status %d", rec.Code)
		}
		if strings.Contains(rec.Body.String(), treasure) {
			t.Error("a stranger saw something")
		}
	})
}

// A caller that is not a trusted proxy is identified by its own address.
func FuzzForwarded(f *testing.F) {
	for _, s := range []string{"", ",", "1.2.3.4", "1.2.3.4:5", "[::1]:5", "::1", "fe80::1%eth0", "unknown", "1.2.3.4, 10.0.0.1", "::ffff:10.0.0.1"} {
		f.Add("203.0.113.5:1", s, s)
		f.Add("10.0.0.1:1", s, s)
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, peer, hops, host string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.RemoteAddr, r.Host = peer, "before.example"
		r.Header = http.Header{"X-Forwarded-For": {hops}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"https"}}
		_, hostNow, tls := web.BelieveForTest(trusted, r)
		addr, err := netip.ParseAddrPort(peer)
		if err == nil && !trusted[0].Contains(addr.Addr().Unmap()) && (hostNow != "before.example" || tls) {
			t.Errorf("%s is believed: %s %v", peer, hostNow, tls)
		}
		for name := range r.Header {
			if strings.HasPrefix(name, "X-Forwarded") {
				t.Errorf("handlers see %s", name)
			}
		}
	})
}
